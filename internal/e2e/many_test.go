package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestManySidecars has clients page, follow cursors, scroll and write through several sidecars behind HAProxy, while these are restarted one after the
// other, load another configuration all at once, and one is killed. No client sees an error but those whose request a kill cuts off and that nobody may
// send twice. Each page is that of the definition, and each document that was acknowledged is stored. The long form has eight sidecars, every engine and both
// ways to hand out requests.
func TestManySidecars(t *testing.T) {
	kinds, ways, n, pace := []string{engines.Elasticsearch}, []string{"roundrobin"}, 3, checkPace{"200ms", "600ms"}
	if soaking() {
		kinds, ways, n, pace = engines.Kinds, []string{"roundrobin", "source"}, 8, checkPace{"1s", "3s"}
	}
	onEach(t, false, kinds, func(t *testing.T, e *engines.Engine) {
		for _, way := range ways {
			t.Run(way, func(t *testing.T) {
				m := newMany(t, newFleet(t, e, n, way, pace, manyRules))
				m.checkAlike(t)
				m.run(t)
				m.checkWritten(t)
			})
		}
	})
}

const manyFrozen, manyTag, manySkip = "many-1", "manytag-1", "manyskip-1"

const manyRules = `      - {match: many-*, fields: [title, body], threshold: 0.7}
      - {match: manytag-*, fields: [title, body], threshold: 0.7, bands: auto, on_duplicate: tag}
      - {match: manyskip-*, fields: [title, body], threshold: 0.7, bands: auto, on_duplicate: skip}
`

// many is what clients of a fleet do, and what they must see.
type many struct {
	*fleet
	direct api
	list   []corpus.Document
	oracle *oracle
	raw    map[string][]string // the engine's list of a query
	want   map[string][]string // the collapsed one
	byID   []string            // the collapsed list of all, in the order of ids

	writes  sync.Mutex
	sent    map[string][]corpus.Document // acknowledged, by index
	unknown map[string][]corpus.Document // of requests without an answer
	skipped map[string]map[string]string // by index and id: what stands for it
}

func newMany(t *testing.T, f *fleet) *many {
	t.Helper()
	m := &many{fleet: f, direct: api{f.e, f.e.URL}, list: documents(t), raw: map[string][]string{}, want: map[string][]string{},
		sent: map[string][]corpus.Document{}, unknown: map[string][]corpus.Document{}, skipped: map[string]map[string]string{manyTag: {}, manySkip: {}}}
	through := api{f.e, f.front}
	through.create(t, manyFrozen, m.list...)
	through.create(t, manyTag)
	through.create(t, manySkip)
	m.oracle = newOracle(t, m.direct, m.list)
	for _, q := range []string{"*", "the", "town", "old"} {
		m.raw[q] = m.oracle.raw(t, manyFrozen, q)
		if m.want[q] = m.oracle.collapsed(m.raw[q]); len(m.want[q]) == len(m.raw[q]) {
			t.Fatalf("nothing folds of %q", q)
		}
	}
	m.byID = m.oracle.collapsed(slices.Sorted(slices.Values(m.raw["*"])))
	return m
}

// checkAlike holds the replies of all sidecars to those of the first, byte for byte.
func (m *many) checkAlike(t *testing.T) {
	t.Helper()
	for _, params := range []string{"", "&neardup_group=true", "&neardup_totals=collapsed"} {
		for _, from := range []int{0, 10, 50, 20} {
			first := ""
			for i := range m.sidecars {
				body := untimedText(string(api{m.e, m.base(i)}.search(t, manyFrozen, "the", from, 10, params).reply.body))
				if first == "" {
					first = body
				}
				same(t, first, body, "sidecar %d, from %d%s", i, from, params)
			}
		}
	}
}

