package cluster

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/sketch"
)

// A passage is boilerplate if it stands in many documents that are otherwise unlike. What is otherwise unlike shows when all repeated runs of
// words are taken out of the documents, and the rests are clustered: a footer has as many rests as it has documents, an article in 500 copies
// has none, or one. So the texts are read three times:
//
//  1. Count in how many places each window (see [sketch.PassageWords]) stands, in a table of fixed size. Two windows may share a
//     count. A window with a high count is a candidate.
//  2. Sketch each document without the candidates, and cluster these rests. Count in how many clusters each candidate stands. Those with
//     enough are boilerplate.
//  3. Cut passages out of the texts: the longest runs of such windows. Cluster the documents again without them.
const (
	// A passage stands in at least leastDocuments otherwise unlike documents, and in at least one in documentsShare of all.
	leastDocuments = 20
	documentsShare = 1000
	// A document counts if at least one in restShare of its words is outside of repeated runs. With 2, disclaimers that are longer than most
	// messages were missed; with 5, articles whose copies have frames of their own were taken for boilerplate.
	restShare = 3
	// A window of boilerplate takes about bytesOfWindow. If there are more than fit into the memory, and than leastWindows, a passage must stand in
	// twice as many documents, until they fit.
	bytesOfWindow = 256
	leastWindows  = 1 << 8
)

// Learned is the boilerplate of a corpus, and what changes without it.
type Learned struct {
	// Passages are the most weighty first: by documents times words.
	Passages []boilerplate.Passage `json:"-"`
	// Found is how many there are. Each stands in at least Least otherwise unlike documents.
	Found int `json:"passages"`
	Least int `json:"least_documents"`
	// Documents is how many documents have at least one of them.
	Documents int `json:"documents"`
	// Before and After are how many groups there are before and after the passages are left out. Then Apart groups fall apart, Freed documents are
	// in no group any more, and Joined documents, which were in none, are in one.
	Before int `json:"groups_before"`
	After  int `json:"groups_after"`
	Apart  int `json:"groups_apart"`
	Freed  int `json:"documents_freed"`
	Joined int `json:"documents_joined"`
	// Top are the first ten.
	Top []boilerplate.Passage `json:"top"`
}

// topPassages is how many passages the report lists.
const topPassages = 10

// Prepared is a document whose windows and sketch were made.
type Prepared struct {
	texts   []string
	windows []uint64
	sketch  sketch.Sketch
	has     bool
}

// ReadTexts reads all documents of a corpus, always in the same order. It may call prepare on many cores. It calls use with the results one by one, in the order
// of the documents.
type ReadTexts func(prepare func(texts []string) Prepared, use func(id string, p Prepared) error) error

// learner learns the boilerplate of a corpus.
type learner struct {
	ctx      context.Context
	options  Options
	sketcher *sketch.Sketcher
	read     ReadTexts
	// counts has the candidates: of a window, by its high bits, in how many places it stands.
	counts []uint16
	shift  int
	least  int
	// standing has in how many clusters of rests each window of boilerplate stands, with examples of documents.
	standing map[uint64]*standing
	passages []passage
	learned  Learned
}

// standing is where a window stands.
type standing struct {
	documents int
	examples  []string
	covered   bool // it is in a passage
}

// passage is a run of windows with its words.
type passage struct {
	boilerplate.Passage
	windows []uint64
}

// Learn learns the boilerplate of a corpus that was clustered, whose rule has none.
func (c *Corpus) Learn(ctx context.Context, read ReadTexts) (*Learned, error) {
	l := learner{
		ctx: ctx, options: c.options, sketcher: c.options.Rule.Sketcher, read: read, standing: map[uint64]*standing{},
		least: min(max(leastDocuments, (c.documents+documentsShare-1)/documentsShare), math.MaxUint16),
	}
	l.options.Memory /= 4
	if err := l.count(); err != nil {
		return nil, err
	}
	if err := l.compareRests(); err != nil {
		return nil, err
	}
	l.learned.Least = l.least
	after, err := l.cut()
	if after != nil {
		defer after.Close()
	}
	if err == nil {
		l.choose()
		err = l.compareGroups(c, after)
	}
	return &l.learned, err
}

