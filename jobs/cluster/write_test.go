package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs"
	"github.com/neardup/sidecar/sketch"
)

// shelf is a Store of one index in memory.
type shelf struct {
	adapters.JobStore
	mu       sync.Mutex
	sources  map[string]string
	versions map[string]int
	refused  map[string]bool
	// busy is how many more requests are turned away; inPatch is called once before a patch is applied.
	busy    int
	inPatch func()
	written int
}

func (s *shelf) Release(context.Context, string) {}

func (s *shelf) Scan(_ context.Context, _ string, _ *rule.Rule, sel adapters.Selection, yield func(adapters.Page) error) error {
	s.mu.Lock()
	if s.busy > 0 {
		s.busy--
		s.mu.Unlock()
		return fmt.Errorf("scan: %w", adapters.ErrBusy)
	}
	var p adapters.Page
	for _, id := range sel.IDs {
		if source, there := s.sources[id]; there {
			p.Documents = append(p.Documents, adapters.Stored{ID: id, Source: []byte(source), Version: s.versions[id]})
		}
	}
	s.mu.Unlock()
	return yield(p)
}

func (s *shelf) Patch(_ context.Context, _ string, _ *rule.Rule, patches []adapters.Stored) (results []adapters.Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if do := s.inPatch; do != nil {
		s.inPatch = nil
		do()
	}
	for _, p := range patches {
		source, there := s.sources[p.ID]
		switch {
		case !there:
			results = append(results, adapters.Gone)
		case s.versions[p.ID] != p.Version:
			results = append(results, adapters.Changed)
		case s.refused[p.ID]:
			results = append(results, adapters.Refused)
		case s.busy > 0:
			s.busy--
			results = append(results, adapters.Busy)
		default:
			with, err := rule.WithOurs([]byte(source), *p.Wanted)
			if err != nil {
				return nil, err
			}
			s.sources[p.ID] = string(with)
			s.versions[p.ID]++
			s.written++
			results = append(results, adapters.Patched)
		}
	}
	return results, nil
}

// corpusOf adds what stands on the shelf to a corpus and clusters it.
func corpusOf(t *testing.T, r *rule.Rule, s *shelf) *Corpus {
	t.Helper()
	var list []Document
	for id, source := range s.sources {
		d := Document{ID: id, Cluster: rule.OursOf([]byte(source)).Cluster}
		if computed, _ := r.SketchOf([]byte(source)); computed != nil {
			d.Sketch = &computed.Sketch
		}
		list = append(list, d)
	}
	return joined(t, Options{Rule: r}, list)
}

// shelved returns a shelf of texts, and one without.
func shelved(t *testing.T, n int) (*rule.Rule, *shelf) {
	t.Helper()
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	rule.Clusters = true
	s := &shelf{sources: map[string]string{}, versions: map[string]int{}, refused: map[string]bool{}}
	for i, text := range texts(rand.New(rand.NewPCG(11, 10)), n, 60) {
		s.sources[fmt.Sprintf("d%05d", i)] = fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, text)
	}
	s.sources["empty"] = `{"text":""}`
	return rule, s
}

func TestWrite(t *testing.T) {
	r, s := shelved(t, 2600)
	before := map[string]string{}
	for id, source := range s.sources {
		before[id] = source
	}
	s.busy = 3
	c := corpusOf(t, r, s)
	got := expect.Value(c.Write(t.Context(), jobs.Job{Store: s, Index: "x", Rule: r}, nil))(t)
	expect.Must(t, Written{Written: len(before)}, got, "")
	expect.OK(t, c.Each(t.Context(), func(members []Member) error {
		for _, m := range members {
			source := []byte(s.sources[m.ID])
			expect.Same(t, m.Cluster, rule.OursOf(source).Cluster, "the cluster of %s", m.ID)
			if _, right := r.OursFor(source, m.ID); !right {
				t.Errorf("%s is not as a reindex leaves it: %s", m.ID, source)
			}
			expect.Same(t, before[m.ID], string(expect.Value(jsonedit.Cut(source, rule.Our))(t)), "%s less our fields", m.ID)
		}
		return nil
	}))
	s.written = 0
	got = expect.Value(corpusOf(t, r, s).Write(t.Context(), jobs.Job{Store: s, Index: "x", Rule: r}, nil))(t)
	expect.Same(t, Written{Right: len(before)}, got, "a second run")
	expect.Same(t, 0, s.written, "documents that a second run wrote")
}

// TestWriteGivesWay holds that what changed since it was read is left alone, whenever that was.
func TestWriteGivesWay(t *testing.T) {
	rule, s := shelved(t, 100)
	c := corpusOf(t, rule, s)
	const rewritten = `{"text":"a text that was written meanwhile and is about something else altogether"}`
	s.sources["d00001"] = rewritten // before it is read again
	s.sources["empty"] = rewritten
	const emptied = `{"text":""}`
	s.sources["d00007"] = emptied
	delete(s.sources, "d00002")
	s.sources["d00003"] = strings.Replace(s.sources["d00003"], "{", `{"seen":1,`, 1) // another field
	s.refused["d00004"] = true
	s.inPatch = func() { // after
		s.sources["d00005"] = rewritten
		s.versions["d00005"]++
		delete(s.sources, "d00006")
	}
	got := expect.Value(c.Write(t.Context(), jobs.Job{Store: s, Index: "x", Rule: rule}, nil))(t)
	expect.Same(t, Written{Written: 101 - 7, Changed: 4, Gone: 2, Refused: 1}, got, "")
	expect.Same(t, emptied, s.sources["d00007"], "a document whose text is gone")
	for _, id := range []string{"d00001", "d00005", "empty"} {
		expect.Same(t, rewritten, s.sources[id], "%s", id)
	}
}