// run has the clients go on through all that happens to the sidecars.
func (m *many) run(t *testing.T) {
	t.Helper()
	tasks := []func(*testing.T, *visitor){m.pages, m.pages, m.anyPage, m.anyPage, m.writeTo(manyTag), m.writeTo(manySkip)}
	if m.e.Kind != engines.Typesense {
		tasks = append(tasks, m.cursor, m.cursor, m.cursorBesideWrites, m.scroll)
	}
	for range scale(0, 3) {
		tasks = append(tasks, m.writeTo(manyTag), m.writeTo(manySkip))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	for i, task := range tasks {
		v := m.visitor(i)
		clients.Go(func() {
			for ctx.Err() == nil {
				task(t, v)
			}
		})
	}
	for _, phase := range []struct {
		name string
		do   func()
	}{
		{"nothing happens", func() {}},
		{"restarted one by one", func() {
			for i := range min(len(m.sidecars), scale(1, 8)) {
				m.restart(t, i)
			}
		}},
		{"reloaded all at once", func() {
			for i := range scale(2, 6) {
				m.reload(t, 1+i%2)
			}
		}},
		{"one is killed", func() { m.kill(t, len(m.sidecars)-1) }},
	} {
		before, began := m.asked.Load(), time.Now()
		_, retries, moved := m.states(t)
		phase.do()
		if !until(func() bool { return m.asked.Load() > before+int64(scale(15, 200)*len(tasks)) }) {
			t.Errorf("%s: only %d requests", phase.name, m.asked.Load()-before)
		}
		_, retriesNow, movedNow := m.states(t)
		failures, broken := m.failed()
		t.Logf("%s: %d requests in %v, %d failed, and %d that must not be sent twice; HAProxy sent %d again, %d to another sidecar",
			phase.name, m.asked.Load()-before, time.Since(began).Round(10*time.Millisecond), len(failures), len(broken), retriesNow-retries, movedNow-moved)
		if phase.name != "one is killed" || len(broken) > len(tasks) {
			failures = append(failures, broken...)
		}
		for _, failure := range failures[:min(len(failures), 5)] {
			t.Errorf("%s: %s", phase.name, failure)
		}
	}
	cancel()
	clients.Wait()
}

// page asks for a page and holds it against the definition.
func (m *many) page(t *testing.T, v *visitor, q string, n, size int) (ok bool) {
	params, total := "", len(m.raw[q])
	if v.IntN(4) == 0 {
		params, total = "&neardup_totals=collapsed", len(m.want[q])
	}
	words := m.direct.words(t)
	method, path, body := words.search(manyFrozen, q, n*size, size, params, "")
	r, ok := v.ask(false, method, path, body)
	if !ok {
		return false
	}
	ids, found := words.found(t, r)
	from := min(n*size, len(m.want[q]))
	want := m.want[q][from:min(from+size, len(m.want[q]))]
	if outcome := r.header.Get("Neardup"); !slices.Equal(want, ids) || found != total || !strings.HasPrefix(outcome, "collapsed") {
		m.fail("page %d of %d of %q: %v of %d, want %v of %d: %s", n, size, q, ids, found, want, total, outcome)
	}
	return len(ids) > 0
}

func (m *many) anyQuery(v *visitor) string {
	return slices.Sorted(maps.Keys(m.want))[v.IntN(len(m.want))]
}

// pages goes through a list from its first page to its last.
func (m *many) pages(t *testing.T, v *visitor) {
	q, size := m.anyQuery(v), 10+v.IntN(30)
	for n := 0; m.page(t, v, q, n, size); n++ {
	}
}

// anyPage asks for pages in no order.
func (m *many) anyPage(t *testing.T, v *visitor) {
	m.page(t, v, m.anyQuery(v), v.IntN(12), 5+v.IntN(20))
}

// hitsAfter is what a page of a cursor or a scroll shows.
type hitsAfter struct {
	PIT    string `json:"pit_id"`
	Scroll string `json:"_scroll_id"`
	ID     string
	Hits   struct {
		Hits []struct {
			ID   string `json:"_id"`
			Sort json.RawMessage
		}
	}
}

// cursor walks the frozen index in the order of ids.
func (m *many) cursor(t *testing.T, v *visitor) {
	pit := ""
	if v.IntN(2) == 0 {
		if pit = m.openPIT(t, v, manyFrozen); pit == "" {
			return
		}
		defer func() { closePIT(t, m.e, pit) }()
	}
	if ids, ok := m.walked(t, v, manyFrozen, pit); ok && !slices.Equal(m.byID, ids) {
		m.fail("a walk, in a point in time: %v: %v, want %v", pit != "", ids, m.byID)
	}
}

// cursorBesideWrites walks an index that is written to, in a point in time, whose list the engine tells.
func (m *many) cursorBesideWrites(t *testing.T, v *visitor) {
	pit := m.openPIT(t, v, manyTag)
	if pit == "" {
		return
	}
	defer func() { closePIT(t, m.e, pit) }()
	ids, ok := m.walked(t, v, manyTag, pit)
	if !ok {
		return
	}
	body := fmt.Sprintf(`{"size":10000,"_source":false,"sort":["id"],"pit":{"id":%q,"keep_alive":"1m"}}`, pit)
	all, _ := idsOf(t, call(t, m.e, "POST", m.e.URL+"/_search", body).want(t, 200))
	seen := *m.oracle
	seen.sketches = maps.Clone(m.oracle.sketches)
	for _, id := range all {
		_, text, _ := strings.Cut(id, "~")
		seen.sketches[id] = m.oracle.sketches[text]
	}
	if want := seen.collapsed(all); !slices.Equal(want, ids) {
		m.fail("a walk beside writes: %v, want %v of %v", ids, want, all)
	}
}

func (m *many) openPIT(t *testing.T, v *visitor, index string) string {
	path := "/" + index + "/_pit?keep_alive=1m"
	if m.e.Kind == engines.OpenSearch {
		path = "/" + index + "/_search/point_in_time?keep_alive=1m"
	}
	var opened hitsAfter
	if r, ok := v.ask(true, "POST", path, ""); ok {
		decode(t, r.body, &opened)
	}
	return opened.ID + opened.PIT
}

// walked returns the ids that a walk by search_after shows.
func (m *many) walked(t *testing.T, v *visitor, index, pit string) (ids []string, ok bool) {
	path, in, size := "/"+index+"/_search", "", 20+v.IntN(60)
	if pit != "" {
		path, in = "/_search", fmt.Sprintf(`,"pit":{"id":%q,"keep_alive":"1m"}`, pit)
	}
	for after := ""; ; {
		r, ok := v.ask(false, "POST", path, fmt.Sprintf(`{"size":%d,"_source":false,"sort":["id"]%s%s}`, size, in, after))
		if !ok {
			return nil, false
		}
		var shown hitsAfter
		decode(t, r.body, &shown)
		for _, hit := range shown.Hits.Hits {
			ids, after = append(ids, hit.ID), `,"search_after":`+string(hit.Sort)
		}
		if outcome := r.header.Get("Neardup"); strings.Contains(outcome, "cursor=lost") || !strings.HasPrefix(outcome, "collapsed") {
			m.fail("page of a walk: %s", outcome)
		}
		if len(shown.Hits.Hits) < size {
			return ids, true
		}
	}
}

// scroll reads the whole frozen index, of which no hit is hidden.
func (m *many) scroll(t *testing.T, v *visitor) {
	var ids []string
	r, ok := v.ask(false, "POST", "/"+manyFrozen+"/_search?scroll=1m", `{"size":40,"sort":["id"],"_source":false}`)
	for ok {
		var shown hitsAfter
		decode(t, r.body, &shown)
		for _, hit := range shown.Hits.Hits {
			ids = append(ids, hit.ID)
		}
		if len(shown.Hits.Hits) == 0 {
			v.ask(true, "DELETE", "/_search/scroll", fmt.Sprintf(`{"scroll_id":%q}`, shown.Scroll))
			if want := slices.Sorted(slices.Values(m.raw["*"])); !slices.Equal(want, ids) {
				m.fail("a scroll: %v, want %v", ids, want)
			}
			return
		}
		r, ok = v.ask(true, "POST", "/_search/scroll", fmt.Sprintf(`{"scroll":"1m","scroll_id":%q}`, shown.Scroll))
	}
}

// writeTo writes documents under new ids, which end with the id of the text.
func (m *many) writeTo(index string) func(t *testing.T, v *visitor) {
	n := 0
	return func(t *testing.T, v *visitor) {
		time.Sleep(50 * time.Millisecond) // the engine has other clients
		var piece []corpus.Document
		var lines strings.Builder
		for range 1 + v.IntN(6) {
			d := m.list[v.IntN(len(m.list))]
			d.ID = fmt.Sprintf("%p-%d~%s", v, n, d.ID)
			n++
			piece = append(piece, d)
			lines.WriteString(m.direct.lineOf(t, d))
		}
		path := "/" + index + "/_bulk"
		if m.e.Kind == engines.Typesense {
			path = "/collections/" + index + "/documents/import?action=upsert&return_id=true"
		}
		r, ok := v.ask(true, "POST", path, lines.String())
		m.writes.Lock()
		defer m.writes.Unlock()
		if !ok {
			m.unknown[index] = append(m.unknown[index], piece...)
			return
		}
		m.sent[index] = append(m.sent[index], piece...)
		entries := bytes.Split(r.body, []byte("\n"))
		if m.e.Kind != engines.Typesense {
			entries = must(jsonedit.Elements(jsonedit.Get(must(jsonedit.Members(r.body))(t), "items")))(t)
		}
		expect.Must(t, len(piece), len(entries), "answers to documents")
		for i, d := range piece {
			if id, noop := m.direct.entryOf(t, entries[i], d.ID); noop {
				m.skipped[index][d.ID] = id
			}
		}
	}
}

// checkWritten holds what is stored to what was acknowledged.
func (m *many) checkWritten(t *testing.T) {
	t.Helper()
	for _, index := range []string{manyTag, manySkip} {
		all, skipped, sent := ledgerOf(t, m.direct, index), m.skipped[index], m.sent[index]
		for _, d := range m.unknown[index] {
			if _, there := all[d.ID]; there {
				sent = append(sent, d)
			}
		}
		checkStored(t, m.direct, sent, all, skipped)
		for id, other := range skipped {
			_, text, _ := strings.Cut(id, "~")
			_, stands, _ := strings.Cut(other, "~")
			if _, there := all[other]; !there || !m.oracle.near(m.oracle.sketches[text], m.oracle.sketches[stands]) {
				t.Errorf("%s stands for %s: it is there: %v", other, id, there)
			}
		}
		apart := 0
		for _, d := range all {
			for _, other := range all {
				if d.near(other) && d.Cluster != other.Cluster {
					apart++
					break
				}
			}
		}
		t.Logf("%s: %d acknowledged, %d left out, %d unknown, %d of %d stored have a near-duplicate in another cluster",
			index, len(m.sent[index]), len(skipped), len(m.unknown[index]), apart, len(all))
	}
}

// TestHAProxySendsWritesOnce has servers that read each request and hang up: what only reads comes to another one too, and nothing else does.
func TestHAProxySendsWritesOnce(t *testing.T) {
	f := &fleet{net: loopback(), pace: checkPace{inter: "100ms"}}
	var came atomic.Int64
	for i := range 3 {
		for port, answer := range map[string]http.HandlerFunc{
			"7610": func(http.ResponseWriter, *http.Request) {},
			"9201": func(_ http.ResponseWriter, r *http.Request) { came.Add(1); panic(http.ErrAbortHandler) },
		} {
			server := &httptest.Server{Listener: must(net.Listen("tcp", f.addr(i)+":"+port))(t), Config: &http.Server{Handler: answer}}
			server.Start()
			t.Cleanup(server.Close)
		}
	}
	f.balance(t, 3, "roundrobin")
	for request, want := range map[string]int64{
		"POST /i/_search": 2, "GET /i/_search": 2, "GET /i/_doc/1": 2, "POST /multi_search": 2, "POST /_msearch": 2,
		"POST /i/_doc/_search": 1, "POST /i/_update/_search": 1, "PUT /i/_doc/_count": 1, "POST /i/%5fupdate/_search": 1, "POST /_bulk": 1, "DELETE /i/_doc/_search": 1,
		"POST /i/_pit": 1, "GET /_search/scroll": 1, "POST /_search/scroll": 1, "GET /_search/%73croll": 1, "POST /collections/c/documents/import": 1,
	} {
		f.settled(t, 3)
		came.Store(0)
		method, path, _ := strings.Cut(request, " ")
		r := must(http.NewRequest(method, f.front+path, strings.NewReader("{}")))(t)
		r.Close = true
		if resp, err := http.DefaultTransport.RoundTrip(r); err == nil {
			resp.Body.Close()
		}
		expect.Same(t, want, came.Load(), "%s", request)
	}
}
