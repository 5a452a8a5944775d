package typesense

import (
	"bytes"
	"iter"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Targets implements adapters.Dialect.
func (Dialect) Targets(c adapters.Class, r *adapters.Request) iter.Seq[string] {
	return func(yield func(string) bool) {
		if c.Form != formMulti {
			yield(c.Target)
			return
		}
		root, _ := jsonedit.Members(r.Body) // whose controls were read
		searches, _ := jsonedit.Elements(jsonedit.Get(root, "searches"))
		params := queryOf(r.RawQuery)
		for _, search := range searches {
			search, _ = jsonedit.Cut(search, adapters.IsControl)
			q, _, _ := parse(search, params, keyOf(r, params), adapters.Controls{}) // whose errors are of controls
			if q.asked.Target != "" && !yield(q.asked.Target) {
				return
			}
		}
	}
}

// Search implements adapters.Dialect.
func (d Dialect) Search(c adapters.Class, r *adapters.Request, p adapters.Plan) adapters.ParsedSearch {
	controls, plain, err := adapters.TakeControls(r)
	if err != nil {
		return adapters.ParsedSearch{Plain: plain, Refusal: d.ErrorReply(r, 400, err.Error())}
	}
	params, changed := unhighlightedParams(queryOf(plain.RawQuery))
	var s adapters.ParsedSearch
	if c.Form == formMulti {
		s = d.multi(plain, params, controls, p)
	} else {
		s = d.single(c.Target, plain, params, controls, p)
	}
	if changed && s.Reason != adapters.ReasonUnconfigured {
		plain.RawQuery = adapters.RawQuery(params, func(string) bool { return true })
	}
	return s
}

// single takes the search of one collection apart, whose parameters all stand in the query string.
func (d Dialect) single(
	target string, plain *adapters.Request, params []adapters.Param, controls adapters.Controls, p adapters.Plan,
) adapters.ParsedSearch {
	s := adapters.ParsedSearch{Plain: plain}
	if len(plain.RawQuery) >= maxQuery {
		s.Reason = "query_length" // the engine refuses it
		return s
	}
	// The collection is the path's, or the query's: target says which. What limits a multi-search means nothing here.
	steering := without(params, func(name string) bool { return name == "collection" || name == limitSearches })
	body := append(jsonedit.AppendString([]byte(`{"collection":`), target), '}')
	q, err := parseSearch(body, steering, keyOf(plain, params), controls, p, "")
	if err != nil {
		s.Refusal = d.ErrorReply(plain, 400, err.Error())
		return s
	}
	most := mostSearches(nil, q)
	switch s.Reason, s.Shown = q.asked.Reason, q.shown; {
	case s.Reason != "":
		return s
	case most == 0: // no multi-search can be made with this key
		s.Reason = "scoped_key"
		return s
	}
	r := *plain
	r.Method, r.Path, r.Header = "POST", "/multi_search", jsonHeader(plain.Header)
	r.RawQuery = unsteered(steering, q)
	q.atOnce = most
	w := &wire{request: &r, body: []byte(`{"searches":[]}`), single: true, most: most, texts: sketched(p.Rules)}
	s.Searches = &adapters.Searches{List: []adapters.Search{q}, Single: true, Wire: w, Plan: p}
	return s
}

// maxQuery is the length from which on the engine refuses the query string of a GET.
const maxQuery = 4000

// limitSearches is the parameter that changes how many searches a multi-search may hold.
const limitSearches = "limit_multi_searches"

// mostSearches returns how many searches a request may hold, given its first one: what its key imposes counts, then the query string.
func mostSearches(params []adapters.Param, first *query) int {
	most := maxSearches
	if n, ok := number(valuesOf(params), limitSearches, most); ok {
		most = n
	}
	if n, ok := number(first.fixed, limitSearches, most); ok {
		most = n
	}
	return most
}

// multi takes a multi-search apart.
func (d Dialect) multi(
	plain *adapters.Request, params []adapters.Param, controls adapters.Controls, p adapters.Plan,
) adapters.ParsedSearch {
	s := adapters.ParsedSearch{Plain: plain, Reason: adapters.ReasonNotUnderstood}
	root, err := jsonedit.FewMembers(plain.Body)
	if err != nil || !jsonedit.Strict(plain.Body) { // what stands between the searches does not get into a reading
		return s
	}
	searches, err := jsonedit.Elements(jsonedit.Get(root, "searches"))
	if err != nil || len(searches) == 0 {
		return s
	}
	var list []*query
	collapsing, stripped, sound, reason := false, false, known(root), adapters.Reason("")
	bodies := make([][]byte, len(searches))
	for i, body := range searches {
		if reason == "" {
			reason = leftOf(len(searches), p)
		}
		q, err := parseSearch(body, params, keyOf(plain, params), controls, p, reason)
		if err != nil {
			s.Refusal = d.ErrorReply(plain, 400, err.Error())
			return s
		}
		if bodies[i] = q.body; q.asked.Reason != adapters.ReasonUnconfigured {
			bodies[i] = unhighlighted(q.body)
		}
		s.Shown = s.Shown || q.shown
		stripped = stripped || !bytes.Equal(bodies[i], body)
		collapsing, sound = collapsing || q.asked.Reason == "", sound && q.base != nil
		if reason == "" {
			list = append(list, q)
		}
	}
	if stripped {
		if plain.Body, err = jsonedit.Set(plain.Body, "searches", jsonedit.Array(bodies)); err != nil {
			return s
		}
	}
	if reason != "" {
		s.Reason = reason
		return s
	}
	most := mostSearches(params, list[0])
	_, replaced := adapters.Last(params, "preset") // then the engine does not read the body
	configured := slices.IndexFunc(list, func(q *query) bool { return q.asked.Reason != adapters.ReasonUnconfigured })
	switch {
	case replaced:
		s.Reason = "preset"
		return s
	case configured < 0:
		s.Reason = adapters.ReasonUnconfigured
		return s
	case mixed(list):
		s.Reason = "scoped_key"
		return s
	case !sound || len(searches) > most:
		return s
	}
	if s.Reason = list[configured].asked.Reason; !collapsing {
		return s
	}
	r := *plain
	r.RawQuery, s.Reason = unsteered(params, list...), ""
	w := &wire{request: &r, body: plain.Body, most: most, texts: sketched(p.Rules)}
	s.Searches = &adapters.Searches{Wire: w, Plan: p}
	for _, q := range list {
		q.atOnce = max(most/len(list), 1)
		s.Searches.List = append(s.Searches.List, q)
	}
	return s
}

// leftOf returns why a multi-search of so many is left alone, whatever it asks for, or nothing. All that is done to its searches is then to
// take our controls out.
func leftOf(searches int, p adapters.Plan) adapters.Reason {
	switch {
	case searches > adapters.MaxSearches:
		return adapters.ReasonTooLarge
	case p.Struck():
		return adapters.ReasonDeadline
	}
	return ""
}

// mixed reports whether the keys of later searches may not be looked at for that of an earlier one: the server's own key, which
// can't be told from others, opens all that follow. A round that asks for some of the searches would then be another request.
func mixed(list []*query) bool {
	before := ""
	for _, q := range list {
		if before != "" && q.key != before {
			return true
		}
		if q.ownKey && len(q.fixed) == 0 {
			before = q.key
		}
	}
	return false
}

// known reports whether a multi-search holds nothing beside its searches but what means nothing.
func known(root []jsonedit.Member) bool {
	searches := 0
	for _, m := range root {
		switch {
		case m.Key == "searches":
			searches++
		case m.Key == "union" && string(m.Value) == "false":
		default:
			return false
		}
	}
	return searches == 1
}

// parseSearch reads one search and decides whether it is collapsed; left, if not empty, says why it is not whatever it is. An error is a
// bad control.
func parseSearch(
	body []byte, params []adapters.Param, key string, controls adapters.Controls, p adapters.Plan, left adapters.Reason,
) (*query, error) {
	if left != "" { // it is not taken apart, which takes its length times that of the query string
		q := &query{body: body, view: view{shown: rule.NamesOurs(body)}}
		q.asked.Controls, q.asked.Reason = controls, left
		var err error
		if members, malformed := jsonedit.Members(body); malformed == nil {
			_, err = q.takeControls(members)
		}
		return q, err
	}
	q, reason, err := parse(body, params, key, controls)
	if err != nil {
		return nil, err
	}
	a := &q.asked
	if a.Reason = reason; a.Target == "" {
		return q, nil
	}
	if a.Scope = p.ScopeUnder(a.Target, a.Controls); !a.Scope.Configured {
		a.Reason = adapters.ReasonUnconfigured
	}
	if a.Reason != "" {
		return q, nil
	}
	q.rules, a.Size, a.Unseen = p.Rules, q.perPage, q.hidden()
	if q.native = newNative(q, params, a.Scope); q.native != nil {
		a.Native = q
	}
	q.needed = fields{texts: textFields(p.Rules), deciding: decidingFields(a.Scope.Deciding)}
	size := q.fixedSize()
	if size > 0 {
		a.Limit = a.Limit / size * size
	}
	if q.vector != nil {
		k := max(a.Scope.VectorWindow, q.vector.own)
		if size > 0 {
			k = (k + size - 1) / size * size
		}
		a.Neighbours = &adapters.Neighbours{Raised: k}
	}
	return q, nil
}

// unsteered returns the query string less the parameters that a reading steers, and less the engine's cache where a key imposes
// something: the cache does not tell keys apart, and readings for two clients can be alike where their own searches are not.
func unsteered(params []adapters.Param, list ...*query) string {
	imposed := slices.ContainsFunc(list, func(q *query) bool { return len(q.fixed) > 0 })
	return adapters.RawQuery(params, func(name string) bool {
		return !slices.Contains(steered, name) && !(imposed && name == "use_cache")
	})
}

func without(params []adapters.Param, drop func(name string) bool) []adapters.Param {
	var kept []adapters.Param
	for _, p := range params {
		if !drop(p.Name) {
			kept = append(kept, p)
		}
	}
	return kept
}

// jsonHeader returns a copy of a header that fits a JSON body.
func jsonHeader(header adapters.Header) adapters.Header {
	out := adapters.Header{}
	for key, values := range header {
		if key != "Content-Length" {
			out[key] = values
		}
	}
	out["Content-Type"] = []string{"application/json"}
	return out
}
