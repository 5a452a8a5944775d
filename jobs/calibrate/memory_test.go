package calibrate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// memory is a Store that holds one index in memory. Whatever but reading is asked of it panics.
type memory struct {
	adapters.Store
	sources map[string][]byte
	order   []string
	rule    *rule.Rule
	scans   []adapters.Selection
}

func (m *memory) put(id, source string) {
	if m.sources == nil {
		m.sources = map[string][]byte{}
	}
	if m.sources[id] == nil {
		m.order = append(m.order, id)
	}
	m.sources[id] = []byte(source)
}

// add puts a document with a text.
func (m *memory) add(t testing.TB, id, text string) {
	t.Helper()
	m.put(id, string(expect.Value(json.Marshal(map[string]string{"text": text}))(t)))
}

// enrich stores our fields with every document.
func (m *memory) enrich(t testing.TB) {
	t.Helper()
	for id, source := range m.sources {
		want, _ := m.rule.OursFor(source, "0")
		m.sources[id] = expect.Value(rule.WithOurs(source, want))(t)
	}
}

func (m *memory) Scan(
	ctx context.Context, _ string, _ *rule.Rule, s adapters.Selection, yield func(adapters.Page) error,
) error {
	m.scans = append(m.scans, s)
	var list []adapters.Stored
	total := 0
	for _, id := range m.order {
		source := m.sources[id]
		if s.IDs != nil && !slices.Contains(s.IDs, id) || s.Bands != nil && !shares(rule.OursOf(source).Bands, s.Bands) {
			continue
		}
		if total++; s.Limit > 0 && len(list) >= s.Limit {
			continue
		}
		if s.Brief {
			source = append(append([]byte("{"), rule.OursOf(source).Fields()...), '}')
		}
		list = append(list, adapters.Stored{ID: id, Source: slices.Clone(source)})
	}
	if len(list) == 0 {
		return yield(adapters.Page{Total: total})
	}
	for page := range slices.Chunk(list, 97) {
		if err := yield(adapters.Page{Total: total, Documents: page}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func shares(a, b []int64) bool {
	return slices.ContainsFunc(a, func(key int64) bool { return slices.Contains(b, key) })
}

func newMemory(t testing.TB, scheme sketch.Scheme) *memory {
	t.Helper()
	sketcher := expect.Value(sketch.New(scheme))(t)
	return &memory{rule: &rule.Rule{
		Match: "news", Fields: []string{"text"}, Window: 100, Sketcher: sketcher,
		Profile: rerank.Profile{Threshold: rerank.Default().Threshold, MinShingles: rerank.Default().MinShingles},
	}}
}

// textsOf reads the field text.
func textsOf(document []byte) []string {
	var d struct{ Text string }
	if json.Unmarshal(document, &d) != nil {
		return nil
	}
	return []string{d.Text}
}

func run(t testing.TB, m *memory, change func(*Options)) *Report {
	t.Helper()
	o := DefaultOptions
	if change != nil {
		change(&o)
	}
	return expect.Value(Run(t.Context(), m, "news", m.rule, o))(t)
}

// words returns n words that no other call with another seed returns.
func words(seed string, n int) string {
	text := ""
	for i := range n {
		text += fmt.Sprintf("%s%d ", seed, i)
	}
	return text
}
