package elastic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// blueprint is a template as the engine holds it.
type blueprint struct {
	name     string
	patterns patterns
	body     map[string]any // as it is put
	order    int64          // what has more wins
	managed  bool           // by the engine
	auto     *bool          // whether a first write may make an index from it, if it says so
	streams  bool           // it makes data streams
	legacy   bool           // of the older kind, several of which apply to one index
	made     shape          // what an index made from it is like, as far as we know
	rival    string         // another legacy template, which overrules this one's field limit
}

// Templates declares our field in the templates from which indices of the rules alone are made, whose names they match as a
// whole, and returns every template that makes indices of a rule. It makes none and leaves alone those that are the engine's own.
// An existing index whose successor will be made from such a template is marked accordingly. With dry it changes nothing.
func (s *Store) Templates(ctx context.Context, rules rule.Rules, dry bool) ([]adapters.Template, error) {
	all, err := s.templates(ctx)
	if err != nil {
		return nil, err
	}
	var list []adapters.Template
	var ready []blueprint
	for _, t := range all {
		if strings.HasPrefix(t.name, ".") || len(t.patterns.of(rules)) == 0 {
			continue
		}
		done := s.amend(ctx, t, rules, dry)
		list = append(list, done)
		if done.Ready {
			ready = append(ready, t)
		}
	}
	if dry {
		return list, nil
	}
	return list, s.mark(ctx, rules, all, ready)
}

// amend declares our field in a template, unless it is there or the template is to be left alone.
func (s *Store) amend(ctx context.Context, t blueprint, rules rule.Rules, dry bool) adapters.Template {
	done := adapters.Template{Name: t.name}
	if !t.legacy {
		is, err := s.simulated(ctx, esapi.IndicesSimulateTemplateRequest{Name: url.PathEscape(t.name)})
		if err != nil {
			done.Err = err
			return done
		}
		t.made = is
	}
	is, fields := t.made.Mappings.Properties, kept(t.patterns.of(rules)...)
	switch {
	case is.fit(fields) && is.marked(fields):
		done.Ready = true
		return done
	case t.managed:
		done.Why = "it is the engine's own: declare in a component template of yours that it is composed of " +
			properties(fields, mark)
		return done
	case !t.patterns.within(rules):
		done.Why = "it also makes indices that no rule matches"
		return done
	case is.unfit(fields) != "":
		field := is.unfit(fields)
		done.Why = fmt.Sprintf("it declares the field %s as %s, not as %s", field, is[field].Type, meant(field))
		return done
	case t.rival != "":
		done.Why = "template " + t.rival + " sets " + limitSetting + " over it: set it here"
		return done
	}
	if !dry {
		if done.Err = s.put(ctx, t.with(fields)); done.Err != nil {
			return done
		}
	}
	done.Ready, done.Added = !dry, true
	return done
}

// with returns the template with the fields declared, and with more places for those that it has none for yet.
func (t blueprint) with(fields []string) blueprint {
	made := t.makes()
	properties := objectAt(made, "mappings", "properties")
	for _, field := range fields {
		properties[field] = json.RawMessage(declaration(field, mark))
	}
	more := len(t.made.Mappings.Properties.undeclared(fields))
	if to, raise := raisedLimit(t.made.setting(limitSetting), fieldsOf(t.made.Mappings), more); more > 0 && raise {
		objectAt(made, "settings")[limitSetting] = strconv.Itoa(to)
	}
	return t
}

// without returns the template without what setup has put in, and whether that was anything; and whether it declares our fields by
// itself.
func (t blueprint) without() (bare blueprint, ours, others bool) {
	made, gone := t.makes(), 0
	properties, settings := objectAt(made, "mappings", "properties"), objectAt(made, "settings")
	for _, field := range rule.OurFields {
		declaration, there := properties[field].(map[string]any)
		if meta, _ := declaration["meta"].(map[string]any); meta[markKey] == markValue {
			delete(properties, field)
			gone++
		} else if there {
			others = true
		}
	}
	if limit, err := strconv.Atoi(fmt.Sprint(settings[limitSetting])); err == nil && gone > 0 {
		settings[limitSetting] = strconv.Itoa(max(limit-gone, 1))
	}
	prune(made, "mappings", "properties")
	prune(made, "settings")
	prune(t.body, "template")
	return t, gone > 0, others
}

// makes returns the part of a template's body that an index is made with.
func (t blueprint) makes() map[string]any {
	if t.legacy {
		return t.body
	}
	return objectAt(t.body, "template")
}

// objectAt returns the object at the end of a path, along which objects are made where they lack.
func objectAt(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		inner, is := object[name].(map[string]any)
		if !is {
			inner = map[string]any{}
			object[name] = inner
		}
		object = inner
	}
	return object
}

