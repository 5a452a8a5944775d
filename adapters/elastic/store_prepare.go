package elastic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// kindOf are the types of our fields in a mapping: see [rule.OurFields].
var kindOf = map[string]string{rule.SketchField: "binary", rule.BandsField: "long", rule.ClusterField: "keyword"}

// meant says for an operator how a field is declared. All have doc values, without which a client's pattern among docvalue_fields that covers
// one would be refused; all but the sketch, which is of a type that has no index, are looked up by.
func meant(field string) string {
	if kindOf[field] == "binary" {
		return "binary with doc values"
	}
	return kindOf[field] + ", indexed and with doc values"
}

// declaration returns how a field of ours is declared.
func declaration(field, mark string) string {
	if kindOf[field] == "binary" {
		mark = `,"doc_values":true` + mark
	}
	return `{"type":"` + kindOf[field] + `"` + mark + "}"
}

const (
	// mark is what a template's declaration of a field of ours carries. An index that carries it was made from a template that declares
	// the field, so the next index under the same name will have it too.
	mark      = `,"meta":{"` + markKey + `":"` + markValue + `"}`
	unmarked  = `,"meta":{}`
	markKey   = "declared_by"
	markValue = "template"
)

// properties returns the mapping of some fields, each with a mark or none.
func properties(fields []string, mark string) string {
	var list []string
	for _, field := range fields {
		list = append(list, `"`+field+`":`+declaration(field, mark))
	}
	return `{"properties":{` + strings.Join(list, ",") + `}}`
}

// marked reports whether a field of ours carries the mark of a template.
func (m mapped) marked() bool { return m.Meta[markKey] == markValue }

// fit reports whether it is declared as the field needs it.
func (m mapped) fit(field string) bool {
	plain := kindOf[field] != "binary"
	set := func(value *bool, byDefault bool) bool { return value == nil && byDefault || value != nil && *value }
	return m.Type == kindOf[field] && set(m.DocValues, plain) && (!plain || set(m.Index, true))
}

// declarations are how fields are mapped somewhere, by name; those that are not have no entry. An object has no type of its own.
type declarations map[string]mapped

// fit reports whether all of the fields are declared as they are needed, marked whether all of them carry the mark of a template.
func (ds declarations) fit(fields []string) bool {
	return !slices.ContainsFunc(fields, func(field string) bool { return !ds[field].fit(field) })
}

func (ds declarations) marked(fields []string) bool {
	return !slices.ContainsFunc(fields, func(field string) bool { return !ds[field].marked() })
}

// undeclared returns which of the fields are not declared at all; unfit the first that is declared otherwise than needed, or "".
func (ds declarations) undeclared(fields []string) []string {
	return slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return ds[field].Type != "" })
}

func (ds declarations) unfit(fields []string) string {
	for _, field := range fields {
		if d := ds[field]; d.Type != "" && !d.fit(field) {
			return field
		}
	}
	return ""
}

// why says, for an operator, what keeps documents from being stored with the fields; empty if nothing does.
func (ds declarations) why(fields []string) string {
	if field := ds.unfit(fields); field != "" {
		return fmt.Sprintf("the field %s is mapped as %s, not as %s: reindex into a new index", field, ds[field].Type, meant(field))
	}
	if list := ds.undeclared(fields); len(list) > 0 {
		return "the field " + strings.Join(list, ", ") + " is not mapped: run setup with credentials that may change the mapping"
	}
	return ""
}

// kept returns which fields of ours documents hold under one of the rules. A sketch they hold without one, too.
func kept(rules ...*rule.Rule) []string {
	list := rule.OurFields[:1:1]
	if slices.ContainsFunc(rules, func(r *rule.Rule) bool { return r != nil && r.Bands > 0 }) {
		list = append(list, rule.BandsField)
	}
	if slices.ContainsFunc(rules, func(r *rule.Rule) bool { return r != nil && r.Clusters }) {
		list = append(list, rule.ClusterField)
	}
	return list
}

// needed returns the fields of ours that documents of an index hold.
func (s *Store) needed(i adapters.Index) []string { return kept(i.Rule(s.rules)) }

// Resolve implements adapters.Store. One request returns both the concrete names and how our fields are mapped there.
func (s *Store) Resolve(ctx context.Context, name string) ([]adapters.Index, error) {
	list, _, err := s.resolve(ctx, name)
	return list, err
}

