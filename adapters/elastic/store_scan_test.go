package elastic

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestParts splits shards of all sizes: the parts hold each number of each shard once, the last one all that are to come, and a name
// is read back as what was named.
func TestParts(t *testing.T) {
	seed := effort.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for range effort.Rounds(2000) {
		all := make(part, 1+random.IntN(4))
		documents, total := make([]int, len(all)), 0
		for i := range all {
			documents[i] = random.IntN([]int{1, 3, 50, 100_000}[random.IntN(4)])
			if documents[i] > 0 {
				all[i].next = random.Int64N(100)
				all[i].to = all[i].next + int64(documents[i]) + random.Int64N(50)
			}
			total += documents[i]
		}
		n := 1 + random.IntN(6)
		names := parted(all, documents, n)
		if want := min(n, total/2); len(names) < want/2 || len(names) > 1+max(mostPieces, n)+len(all) {
			t.Errorf("%d parts of %+v, not some %d", len(names), all, want)
		}
		ends := make([]int64, len(all)) // up to where each shard is in a part
		for i, name := range names {
			p, err := parsePart(name)
			if err != nil || p.String() != name || p.open() != (i == len(names)-1) {
				t.Fatalf("part %d of %d, %s: %v, %v", i, len(names), name, p, err)
			}
			for _, s := range p {
				expect.Must(t, ends[s.shard], s.next, "%q: where shard %d goes on", names, s.shard)
				ends[s.shard] = s.to
			}
		}
		for shard, end := range ends {
			expect.Same(t, int64(-1), end, "%q: where shard %d ends", names, shard)
		}
	}
}

// TestPartsThatAreNone reads names and marks of no part.
func TestPartsThatAreNone(t *testing.T) {
	for _, text := range []string{"", "0", "0:", "0:1", "0:-", "0:-5", "a:0-1", "0:0-1,", "-1:0-", "0:5-3", "1/4", "0:0-9223372036854775808"} {
		if p, err := parsePart(text); err == nil {
			t.Errorf("%q is %v", text, p)
		}
	}
	for _, after := range []string{"x", "1", "1,2,3", "1,-2", "1,"} {
		if err := (part{{to: 5}, {shard: 1, to: -1}}).moveOn(after); err == nil {
			t.Errorf("%q is a mark", after)
		}
	}
}

// FuzzReadScanPage holds the reader of replies to that of documents, on what is JSON; on what is not it comes to an end.
func FuzzReadScanPage(f *testing.F) {
	f.Add([]byte(`{"took":1,"_shards":{"failed":0},"hits":{"total":{"value":2,"relation":"eq"},"hits":[{"_id":"a\"\\","_seq_no":7,` +
		`"_routing":"r","_primary_term":1,"_source":{"a":[1,{"b":"}]\\\"{"}],"_id":"x"},"sort":[7]},{"_id":"é","_seq_no":8}]}}`))
	f.Add([]byte("{\n \"docs\" : [ { \"_id\" : \"1\" , \"found\" : true } , {\"_id\":\"2\",\"error\":{\"type\":\"t\"}} ] }"))
	f.Add([]byte(`{"hits":{"hits":[]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for cut := range min(len(body), 200) {
			_, _ = readScanPage(body[:cut], "u")
		}
		got, err := readScanPage(body, "u")
		root, malformed := jsonedit.Members(body)
		outer, none := jsonedit.Members(jsonedit.Get(root, "hits"))
		list, empty := jsonedit.Elements(jsonedit.Get(outer, "hits"))
		if malformed != nil || none != nil || empty != nil || err != nil || jsonedit.Get(root, "docs") != nil || jsonedit.Repeated(root) || jsonedit.Repeated(outer) {
			return // of what stands twice, who counts is the reader's affair
		}
		expect.Must(t, len(list), len(got.hits), "hits")
		for i, raw := range list {
			hit, err := jsonedit.Members(raw)
			if err != nil || jsonedit.Repeated(hit) {
				continue
			}
			id, _ := jsonedit.Text(jsonedit.Get(hit, "_id"))
			if h := got.hits[i]; h.ID != id || !bytes.Equal(h.Source, jsonedit.Get(hit, "_source")) {
				t.Errorf("%s is read as %q, %s", raw, h.ID, h.Source)
			}
		}
	})
}

// TestHalfAnswers must not be taken for whole ones: what they leave out would count as not there.
func TestHalfAnswers(t *testing.T) {
	const hits = `"hits":{"hits":[{"_id":"a","_seq_no":1,"_source":{}}]}}`
	for _, c := range []struct {
		name, reply string
		whole, busy bool
	}{
		{"whole", `{"took":1,"timed_out":false,"_shards":{"total":1,"failed":0},` + hits, true, false},
		{"out of time", `{"took":1,"timed_out":true,"_shards":{"total":1,"failed":0},` + hits, false, true},
		{"a shard failed", `{"took":1,"timed_out":false,"_shards":{"total":2,"failed":1},` + hits, false, false},
		{"cut short", `{"took":1,"timed_out":false,` + hits[:len(hits)-2], false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := readScanPage([]byte(c.reply), "u")
			if (err == nil) != c.whole || errors.Is(err, adapters.ErrBusy) != c.busy || c.whole && len(found.hits) != 1 {
				t.Errorf("%d hits, %v", len(found.hits), err)
			}
		})
	}
}
