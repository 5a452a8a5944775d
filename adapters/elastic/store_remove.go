package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
)

// Remove takes the declarations of our fields out of an index, through a store of this package, as far as the engine can: out of the
// templates that make indices of its name, and the marks of those out of its mapping, which itself can't shrink. note says, for an
// operator, what stays and how to be rid of it. The index of the journal is deleted.
func Remove(ctx context.Context, store adapters.Store, index string) (note string, err error) {
	s, ok := store.(*Store)
	if !ok {
		return "", errForeign
	}
	if index == JournalIndex {
		err := s.do(ctx, esapi.IndicesDeleteRequest{Index: []string{JournalIndex}}, nil)
		if missing(err) {
			err = nil
		}
		return "", err
	}
	list, _, err := s.resolve(ctx, index)
	if err != nil {
		return "", fmt.Errorf("remove from %s: %w", index, err)
	}
	at := slices.IndexFunc(list, func(i adapters.Index) bool { return i.Name == index })
	if at < 0 || list[at].Absent {
		return "", nil
	}
	var notes []string
	as := index
	if list[at].As != "" {
		as = list[at].As
	}
	left, err := s.strip(ctx, as)
	if err != nil {
		return "", fmt.Errorf("remove from the templates of %s: %w", index, err)
	}
	if len(left) > 0 {
		notes = append(notes, "template "+strings.Join(left, ", ")+
			" declares fields of ours as well, in words that are not ours: take them out there, or in a component template of it")
	}
	is, err := s.shape(ctx, index) // which tells of fields that no rule has any more as well
	if err != nil {
		return "", err
	}
	fields, err := s.unmark(ctx, index, is.fields())
	if err != nil {
		return "", fmt.Errorf("remove from the mapping of %s: %w", index, err)
	}
	if len(fields) > 0 {
		notes = append(notes, "the mapping of "+index+" keeps "+strings.Join(fields, ", ")+
			", and a place for each in "+limitSetting+": the engine takes no field out of a mapping; reindex into a new index to be rid of them")
	}
	return strings.Join(notes, "; "), nil
}

// unmark takes the marks of a template out of an index's mapping, and returns which fields of ours stand there.
func (s *Store) unmark(ctx context.Context, index string, is declarations) (fields []string, err error) {
	var marked []string
	for _, field := range ourFields {
		if is[field].marked() && is[field].fit(field) {
			marked = append(marked, field)
		}
		if _, there := is[field]; there {
			fields = append(fields, field)
		}
	}
	if len(marked) > 0 {
		body := strings.NewReader(properties(marked, func(field string) string {
			return strings.TrimSuffix(declaration(field, false), "}") + `,"meta":{}}`
		}))
		err = s.do(ctx, esapi.IndicesPutMappingRequest{Index: []string{url.PathEscape(index)}, Body: body}, nil)
	}
	return fields, err
}

// strip takes our declarations out of the templates that make indices of a name, and returns the names of those that go on declaring
// fields of ours: not by our hand.
func (s *Store) strip(ctx context.Context, name string) (left []string, err error) {
	composable, err := s.composable(ctx)
	if err != nil {
		return nil, err
	}
	legacy, err := s.legacy(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, t := range slices.Concat(composable, legacy) {
		if strings.HasPrefix(t.name, ".") || !t.patterns.match(name) {
			continue
		}
		body, ours, others, err := t.without()
		if err == nil && ours {
			err = s.put(ctx, t, body)
		}
		if err != nil {
			errs = append(errs, err)
		}
		if others {
			left = append(left, t.name)
		}
	}
	return left, errors.Join(errs...)
}

// without returns the template's body without what setup has put in, and whether that was anything; and whether it declares our
// fields by itself.
func (t blueprint) without() (body []byte, ours, others bool, err error) {
	in, limitAt := t.paths()
	made := t.body
	for _, name := range in {
		members, err := adapters.Members(made)
		if err != nil {
			return nil, false, false, err
		}
		if made = adapters.Get(members, name); made == nil {
			return t.body, false, false, nil
		}
	}
	var shown struct{ Mappings json.RawMessage }
	if err := json.Unmarshal(made, &shown); err != nil {
		return nil, false, false, err
	}
	var gone []string
	is := declarationsIn(shown.Mappings)
	for field, d := range is {
		if d.marked() {
			gone = append(gone, field)
		} else {
			others = true
		}
	}
	if len(gone) == 0 {
		return t.body, false, others, nil
	}
	body, err = cutAt(t.body, func(key string) bool { return slices.Contains(gone, key) }, slices.Concat(in, []string{"mappings", "properties"})...)
	if err != nil {
		return nil, false, others, fmt.Errorf("template %s is not understood: %w", t.name, err)
	}
	if limit, err := strconv.Atoi(valueAt(body, slices.Concat(in, limitAt)...)); err == nil {
		lower := max(limit-len(gone), 1)
		if body, err = setAt(body, strconv.AppendQuote(nil, strconv.Itoa(lower)), slices.Concat(in, limitAt)...); err != nil {
			return nil, false, others, err
		}
	}
	return body, true, others, nil
}

// valueAt returns the text or number at the end of a path, empty where there is none.
func valueAt(object []byte, path ...string) string {
	for _, name := range path {
		members, err := adapters.Members(object)
		if err != nil {
			return ""
		}
		object = adapters.Get(members, name)
	}
	return strings.Trim(string(object), `"`)
}

// cutAt returns the object without some members of the one at the end of the path, and without those around it that are empty then.
func cutAt(object []byte, drop func(key string) bool, path ...string) ([]byte, error) {
	if len(path) == 0 {
		return adapters.Cut(object, drop)
	}
	members, err := adapters.Members(object)
	if err != nil {
		return nil, err
	}
	inner := adapters.Get(members, path[0])
	if inner == nil {
		return object, nil
	}
	if inner, err = cutAt(inner, drop, path[1:]...); err != nil {
		return nil, err
	}
	if rest, err := adapters.Members(inner); err == nil && len(rest) == 0 {
		return adapters.Cut(object, func(key string) bool { return key == path[0] })
	}
	return adapters.Set(object, path[0], inner)
}
