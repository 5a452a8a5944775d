package typesense

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
)

// fitness says how one of our fields stands in a collection.
type fitness int

const (
	undeclared fitness = iota
	fit
	// detected: the engine alone declared it, since a document came with a value before we had declared it (an alias was moved, or a
	// collection made anew, just then), and the schema takes fields up as they come.
	detected
	unfit
)

// look says how our field stands in the collection, and what an operator can do if it is unfit.
func (c collection) look(ours ourField) (how fitness, why string) {
	dynamic := false
	for _, f := range c.Fields {
		if f.Name == ours.name {
			indexed := f.Index == nil || *f.Index
			switch {
			case f.Type != ours.kind:
				how, why = unfit, fmt.Sprintf("field %s is declared as %s: drop it from the schema of %s", f.Name, f.Type, c.Name)
			case indexed && !ours.index:
				how, why = detected, fmt.Sprintf("field %s is indexed, which takes memory for nothing: drop it from the schema of %s",
					f.Name, c.Name)
			case !indexed && ours.index:
				how, why = unfit, fmt.Sprintf("field %s is not indexed, so nothing is found by it: drop it from the schema of %s",
					f.Name, c.Name)
			case ours.facet && !f.Facet:
				how, why = detected, fmt.Sprintf("field %s is no facet, so nothing is grouped by it: drop it from the schema of %s",
					f.Name, c.Name)
			default:
				return fit, ""
			}
			continue
		}
		pattern, err := regexp.Compile("^(?:" + f.Name + ")$")
		dynamic = dynamic || err == nil && pattern.MatchString(ours.name)
	}
	if how == undeclared {
		why = fmt.Sprintf("field %s is not declared in %s", ours.name, c.Name)
	}
	if how == detected && !dynamic {
		how = unfit
	}
	return how, why
}

// index says how our fields stand in a collection that the rule is for, and what would declare those that lack, or that the engine
// declared in another way; nothing if there is nothing to be done.
func (c collection) index(rule *adapters.Rule) (i adapters.Index, change string) {
	i.Name, i.Mapped, i.Known = c.Name, true, true // a null is left out, be the field declared or not
	var wrong, changes []string
	for _, ours := range fieldsOf(rule) {
		how, why := c.look(ours)
		switch how {
		case fit:
			continue
		case detected:
			changes = append(changes, `{"name":"`+ours.name+`","drop":true}`, ours.declaration())
		case undeclared:
			changes = append(changes, ours.declaration())
		}
		wrong = append(wrong, why)
	}
	i.Ready, i.Why = len(wrong) == 0, strings.Join(wrong, "; ")
	if len(changes) > 0 {
		change = `{"fields":[` + strings.Join(changes, ",") + `]}`
	}
	return i, change
}

// Resolve implements adapters.Store.
func (s *Store) Resolve(ctx context.Context, name string) ([]adapters.Index, error) {
	collections, err := s.collections(ctx, name)
	if err != nil {
		return nil, err
	}
	var list []adapters.Index
	for _, c := range collections {
		index, _ := c.index(s.rules.For(c.Name))
		list = append(list, index)
	}
	return list, nil
}

// Prepare implements adapters.Store. It never makes a collection, since no write to the engine would.
func (s *Store) Prepare(ctx context.Context, name string, _ bool) ([]adapters.Index, error) {
	collections, err := s.collections(ctx, name)
	if err != nil {
		return nil, err
	}
	var list []adapters.Index
	for _, c := range collections {
		index, change := c.index(s.rules.For(c.Name))
		if change != "" {
			index = s.declare(ctx, c.Name, change)
		}
		list = append(list, index)
	}
	return list, nil
}

// declare changes the declarations of our fields and looks at what stands there then: another may have done so in the meantime.
func (s *Store) declare(ctx context.Context, name, change string) adapters.Index {
	_, refused := s.get(func(c *api.Client) (*http.Response, error) {
		return c.UpdateCollectionWithBody(ctx, name, "application/json", strings.NewReader(change))
	})
	c, err := s.collection(ctx, name)
	if err != nil {
		return adapters.Index{Name: name, Why: errors.Join(refused, err).Error()}
	}
	index, left := c.index(s.rules.For(c.Name))
	if left != "" && refused != nil {
		index.Why += ": " + refused.Error()
	}
	return index
}

// Remove implements adapters.JobStore. It takes our fields out of a collection's documents and then out of its schema. What it finds is all that there is, unless
// documents go on coming with our fields: then the note says how many did. The collection of journals goes as a whole.
func (s *Store) Remove(ctx context.Context, index string) (note string, err error) {
	if index == JournalIndex {
		_, err := s.get(func(c *api.Client) (*http.Response, error) { return c.DeleteCollection(ctx, JournalIndex) })
		if err != nil && !answered(err, http.StatusNotFound) {
			return "", fmt.Errorf("delete the collection %s: %w", JournalIndex, err)
		}
		return "", nil
	}
	if _, err := s.strip(ctx, index); err != nil {
		return "", err
	}
	c, err := s.collection(ctx, index)
	if err != nil {
		return "", err
	}
	var drops []string
	for _, f := range c.Fields {
		if adapters.Our(f.Name) {
			drops = append(drops, `{"name":"`+f.Name+`","drop":true}`)
		}
	}
	if len(drops) > 0 {
		_, err := s.get(func(c *api.Client) (*http.Response, error) {
			body := strings.NewReader(`{"fields":[` + strings.Join(drops, ",") + `]}`)
			return c.UpdateCollectionWithBody(ctx, index, "application/json", body)
		})
		if err != nil {
			return "", fmt.Errorf("drop our fields from the schema of %s: %w", index, err)
		}
	}
	late, err := s.strip(ctx, index)
	if err != nil || late == 0 {
		return "", err
	}
	return fmt.Sprintf("%d documents of %s came with our fields while these were removed: take its entry out of the configuration, "+
		"restart the sidecars and run this again", late, index), nil
}

// strip takes our fields out of all documents of a collection that have them, and returns of how many.
func (s *Store) strip(ctx context.Context, index string) (stripped int, err error) {
	nulls := adapters.Ours{}.Fields(true)
	err = s.Scan(ctx, index, nil, adapters.Selection{Brief: true, Marked: true}, func(p adapters.Page) error {
		var lines []byte
		for _, d := range p.Documents {
			lines = appendUpdate(lines, d.ID, nulls)
		}
		return s.update(ctx, index, lines, func(line []byte) error {
			stripped++
			if _, result, err := updated(line); err != nil || result != adapters.Patched && result != adapters.Gone {
				return fmt.Errorf("take our fields out of the documents of %s: the engine answers %.300s", index, line)
			}
			return nil
		})
	})
	return stripped, err
}
