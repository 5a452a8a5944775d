package decided

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// Place is an index to look up documents in, with its rule.
type Place struct {
	adapters.Index
	Rule *rule.Rule
}

// PairIndex returns the Index of the place's pairs.
func (p Place) PairIndex() string {
	if p.As != "" {
		return p.As
	}
	return p.Name
}

// Texts are the fingerprints of stored documents, by [Place.PairIndex] and id. A document without text has 0.
type Texts map[string]map[string]uint64

// ReadTexts reads the fingerprints of documents in the places. Missing documents are left out. ids are by [Place.PairIndex]; those under "" are looked up
// in all places.
func ReadTexts(ctx context.Context, store adapters.Store, places []Place, ids map[string][]string) (Texts, error) {
	found := Texts{}
	for _, place := range places {
		name := place.PairIndex()
		list := slices.Concat(ids[""], ids[name])
		slices.Sort(list)
		if found[name] == nil {
			found[name] = map[string]uint64{}
		}
		err := adapters.ReadByID(ctx, store, place.Name, place.Rule, slices.Compact(list), nil, func(d adapters.Stored) error {
			text := uint64(0)
			if computed, _ := place.Rule.SketchOf(d.Source); computed != nil {
				text = computed.Fingerprint
			}
			found[name][d.ID] = text
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", place.Name, err)
		}
	}
	return found, nil
}

// Find looks up the documents of pairs in their Index or, if that is empty, in all places. It returns the pairs with their Index and the fingerprints of
// both documents. missing has an error for each pair with a missing document. err names pairs that can't be decided, and pairs with two verdicts.
func Find(ctx context.Context, store adapters.Store, places []Place, pairs ...Pair) (found []Pair, missing []error, err error) {
	ids := map[string][]string{}
	for _, p := range pairs {
		ids[p.Index] = append(ids[p.Index], p.A, p.B)
	}
	texts, err := ReadTexts(ctx, store, places, ids)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	verdicts := map[Name]Verdict{}
	for _, p := range pairs {
		err := texts.fill(&p)
		before, twice := verdicts[p.Name()]
		switch {
		case errors.Is(err, errMissing):
			missing = append(missing, err)
			continue
		case err == nil && twice && before != p.Verdict:
			err = fmt.Errorf("%s and %s of %s have both verdicts, same and different: delete one", word(p.A), word(p.B), p.Index)
		case err == nil && twice:
			continue
		}
		if err != nil {
			errs = append(errs, err)
			if len(errs) == mostErrors {
				break
			}
			continue
		}
		verdicts[p.Name()] = p.Verdict
		found = append(found, p)
	}
	return found, missing, errors.Join(errs...)
}

// errMissing marks the error about a pair with a missing document.
var errMissing = errors.New("check the id and the index")

// mostErrors is how many errors are reported at once.
const mostErrors = 20

// fill sets the index and the texts of a pair.
func (t Texts) fill(p *Pair) error {
	var found []string
	missing := p.A
	for name, texts := range t {
		if p.Index != "" && p.Index != name {
			continue
		}
		_, a := texts[p.A]
		_, b := texts[p.B]
		switch {
		case a && b:
			found = append(found, name)
		case a:
			missing = p.B
		}
	}
	slices.Sort(found)
	switch {
	case len(found) == 0 && p.Index != "" && t[p.Index] == nil:
		return fmt.Errorf("%s: there is no index of this name that a rule matches", p.Index)
	case len(found) == 0:
		return fmt.Errorf("%s and %s: no index holds both, %s is missing: %w", word(p.A), word(p.B), word(missing), errMissing)
	case len(found) > 1:
		return fmt.Errorf("%s and %s: both are in %s and in %s: name one index", word(p.A), word(p.B), found[0], found[1])
	}
	p.Index = found[0]
	p.TextA, p.TextB = t[p.Index][p.A], t[p.Index][p.B]
	for id, text := range map[string]uint64{p.A: p.TextA, p.B: p.TextB} {
		if text == 0 {
			return fmt.Errorf("%s and %s: document %s has no text in the fields of its rule", word(p.A), word(p.B), word(id))
		}
	}
	return nil
}

// Again says why a pair is ignored and should be asked again; empty if it holds. t must have been read for the pair's Index.
func (t Texts) Again(p *Pair) string {
	for _, side := range []struct {
		id   string
		text uint64
	}{{p.A, p.TextA}, {p.B, p.TextB}} {
		switch text, there := t[p.Index][side.id]; {
		case !there:
			return word(side.id) + " no longer exists"
		case text != side.text:
			return "the text of " + word(side.id) + " has changed"
		}
	}
	return ""
}
