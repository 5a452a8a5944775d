package similar

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

const (
	// maxCandidates is how many documents that share a band are compared at most.
	maxCandidates = 10_000
	// textsAtOnce is how many whole documents are read at a time, idsAtOnce how many where only some fields are read.
	textsAtOnce, idsAtOnce = 50, 250
)

// Likeness says which near-duplicates of a document are asked for.
type Likeness struct {
	// Threshold is the least agreement, in place of the rule's; 0 is the rule's.
	Threshold float64
	// Size is how many are returned at most, the most alike; at least 1.
	Size int
	// Source asks for the documents themselves, and their exact resemblance.
	Source bool
	// Room is how many bytes of documents are returned at most; 0 is no bound. More is an [ErrRoom].
	Room int64
	// Hold, if not nil, takes room for n bytes of documents that are kept to be returned.
	Hold func(n int64) error
	// Scan compares with all sketches of an index, where none can be looked up by their bands or none is to be missed.
	Scan bool
	// Except is the index, the id and the group of a document that is not among the answers: the one that is asked about.
	Except Alike
	// Decided, if not nil, is what people have decided about the document of Except. Partners are the documents of these pairs in its index or data stream,
	// as far as they are known. They are compared even if they share no band.
	Decided  *decided.Set
	Partners []string
}

// Alike is one document that is a near-duplicate of another.
type Alike struct {
	Index string `json:"index"`
	ID    string `json:"id"`
	// Agreement is what the rule's measure estimates from both sketches, and Error its standard error.
	Agreement float64 `json:"agreement"`
	Error     float64 `json:"error"`
	// SameText says that both texts are equal but for case and space.
	SameText bool `json:"same_text"`
	// Group is the id of its cluster, empty where none of its rule is stored.
	Group string `json:"group,omitempty"`
	// Decided says that people have decided that it is the same.
	Decided bool `json:"decided,omitempty"`
	// Resemblance is exact, of both texts; nil where they were not read.
	Resemblance *float64 `json:"resemblance,omitempty"`
	// Source is the document less our fields.
	Source json.RawMessage `json:"source,omitempty"`
}

// Searched says how one index was searched.
type Searched struct {
	Index     string  `json:"index"`
	Threshold float64 `json:"threshold"`
	// Compared is how many sketches the document's was compared with; Cut says that there were more, which were left out.
	Compared int  `json:"compared"`
	Cut      bool `json:"cut,omitempty"`
	// Recall is the chance that a document whose resemblance is the threshold shares a band and so was compared: 1 for all that was
	// scanned, nil where it is not known.
	Recall *float64 `json:"recall,omitempty"`
}

// Similar is what was found.
type Similar struct {
	// Group is that of the document that is asked about, as in [Alike].
	Group string `json:"group,omitempty"`
	// Total is how many near-duplicates there are by the sketches; Alike the most alike of them.
	Total    int        `json:"total"`
	Alike    []Alike    `json:"similar"`
	Searched []Searched `json:"indices"`
}

// ErrRoom: the documents that were found are larger than there is room for.
var ErrRoom = errors.New("the documents that were found are too large")

// ErrNoBands: an index has no bands to look documents up by.
var ErrNoBands = errors.New("no bands are stored there")

// Document returns the document with the id in the first of the indices that has it, with the texts of that index's rule, and where
// it is; nil where none has it. The error says what could not be read on the way.
func Document(ctx context.Context, rs rule.Rules, store adapters.Store, indices []adapters.Index, id string) (source []byte, at Alike, err error) {
	for _, index := range indices {
		one := adapters.ReadByID(ctx, store, index.Name, index.Rule(rs), []string{id}, nil, func(d adapters.Stored) error {
			source, at = d.Source, Alike{Index: index.Name, ID: d.ID}
			if r := index.Rule(rs); r != nil {
				at.Group = r.ClusterOf(d.Source)
			}
			return nil
		})
		if source != nil {
			return source, at, nil
		}
		err = errors.Join(err, one)
	}
	return nil, at, err
}

