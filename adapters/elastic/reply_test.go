package elastic

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// FuzzListing holds what one pass reads of any reply, and the hits put in its place, against the same done a member after the other.
func FuzzListing(f *testing.F) {
	const hit = `{"_index":"news-1","_id":"1","_seq_no":3,"_primary_term":1,"sort":[1],"_source":{"a":1},"fields":{"neardup_sketch":["AQ=="],"n":[1]}}`
	for _, s := range []string{
		`{"took":1,"_shards":{"total":1,"failed":0},"hits":{"total":{"value":3,"relation":"gte"},"max_score":1.0,"hits":[` + hit + `,` + hit + `]},"aggregations":{}}`,
		"{\n \"hits\" : {\n  \"total\" : 7,\n  \"hits\" : [\n   " + hit + " ,\n   " + hit + "\n  ]\n }\n}", `{"hits":{"hits":[],"total":0}}`, `{"hits":{"hits":[ ]}}`,
		"{\"hits\":{\"hits\":[\n " + hit + "\n]}}", `{"hits":{"hits":[1,{}, "a"]}}`, `{"hits":[]}`, `{"hits":{}}`, `{}`, `{"hits":{"hits":{}}}`, `{"hits":{"hits":[{"fields":1}]}}`,
		`{"_shards":{"failed":1},"hits":{"hits":[]}}`, `{"_shards":{"failed":1,"failures":[{"reason":"[index.max_result_window]"}]},"hits":{"hits":[]}}`,
		`{"hits":{"total":-1,"hits":[{"_id":"1","_id":"2","fields":{"neardup_sketch":["A","A"]}},{"fields":{"neardup_sketch":["A","B"]}}]}}`,
		ourHits(``, ``, ``), ourHits(` `, ``, ``), ourHits(``, `,"neardup_x":1`, ``), ourHits(``, ``, `,"n":[1]`), ourHits(``, `,"o":{"neardup_sketch":1}`, ``),
		ourHits(``, `,"neardup_bands":[1],"b":{}`, `,"neardup_bands":[1]`), ourHits(``, `,"n\u0065ardup_bands":[1]`, ``), ourHits("\n", `,"a":1`, ``),
		`{"hits":{"hits":[{"_id":"1","_source":{"neardup_sketch":"AQ=="},"fields":{"neardup_sketch":["AQ=="]}}]}}`,
		`{"hits":{"hits":[{"_id":"1","_source":{"a":1,"neardup_sketch":"AQ=="},"_source":{"a":1,"neardup_sketch":"AQ=="},"fields":{}}]}}`,
		`{"hits":{"hits":[{"fields":{"neardup_sketch":["AQ=="]}}],"hits":[{"_id":"1","fields":{"neardup_sketch":["AQ=="]}}]},"hits":{"hits":[1]}}`,
	} {
		f.Add([]byte(s), uint8(1))
	}
	f.Fuzz(func(t *testing.T, reply []byte, keep uint8) {
		got, err := parseReply(reply, nil)
		want, wantErr := slowListing(reply)
		if (err == nil) != (wantErr == nil) || wantErr == adapters.ErrWidened && err != wantErr {
			if again, _ := jsonedit.Members(reply); !jsonedit.Repeated(again) { // of two objects of one name the last counts, whatever the first is
				t.Fatalf("%q: %v, want %v", reply, err, wantErr)
			}
		}
		if err != nil || wantErr != nil {
			return
		}
		if diff := cmp.Diff(want.hits, rawOf(got.hits)); diff != "" || want.total != got.total || want.lowest != got.lowest {
			t.Fatalf("%q: %d %t, want %d %t: %s", reply, got.total, got.lowest, want.total, want.lowest, diff)
		}
		for i := range got.hits {
			h := &got.hits[i]
			members, _ := jsonedit.Members(h.raw)
			fields, _ := jsonedit.Members(jsonedit.Get(members, "fields"))
			for key, e := range map[string]extent{"_index": h.index, "_id": h.id, "_seq_no": h.number, "_primary_term": h.term, "sort": h.sort,
				"_source": h.source, "fields": h.fields} {
				expect.Must(t, string(jsonedit.Get(members, key)), string(h.at(e)), "%q: %s", h.raw, key)
			}
			expect.Must(t, slowSketch(fields), string(sketchIn(h.at(h.sketch))), "%q: the sketch", h.raw)
		}
		hits := want.hits[:min(int(keep), len(want.hits))]
		if root, _ := jsonedit.Members(reply); jsonedit.Repeated(root) || jsonedit.Repeated(want.outer) {
			return
		}
		slow, err := slowWithHits(reply, hits)
		if fast, fastErr := withHits(reply, hits); err != nil || fastErr != nil || !bytes.Equal(fast, slow) {
			t.Fatalf("%q with %d hits is\n%q %v, want\n%q %v", reply, len(hits), fast, fastErr, slow, err)
		}
		for _, total := range [][]byte{nil, []byte("12345")} {
			whole := got.with(hits, total)
			if bare, ok := got.pieces(rawOf(got.hits)[:len(hits)], total, true); ok && !bytes.Equal(bare.Bytes(), jsonedit.Cleaned(whole, inDocument)) {
				t.Fatalf("%q with %d hits less ours is\n%q, want\n%q", reply, len(hits), bare.Bytes(), jsonedit.Cleaned(whole, inDocument))
			}
		}
		if counted := got.with(hits, []byte("12345")); jsonedit.Get(want.outer, "total") != nil {
			again, err := parseReply(counted, nil)
			if err != nil || again.total != 12345 || len(again.hits) != len(hits) {
				t.Fatalf("%q with a total is %q: %v", reply, counted, err)
			}
		}
	})
}

