package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"
)

const (
	// limitSetting bounds how many fields a mapping may hold; fieldLimit is what it is where nobody set it.
	limitSetting = "index.mapping.total_fields.limit"
	fieldLimit   = 1000
)

// shape is what an index is made with.
type shape struct {
	// Settings are those that were set, by their flat names.
	Settings map[string]any
	Mappings json.RawMessage
}

// shape returns the shape of an index.
func (s *Store) shape(ctx context.Context, index string) (shape, error) {
	var all map[string]shape
	yes := true
	if err := s.do(ctx, esapi.IndicesGetRequest{Index: []string{url.PathEscape(index)}, FlatSettings: &yes}, &all); err != nil {
		return shape{}, fmt.Errorf("read the settings of %s: %w", index, err)
	}
	one, there := all[index]
	if !there {
		return shape{}, fmt.Errorf("read the settings of %s: the engine says nothing of it", index)
	}
	return one, nil
}

// fields returns how our fields are mapped there.
func (s shape) fields() declarations { return declarationsIn(s.Mappings) }

// fieldsOf counts the fields of a mapping as the engine does: objects, fields of fields, aliases and runtime fields are fields
// too.
func fieldsOf(mapping json.RawMessage) int {
	var m struct{ Properties, Fields, Runtime map[string]json.RawMessage }
	if json.Unmarshal(mapping, &m) != nil {
		return 0
	}
	n := len(m.Fields) + len(m.Runtime)
	for _, property := range m.Properties {
		n += 1 + fieldsOf(property)
	}
	return n
}

// raisedLimit returns the limit under which some fields more leave the documents as much room as they had, and whether it has to
// be set. A limit that nobody set and that is far away stays.
func raisedLimit(limit string, fields, more int) (to int, set bool) {
	n, err := strconv.Atoi(limit)
	if err != nil {
		n = fieldLimit
	}
	return max(n, fields) + more, err == nil || fields >= n/2
}

// declare puts those of our fields into the mapping of an index that it lacks. A place for them is made first, or they are not
// declared: they must not take one that a document may need.
func (s *Store) declare(ctx context.Context, index string, fields []string) error {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	is, err := s.shape(ctx, index)
	if err != nil || is.fields().fit(fields) { // by a template, or another was faster
		return err
	}
	if unfit := is.fields().unfit(fields); unfit != "" {
		return errors.New(is.fields().why(fields))
	}
	lacking := is.fields().undeclared(fields)
	old, was := is.Settings[limitSetting].(string)
	to, raise := raisedLimit(old, fieldsOf(is.Mappings), len(lacking))
	if ours := s.shared.limits[index]; ours.to > 0 && old == strconv.Itoa(ours.to) && ours.by >= len(lacking) {
		to, raise = ours.to, false // raised before, and then something failed
	}
	if raise {
		s.shared.limits[index] = lifted{to, len(lacking)}
		if err := s.limit(ctx, index, strconv.Itoa(to)); err != nil {
			return fmt.Errorf("raise %s of %s to %d, so that our fields take no place of the documents': %w", limitSetting, index, to, err)
		}
	}
	body := strings.NewReader(properties(lacking, func(field string) string { return declaration(field, false) }))
	err = s.do(ctx, esapi.IndicesPutMappingRequest{Index: []string{url.PathEscape(index)}, Body: body}, nil)
	switch {
	case err == nil: // what is raised is taken
		delete(s.shared.limits, index)
	case raise && refusedBy(err):
		back := "null"
		if was {
			back = strconv.Quote(old)
		}
		s.lower(ctx, index, to, back, fields)
	}
	return err
}

// lower puts a field limit back that was raised for nothing, unless somebody else has set it or declared our fields meanwhile.
// One that stays higher refuses nothing.
func (s *Store) lower(ctx context.Context, index string, from int, back string, fields []string) {
	is, err := s.shape(ctx, index)
	if err != nil || is.fields().fit(fields) || is.Settings[limitSetting] != strconv.Itoa(from) {
		return
	}
	if s.limit(ctx, index, back) == nil {
		delete(s.shared.limits, index)
	}
}

// limit sets the field limit of an index to a value in JSON.
func (s *Store) limit(ctx context.Context, index, value string) error {
	body := strings.NewReader(`{"` + limitSetting + `":` + value + `}`)
	return s.do(ctx, esapi.IndicesPutSettingsRequest{Index: []string{url.PathEscape(index)}, Body: body}, nil)
}
