package elastic

import (
	"cmp"
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

// Template is an index template that makes indices of a rule, and what became of it.
type Template struct {
	Name string
	// Ready says that it declares our field; Added that it does so as of now, or would by a run that is no dry one.
	Ready, Added bool
	// Why says, for an operator, why it is left alone.
	Why string
	// Err says why it could not be read or changed.
	Err error
}

// blueprint is a template as the engine holds it.
type blueprint struct {
	name     string
	patterns patterns
	body     []byte // as it is put
	order    int64  // what has more wins
	managed  bool   // by the engine
	auto     *bool  // whether a first write may make an index from it, if it says so
	streams  bool   // it makes data streams
	legacy   bool   // of the older kind, several of which apply to one index
	made     shape  // what an index made from it is like, as far as we know
	rival    string // another legacy template, which overrules this one's field limit
}

// Templates declares our field in the templates from which indices of the rules alone are made, whose names they match as a
// whole, and returns every template that makes indices of a rule. It makes none and leaves alone those that are the engine's own.
// An existing index whose successor will be made from such a template is marked accordingly. With dry it changes nothing.
func (s *Store) Templates(ctx context.Context, rules adapters.Rules, dry bool) ([]Template, error) {
	composable, err := s.composable(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the index templates: %w", err)
	}
	legacy, err := s.legacy(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the legacy index templates: %w", err)
	}
	var list []Template
	var ready []blueprint
	for _, t := range slices.Concat(composable, legacy) {
		if strings.HasPrefix(t.name, ".") || !t.patterns.meet(rules) {
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
	return list, s.mark(ctx, rules, composable, ready)
}

// amend declares our field in a template, unless it is there or the template is to be left alone.
func (s *Store) amend(ctx context.Context, t blueprint, rules adapters.Rules, dry bool) Template {
	done := Template{Name: t.name}
	if !t.legacy {
		is, err := s.simulated(ctx, esapi.IndicesSimulateTemplateRequest{Name: url.PathEscape(t.name)})
		if err != nil {
			done.Err = err
			return done
		}
		t.made = is
	}
	is, fields := t.made.fields(), kept(t.patterns.of(rules)...)
	switch {
	case is.fit(fields) && is.marked(fields):
		done.Ready = true
		return done
	case t.managed:
		done.Why = "it is the engine's own: declare in a component template of yours that it is composed of " +
			properties(fields, func(field string) string { return declaration(field, true) })
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
	body, err := t.with(fields)
	if err == nil && !dry {
		err = s.put(ctx, t, body)
	}
	if err != nil {
		done.Err = err
		return done
	}
	done.Ready, done.Added = !dry, true
	return done
}

// with returns the template's body with the fields declared, and with more places for those that it has none for yet.
func (t blueprint) with(fields []string) ([]byte, error) {
	in, limitAt := t.paths()
	body, err := t.body, error(nil)
	is := t.made.fields()
	for _, field := range fields {
		if err == nil {
			body, err = setAt(body, []byte(declaration(field, true)), slices.Concat(in, []string{"mappings", "properties", field})...)
		}
	}
	limit, _ := t.made.Settings[limitSetting].(string)
	more := len(is.undeclared(fields))
	if to, raise := raisedLimit(limit, fieldsOf(t.made.Mappings), more); err == nil && more > 0 && raise {
		body, err = setAt(body, strconv.AppendQuote(nil, strconv.Itoa(to)), slices.Concat(in, limitAt)...)
	}
	if err != nil {
		return nil, fmt.Errorf("template %s is not understood: %w", t.name, err)
	}
	return body, nil
}

// paths returns where in a template's body what it makes stands, and where in that the field limit.
func (t blueprint) paths() (in, limit []string) {
	if t.legacy {
		return nil, []string{"settings", limitSetting}
	}
	return []string{"template"}, []string{"settings", "index", "mapping", "total_fields", "limit"}
}

// setAt returns the object with the value set at the end of the path, along which objects are made where they lack.
func setAt(object, value []byte, path ...string) ([]byte, error) {
	if len(path) > 1 {
		members, err := adapters.Members(object)
		if err != nil {
			return nil, err
		}
		inner := adapters.Get(members, path[0])
		if inner == nil || string(inner) == "null" {
			inner = []byte("{}")
		}
		if value, err = setAt(inner, value, path[1:]...); err != nil {
			return nil, err
		}
	}
	return adapters.Set(object, path[0], value)
}

// put stores a template in place of the one of its name.
func (s *Store) put(ctx context.Context, t blueprint, body []byte) error {
	if t.legacy {
		return s.do(ctx, esapi.IndicesPutTemplateRequest{Name: url.PathEscape(t.name), Body: strings.NewReader(string(body))}, nil)
	}
	return s.do(ctx, esapi.IndicesPutIndexTemplateRequest{Name: url.PathEscape(t.name), Body: strings.NewReader(string(body))}, nil)
}

// told are members of a template that the engine tells and does not take.
var told = []string{"created_date", "created_date_millis", "modified_date", "modified_date_millis"}

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
		var head struct {
			Patterns patterns `json:"index_patterns"`
			Priority int64
			Auto     *bool           `json:"allow_auto_create"`
			Stream   json.RawMessage `json:"data_stream"`
			Meta     json.RawMessage `json:"_meta"`
		}
		if err := json.Unmarshal(one.Template, &head); err != nil {
			return nil, fmt.Errorf("template %s is not understood: %w", one.Name, err)
		}
		body, err := adapters.Cut(one.Template, func(key string) bool { return slices.Contains(told, key) })
		if err != nil {
			return nil, fmt.Errorf("template %s is not understood: %w", one.Name, err)
		}
		list = append(list, blueprint{
			name: one.Name, patterns: head.Patterns, body: body, order: head.Priority, managed: managed(head.Meta),
			auto: head.Auto, streams: head.Stream != nil,
		})
	}
	slices.SortStableFunc(list, func(a, b blueprint) int { return cmp.Compare(b.order, a.order) })
	return list, nil
}

// legacy returns the legacy templates. What an index made from one is like we know of that one alone, but for the field limit,
// which another one may set.
func (s *Store) legacy(ctx context.Context) ([]blueprint, error) {
	all := map[string]json.RawMessage{}
	yes := true
	if err := s.do(ctx, esapi.IndicesGetTemplateRequest{FlatSettings: &yes}, &all); err != nil && !missing(err) {
		return nil, err
	}
	var list []blueprint
	for name, body := range all {
		var head struct {
			Patterns patterns `json:"index_patterns"`
			Order    int64
			shape
		}
		if err := json.Unmarshal(body, &head); err != nil {
			return nil, fmt.Errorf("template %s is not understood: %w", name, err)
		}
		var meta struct {
			Meta json.RawMessage `json:"_meta"`
		}
		_ = json.Unmarshal(head.Mappings, &meta) // what is no such mark is none
		list = append(list, blueprint{
			name: name, patterns: head.Patterns, body: body, order: head.Order, managed: managed(meta.Meta), made: head.shape,
			legacy: true,
		})
	}
	slices.SortFunc(list, func(a, b blueprint) int { return strings.Compare(a.name, b.name) })
	for i := range list {
		list[i].inherit(list)
	}
	return list, nil
}

// managed reports whether a template says that it belongs to the engine. The mark stands among whatever users write there.
func managed(meta json.RawMessage) bool {
	var m struct{ Managed any }
	return json.Unmarshal(meta, &m) == nil && m.Managed == true
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
			t.made.Settings = map[string]any{limitSetting: limit}
			order = other.order
		}
	}
}

