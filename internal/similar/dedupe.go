package similar

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// List is a ranked list of documents, the best first, in which near-duplicates are to be found. They are grouped as the hits of a search are, but by their
// texts alone: conditions of a rule on other fields are not looked at, and leaders are kept, whatever the rule's representative is.
type List struct {
	// Threshold, Keep and Measure, unless zero, replace those of the rules.
	Threshold float64
	Keep      int
	Measure   rerank.Measure
	// Decided, if not nil, is what people have decided about stored documents.
	Decided *decided.Set

	entries  []entry
	missing  []string
	profiles map[*rule.Rule]*rerank.Profile
}

// entry is a document of a list.
type entry struct {
	hit    rerank.Hit
	id     json.RawMessage // nil for none
	absent bool            // the engine does not have it
}

// Deduped says which documents of a list are kept. It names documents by their places in the list, from 0.
type Deduped struct {
	// Kept are the documents that are kept, in their order. Groups are those groups in which others fold.
	Kept   []int   `json:"kept"`
	Groups []Group `json:"groups"`
	// Missing are the ids of stored documents that are not there, or that the client may not read. They are not kept.
	Missing   []string       `json:"missing,omitempty"`
	Threshold float64        `json:"threshold"`
	Measure   rerank.Measure `json:"measure"`
}

// Group is the leader of a group, the documents that are kept beside it, and those that are not kept.
type Group struct {
	Leader int      `json:"leader"`
	Beside []int    `json:"beside,omitempty"`
	Folded []Folded `json:"folded"`
}

// Folded is a document that is not kept. It is compared with its leader, by the values of an [Alike].
type Folded struct {
	At        int             `json:"at"`
	ID        json.RawMessage `json:"id,omitempty"`
	Agreement float64         `json:"agreement"`
	Error     float64         `json:"error"`
	SameText  bool            `json:"same_text"`
	Decided   bool            `json:"decided,omitempty"`
}

// Add adds a document with a sketch under a rule, nil for none. Its id is a JSON value, or nil.
func (l *List) Add(r *rule.Rule, id json.RawMessage, s *sketch.Sketch) {
	e := entry{id: id}
	if s != nil {
		e.hit = rerank.Hit{Sketch: s, Profile: l.profile(r)}
	}
	l.entries = append(l.entries, e)
}

// AddStored adds stored documents, each under the rule of the first of the indices that has it. It reads a few at a time, and keeps only their sketches:
// fewer where the store has no room for them (ErrRoom). Its error says what could not be read, unless all documents were found all the same.
func (l *List) AddStored(ctx context.Context, rs rule.Rules, store adapters.Store, indices []adapters.Index, ids []string) (err error) {
	places := map[string][]int{} // of those that are not found yet; an id can be in the list twice
	for _, id := range ids {
		places[id] = append(places[id], len(l.entries))
		l.entries = append(l.entries, entry{id: jsonedit.AppendString(nil, id), absent: true})
	}
	missing := slices.Compact(slices.Sorted(slices.Values(ids)))
	for _, index := range indices {
		if len(missing) == 0 {
			return nil
		}
		r := index.Rule(rs)
		err = errors.Join(err, readSome(ctx, store, index.Name, r, adapters.Selection{IDs: missing, Brief: true, Fields: r.Fields}, func(d adapters.Stored) error {
			s, stored := r.SketchOf(d.Source)
			if s == nil { // it has no text, or the client may not read it
				s = stored
			}
			for _, place := range places[d.ID] {
				e := &l.entries[place]
				if e.absent = false; s != nil {
					e.hit = rerank.Hit{Sketch: &s.Sketch, Profile: l.profile(r), Decided: l.Decided.Of(index.RuleName(), d.ID, s.Fingerprint)}
				}
			}
			delete(places, d.ID)
			return nil
		}))
		missing = slices.DeleteFunc(missing, func(id string) bool { return places[id] == nil })
	}
	if l.missing = missing; len(missing) == 0 {
		return nil
	}
	return err
}

// readSome reads the documents with the ids of a selection, some at a time. Where the store has no room for that many (ErrRoom), it reads half as many from
// then on, and documents that came before the error come again. Each read of a brief selection is one request, and needs no more than the right to read.
func readSome(ctx context.Context, store adapters.Store, index string, r *rule.Rule, s adapters.Selection, take func(adapters.Stored) error) error {
	ids, n := s.IDs, idsAtOnce
	for len(ids) > 0 {
		n = min(n, len(ids))
		s.IDs = ids[:n]
		var stopped error // by take
		err := store.Scan(ctx, index, r, s, func(p adapters.Page) error {
			for _, d := range p.Documents {
				if stopped = take(d); stopped != nil {
					return stopped
				}
			}
			return nil
		})
		switch {
		case stopped != nil:
			return stopped
		case n > 1 && errors.Is(err, ErrRoom):
			n /= 2
		case err != nil:
			return err
		default:
			ids = ids[n:]
		}
	}
	return nil
}

// profile returns the profile of documents under a rule.
func (l *List) profile(r *rule.Rule) *rerank.Profile {
	if p := l.profiles[r]; p != nil {
		return p
	}
	p := r.Profile
	p.Threshold, p.Keep, p.Measure = cmp.Or(l.Threshold, p.Threshold), cmp.Or(l.Keep, p.Keep), cmp.Or(l.Measure, p.Measure, rerank.Resemblance)
	if l.profiles == nil {
		l.profiles = map[*rule.Rule]*rerank.Profile{}
	}
	l.profiles[r] = &p
	return &p
}

// Dedupe groups the documents of the list. The rule says whether groups are connected components.
func (l *List) Dedupe(r *rule.Rule) Deduped {
	hits := make([]rerank.Hit, len(l.entries))
	for i := range hits {
		hits[i] = l.entries[i].hit
	}
	collapse := rerank.Collapse
	if r.Transitive {
		collapse = rerank.CollapseTransitive
	}
	collapsed := collapse(hits, len(hits))
	profile := l.profile(r)
	all := Deduped{Kept: []int{}, Groups: []Group{}, Missing: l.missing, Threshold: profile.Threshold, Measure: profile.Measure}
	for _, place := range collapsed.Shown {
		if !l.entries[place].absent {
			all.Kept = append(all.Kept, place)
		}
	}
	for _, g := range collapsed.Groups {
		if len(g.Folded) == 0 {
			continue
		}
		group := Group{Leader: g.Leader, Beside: g.Kept}
		for _, place := range g.Folded {
			group.Folded = append(group.Folded, l.folded(place, &hits[g.Leader]))
		}
		all.Groups = append(all.Groups, group)
	}
	return all
}

// folded compares the document at a place with its leader.
func (l *List) folded(place int, leader *rerank.Hit) Folded {
	hit := &l.entries[place].hit
	f := Folded{At: place, ID: l.entries[place].id, SameText: hit.Sketch.SameText(leader.Sketch), Decided: hit.Decision(leader) != nil}
	if estimate, comparable := hit.Profile.Estimate(hit.Sketch, leader.Sketch); comparable {
		f.Agreement, f.Error = max(0, estimate.Value), estimate.Error
	}
	return f
}
