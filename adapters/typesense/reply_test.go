package typesense

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// memberwise is a result as [jsonedit.Members] and [jsonedit.Elements] take it apart, and as Cut and Set put it together: one pass for each
// level and each change.
type memberwise struct {
	raw     []byte
	members []jsonedit.Member
	params  []jsonedit.Member
	hits    []memberHit
}

type memberHit struct {
	raw, document []byte
	members       []jsonedit.Member
	inside        []jsonedit.Member
}

func readMemberwise(raw []byte) (r memberwise, ok bool) {
	var err error
	r.raw = raw
	if r.members, err = jsonedit.Members(raw); err != nil || jsonedit.Get(r.members, "error") != nil {
		return r, false
	}
	if r.params, err = jsonedit.Members(jsonedit.Get(r.members, "request_params")); err != nil {
		return r, false
	}
	list, err := jsonedit.Elements(jsonedit.Get(r.members, "hits"))
	if err != nil {
		return r, false
	}
	for _, raw := range list {
		h := memberHit{raw: raw}
		if h.members, err = jsonedit.Members(raw); err != nil {
			return r, false
		}
		h.document = jsonedit.Get(h.members, "document")
		if h.inside, err = jsonedit.Members(h.document); err != nil {
			return r, false
		}
		r.hits = append(r.hits, h)
	}
	return r, true
}

// doubled reports whether a name that matters stands twice: then the result is not taken.
func (r memberwise) doubled() bool {
	twice := func(members []jsonedit.Member, names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			n := 0
			for _, m := range members {
				if m.Key == name {
					n++
				}
			}
			return n > 1
		})
	}
	return twice(r.members, "hits", "request_params", "page", "found") || twice(r.params, "per_page", "page") ||
		slices.ContainsFunc(r.hits, func(h memberHit) bool { return twice(h.members, "document") })
}

func (h memberHit) bare(q *query) []byte {
	document, err := jsonedit.Cut(h.document, func(key string) bool {
		return key == "id" && !q.preset() && !q.fields.sees("id") || rule.Our(key) && !(q.namesOurs && q.fields.sees(key))
	})
	if err != nil {
		return nil
	}
	raw, _ := jsonedit.Set(h.raw, "document", document)
	return raw
}

func (r memberwise) present(q *query, found int) []byte {
	var hits [][]byte
	for _, h := range slices.Backward(r.hits) {
		hits = append(hits, h.bare(q))
	}
	raw, _ := jsonedit.Set(r.raw, "hits", jsonedit.Array(hits))
	set := func(object []byte, key string, n int) []byte {
		members, _ := jsonedit.Members(object)
		if jsonedit.Get(members, key) == nil {
			return object
		}
		object, _ = jsonedit.Set(object, key, strconv.AppendInt(nil, int64(n), 10))
		return object
	}
	if found >= 0 {
		raw = set(raw, "found", found)
	}
	if q.asked.Unseen != "" {
		return raw
	}
	raw = set(raw, "page", q.page.number)
	params := set(set(jsonedit.Get(r.members, "request_params"), "per_page", q.page.size), "page", q.page.number)
	raw, _ = jsonedit.Set(raw, "request_params", params)
	return raw
}