// ourHits returns a reply with two hits of which each holds our fields, with something in front of some commas, more in the source and more
// among the fields.
func ourHits(space, source, fields string) string {
	h := `{"_id":"1","_source":{"a":"neardup_sketch"` + space + `,"neardup_sketch":"AQ=="` + source + `},"fields":{"neardup_sketch":["AQ=="]` + fields + `}}`
	return `{"took":1,"hits":{"total":2,"hits":[` + h + `,` + h + `]},"aggregations":{"t":{"hits":{"hits":[{"_source":{"b":1}}]}}}}`
}

// slowSketch is the sketch among the fields extracted from a hit, decoded a member after the other.
func slowSketch(fields []jsonedit.Member) string {
	values, _ := jsonedit.Elements(jsonedit.Get(fields, rule.SketchField))
	for _, value := range values {
		if !bytes.Equal(value, values[0]) {
			return ""
		}
	}
	if len(values) == 0 {
		return ""
	}
	text, _ := jsonedit.Text(values[0])
	if missing := -len(text) & 3; missing < 3 && !strings.HasSuffix(text, "=") {
		text += "=="[:missing]
	}
	return text
}

// slowList is what is read of a reply.
type slowList struct {
	outer  []jsonedit.Member
	hits   [][]byte
	total  int
	lowest bool
}

func slowListing(reply []byte) (l slowList, err error) {
	root, err := jsonedit.Members(reply)
	if err != nil {
		return l, err
	}
	if failedForUs(jsonedit.Get(root, "_shards"), nil) {
		return l, adapters.ErrWidened
	}
	if l.outer, err = jsonedit.Members(jsonedit.Get(root, "hits")); err != nil {
		return l, err
	}
	count := jsonedit.Get(l.outer, "total")
	if members, err := jsonedit.Members(count); err == nil {
		count, l.lowest = jsonedit.Get(members, "value"), string(jsonedit.Get(members, "relation")) == `"gte"`
	}
	if l.total, err = strconv.Atoi(string(count)); err != nil {
		l.total = -1
	}
	elements, err := jsonedit.Elements(jsonedit.Get(l.outer, "hits"))
	l.hits = append([][]byte{}, elements...)
	return l, err
}

func slowWithHits(reply []byte, hits [][]byte) ([]byte, error) {
	root, err := jsonedit.Members(reply)
	if err != nil {
		return nil, err
	}
	outer := jsonedit.Get(root, "hits")
	members, err := jsonedit.Members(outer)
	if err != nil {
		return nil, err
	}
	if outer, err = jsonedit.Set(outer, "hits", joinLike(jsonedit.Get(members, "hits"), hits)); err != nil {
		return nil, err
	}
	return jsonedit.Set(reply, "hits", outer)
}
