package typesense

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// gaps stops a store before each of its requests, and calls at with how many were answered so far.
type gaps struct {
	at       func(answered int)
	answered int
}

// RoundTrip implements http.RoundTripper.
func (g *gaps) RoundTrip(r *http.Request) (*http.Response, error) {
	g.at(g.answered)
	resp, err := http.DefaultTransport.RoundTrip(r)
	g.answered++
	return resp, err
}

// stopping returns a store that stops in its gaps.
func (b *bench) stopping(at func(answered int)) adapters.Store {
	return Open(&gaps{at: at}, b.urls()[1:], adapters.Rules{b.rule})(adapters.Header{keyHeader: {b.key}}, "")
}

// meddler writes to a collection beside a backfill: through the sidecar in small, or past it. Bodies are of two kinds that have
// nothing in common.
type meddler struct {
	*bench
	writes int
}

func (m *meddler) text() string {
	m.writes++
	return familyText(10_000+m.writes, 0)
}

func (m *meddler) whole(id, group string) string {
	return fmt.Sprintf(`{"id":%q,"title":"the title","body":%q,"n":%s}`, id, m.text(), group)
}

// path returns the path of a document.
func path(id string) string { return "/collections/NAME/documents/" + url.PathEscape(id) }

const (
	documentsPath = "/collections/NAME/documents"
	redeclared    = `{"name":"neardup_sketch","type":"string","index":false,"optional":true}`
)

// meddling are the writes to a document. Those that keep the old sketch are found by verify alone if they come after the last
// look at the document.
var meddling = []struct {
	name  string
	keeps bool
	write func(m *meddler, id, group string)
}{
	{"some fields", false, func(m *meddler, id, _ string) { m.through("PATCH", path(id), `{"body":"`+m.text()+`"}`) }},
	{"all fields", false, func(m *meddler, id, _ string) {
		m.through("PATCH", path(id), `{"title":"other","body":"`+m.text()+`"}`)
	}},
	{"no field", false, func(m *meddler, id, group string) { m.through("PATCH", path(id), `{"n":`+group+`}`) }},
	{"the same text", false, func(m *meddler, id, _ string) { m.through("PATCH", path(id), `{"title":"the title"}`) }},
	{"no text left", false, func(m *meddler, id, _ string) { m.through("PATCH", path(id), `{"title":"","body":"…"}`) }},
	{"whole", false, func(m *meddler, id, group string) {
		m.through("POST", documentsPath+"?action=upsert", m.whole(id, group))
	}},
	{"whole past us", false, func(m *meddler, id, group string) {
		m.direct("POST", documentsPath+"?action=upsert", m.whole(id, group))
	}},
	{"some fields past us", true, func(m *meddler, id, _ string) { m.direct("PATCH", path(id), `{"body":"`+m.text()+`"}`) }},
	{"import of some fields", false, func(m *meddler, id, _ string) {
		m.through("POST", documentsPath+"/import?action=update", `{"id":"`+id+`","body":"`+m.text()+`"}`)
	}},
	{"import of emplaced parts", false, func(m *meddler, id, group string) {
		m.through("POST", documentsPath+"/import?action=emplace", `{"id":"`+id+`","body":"`+m.text()+`","title":"t","n":`+group+`}`)
	}},
	{"deleted", false, func(m *meddler, id, _ string) { m.through("DELETE", path(id), "") }},
	{"deleted and made anew", false, func(m *meddler, id, group string) {
		m.through("DELETE", path(id), "")
		m.through("POST", documentsPath, m.whole(id, group))
	}},
	{"deleted and made anew past us", false, func(m *meddler, id, group string) {
		m.direct("DELETE", path(id), "")
		m.direct("POST", documentsPath, m.whole(id, group))
	}},
	{"our field dropped", false, func(m *meddler, _, _ string) {
		m.direct("PATCH", "/collections/NAME", `{"fields":[{"name":"neardup_sketch","drop":true}]}`)
	}},
	{"our field dropped and declared anew, and some fields", false, func(m *meddler, id, _ string) {
		m.direct("PATCH", "/collections/NAME", `{"fields":[{"name":"neardup_sketch","drop":true},`+redeclared+`]}`)
		m.through("PATCH", path(id), `{"body":"`+m.text()+`"}`)
	}},
}