// Find looks for the near-duplicates of a document in indices, in each under its own rule; an index without one is left out.
// The document is JSON; one that has none of the rule's fields but a text named text is that text. Near-duplicates are what folds
// in a search: conditions of the rule on other fields are not looked at.
func Find(ctx context.Context, rs rule.Rules, store adapters.Store, indices []adapters.Index, document []byte, l Likeness) (Similar, error) {
	all := Similar{Group: l.Except.Group, Alike: []Alike{}, Searched: []Searched{}}
	decidedIn := "" // the index or data stream of Except
	if i := slices.IndexFunc(indices, func(i adapters.Index) bool { return i.Name == l.Except.Index }); i >= 0 {
		decidedIn = indices[i].RuleName()
	}
	for _, index := range indices {
		rule := index.Rule(rs)
		if rule == nil || index.Absent {
			continue
		}
		within := l
		if index.RuleName() != decidedIn {
			within.Decided, within.Partners = nil, nil
		}
		one, err := find(ctx, rule, store, index, document, within)
		if err != nil {
			return all, err
		}
		all.Total += one.Total
		all.Alike = append(all.Alike, one.Alike...)
		all.Searched = append(all.Searched, one.Searched...)
	}
	slices.SortFunc(all.Alike, moreAlike)
	all.Alike = all.Alike[:min(len(all.Alike), l.Size)]
	return all, nil
}

// moreAlike orders what was found: what was decided first, then equal texts, then by agreement, then by name.
func moreAlike(a, b Alike) int {
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		}
		return 1
	}
	return cmp.Or(first(a.Decided, b.Decided), first(a.SameText, b.SameText), cmp.Compare(b.Agreement, a.Agreement), cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
}

// likening is the search of one index.
type likening struct {
	Likeness
	rule    *rule.Rule
	profile rerank.Profile
	index   adapters.Index
	sketch  sketch.Sketch
	text    *sketch.Text // where texts are compared
	known   []string     // partners that were compared
	found   Similar
	seen    Searched
	read    int // documents in all
}

func find(ctx context.Context, r *rule.Rule, store adapters.Store, index adapters.Index, document []byte, l Likeness) (Similar, error) {
	texts, s := r.Given(document)
	if s == nil {
		return Similar{}, nil
	}
	k := likening{Likeness: l, rule: r, profile: r.Profile, index: index, sketch: *s}
	if l.Threshold > 0 {
		k.profile.Threshold = l.Threshold
	}
	if l.Source && k.exact() {
		k.text = r.Sketcher.Text(texts...)
	}
	k.seen = Searched{Index: index.Name, Threshold: k.profile.Threshold}
	selection, err := k.selection()
	if err != nil {
		return k.found, err
	}
	err = readSome(ctx, store, index.Name, r, adapters.Selection{IDs: k.Partners, Brief: true}, func(d adapters.Stored) error {
		k.compare(d)
		k.known = append(k.known, d.ID)
		return nil
	})
	if err != nil {
		return k.found, err
	}
	if err = store.Scan(ctx, index.Name, r, selection, k.page); err != nil {
		return k.found, err
	}
	k.seen.Cut = selection.Limit > 0 && k.read >= selection.Limit
	k.found.Searched = []Searched{k.seen}
	k.trim(k.kept())
	if l.Source {
		err = k.readAlike(ctx, store)
	}
	k.trim(l.Size)
	return k.found, err
}

// exact reports whether the measure has an exact value that the texts tell.
func (k *likening) exact() bool {
	return k.profile.Measure != rerank.Containment && k.rule.Sketcher.Scheme().Features.Sets()
}

// selection returns what is read to be compared.
func (k *likening) selection() (adapters.Selection, error) {
	certain := 1.0
	if k.Scan {
		k.seen.Recall = &certain
		return adapters.Selection{Brief: true, Marked: true}, nil
	}
	if k.profile.Vector.Combine == rerank.Either {
		return adapters.Selection{}, fmt.Errorf("index %s: %w for vectors that decide alone: compare with all sketches (sidecar similar --scan)", k.index.Name, ErrNoBands)
	}
	keys := k.rule.BandKeys(&k.sketch)
	if len(keys) == 0 {
		return adapters.Selection{}, fmt.Errorf("index %s: %w: set bands: auto in its entry of the configuration and run setup and reindex, "+
			"or compare with all sketches (sidecar similar --scan)", k.index.Name, ErrNoBands)
	}
	if k.profile.Measure != rerank.Containment {
		alike := k.profile.Threshold
		if k.sketch.Form == sketch.VectorSides {
			alike = sketch.SideShare(alike)
		}
		recall := sketch.Candidate(alike, k.rule.Bands, k.rule.Rows)
		k.seen.Recall = &recall
	}
	return adapters.Selection{Brief: true, Bands: keys, Limit: maxCandidates}, nil
}