// prune takes out the objects along a path that are empty.
func prune(object map[string]any, path ...string) {
	if len(path) == 0 {
		return
	}
	if inner, is := object[path[0]].(map[string]any); is {
		if prune(inner, path[1:]...); len(inner) == 0 {
			delete(object, path[0])
		}
	}
}

// put stores a template in place of the one of its name.
func (s *Store) put(ctx context.Context, t blueprint) error {
	body, err := json.Marshal(t.body)
	if err != nil {
		return err
	}
	if t.legacy {
		return s.do(ctx, esapi.IndicesPutTemplateRequest{Name: url.PathEscape(t.name), Body: bytes.NewReader(body)}, nil)
	}
	return s.do(ctx, esapi.IndicesPutIndexTemplateRequest{Name: url.PathEscape(t.name), Body: bytes.NewReader(body)}, nil)
}

// decoded returns a JSON object with its numbers as they are written.
func decoded(object []byte) (body map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	return body, d.Decode(&body)
}

// shownOnly are members of a template that the engine shows and does not accept.
var shownOnly = []string{"created_date", "created_date_millis", "modified_date", "modified_date_millis"}

// blueprintOf reads a template. Templates of the engine's own have a mark in "_meta", where users write what they like.
func blueprintOf(name string, object json.RawMessage, legacy bool) (blueprint, error) {
	var head struct {
		Patterns        patterns `json:"index_patterns"`
		Priority, Order int64
		Auto            *bool           `json:"allow_auto_create"`
		Stream          json.RawMessage `json:"data_stream"`
		Mappings        mapped          // of a legacy one
	}
	body, err := decoded(object)
	if err = cmp.Or(err, json.Unmarshal(object, &head)); err != nil {
		return blueprint{}, fmt.Errorf("template %s is not understood: %w", name, err)
	}
	maps.DeleteFunc(body, func(key string, _ any) bool { return slices.Contains(shownOnly, key) })
	meta, _ := body["_meta"].(map[string]any)
	if mapping, is := body["mappings"].(map[string]any); is && legacy {
		meta, _ = mapping["_meta"].(map[string]any)
	}
	t := blueprint{
		name: name, patterns: head.Patterns, body: body, order: head.Priority + head.Order, legacy: legacy,
		managed: meta["managed"] == true, auto: head.Auto, streams: head.Stream != nil,
	}
	settings := map[string]any{}
	flatten("", objectAt(t.makes(), "settings"), settings)
	t.makes()["settings"], t.made = settings, shape{Settings: settings, Mappings: head.Mappings}
	prune(t.makes(), "settings")
	return t, nil
}

// templates returns all templates, the composable ones before the legacy ones.
func (s *Store) templates(ctx context.Context) ([]blueprint, error) {
	composable, err := s.composable(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the index templates: %w", err)
	}
	legacy, err := s.legacy(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the legacy index templates: %w", err)
	}
	return append(composable, legacy...), nil
}

// composable returns the composable templates, the first to apply first.
func (s *Store) composable(ctx context.Context) ([]blueprint, error) {
	var reply struct {
		List []struct {
			Name     string
			Template json.RawMessage `json:"index_template"`
		} `json:"index_templates"`
	}
	if err := s.do(ctx, esapi.IndicesGetIndexTemplateRequest{}, &reply); err != nil && !missing(err) {
		return nil, err
	}
	var list []blueprint
	for _, one := range reply.List {
		t, err := blueprintOf(one.Name, one.Template, false)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b blueprint) int { return cmp.Compare(b.order, a.order) })
	return list, nil
}

// legacy returns the legacy templates. What an index made from one is like we know of that one alone, but for the field limit,
// which another one may set.
func (s *Store) legacy(ctx context.Context) ([]blueprint, error) {
	all := map[string]json.RawMessage{}
	if err := s.do(ctx, esapi.IndicesGetTemplateRequest{}, &all); err != nil && !missing(err) {
		return nil, err
	}
	var list []blueprint
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t, err := blueprintOf(name, all[name], true)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	for i := range list {
		list[i].inherit(list)
	}
	return list, nil
}

// inherit takes the field limit that another legacy template sets for indices of this one, or names the one that overrules it.
func (t *blueprint) inherit(all []blueprint) {
	order := int64(0)
	_, own := t.made.Settings[limitSetting]
	for _, other := range all {
		limit, sets := other.made.Settings[limitSetting]
		if other.name == t.name || !sets || !slices.ContainsFunc(t.patterns, other.patterns.meets) {
			continue
		}
		if other.order >= t.order {
			t.rival = other.name
		} else if _, has := t.made.Settings[limitSetting]; !own && (!has || other.order >= order) {
			t.made.Settings = maps.Clone(t.made.Settings)
			t.made.Settings[limitSetting] = limit
			order = other.order
		}
	}
}

