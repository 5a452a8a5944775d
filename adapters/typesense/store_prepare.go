package typesense

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// declared returns what the schema says of a field by its name, nil if nothing. dynamic says that a pattern of names has it.
func (c collection) declared(name string) (found *field, dynamic bool) {
	for i, f := range c.Fields {
		if f.Name == name {
			found = &c.Fields[i]
		} else if strings.Contains(f.Name, "*") {
			pattern, err := regexp.Compile("^(?:" + f.Name + ")$")
			dynamic = dynamic || err == nil && pattern.MatchString(name)
		}
	}
	return found, dynamic
}

// amiss says what is wrong with our field in the collection, empty if nothing is, and which changes of the schema mend it; none where that
// is left to an operator.
func (c collection) amiss(ours ourField) (why string, changes []string) {
	f, dynamic := c.declared(ours.name)
	if f == nil {
		return fmt.Sprintf("field %s is not declared in %s", ours.name, c.Name), []string{ours.declaration()}
	}
	indexed := f.Index == nil || *f.Index
	// The engine declares a field by itself where a document comes with a value before we have declared it (an alias was moved, or a
	// collection made anew, just then), and the schema takes fields up as they come.
	detected := false
	switch {
	case f.Type != ours.kind:
		why = "is declared as " + f.Type
	case indexed && !ours.index:
		why, detected = "is indexed, which takes memory for nothing", dynamic
	case !indexed && ours.index:
		why = "is not indexed, so nothing is found by it"
	case ours.facet && !f.Facet:
		why, detected = "is no facet, so nothing is grouped by it", dynamic
	default:
		return "", nil
	}
	if detected {
		changes = []string{`{"name":"` + ours.name + `","drop":true}`, ours.declaration()}
	}
	return fmt.Sprintf("field %s %s: drop it from the schema of %s", f.Name, why, c.Name), changes
}

// index says how our fields are declared in a collection that the rule is for, and what would declare those that lack, or that the engine
// declared in another way; nothing if there is nothing to be done.
func (c collection) index(rule *rule.Rule) (i adapters.Index, change string) {
	i.Name, i.Mapped, i.Known = c.Name, true, true // a null is left out, be the field declared or not
	var wrong, changes []string
	for _, ours := range fieldsOf(rule) {
		if why, mend := c.amiss(ours); why != "" {
			wrong, changes = append(wrong, why), append(changes, mend...)
		}
	}
	i.Ready, i.Why = len(wrong) == 0, strings.Join(wrong, "; ")
	if len(changes) > 0 {
		change = `{"fields":[` + strings.Join(changes, ",") + `]}`
	}
	return i, change
}

// Resolve implements adapters.Store.
func (s *Store) Resolve(ctx context.Context, name string) ([]adapters.Index, error) {
	return s.indices(ctx, name, false)
}

// Prepare implements adapters.Store. It never makes a collection, since no write to the engine would.
func (s *Store) Prepare(ctx context.Context, name string, _ bool) ([]adapters.Index, error) {
	return s.indices(ctx, name, true)
}

// indices returns the collections of a name, with our fields declared where that is wanted.
func (s *Store) indices(ctx context.Context, name string, declare bool) (list []adapters.Index, err error) {
	collections, err := s.collections(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, c := range collections {
		index, change := c.index(s.rules.For(c.Name))
		if declare && change != "" {
			index = s.declare(ctx, c.Name, change)
		}
		list = append(list, index)
	}
	return list, nil
}

// declare changes the declarations of our fields and reads them again: another may have changed them in the meantime.
func (s *Store) declare(ctx context.Context, name, change string) adapters.Index {
	_, refused := readAll(s.api.UpdateCollectionWithBody(ctx, name, "application/json", strings.NewReader(change)))
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
		_, err := readAll(s.api.DeleteCollection(ctx, JournalIndex))
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
		if rule.Our(f.Name) {
			drops = append(drops, `{"name":"`+f.Name+`","drop":true}`)
		}
	}
	if len(drops) > 0 {
		change := strings.NewReader(`{"fields":[` + strings.Join(drops, ",") + `]}`)
		_, err := readAll(s.api.UpdateCollectionWithBody(ctx, index, "application/json", change))
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
	nulls := rule.Ours{}.Fields(rule.OurFields...)
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