// simulated returns what an index is like that is made from a composable template and all that it is composed of.
func (s *Store) simulated(ctx context.Context, r esapi.Request) (shape, error) {
	var reply struct {
		Template struct {
			Mappings json.RawMessage
			Settings struct {
				Index struct {
					Default string `json:"default_pipeline"`
					Final   string `json:"final_pipeline"`
					Mapping struct {
						Total struct{ Limit any } `json:"total_fields"`
					}
				}
			}
		}
	}
	if err := s.do(ctx, r, &reply); err != nil {
		return shape{}, err
	}
	index := reply.Template.Settings.Index
	is := shape{Mappings: reply.Template.Mappings, Settings: map[string]any{}}
	if limit := index.Mapping.Total.Limit; limit != nil {
		is.Settings[limitSetting] = fmt.Sprint(limit)
	}
	for i, pipeline := range []string{index.Default, index.Final} {
		if pipeline != "" {
			is.Settings[pipelineSettings[i]] = pipeline
		}
	}
	return is, nil
}

// mark marks the declaration of our field in indices whose successors will be made from a template that declares it: the newest
// one of a data stream, and those whose names count up.
func (s *Store) mark(ctx context.Context, rules adapters.Rules, composable, ready []blueprint) error {
	list, all, err := s.resolve(ctx, "")
	if err != nil {
		return err
	}
	var errs []error
	for _, index := range list {
		name := index.As
		if _, generation, _ := cutLast(index.Name); name == "" && shaped(generation, "999999") {
			name = index.Name
		}
		older := index.As != "" && newest(list, index.As) != index.Name
		fields := kept(rules.Of(index))
		done := !index.Ready || all[index.Name].fields().marked(fields)
		if name == "" || older || done || rules.Of(index) == nil || !next(name, composable, ready) {
			continue
		}
		body := strings.NewReader(properties(fields, func(field string) string { return declaration(field, true) }))
		errs = append(errs, s.do(ctx, esapi.IndicesPutMappingRequest{Index: []string{url.PathEscape(index.Name)}, Body: body}, nil))
	}
	return errors.Join(errs...)
}

// next reports whether an index that is made under the name comes from one of the templates that are ready. Only the first of the
// composable ones applies, and the legacy ones only where there is none.
func next(name string, composable, ready []blueprint) bool {
	is := func(t blueprint) bool { return t.patterns.match(name) }
	if first := slices.IndexFunc(composable, is); first >= 0 {
		return slices.ContainsFunc(ready, func(t blueprint) bool { return !t.legacy && t.name == composable[first].name })
	}
	return slices.ContainsFunc(ready, is)
}

// of returns the rules that an index of the patterns can be matched by.
func (p patterns) of(rules adapters.Rules) (list []*adapters.Rule) {
	for _, rule := range rules {
		if p.meets(rule.Match) {
			list = append(list, rule)
		}
	}
	return list
}

// within reports whether a rule matches whatever the patterns do.
func (p patterns) within(rules adapters.Rules) bool {
	return !slices.ContainsFunc(p, func(one string) bool { return rules.For(one) == nil })
}

// meet reports whether an index can be matched by the patterns and by a rule.
func (p patterns) meet(rules adapters.Rules) bool {
	hidden := !slices.ContainsFunc(p, func(one string) bool { return !strings.HasPrefix(one, ".") })
	return slices.ContainsFunc(rules, func(r *adapters.Rule) bool {
		return p.meets(r.Match) && (!hidden || strings.HasPrefix(r.Match, "."))
	})
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