// simulated returns what an index is like that is made from a composable template and all that it is composed of.
func (s *Store) simulated(ctx context.Context, r esapi.Request) (shape, error) {
	var reply struct {
		Template struct {
			Mappings mapped
			Settings map[string]any
		}
	}
	err := s.do(ctx, r, &reply)
	is := shape{Mappings: reply.Template.Mappings, Settings: map[string]any{}}
	flatten("", reply.Template.Settings, is.Settings)
	return is, err
}

// flatten adds settings by their flat names.
func flatten(prefix string, settings, to map[string]any) {
	for name, value := range settings {
		if inner, is := value.(map[string]any); is {
			flatten(prefix+name+".", inner, to)
		} else {
			to[prefix+name] = value
		}
	}
}

// mark marks the declaration of our field in indices whose successors will be made from a template that declares it: the newest
// one of a data stream, and those whose names count up.
func (s *Store) mark(ctx context.Context, rules rule.Rules, all, ready []blueprint) error {
	list, declared, err := s.resolve(ctx, "")
	if err != nil {
		return err
	}
	var errs []error
	for _, index := range list {
		name := index.As
		if name == "" && counted.MatchString(index.Name) {
			name = index.Name
		}
		older := index.As != "" && newest(list, index.As) != index.Name
		fields := kept(index.Rule(rules))
		done := !index.Ready || declared[index.Name].marked(fields)
		if name == "" || older || done || index.Rule(rules) == nil || !next(name, all, ready) {
			continue
		}
		errs = append(errs, s.putMapping(ctx, index.Name, properties(fields, mark)))
	}
	return errors.Join(errs...)
}

// next reports whether an index that is made under the name comes from one of the templates that are ready. Only the first of the
// composable ones applies; without one, all legacy ones.
func next(name string, all, ready []blueprint) bool {
	is := func(t blueprint) bool { return t.patterns.match(name) }
	if first := slices.IndexFunc(all, is); first >= 0 && !all[first].legacy {
		is = func(t blueprint) bool { return !t.legacy && t.name == all[first].name }
	}
	return slices.ContainsFunc(ready, is)
}

// of returns the rules that an index of the patterns can be matched by.
func (p patterns) of(rules rule.Rules) (list []*rule.Rule) {
	hidden := !slices.ContainsFunc(p, func(one string) bool { return !strings.HasPrefix(one, ".") })
	for _, rule := range rules {
		if p.meets(rule.Match) && (!hidden || strings.HasPrefix(rule.Match, ".")) {
			list = append(list, rule)
		}
	}
	return list
}

// within reports whether a rule matches whatever the patterns do.
func (p patterns) within(rules rule.Rules) bool {
	return !slices.ContainsFunc(p, func(one string) bool { return rules.For(one) == nil })
}

// meets reports whether a name can be matched by both the patterns and another one.
func (p patterns) meets(other string) bool {
	return slices.ContainsFunc(p, func(one string) bool { return meet(one, other) })
}

// meet reports whether a name can be matched by both patterns.
func meet(a, b string) bool {
	switch {
	case a == "" || b == "":
		return strings.Trim(a+b, "*") == ""
	case a[0] == '*':
		return meet(a[1:], b) || meet(a, b[1:])
	case b[0] == '*':
		return meet(a, b[1:]) || meet(a[1:], b)
	}
	return a[0] == b[0] && meet(a[1:], b[1:])
}

// Remove implements adapters.JobStore. The declarations go out of the templates that make indices of the name, and the marks of those out of
// the mapping, which itself can't shrink. The index of the journal is deleted.
func (s *Store) Remove(ctx context.Context, index string) (note string, err error) {
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
	left, err := s.strip(ctx, list[at].RuleName())
	if err != nil {
		return "", fmt.Errorf("remove from the templates of %s: %w", index, err)
	}
	if len(left) > 0 {
		notes = append(notes, "template "+strings.Join(left, ", ")+
			" declares fields of ours as well, in words that are not ours: take them out there, or in a component template of it")
	}
	is, err := s.shape(ctx, index) // it also has fields that no rule has any more
	if err != nil {
		return "", err
	}
	fields, err := s.unmark(ctx, index, is.Mappings.Properties)
	if err != nil {
		return "", fmt.Errorf("remove from the mapping of %s: %w", index, err)
	}
	if len(fields) > 0 {
		notes = append(notes, "the mapping of "+index+" keeps "+strings.Join(fields, ", ")+
			", and a place for each in "+limitSetting+": the engine takes no field out of a mapping; reindex into a new index to be rid of them")
	}
	return strings.Join(notes, "; "), nil
}