func (s *Store) resolve(ctx context.Context, name string) ([]adapters.Index, map[string]declarations, error) {
	// Whatever of a list is there, hidden indices too: more than a search may reach, and never less. A single name must be
	// there: else the error says so, and which index a name of date math means.
	yes, lenient := true, !one(name)
	r := esapi.IndicesGetFieldMappingRequest{
		Fields: kept(s.rules...), IgnoreUnavailable: &lenient, AllowNoIndices: &yes, ExpandWildcards: "all",
	}
	if name != "" {
		r.Index = []string{url.PathEscape(name)}
	}
	if remote(name) {
		return nil, nil, fmt.Errorf("resolve %s: another cluster's indices show no mapping", name)
	}
	var reply map[string]struct {
		Mappings map[string]struct{ Mapping declarations }
	}
	err := s.do(ctx, r, &reply)
	switch refused, _ := errors.AsType[*refusal](err); {
	case !lenient && (err == nil && len(reply) == 0 || missing(err) && refused.reason == "{}"):
		// A missing index has another error.
		return nil, nil, fmt.Errorf("resolve %s: its mapping is not shown (closed, blocked, or not granted)", name)
	case missing(err):
		return absentAs(err, name), nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("resolve %s: %w", name, err)
	}
	var list []adapters.Index
	all := map[string]declarations{}
	for index, is := range reply {
		if index == JournalIndex && name != JournalIndex {
			continue
		}
		i, ds := adapters.Index{Name: index}, declarations{}
		for _, field := range is.Mappings {
			maps.Copy(ds, field.Mapping)
		}
		if as := s.dialect().ruleName(index); as != index {
			i.As = as
		}
		fields := s.needed(i)
		i.Mapped, i.Known = ds[rule.SketchField].Type != "", len(ds.undeclared(fields)) == 0
		i.Ready, i.Why = ds.fit(fields), ds.why(fields)
		list, all[index] = append(list, i), ds
	}
	slices.SortFunc(list, func(a, b adapters.Index) int { return strings.Compare(a.Name, b.Name) })
	if s.dialect().OpenSearch && len(list) > 0 {
		s.pipe(ctx, r, list)
	}
	if one(name) && (len(list) > 1 || len(list) == 1 && list[0].Name != name) {
		s.written(ctx, name, list, all)
	}
	return list, all, nil
}

// absentAs returns the absent index that a name of date math leads to by the engine's error, or nothing.
func absentAs(err error, name string) []adapters.Index {
	if r, ok := err.(*refusal); ok && dateMath(name) && r.index != "" && r.index != name {
		return []adapters.Index{{Name: r.index, Absent: true, Why: "it is not there"}}
	}
	return nil
}

// written marks, among the indices of a name, those that no write to the name reaches, and the one that it reaches if the engine can lead
// the name elsewhere.
func (s *Store) written(ctx context.Context, name string, list []adapters.Index, all map[string]declarations) {
	stream := !slices.ContainsFunc(list, func(i adapters.Index) bool { return i.As != name })
	switch {
	case stream:
		writesTo(list, newest(list, name))
		s.move(list, all, "the data stream gets new indices")
	case dateMath(name):
		now, stream := time.Now().UTC(), slices.ContainsFunc(list, func(i adapters.Index) bool { return i.As != "" })
		if stream || !daily(name) || now.Add(midnightAhead).Day() != now.Add(-midnightPast).Day() {
			s.move(list, all, "its name is about to mean another index")
		}
	default:
		s.writtenByAlias(ctx, name, list, all)
	}
}

// Around midnight (UTC) names of date math come to mean another index. What is enriched for today's index may take some time on
// its way, and the engine's clock may differ from ours.
const (
	midnightAhead = time.Minute
	midnightPast  = 5 * time.Second
)

// newest returns the name of a data stream's newest backing index, which alone is written to.
func newest(list []adapters.Index, stream string) string {
	last, best := "", ""
	for _, i := range list {
		if i.As != stream {
			continue
		}
		generation := i.Name[strings.LastIndexByte(i.Name, '-')+1:]
		if len(generation) > len(last) || len(generation) == len(last) && generation > last {
			last, best = generation, i.Name
		}
	}
	return best
}

// writesTo marks all but one as not written to.
func writesTo(list []adapters.Index, written string) {
	for i := range list {
		list[i].NoWrite = list[i].Name != written
	}
}

// move marks the index that is written to as one of a name that moves, unless the next one is known to declare our field as well.
func (s *Store) move(list []adapters.Index, all map[string]declarations, why string) {
	for i := range list {
		if list[i].NoWrite || all[list[i].Name].marked(s.needed(list[i])) {
			continue
		}
		list[i].Moves = true
		if list[i].Ready {
			list[i].Why = why + ", and no template declares the field " + strings.Join(s.needed(list[i]), ", ") +
				" there: run setup with credentials that may change templates"
		}
	}
}