// kept is how many are held while there may be more: enough that as many as are asked for are left when texts decide.
func (k *likening) kept() int { return 4*k.Size + textsAtOnce }

// page compares a page of documents.
func (k *likening) page(p adapters.Page) error {
	for _, d := range p.Documents {
		k.read++
		k.compare(d)
	}
	if len(k.found.Alike) > 2*k.kept() {
		k.trim(k.kept())
	}
	return nil
}

// compare compares a document, unless it was compared as a partner.
func (k *likening) compare(d adapters.Stored) {
	if d.ID == k.Except.ID && k.index.Name == k.Except.Index || slices.Contains(k.known, d.ID) {
		return
	}
	s := k.rule.Decode(rule.OursOf(d.Source).Sketch)
	if s == nil {
		return
	}
	k.seen.Compared++
	near, agreement := k.profile.NearDuplicates(&k.sketch, s)
	same, decides := k.Decided.Pair(k.index.RuleName(), k.Except.ID, k.sketch.Fingerprint, d.ID, s.Fingerprint)
	if decides {
		near = same
	}
	if near {
		k.found.Total++
		one := k.alike(d.ID, s, agreement)
		one.Decided, one.Group = decides, k.rule.ClusterOf(d.Source)
		k.found.Alike = append(k.found.Alike, one)
	}
}

func (k *likening) alike(id string, s *sketch.Sketch, agreement float64) Alike {
	a := Alike{Index: k.index.Name, ID: id, Agreement: agreement, SameText: s.SameText(&k.sketch)}
	if estimate, ok := k.profile.Estimate(s, &k.sketch); ok {
		a.Error = estimate.Error
	}
	return a
}

func (k *likening) trim(n int) {
	slices.SortFunc(k.found.Alike, moreAlike)
	k.found.Alike = k.found.Alike[:min(n, len(k.found.Alike))]
}

// readAlike reads the documents that were found, the most alike first, until there are enough. What can't be read any more is left out.
func (k *likening) readAlike(ctx context.Context, store adapters.Store) error {
	var list []Alike
	room := k.Room
	for rest := k.found.Alike; len(rest) > 0 && len(list) < k.Size; {
		some := rest[:min(len(rest), textsAtOnce, k.Size-len(list))]
		rest = rest[len(some):]
		places, ids := map[string]int{}, make([]string, len(some))
		for i, a := range some {
			places[a.ID], ids[i] = i, a.ID
		}
		all := adapters.Selection{IDs: ids, Fields: []string{adapters.AllFields}}
		err := readSome(ctx, store, k.index.Name, k.rule, all, func(d adapters.Stored) error {
			i, asked := places[d.ID]
			if !asked || some[i].Source != nil || !k.takeUp(&some[i], d.Source) {
				return nil
			}
			size := int64(len(some[i].Source))
			if room -= size; k.Room > 0 && room < 0 {
				return fmt.Errorf("%w: ask for fewer, or without their source", ErrRoom)
			}
			if k.Hold != nil {
				return k.Hold(size)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, a := range some {
			if a.Source != nil {
				list = append(list, a)
			}
		}
	}
	k.found.Alike = list
	return nil
}

// takeUp takes up a document's source and the exact resemblance. It reports false if the source is not readable.
func (k *likening) takeUp(a *Alike, source []byte) bool {
	bare, err := jsonedit.Cut(source, rule.Our)
	if err != nil {
		return false
	}
	a.Source = slices.Clone(bare) // the page is let go of
	if k.text == nil {
		return true
	}
	if texts, s := k.rule.Given(source); s != nil { // else its text is hidden from the client
		resemblance, _ := k.text.Compare(k.rule.Sketcher.Text(texts...))
		a.Resemblance = &resemblance
	}
	return true
}