// unmark takes the marks of a template out of an index's mapping, and returns which of our fields it has.
func (s *Store) unmark(ctx context.Context, index string, is declarations) (fields []string, err error) {
	var marked []string
	for _, field := range rule.OurFields {
		if is[field].marked() && is[field].fit(field) {
			marked = append(marked, field)
		}
		if _, there := is[field]; there {
			fields = append(fields, field)
		}
	}
	if len(marked) > 0 {
		err = s.putMapping(ctx, index, properties(marked, unmarked))
	}
	return fields, err
}

// strip takes our declarations out of the templates that make indices of a name, and returns the names of those that go on declaring
// fields of ours: not by our hand.
func (s *Store) strip(ctx context.Context, name string) (left []string, err error) {
	all, err := s.templates(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, t := range all {
		if strings.HasPrefix(t.name, ".") || !t.patterns.match(name) {
			continue
		}
		bare, ours, others := t.without()
		if ours {
			errs = append(errs, s.put(ctx, bare))
		}
		if others {
			left = append(left, t.name)
		}
	}
	return left, errors.Join(errs...)
}

// pipelineSettings are the settings of an index that name the pipelines which it runs over every document.
var pipelineSettings = []string{"index.default_pipeline", "index.final_pipeline"}

// piped reports whether an index runs a pipeline over every document, which may then go elsewhere or nowhere.
func (s shape) piped() bool {
	return slices.ContainsFunc(pipelineSettings, func(name string) bool { return runs(s.setting(name)) })
}

// runs reports whether the value of such a setting names a pipeline.
func runs(pipeline string) bool { return pipeline != "" && pipeline != "_none" }

// legacyPiped reports whether a legacy template gives a new index of that name a pipeline. In doubt it says yes.
func (s *Store) legacyPiped(ctx context.Context, name string) bool {
	list, err := s.legacy(ctx)
	return err != nil || slices.ContainsFunc(list, func(t blueprint) bool { return t.patterns.match(name) && t.made.piped() })
}

// searchPipeline is OpenSearch's setting of an index that names a pipeline through which it sends every search: requests, and what is found.
const searchPipeline = "index.search.default_pipeline"

// pipe marks the indices, found by a request, that have such a pipeline. Where the setting is not shown to a client, none is taken to be there; where the
// pipeline is not, it is taken to change what is found.
func (s *Store) pipe(ctx context.Context, found esapi.IndicesGetFieldMappingRequest, list []adapters.Index) {
	all, err := s.settings(ctx, esapi.IndicesGetSettingsRequest{
		Index: found.Index, IgnoreUnavailable: found.IgnoreUnavailable, AllowNoIndices: found.AllowNoIndices, ExpandWildcards: found.ExpandWildcards,
	}, searchPipeline)
	if err != nil {
		return
	}
	fuse := map[string]bool{}
	for i := range list {
		name := all[list[i].Name][searchPipeline]
		if !runs(name) {
			continue
		}
		if _, known := fuse[name]; !known {
			pipeline, _ := s.body(ctx, raw{method: http.MethodGet, path: pipelinePath(name)}, 0)
			fuse[name] = fusesOnly(jsonedit.Lookup(pipeline, name))
		}
		if list[i].Piped = !fuse[name]; !list[i].Piped {
			list[i].Fuses = name
		}
		s.shared.piped.Store(true)
	}
}

// pastPipelines is the parameter that takes a search of ours past the search pipelines of its indices: jobs and look-ups read all that is stored,
// as it is stored. It is sent once an index is known to have one: an engine without that setting would refuse it.
const pastPipelines = "search_pipeline=_none"

// Pipelines returns the ingest pipelines that indices of the rules run over every document, by the index. What they change in a
// sketched field comes after the sketch.
func (s *Store) Pipelines(ctx context.Context, rules rule.Rules) (map[string][]string, error) {
	all, err := s.settings(ctx, esapi.IndicesGetSettingsRequest{ExpandWildcards: "all"}, pipelineSettings...)
	if err != nil && !missing(err) {
		return nil, fmt.Errorf("read the pipelines of indices: %w", err)
	}
	found := map[string][]string{}
	for index, is := range all {
		for _, name := range pipelineSettings {
			if runs(is[name]) && rules.For(s.dialect().ruleName(index)) != nil {
				found[index] = append(found[index], is[name])
			}
		}
	}
	return found, nil
}