// writtenByAlias asks which of its indices an alias writes to. Where the engine won't tell, all of them may be.
func (s *Store) writtenByAlias(ctx context.Context, name string, list []adapters.Index, all map[string]declarations) {
	var targets map[string]struct {
		Aliases map[string]struct {
			Write   *bool  `json:"is_write_index"`
			Routing string `json:"index_routing"`
		}
	}
	if err := s.do(ctx, esapi.IndicesGetAliasRequest{Name: []string{url.PathEscape(name)}}, &targets); err != nil {
		for i := range list {
			list[i].Routed = true
		}
		return
	}
	for i := range list {
		list[i].Routed = targets[list[i].Name].Aliases[name].Routing != ""
	}
	target, explicit := "", false
	for index, t := range targets {
		write := t.Aliases[name].Write
		switch {
		case write != nil && *write:
			target, explicit = index, true
		case !explicit && len(targets) == 1 && write == nil:
			target = index
		}
	}
	if _, index := all[target]; index {
		writesTo(list, target)
		if s.rollsOver(ctx, target, explicit) {
			s.move(list, all, "its alias is rolled over to new indices")
		}
	} else if backing := newest(list, target); target != "" && backing != "" { // the alias of a data stream
		writesTo(list, backing)
		s.move(list, all, "the data stream gets new indices")
	}
}

// rollsOver reports whether the engine itself makes new indices for the alias of an index: whether its lifecycle is managed. doubt is the
// answer if the engine does not show that: an alias that names the index it writes to is likely to be rolled over.
func (s *Store) rollsOver(ctx context.Context, index string, doubt bool) bool {
	is, err := s.shape(ctx, index)
	if err != nil {
		return doubt
	}
	for key := range is.Settings {
		if strings.HasPrefix(key, "index.lifecycle.") || strings.Contains(key, "index_state_management.") {
			return true
		}
	}
	return false
}

// Prepare implements adapters.Store.
func (s *Store) Prepare(ctx context.Context, name string, create bool) ([]adapters.Index, error) {
	list, err := s.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || list[0].Absent {
		if !create {
			return list, nil
		}
		if list, err = s.create(ctx, name, list); err != nil {
			return nil, err
		}
	}
	for i, index := range list {
		if index.Ready || index.Absent {
			continue
		}
		if err := s.declare(ctx, index.Name, s.needed(index)); err != nil {
			list[i].Why = err.Error()
			continue
		}
		list[i].Ready, list[i].Mapped, list[i].Known, list[i].Why = true, true, true, ""
	}
	return list, nil
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
	if err != nil || is.Mappings.Properties.fit(fields) { // by a template, or another was faster
		return err
	}
	if unfit := is.Mappings.Properties.unfit(fields); unfit != "" {
		return errors.New(is.Mappings.Properties.why(fields))
	}
	lacking := is.Mappings.Properties.undeclared(fields)
	old, was := is.Settings[limitSetting].(string)
	to, raise := raisedLimit(old, fieldsOf(is.Mappings), len(lacking))
	if raise {
		if err := s.limit(ctx, index, strconv.Itoa(to)); err != nil {
			return fmt.Errorf("raise %s of %s to %d, so that our fields take no place of the documents': %w", limitSetting, index, to, err)
		}
	}
	err = s.putMapping(ctx, index, properties(lacking, ""))
	if raise && refusedBy(err) { // else it may be declared all the same
		back := "null"
		if was {
			back = strconv.Quote(old)
		}
		s.lower(ctx, index, to, back, fields)
	}
	return err
}

// putMapping puts something into the mapping of an index.
func (s *Store) putMapping(ctx context.Context, index, mapping string) error {
	return s.do(ctx, esapi.IndicesPutMappingRequest{Index: []string{url.PathEscape(index)}, Body: strings.NewReader(mapping)}, nil)
}

// lower puts a field limit back that was raised for nothing, unless somebody else has set it or declared our fields meanwhile.
// One that stays higher refuses nothing.
func (s *Store) lower(ctx context.Context, index string, from int, back string, fields []string) {
	is, err := s.shape(ctx, index)
	if err != nil || is.Mappings.Properties.fit(fields) || is.Settings[limitSetting] != strconv.Itoa(from) {
		return
	}
	_ = s.limit(ctx, index, back)
}

// limit sets the field limit of an index to a value in JSON.
func (s *Store) limit(ctx context.Context, index, value string) error {
	body := strings.NewReader(`{"` + limitSetting + `":` + value + `}`)
	return s.do(ctx, esapi.IndicesPutSettingsRequest{Index: []string{url.PathEscape(index)}, Body: body}, nil)
}