// corpus returns a corpus of documents without these windows.
func (l *learner) corpus(without func(uint64) bool, pairs []decided.Pair) (*Corpus, *sketch.Sketcher, error) {
	o, r := l.options, *l.options.Rule
	r.Sketcher = l.sketcher.Without(without)
	o.Rule, o.Decided = &r, pairs
	c, err := New(o)
	return c, r.Sketcher, err
}

// count counts the windows.
func (l *learner) count() error {
	l.shift = 64 - 16
	for int64(2)<<(64-l.shift+1) <= l.options.Memory {
		l.shift--
	}
	l.counts = make([]uint16, 1<<(64-l.shift))
	all := func(uint64) bool { return true }
	return l.read(func(texts []string) Prepared { return Prepared{windows: l.windows(texts, all)} }, func(_ string, p Prepared) error {
		for _, window := range p.windows {
			if n := &l.counts[window>>l.shift]; *n < math.MaxUint16 {
				*n++
			}
		}
		return l.ctx.Err()
	})
}

// windows returns some of the windows of a document.
func (l *learner) windows(texts []string, which func(window uint64) bool) (all []uint64) {
	for _, text := range texts {
		for _, window := range l.sketcher.Windows(text) {
			if which(window) {
				all = append(all, window)
			}
		}
	}
	return all
}

func (l *learner) candidate(window uint64) bool { return int(l.counts[window>>l.shift]) >= l.least }

// compareRests finds in how many clusters of rests each candidate stands.
func (l *learner) compareRests() error {
	rests, sketcher, err := l.corpus(l.candidate, nil)
	if err != nil {
		return err
	}
	defer rests.Close()
	places := newSorter[pair](&rests.scratch, l.options.Memory, false)
	err = l.read(func(texts []string) (p Prepared) {
		p.sketch, p.has = sketcher.Sketch(texts...)
		if whole, _ := l.sketcher.Sketch(texts...); p.sketch.Words*restShare >= whole.Words {
			p.windows = l.windows(texts, l.candidate)
		}
		return p
	}, func(id string, p Prepared) error {
		for _, window := range p.windows {
			if err := places.add(pair{window, uint64(rests.Documents())}); err != nil {
				return err
			}
		}
		return rests.Add(p.document(id))
	})
	if err != nil {
		return err
	}
	l.counts = nil
	if err := rests.Cluster(l.ctx); err != nil {
		return err
	}
	r := reader{c: rests}
	last, clusters := uint64(0), map[uint32]bool{}
	var examples []uint32
	end := func() error {
		if len(clusters) < l.least {
			return nil
		}
		s := &standing{documents: len(clusters)}
		for _, place := range examples {
			names, err := r.read(place, 0)
			if err != nil {
				return err
			}
			s.examples = append(s.examples, cutText(&names))
		}
		l.standing[last] = s
		for len(l.standing) > max(leastWindows, int(l.options.Memory/bytesOfWindow)) {
			l.least *= 2
			maps.DeleteFunc(l.standing, func(_ uint64, s *standing) bool { return s.documents < l.least })
		}
		return nil
	}
	err = places.each(l.ctx, func(p pair) error {
		if p[0] != last {
			if err := end(); err != nil {
				return err
			}
			last, examples = p[0], examples[:0]
			clear(clusters)
		}
		of := rests.forest.Of(rests.number[p[1]])
		if !clusters[of] && len(examples) < samples {
			examples = append(examples, uint32(p[1]))
		}
		clusters[of] = true
		return nil
	})
	return cmp.Or(err, end())
}

// document makes a document of the corpus.
func (p *Prepared) document(id string) Document {
	if !p.has {
		return Document{ID: id}
	}
	return Document{ID: id, Sketch: &p.sketch}
}

func (l *learner) isBoilerplate(window uint64) bool { return l.standing[window] != nil }