// state says what stands in our fields of a document: what its text has, less than that, or something else's.
func (b *bench) state(source []byte) string {
	computed, stored := b.rule.SketchOf(source)
	d, err := storedDocument(source)
	if err != nil {
		b.t.Fatal(err)
	}
	o := adapters.OursOf(source)
	var keys []int64
	clusters := []string{"", b.rule.ClusterID(0), b.rule.ClusterID(numberOf(d.ID))} // no cluster, or one that stands for no text
	if computed != nil {
		keys, clusters = b.rule.BandKeys(&computed.Sketch), append(clusters, b.rule.ClusterID(computed.Fingerprint))
		clusters = append(clusters, b.assigned[computed.Fingerprint])
	}
	if !slices.Contains(clusters, o.Cluster) || o.Bands != nil && !slices.Equal(o.Bands, keys) {
		return "stale"
	}
	switch {
	case !adapters.HasSketch(source):
		return "absent"
	case computed != nil && stored != nil && stored.Text == computed.Text:
		return "right"
	}
	return "stale"
}

// judged compares a search through the sidecar, whose hits hold the text, with what the definition makes of the texts that stand
// there. It returns how many of the documents found carry another text's sketch.
func (b *bench) judged(filter string) (stale int) {
	b.t.Helper()
	search := "/collections/NAME/documents/search?per_page=250&q=*&filter_by=" + url.QueryEscape(filter)
	sources := func(body string) [][]byte {
		var reply struct {
			Hits []struct{ Document json.RawMessage }
		}
		if err := json.Unmarshal([]byte(body), &reply); err != nil {
			b.t.Fatal(err)
		}
		var list [][]byte
		for _, h := range reply.Hits {
			list = append(list, h.Document)
		}
		return list
	}
	idOf := func(source []byte) string {
		d, err := storedDocument(source)
		if err != nil {
			b.t.Fatal(err)
		}
		return d.ID
	}
	var hits []rerank.Hit
	for _, source := range sources(b.must(200)(b.direct("GET", search, ""))) {
		hit := rerank.Hit{ID: idOf(source)}
		if computed, _ := b.rule.SketchOf(source); computed != nil {
			hit.Sketch, hit.Profile = &computed.Sketch, &b.rule.Profile
		}
		if b.state(source) == "stale" {
			stale++
		}
		hits = append(hits, hit)
	}
	var want, got []string
	for _, g := range rerank.Collapse(hits, b.rule.Window, false).Groups {
		want = append(want, hits[g.Leader].ID)
	}
	for _, source := range sources(b.must(200)(b.through("GET", search, ""))) {
		got = append(got, idOf(source))
	}
	if diff := cmp.Diff(want, got); diff != "" || b.outcomes[0].Reason != "" {
		b.t.Errorf("a search while %d sketches are stale: %+v %s", stale, b.outcomes, diff)
	}
	return stale
}

// TestRealPatchGivesWay stops a backfill before each of its requests and writes to the document that it is about to patch, in
// every way. What stands there in the end is the sketch of its text or none; a search in between folds nothing by another text's
// sketch.
func TestRealPatchGivesWay(t *testing.T) {
	for _, name := range []string{"sketches", "clusters of others"} {
		fields := ours[name]
		t.Run(name, func(t *testing.T) { testPatchGivesWay(t, fields(newBench(t, articles, "title", "body"))) })
	}
}

// ours are the fields that rules store.
var ours = map[string]func(*bench) *bench{
	"sketches": func(b *bench) *bench { return b }, "all fields": (*bench).whole, "clusters of others": (*bench).assigning,
}

