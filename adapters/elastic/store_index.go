package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
)

// found is what the engine says of our fields in one index.
type found struct {
	Mappings map[string]struct{ Mapping map[string]json.RawMessage }
}

func (f found) fields() declarations {
	ds := declarations{}
	for _, field := range ourFields {
		ds.take(field, f.Mappings[field].Mapping[field])
	}
	return ds
}

// index returns what is known of an index of that name.
func (s *Store) index(f found, d Dialect, name string) adapters.Index {
	i := adapters.Index{Name: name}
	if as := d.ruleName(name); as != name {
		i.As = as
	}
	is, fields := f.fields(), s.needed(i)
	i.Mapped, i.Known = is[adapters.SketchField].Type != "", len(is.undeclared(fields)) == 0
	i.Ready, i.Why = is.fit(fields), is.why(fields)
	return i
}

// needed returns the fields of ours that documents of an index hold.
func (s *Store) needed(i adapters.Index) []string { return kept(s.rules.Of(i)) }

// Resolve implements adapters.Store. One request tells both the concrete names and how our fields are mapped there.
func (s *Store) Resolve(ctx context.Context, name string) ([]adapters.Index, error) {
	list, _, err := s.resolve(ctx, name)
	return list, err
}

func (s *Store) resolve(ctx context.Context, name string) ([]adapters.Index, map[string]found, error) {
	// Whatever of a list is there, hidden indices too: more than a search may reach, and never less. A single name must be
	// there: or else the error tells so, and what a name to be evaluated comes to.
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
	all := map[string]found{}
	d, err := s.ask(ctx, r, &all)
	switch refused, _ := errors.AsType[*refusal](err); {
	case !lenient && (err == nil && len(all) == 0 || missing(err) && refused.reason == "{}"):
		// That nothing is there is told in other words.
		return nil, nil, fmt.Errorf("resolve %s: its mapping is not shown (closed, blocked, or not granted)", name)
	case missing(err):
		return absentAs(err, name), nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("resolve %s: %w", name, err)
	}
	var list []adapters.Index
	for index, f := range all {
		if index != JournalIndex || name == JournalIndex {
			list = append(list, s.index(f, d, index))
		}
	}
	slices.SortFunc(list, func(a, b adapters.Index) int { return strings.Compare(a.Name, b.Name) })
	if d.OpenSearch && len(list) > 0 {
		s.pipe(ctx, r, list)
	}
	if one(name) && (len(list) > 1 || len(list) == 1 && list[0].Name != name) {
		s.written(ctx, d, name, list, all)
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

// written marks in what stands behind a name the indices that no write to the name reaches, and the one that it reaches if the
// engine can lead the name elsewhere.
func (s *Store) written(ctx context.Context, d Dialect, name string, list []adapters.Index, all map[string]found) {
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
		s.writtenByAlias(ctx, d, name, list, all)
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
		_, generation, _ := cutLast(i.Name)
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
func (s *Store) move(list []adapters.Index, all map[string]found, why string) {
	for i := range list {
		if list[i].NoWrite || all[list[i].Name].fields().marked(s.needed(list[i])) {
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
func (s *Store) writtenByAlias(ctx context.Context, d Dialect, name string, list []adapters.Index, all map[string]found) {
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

// rollsOver reports whether the engine itself makes new indices behind the alias of an index: whether its lifecycle is
// managed. doubt is the answer where it can't be found out: an alias that says which index it writes to is likely to be meant
// for that.
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