// A result that is read in one pass, and the answer made of its pieces, are what its members make.
func FuzzResultsAreReadAsTheirMembers(f *testing.F) {
	for _, document := range []string{
		`{"id":"1","neardup_sketch":"s","title":"a"}`, `{"neardup_sketch":"s"}`, `{"id":"1","neardup_sketch":"s"}`, `{"neardup_sketch":"s","z":1}`,
		`{"a.b":1,"neardup_bands":[1],"neardup_cluster":"c","neardup_sketch":"s","title":["x","y\n"]}`, `{"neardup_bands":[1],"id":"1","neardup_sketch":"s"}`,
		`{ "id" : "1" , "neardup_sketch" : "s" }`, `{"id":"1",/* c */"neardup_sketch":"s"}`, `{"neardup_sketch":"s","neardup_sketch":"t"}`, `{}`, `[]`, `null`,
	} {
		f.Add(`{"facet_counts":[],"found":7,"hits":[{"document":` + document + `,"highlights":[]},{"curated":true,"document":{"id":"2"},"vector_distance":0.5}],` +
			`"out_of":9,"page":1,"request_params":{"collection_name":"news","per_page":10,"q":"x"},"search_cutoff":false}`)
	}
	for _, s := range []string{
		`{"code":404,"error":"Not found."}`, `{"hits":[],"hits":[],"page":1,"found":0,"request_params":{"per_page":10,"page":1,"collection_name":"c"}}`,
		`{"request_params":{"per_page":10,"collection_name":"c"},"page":1,"hits":[{"document":{}}],"found":3}`, `{"found":"3"}`, `{"hits":3}`,
		`{"found":0,"hits":[{"document":true,"document":{}}],"page":1,"request_params":{"collection_name":"0","per_page":10}}`,
	} {
		f.Add(s)
	}
	queries := []*query{
		{}, {fields: fields{exclude: []string{"id"}}}, {namesOurs: true, fields: fields{include: []string{"neardup_sketch", "title"}}}, {asked: adapters.Asked{Unseen: "preset"}},
	}
	for _, q := range queries {
		q.page = enginePage{3, 2}
	}
	texts := []string{"title", "meta.text"}
	f.Fuzz(func(t *testing.T, raw string) {
		body := []byte(`{"results":[` + raw + `]}`)
		raw = strings.Trim(raw, " \t\r\n") // no element of a list has these around it
		results, err := (&wire{sketched: texts}).Split([]*adapters.Request{{Hits: 1}}, &adapters.Reply{Status: 200, Body: body})
		if err != nil || len(results) != 1 {
			return // other tests hold the scanner
		}
		r := results[0].Parsed.(*result)
		want, ok := readMemberwise([]byte(raw))
		wrong := r.check(&enginePage{1, 10})
		if !ok || want.doubled() {
			if wrong == nil {
				t.Fatalf("taken: %s", raw)
			}
			return
		}
		found, number, size := count(want.members, "found"), count(want.members, "page"), count(want.params, "per_page")
		if wrong != nil {
			if collection, _ := jsonedit.Text(jsonedit.Get(want.params, "collection_name")); number == 1 && size == 10 && found >= 0 && collection != "" &&
				len(want.hits) <= 10 && jsonedit.Get(want.members, "grouped_hits") == nil {
				t.Fatalf("%v: %s", wrong, raw)
			}
			return
		}
		if string(r.raw) != raw || r.found != found || r.page != (enginePage{number, size}) || len(r.hits) != len(want.hits) {
			t.Fatalf("%+v of %s", r, raw)
		}
		for i := range r.hits {
			checkHit(t, &r.hits[i], want.hits[i], texts)
		}
		for _, q := range queries {
			for _, found := range []int{-1, 5} {
				var hits [][]byte
				for i := len(r.hits) - 1; i >= 0; i-- {
					hits = append(hits, expect.Value(q.appendHit(nil, &r.hits[i]))(t).Bytes())
				}
				got := q.withHits(r, adapters.Pieces{jsonedit.Array(hits)}, found).Bytes()
				expect.Must(t, string(want.present(q, found)), string(got), "%+v", q)
			}
		}
	})
}

func checkHit(t *testing.T, h *hit, want memberHit, texts []string) {
	t.Helper()
	id, _ := jsonedit.Text(jsonedit.Get(want.inside, "id"))
	stored, _ := jsonedit.Text(jsonedit.Get(want.inside, rule.SketchField))
	near, fused := jsonedit.Get(want.members, "vector_distance") != nil, jsonedit.Get(want.members, "hybrid_search_info") != nil
	if !bytes.Equal(h.raw, want.raw) || !bytes.Equal(h.document, want.document) || h.id != id || string(h.stored) != stored || h.neighbour != near || h.fused != fused ||
		h.curated != (string(jsonedit.Get(want.members, "curated")) == "true") {
		t.Fatalf("%+v of %s", h, want.raw)
	}
	expect.Must(t, string(unflattened(want.document)), string(h.unflattened()), "%s", want.document)
	var members []string
	for _, m := range want.inside {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(text, m.Key) }) {
			members = append(members, m.Key+string(m.Value))
		}
	}
	var got []string
	for _, m := range h.members {
		got = append(got, m.Key+string(m.Value))
	}
	expect.Must(t, got, members, "")
}

// A deep page's sketches are asked for in pages of one size that go together and come uncompressed; the client's answer is coded as the
// reply in its own content is.
func TestSketchesComeTogetherAndUncompressed(t *testing.T) {
	rule := newRule(t, "news", "body")
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(3, 3)), rule, 900, 0.3)}
	rule.Compute = false // else texts are read where sketches lack
	r := get("/collections/news/documents/search?q=x&page=40")
	r.Header = adapters.Header{"Accept-Encoding": {"gzip"}}
	var rounds []string
	answer, err := adaptertest.Run(search(r, planFor(adapters.Scope{Widening: rerank.Widening{Rate: 0.3}}, rule)), func(r *adapters.Request) *adapters.Reply {
		searches, _ := fakeSearches(r)
		perPage, _ := fakeNumber(searches[0], "per_page", 10)
		rounds = append(rounds, fmt.Sprint(len(searches), perPage > 100, r.Header["Accept-Encoding"]))
		reply := *f.reply(r)
		if len(r.Header["Accept-Encoding"]) > 0 {
			reply.Header = adapters.Header{"Content-Encoding": {"gzip"}}
		}
		return &reply
	})
	expect.OK(t, err)
	want := []string{"1 true []", "1 true []", "1 true []", "1 false [gzip]"}
	if !slices.Equal(rounds, want) || !slices.Equal(answer.Header["Content-Encoding"], []string{"gzip"}) || answer.Outcomes[0].Rounds != 2 {
		t.Errorf("%q, %v, %+v", rounds, answer.Header, answer.Outcomes)
	}
	var shown struct{ Hits []json.RawMessage }
	if err := json.Unmarshal(answer.Body, &shown); err != nil || len(shown.Hits) != 10 {
		t.Errorf("%v: %s", err, answer.Body)
	}
}
