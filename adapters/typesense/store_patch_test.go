package typesense

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
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
	return Dialect{}.Open(&gaps{at: at}, b.urls()[1:], rule.Rules{b.rule})(adapters.Header{keyHeader: {b.key}}, "")
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
	d := expect.Value(storedDocument(source))(b.t)
	o := rule.OursOf(source)
	var keys []int64
	clusters := []string{"", b.rule.ClusterID(0), b.rule.ClusterID(b.rule.NumberOf(d.ID))} // no cluster, or one that stands for no text
	if computed != nil {
		keys, clusters = b.rule.BandKeys(&computed.Sketch), append(clusters, b.rule.ClusterID(computed.Fingerprint))
		clusters = append(clusters, b.assigned[computed.Fingerprint])
	}
	if !slices.Contains(clusters, o.Cluster) || o.Bands != nil && !slices.Equal(o.Bands, keys) {
		return "stale"
	}
	switch {
	case !rule.HasSketch(source):
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
		d := expect.Value(storedDocument(source))(b.t)
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
	for _, g := range rerank.Collapse(hits, b.rule.Window).Groups {
		want = append(want, hits[g.Leader].ID)
	}
	for _, source := range sources(b.must(200)(b.through("GET", search, ""))) {
		got = append(got, idOf(source))
	}
	if diff := cmp.Diff(want, got); diff != "" || b.outcome.Reason != "" {
		b.t.Errorf("a search while %d sketches are stale: %+v %s", stale, b.outcome, diff)
	}
	return stale
}

// TestRealPatchGivesWay stops a backfill before each of its requests and writes to the document that it is about to patch, in
// every way. What stands there in the end is the sketch of its text or none; a search in between folds nothing by another text's
// sketch.
func TestRealPatchGivesWay(t *testing.T) {
	t.Run("sketches", func(t *testing.T) { testPatchGivesWay(t, newBench(t, articles, "title", "body")) })
	t.Run("clusters of others", func(t *testing.T) {
		b := newBench(t, articles, "title", "body").whole()
		b.assigned = map[uint64]string{}
		testPatchGivesWay(t, b)
	})
}

func testPatchGivesWay(t *testing.T, b *bench) {
	const everywhere = -1
	stale := 0
	for kind, w := range meddling {
		for at := everywhere; at <= 2+tries; at++ {
			group := strconv.Itoa(kind*100 + at + 1)
			name := w.name + " in gap " + strconv.Itoa(at)
			m, id, twin := &meddler{bench: b, writes: 50 * (kind*100 + at + 1)}, "d"+group, "twin"+group
			expect.Value(b.store().Prepare(t.Context(), b.collection, false))(t)
			document := m.whole(id, group)
			b.must(201)(b.direct("POST", documentsPath, document))
			b.must(201)(b.through("POST", documentsPath, strings.Replace(document, id, twin, 1)))
			source := b.must(200)(b.direct("GET", path(id), ""))
			ours, _ := b.rule.OursFor([]byte(source), "0")
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
			patches := []adapters.Stored{{ID: id, Source: []byte(source), Wanted: &ours}}
			results := expect.Value(b.stopping(gap).Patch(t.Context(), b.collection, b.rule, patches))(t)
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
			if _, right := b.rule.OursFor([]byte(now), "0"); results[0] == adapters.Patched && at < last && at != everywhere && !right {
				t.Errorf("%s: said to be patched, and is %s", name, state)
			}
		}
	}
	t.Logf("%d times a sketch of another text stood there in between", stale)
	if stale < len(meddling) {
		t.Error("hardly any: the gaps are not those that matter")
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
	b := newBench(t, vectors, "body")
	const documents = 1200
	b.loadVectors(rand.New(rand.NewPCG(1, 2)), documents, 0.5)
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
				b.loadVectors(rand.New(rand.NewPCG(1, 2)), documents, 0.5)
			}
			spoilt = c.delete > 0
			store := Dialect{}.Open(&broken{after: c.after}, b.urls()[1:], nil)(adapters.Header{keyHeader: {b.key}}, "")
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
			expect.Must(t, c.fails, err != nil, "that it fails: %v after %d pages", err, pages)
			for i := range documents {
				id := fmt.Sprint("d", i)
				if n := seen[id]; !c.fails && (n == 0 || n > 1 && c.delete < 250) {
					t.Errorf("%s was read %d times", id, n)
				}
			}
		})
	}
}
