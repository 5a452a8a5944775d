package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// memory is a Store of one index in memory, with places to make trouble at. Its documents are in the order in which they were
// written last, as on an engine that numbers its writes; parts are ranges of these numbers ("1-10", "11-"), or shares of the ids
// ("0/2"), which can't be gone on with.
type memory struct {
	adapters.JobStore // what a test has no use for is not there
	mu                sync.Mutex
	sources           map[string]string
	versions          map[string]int // the number of the write that made it
	clock             int
	pageSize          int
	writes            int
	// patched counts the patches of each state that a document was put in.
	patched map[string]int
	scanned int // documents handed out

	// onPage is called before a page is yielded; onPatch before a batch is applied and says how much of it to apply before
	// failing. Either may be nil.
	onPage  func() error
	onPatch func(batch int) (apply int, err error)
	refuse  map[string]bool
	// room, if set, says how many of a batch's documents there is room for.
	room func(batch int) int
	// split, if set, makes the parts; journal, if set, is that of all runs.
	split   func(ctx context.Context, n int) ([]string, error)
	journal adapters.Journal
}

func newMemory(pageSize int, sources map[string]string) *memory {
	m := &memory{
		sources: map[string]string{}, versions: map[string]int{}, pageSize: pageSize, refuse: map[string]bool{}, patched: map[string]int{},
	}
	for _, id := range slices.Sorted(maps.Keys(sources)) {
		m.put(id, sources[id])
	}
	return m
}

// job returns the memory as a job of the index news.
func (m *memory) job(rule *rule.Rule) Job { return Job{Store: m, Index: "news", Rule: rule} }

func (m *memory) put(id, source string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock++
	m.sources[id], m.versions[id] = source, m.clock
	delete(m.patched, id)
}

func (m *memory) remove(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sources, id)
	delete(m.patched, id)
}

// Split implements adapters.JobStore: by the function that is set, else into one part.
func (m *memory) Split(ctx context.Context, _, query string, n int) (parts []string, documents int, err error) {
	parts = []string{""}
	if m.split != nil {
		parts, err = m.split(ctx, n)
	}
	return parts, len(m.chosen(adapters.Selection{Query: query})), err
}

// Identity implements adapters.JobStore: it is always the same index.
func (m *memory) Identity(context.Context, string) (string, error) { return "", nil }

// Journal implements adapters.JobStore.
func (m *memory) Journal() adapters.Journal {
	if m.journal == nil {
		return &Ledger{} // of one run
	}
	return m.journal
}

// Release implements adapters.Store.
func (m *memory) Release(context.Context, string) {}

// ranges is a Split by numbers of writes.
func (m *memory) ranges(_ context.Context, n int) (parts []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := 1
	for i := range n {
		to := m.clock * (i + 1) / n
		parts = append(parts, fmt.Sprintf("%d-%d", from, to))
		from = to + 1
	}
	return append(parts, fmt.Sprintf("%d-", from)), nil
}

// shares is a Split by ids.
func shares(_ context.Context, n int) (parts []string, err error) {
	for i := range n {
		parts = append(parts, fmt.Sprintf("%d/%d", i, n))
	}
	return parts, nil
}

// within reports whether a document is in a part.
func within(part, id string, version int) bool {
	if i, n, ok := strings.Cut(part, "/"); ok {
		of, _ := strconv.ParseUint(n, 10, 64)
		return strconv.FormatUint(xxhash.Sum64String(id)%of, 10) == i
	}
	from, to, ok := strings.Cut(part, "-")
	if !ok {
		return true
	}
	low, _ := strconv.Atoi(from)
	high, err := strconv.Atoi(to)
	return version >= low && (err != nil || version <= high)
}

// chosen returns the documents of a selection, in order, as of now.
func (m *memory) chosen(s adapters.Selection) (all []adapters.Stored) {
	m.mu.Lock()
	defer m.mu.Unlock()
	after, _ := strconv.Atoi(s.After)
	for id, source := range m.sources {
		version := m.versions[id]
		if version > after && within(s.Part, id, version) && strings.Contains(source, s.Query) {
			all = append(all, adapters.Stored{ID: id, Source: []byte(source), Version: version})
		}
	}
	slices.SortFunc(all, func(a, b adapters.Stored) int { return a.Version.(int) - b.Version.(int) })
	return all
}

func (m *memory) Scan(ctx context.Context, _ string, _ *rule.Rule, s adapters.Selection, yield func(adapters.Page) error) error {
	all := m.chosen(s)
	total := len(all)
	if s.Limit > 0 {
		all = all[:min(len(all), s.Limit)]
	}
	for chunk := range slices.Chunk(all, m.pageSize) {
		if m.onPage != nil && !s.Brief {
			if err := m.onPage(); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		page := adapters.Page{Total: total, Documents: chunk}
		if !strings.Contains(s.Part, "/") && s.Part != "" {
			page.After = strconv.Itoa(chunk[len(chunk)-1].Version.(int))
		}
		m.mu.Lock()
		m.scanned += len(chunk)
		m.mu.Unlock()
		if err := yield(page); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
	}
	return nil
}

func (m *memory) Patch(ctx context.Context, _ string, _ *rule.Rule, patches []adapters.Stored) ([]adapters.Result, error) {
	apply, failure := len(patches), error(nil)
	if m.onPatch != nil {
		apply, failure = m.onPatch(len(patches))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	room := len(patches)
	if m.room != nil {
		room = m.room(len(patches))
	}
	var results []adapters.Result
	for i, p := range patches[:apply] {
		if i >= room {
			results = append(results, adapters.Busy)
			continue
		}
		results = append(results, m.patch(p))
	}
	return results, failure
}

func (m *memory) patch(p adapters.Stored) adapters.Result {
	source, ok := m.sources[p.ID]
	switch {
	case !ok:
		return adapters.Gone
	case m.versions[p.ID] != p.Version:
		return adapters.Changed
	case m.refuse[p.ID]:
		return adapters.Refused
	}
	patched, err := rule.WithOurs([]byte(source), *p.Wanted)
	if err != nil {
		return adapters.Refused
	}
	m.clock++
	m.sources[p.ID], m.versions[p.ID] = string(patched), m.clock
	m.patched[p.ID]++
	m.writes++
	return adapters.Patched
}

func testRule(t testing.TB) *rule.Rule {
	t.Helper()
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	return &rule.Rule{Match: "news", Fields: []string{"title"}, Profile: rerank.Profile{Threshold: 0.8}, Window: 100, Sketcher: sketcher}
}

func documents(n int) map[string]string {
	sources := map[string]string{}
	for i := range n {
		sources[fmt.Sprintf("%04d", i)] = fmt.Sprintf(`{"title":"the ferry number %d was late again on the way to Saltmere"}`, i)
	}
	return sources
}

// wrong returns the ids of the documents whose sketch is not the one their text has.
func (m *memory) wrong(rule *rule.Rule) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for id, source := range m.sources {
		computed, stored := rule.SketchOf([]byte(source))
		if computed != nil && (stored == nil || stored.Text != computed.Text) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// twice returns the ids of the documents that were patched more than once in the state that they were put in.
func (m *memory) twice() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for id, n := range m.patched {
		if n > 1 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
