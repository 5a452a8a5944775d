package typesense

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

const (
	maxPerPage     = 250 // the engine's limit on per_page
	defaultPerPage = 10
	maxSearches    = 50 // the engine's default limit on the searches of a multi-search
)

// steered are the parameters that a reading sets or leaves out. They never stay in the query string, which would override the body.
var steered = []string{
	"page", "per_page", "include_fields", "exclude_fields", "highlight_fields", "highlight_full_fields", "facet_by", "facet_query",
}

// leaves are the parameters whose presence leaves a search alone, each with the reason, the most telling first.
var leaves = []struct{ name, reason string }{
	{"group_by", "grouped"}, {"vector_query", "vector"}, {"limit_hits", "limit_hits"}, {"preset", "preset"},
	{"limit", "not_understood"}, {"offset", "not_understood"}, {"union", "not_understood"}, {"conversation", "not_understood"},
	{"conversation_stream", "not_understood"}, {"conversation_model_id", "not_understood"}, {"conversation_id", "not_understood"},
	{"nl_query", "not_understood"}, {"voice_query", "not_understood"},
}

// query is one search as the client means it.
type query struct {
	target string
	// body is the search as it stands in a multi-search, less our controls.
	body []byte
	// base is body with the client's steered parameters of the query string put in: what is asked where it is left alone. It is nil
	// where the engine will refuse the whole request.
	base     []byte
	controls adapters.Controls
	page     int
	perPage  int
	include  []string // fields that the client names; none stands for all
	exclude  []string
	// shown says that the client names a field of ours.
	shown bool
}

// parse reads one search: its body, over which the query string's parameters count. The reason, if not empty, says why it is left
// alone; body and base are good in any case. An error is a bad control.
func parse(body []byte, params []adapters.Param, keys []string, outer adapters.Controls) (q *query, reason string, err error) {
	q = &query{body: body, controls: outer}
	members, err := adapters.Members(body)
	if err != nil {
		return q, "not_understood", nil
	}
	if members, err = q.takeControls(members); err != nil {
		return q, "", err
	}
	values, ok := effective(members, params)
	if !ok {
		return q, "not_understood", nil
	}
	if q.base, err = rebase(q.body, params); err != nil {
		return q, "not_understood", nil
	}
	q.target = values["collection"]
	q.include, q.exclude = fieldList(values["include_fields"]), fieldList(values["exclude_fields"])
	q.shown = slices.Contains(q.include, adapters.SketchField)
	if key := values[keyParam]; key != "" {
		keys = append(slices.Clone(keys), key)
	}
	return q, q.check(values, keys), nil
}

// takeControls takes our controls out of the body and puts them over those of the request.
func (q *query) takeControls(members []adapters.Member) ([]adapters.Member, error) {
	if !slices.ContainsFunc(members, func(m adapters.Member) bool { return adapters.IsControl(m.Key) }) {
		return members, nil
	}
	var narrow adapters.Controls
	for _, m := range members {
		if !adapters.IsControl(m.Key) {
			continue
		}
		value, ok := adapters.Text(m.Value)
		if !ok {
			value = string(m.Value)
		}
		if err := narrow.Set(m.Key, value); err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
	}
	q.controls = q.controls.Merge(narrow)
	var err error
	if q.body, err = adapters.Cut(q.body, adapters.IsControl); err != nil {
		return nil, err
	}
	return adapters.Members(q.body)
}

// effective returns the parameters that count, and false if the engine will refuse one for its type.
func effective(members []adapters.Member, params []adapters.Param) (values map[string]string, ok bool) {
	values = map[string]string{}
	for _, m := range members {
		text, isText := adapters.Text(m.Value)
		switch m.Value[0] {
		case '{', '[', 'n':
			return nil, false
		}
		if !isText {
			text = string(m.Value)
		}
		values[m.Key] = text
	}
	for _, p := range params {
		values[p.Name] = p.Value
	}
	return values, true
}

// rebase puts the steered parameters of the query string into the body.
func rebase(body []byte, params []adapters.Param) ([]byte, error) {
	var err error
	for _, name := range steered {
		if value, given := adapters.Last(params, name); given {
			if body, err = with(body, name, adapters.AppendString(nil, value)); err != nil {
				return nil, err
			}
		}
	}
	return body, nil
}

// with returns a search with one parameter set, wherever and however often it stood.
func with(body []byte, name string, value []byte) ([]byte, error) {
	body, err := adapters.Cut(body, func(key string) bool { return key == name })
	if err != nil {
		return nil, err
	}
	return adapters.Set(body, name, value)
}

// check returns why the search is left alone, or nothing. It reads page and per_page.
func (q *query) check(values map[string]string, keys []string) string {
	if q.controls.Off {
		return "off"
	}
	for _, l := range leaves {
		if value := values[l.name]; value != "" && value != "false" {
			return l.reason
		}
	}
	if slices.ContainsFunc(keys, scoped) {
		return "scoped_key"
	}
	// Newer engines take patterns and other collections' fields here; what they then show can't be told from here.
	if strings.ContainsAny(values["include_fields"]+values["exclude_fields"], "*$") {
		return "not_understood"
	}
	var ok1, ok2 bool
	q.page, ok1 = number(values, "page", 1)
	q.perPage, ok2 = number(values, "per_page", defaultPerPage)
	switch {
	case q.target == "" || !ok1 || !ok2 || q.page == 0 || q.perPage > maxPerPage:
		return "not_understood" // the engine says what is wrong
	case q.perPage == 0:
		return "size_zero"
	}
	return ""
}

// number reads a parameter of plain digits; it is false for what only the engine can judge.
func number(values map[string]string, name string, otherwise int) (n int, ok bool) {
	text, given := values[name]
	if !given {
		return otherwise, true
	}
	if len(text) == 0 || len(text) > 9 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// fieldList takes a list of fields apart.
func fieldList(text string) []string {
	var list []string
	for field := range strings.SplitSeq(text, ",") {
		if field = strings.TrimSpace(field); field != "" {
			list = append(list, field)
		}
	}
	return list
}

// sees reports whether the client sees a top-level field that is named whole or not at all, such as id.
func (q *query) sees(field string) bool {
	return (len(q.include) == 0 || slices.Contains(q.include, field)) && !slices.Contains(q.exclude, field)
}

// seesText reports whether the hits that the client asked for hold all of the fields' texts.
func (q *query) seesText(fields []string) bool {
	for _, field := range fields {
		inside := func(name string) bool { return field == name || strings.HasPrefix(field, name+".") }
		if len(q.include) > 0 && !slices.ContainsFunc(q.include, inside) {
			return false
		}
		if slices.ContainsFunc(q.exclude, func(name string) bool { return inside(name) || strings.HasPrefix(name, field+".") }) {
			return false
		}
	}
	return true
}