// cut cuts the passages out of the texts, and clusters the documents without them.
func (l *learner) cut() (*Corpus, error) {
	after, sketcher, err := l.corpus(l.isBoilerplate, l.options.Decided)
	if err != nil {
		return nil, err
	}
	err = l.read(func(texts []string) (p Prepared) {
		p.texts = texts
		p.windows = l.windows(texts, l.isBoilerplate)
		p.sketch, p.has = sketcher.Sketch(texts...)
		return p
	}, func(id string, p Prepared) error {
		if len(p.windows) > 0 {
			l.learned.Documents++
		}
		if slices.ContainsFunc(p.windows, func(window uint64) bool { return !l.standing[window].covered }) {
			for _, text := range p.texts {
				l.cutText(l.sketcher.Content(text))
			}
		}
		return after.Add(p.document(id))
	})
	if err == nil {
		err = after.Cluster(l.ctx)
	}
	return after, err
}

// cutText adds the passages of a text that have a window that no passage has yet: runs of windows that are in about as many documents. Beside a
// passage in far more documents, a run of few windows is one with the words that happen to be before or after it. It is no passage.
func (l *learner) cutText(content string) {
	places := l.sketcher.Places(content)
	documents := func(i int) int { // in how many the window at i is, 0 for none that was learned
		if i < 0 || i == len(places) || l.standing[places[i].Window] == nil {
			return 0
		}
		return l.standing[places[i].Window].documents
	}
	for from, end := 0, 0; from < len(places); from = end {
		n := documents(from)
		for end = from + 1; end < len(places) && documents(end) <= 2*documents(end-1) && documents(end-1) <= 2*documents(end); end++ {
		}
		if n > 0 {
			edge := end-from < sketch.PassageWords && max(documents(from-1), documents(end)) > n
			l.add(content, places[from:end], edge)
		}
	}
}

// add adds a passage, unless it is only an edge, or all of its windows are in others.
func (l *learner) add(content string, run []sketch.Place, edge bool) {
	p, fresh := passage{}, false
	for i, place := range run {
		s := l.standing[place.Window]
		fresh, s.covered = fresh || !s.covered, true
		p.windows = append(p.windows, place.Window)
		if i == 0 || s.documents < p.Documents {
			p.Documents, p.IDs = s.documents, s.examples
		}
	}
	if fresh && !edge {
		p.Text = strings.Join(strings.Fields(content[run[0].From:run[len(run)-1].To]), " ")
		l.passages = append(l.passages, p)
	}
}

// choose drops the passages that are parts of others.
func (l *learner) choose() {
	slices.SortStableFunc(l.passages, func(a, b passage) int { return len(b.windows) - len(a.windows) })
	chosen := map[uint64]bool{}
	weight := func(p *passage) int { return p.Documents * (len(p.windows) + sketch.PassageWords - 1) }
	l.passages = slices.DeleteFunc(l.passages, func(p passage) bool {
		fresh := false
		for _, window := range p.windows {
			fresh, chosen[window] = fresh || !chosen[window], true
		}
		return !fresh
	})
	slices.SortStableFunc(l.passages, func(a, b passage) int { return weight(&b) - weight(&a) })
	all := make([]boilerplate.Passage, len(l.passages))
	for i, p := range l.passages {
		all[i] = p.Passage
	}
	l.learned.Passages = boilerplate.Fit(all)
	l.learned.Found = len(l.learned.Passages)
	l.learned.Top = l.learned.Passages[:min(l.learned.Found, topPassages)]
}

// compareGroups counts what changes between two clusterings of the same documents.
func (l *learner) compareGroups(before, after *Corpus) error {
	groups := map[uint64]uint32{} // the number of the group after, by id, of those that are in one
	number := uint32(0)
	err := after.Each(l.ctx, func(members []Member) error {
		if number++; len(members) > 1 {
			l.learned.After++
			l.learned.Joined += len(members)
			for i := range members {
				groups[xxhash.Sum64String(members[i].ID)] = number
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return before.Each(l.ctx, func(members []Member) error {
		if len(members) == 1 {
			return nil
		}
		l.learned.Before++
		apart, first := false, groups[xxhash.Sum64String(members[0].ID)]
		for i := range members {
			in := groups[xxhash.Sum64String(members[i].ID)]
			if apart = apart || in != first || in == 0; in == 0 {
				l.learned.Freed++
			} else {
				l.learned.Joined-- // it was in a group before
			}
		}
		if apart {
			l.learned.Apart++
		}
		return nil
	})
}