func testPatchGivesWay(t *testing.T, b *bench) {
	const everywhere = -1
	stale := 0
	for kind, w := range meddling {
		for at := everywhere; at <= 2+tries; at++ {
			group := strconv.Itoa(kind*100 + at + 1)
			name := w.name + " in gap " + strconv.Itoa(at)
			m, id, twin := &meddler{bench: b, writes: 50 * (kind*100 + at + 1)}, "d"+group, "twin"+group
			if _, err := b.store().Prepare(t.Context(), b.collection, false); err != nil {
				t.Fatal(err)
			}
			document := m.whole(id, group)
			b.must(201)(b.direct("POST", documentsPath, document))
			b.must(201)(b.through("POST", documentsPath, strings.Replace(document, id, twin, 1)))
			source := b.must(200)(b.direct("GET", path(id), ""))
			ours, _ := b.rule.Wanted([]byte(source), 0)
			if b.assigned != nil {
				computed, _ := b.rule.SketchOf([]byte(source))
				ours.Cluster = b.rule.ClusterID(99)
				b.assigned[computed.Fingerprint] = ours.Cluster
			}
			requests := 0
			gap := func(answered int) {
				if requests = answered; at == everywhere || at == answered {
					w.write(m, id, group)
				}
				stale += b.judged("n:=" + group)
			}
			patches := []adapters.Patch{{Stored: adapters.Stored{ID: id, Source: []byte(source)}, Ours: ours}}
			results, err := b.stopping(gap).Patch(t.Context(), b.collection, b.rule, patches)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			last := requests + 1
			gap(last)
			status, now := b.direct("GET", path(id), "")
			if status == 404 {
				continue
			}
			state := b.state([]byte(now))
			if state == "stale" && !(w.keeps && (at == everywhere || at == last)) {
				t.Errorf("%s: %v after %d requests: %s", name, results, last, now)
			}
			if _, right := b.rule.Wanted([]byte(now), 0); results[0] == adapters.Patched && at < last && at != everywhere && !right {
				t.Errorf("%s: said to be patched, and is %s", name, state)
			}
		}
	}
	t.Logf("%d times a sketch of another text stood there in between", stale)
	if stale < len(meddling) {
		t.Error("hardly any: the gaps are not those that matter")
	}
}

// TestRealRandomSchedules patches some documents at once while others write to them at random; those who write past the sidecar
// replace whole documents. Its long form runs under make soak.
func TestRealRandomSchedules(t *testing.T) {
	for _, name := range []string{"sketches", "all fields"} {
		fields := ours[name]
		t.Run(name, func(t *testing.T) { testRandomSchedules(t, fields(newBench(t, articles, "title", "body"))) })
	}
}

func testRandomSchedules(t *testing.T, b *bench) {
	lasting := time.Second
	if os.Getenv("NEARDUP_SOAK") != "" {
		lasting = 5 * time.Minute
	}
	seed := rand.Uint64()
	if text := os.Getenv("NEARDUP_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("NEARDUP_SEED=%d", seed)
	r, m := rand.New(rand.NewPCG(seed, 7)), &meddler{bench: b}
	const documents = 8
	counts, stale, rounds := map[adapters.Result]int{}, 0, 0
	enough := func() bool {
		return stale > 0 && counts[adapters.Patched] > 0 && counts[adapters.Changed] > 0 && counts[adapters.Gone] > 0
	}
	for begin := time.Now(); !t.Failed(); rounds++ {
		if since := time.Since(begin); since > lasting && enough() || since > 20*lasting {
			break
		}
		if _, err := b.store().Prepare(t.Context(), b.collection, false); err != nil {
			t.Fatal(err)
		}
		for i := range documents {
			if r.IntN(3) == 0 {
				m.writes = r.IntN(3) // some have one text
				b.direct("POST", documentsPath+"?action=upsert", m.whole(fmt.Sprint("d", i), "1"))
			}
		}
		m.writes = 10*r.IntN(100) + 10
		often := r.IntN(4)
		gap := func(int) {
			for range r.IntN(1 + often) {
				w := meddling[r.IntN(len(meddling))]
				if w.keeps || w.name == "our field dropped" && r.IntN(10) > 0 {
					continue
				}
				w.write(m, fmt.Sprint("d", r.IntN(documents)), "1")
			}
			stale += b.judged("n:=1")
		}
		results, err := b.stopping(gap).Patch(t.Context(), b.collection, b.rule, b.patches())
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range results {
			counts[result]++
		}
		for id, d := range b.scan() {
			if b.state(d.Source) == "stale" {
				t.Errorf("round %d: %s: %s", rounds, id, d.Source)
			}
		}
	}
	t.Logf("%d rounds, results %v, %d stale sketches seen in between", rounds, counts, stale)
	if !enough() {
		t.Error("too little happened")
	}
}

// broken ends the reply to each export after some bytes.
type broken struct{ after []int64 }

// RoundTrip implements http.RoundTripper.
func (b *broken) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/export") || len(b.after) == 0 {
		return resp, err
	}
	whole := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(whole, b.after[0]), cut{}), whole}
	b.after = b.after[1:]
	return resp, nil
}

type cut struct{}

// Read implements io.Reader.
func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestRealScanGoesOn: an export that the engine cuts is read on from where it was cut, whatever was deleted or added meanwhile.
func TestRealScanGoesOn(t *testing.T) {
	b := newBench(t, articles, "body")
	const documents = 1200
	b.load(rand.New(rand.NewPCG(1, 2)), documents)
	whole := int64(len(b.must(200)(b.direct("GET", "/collections/NAME/documents/export?include_fields=id,body,neardup_sketch", ""))))
	spoilt := false // by the case before
	for _, c := range []struct {
		name   string
		after  []int64
		delete int // of the page that was yielded last
		fails  bool
	}{
		{"in the third page", []int64{whole / 2}, 0, false},
		{"three times", []int64{whole / 3, whole / 2, whole - 5}, 0, false},
		{"where the middle of the last page is gone", []int64{whole / 2}, 100, false},
		{"where the last page is gone", []int64{whole / 2}, 250, false},
		{"before the first page", []int64{100}, 0, true},
		{"without getting on", []int64{whole / 2, whole / 2}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if spoilt {
				b.must(200)(b.direct("DELETE", documentsPath+"?filter_by="+url.QueryEscape("n:>=0"), ""))
				b.load(rand.New(rand.NewPCG(1, 2)), documents)
			}
			spoilt = c.delete > 0
			store := Open(&broken{after: c.after}, b.urls()[1:], nil)(adapters.Header{keyHeader: {b.key}}, "")
			seen, pages := map[string]int{}, 0
			err := store.Scan(t.Context(), b.collection, b.rule, adapters.Selection{}, func(p adapters.Page) error {
				for _, d := range p.Documents {
					seen[d.ID]++
				}
				if pages++; pages == 2 {
					for _, d := range p.Documents[:c.delete] {
						b.direct("DELETE", path(d.ID), "")
					}
				}
				return nil
			})
			if (err != nil) != c.fails {
				t.Fatalf("%v after %d pages", err, pages)
			}
			for i := range documents {
				id := fmt.Sprint("d", i)
				if n := seen[id]; !c.fails && (n == 0 || n > 1 && c.delete < 250) {
					t.Errorf("%s was read %d times", id, n)
				}
			}
		})
	}
}

// TestRealScanOutlastsTheEngine reads nothing for longer than the engine waits, as a throttled job may. It takes a minute: make
// soak.
func TestRealScanOutlastsTheEngine(t *testing.T) {
	if os.Getenv("NEARDUP_SOAK") == "" {
		t.Skip("make soak")
	}
	b := newBench(t, articles, "body")
	const documents = 40_000 // more than what lies in buffers on the way
	var lines strings.Builder
	for i := range documents {
		fmt.Fprintf(&lines, `{"id":"d%d","title":"x","body":"%s","n":1}`+"\n", i, familyText(i%50, 0)+familyText(i%49, 0))
	}
	b.must(200)(b.direct("POST", documentsPath+"/import", lines.String()))
	seen := map[string]int{}
	err := b.store().Scan(t.Context(), b.collection, b.rule, adapters.Selection{}, func(p adapters.Page) error {
		if len(seen) == 0 {
			time.Sleep(70 * time.Second)
		}
		for _, d := range p.Documents {
			seen[d.ID]++
		}
		return nil
	})
	if err != nil || len(seen) != documents {
		t.Errorf("%d of %d documents read, %v", len(seen), documents, err)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was read %d times", id, n)
		}
	}
}

// TestRealClusters: a job gives documents their clusters, in which a later backfill finds nothing to do; documents whose text it did
// not read keep their own.
func TestRealClusters(t *testing.T) {
	b := newBench(t, articles, "title", "body").whole()
	all := b.stocked(40)
	if _, err := b.store().Patch(t.Context(), b.collection, b.rule, b.patches()); err != nil {
		t.Fatal(err)
	}
	var patches []adapters.Patch
	cluster := b.rule.ClusterID(77)
	for _, d := range b.scan() {
		o := adapters.OursOf(d.Source)
		o.Cluster = cluster
		patches = append(patches, adapters.Patch{Stored: d, Ours: o})
	}
	const another = "d20"
	b.must(201)(b.through("PATCH", path(another), `{"title":"some other title","body":"some other words, and more of them"}`))
	results, err := b.store().Patch(t.Context(), b.collection, b.rule, patches)
	if err != nil || len(results) != len(all) {
		t.Fatal(results, err)
	}
	for id, d := range b.scan() {
		if o := adapters.OursOf(d.Source); (o.Cluster == cluster) != (id != another) || o.Cluster == "" || o.Bands == nil || b.rule.Decode(o.Sketch) == nil {
			t.Errorf("%s has %+v", id, o)
		}
	}
	if left := b.patches(); len(left) > 0 {
		t.Errorf("%d documents are to be patched again", len(left))
	}
}
