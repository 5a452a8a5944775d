package typesense

import (
	"bytes"
	"slices"

	"github.com/neardup/sidecar/adapters"
)

// Search implements adapters.Dialect.
func (d Dialect) Search(c adapters.Class, r *adapters.Request, p adapters.Plan) adapters.ParsedSearch {
	s := d.search(c, r, p)
	if s.Refusal != nil && !concerned(c, r, p) { // what looks like a control is none of ours, and the engine's to refuse
		return adapters.ParsedSearch{Plain: r, Reason: unconfigured}
	}
	return s
}

// concerned reports whether a search is sent to a collection of a rule, whatever is wrong with it.
func concerned(c adapters.Class, r *adapters.Request, p adapters.Plan) bool {
	if c.Form != formMulti {
		return p.Scope(c.Target).Configured
	}
	root, _ := adapters.Members(r.Body) // whose controls were read
	searches, _ := adapters.Elements(adapters.Get(root, "searches"))
	params, seen := queryOf(r.RawQuery), map[string]bool{}
	for _, search := range searches {
		search, _ = adapters.Cut(search, adapters.IsControl)
		q, _, err := parse(search, params, keyOf(r, params), adapters.Controls{})
		if err != nil || !seen[q.target] && (q.target != "" && p.Scope(q.target).Configured || p.Struck()) {
			return true
		}
		seen[q.target] = true
	}
	return false
}

func (d Dialect) search(c adapters.Class, r *adapters.Request, p adapters.Plan) adapters.ParsedSearch {
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
	if changed && s.Reason != unconfigured {
		plain.RawQuery = adapters.Query(params, func(string) bool { return true })
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
	body := append(adapters.AppendString([]byte(`{"collection":`), target), '}')
	e, err := parseEntry(body, steering, keyOf(plain, params), controls, p, "")
	if err != nil {
		s.Refusal = d.ErrorReply(plain, 400, err.Error())
		return s
	}
	most := mostSearches(nil, e)
	switch s.Reason, s.Shown = e.reason, e.q.shown; {
	case e.collapse == nil:
		return s
	case most == 0: // no multi-search can be made with this key
		s.Reason = "scoped_key"
		return s
	}
	r := *plain
	r.Method, r.Path, r.Header = "POST", "/multi_search", jsonHeader(plain.Header)
	r.RawQuery = unsteered(steering, e)
	e.collapse.atOnce = most
	s.Exchange = &exchange{request: &r, body: []byte(`{"searches":[]}`), single: true, entries: []*entry{e}, most: most}
	return s
}

// maxQuery is the length from which on the engine refuses the query string of a GET.
const maxQuery = 4000

// limitSearches is the parameter that changes how many searches a multi-search may hold.
const limitSearches = "limit_multi_searches"

// mostSearches returns how many searches the requests of an exchange may hold, of which the first belongs to the entry: what its
// key imposes counts, then the query string.
func mostSearches(params []adapters.Param, first *entry) int {
	most := maxSearches
	if n, ok := number(valuesOf(params), limitSearches, most); ok {
		most = n
	}
	if n, ok := number(first.q.fixed, limitSearches, most); ok {
		most = n
	}
	return most
}

// multi takes a multi-search apart.
func (d Dialect) multi(
	plain *adapters.Request, params []adapters.Param, controls adapters.Controls, p adapters.Plan,
) adapters.ParsedSearch {
	s := adapters.ParsedSearch{Plain: plain, Reason: "not_understood"}
	if adapters.ManyMembers(plain.Body) {
		return s
	}
	root, err := adapters.Members(plain.Body)
	if err != nil || !adapters.Strict(plain.Body) { // what stands between the searches does not get into a reading
		return s
	}
	searches, err := adapters.Elements(adapters.Get(root, "searches"))
	if err != nil || len(searches) == 0 {
		return s
	}
	x, reason := &exchange{body: plain.Body}, ""
	collapsing, stripped, sound := false, false, known(root)
	bodies := make([][]byte, len(searches))
	for i, body := range searches {
		if reason == "" {
			reason = leftOf(len(searches), p)
		}
		e, err := parseEntry(body, params, keyOf(plain, params), controls, p, reason)
		if err != nil {
			s.Refusal = d.ErrorReply(plain, 400, err.Error())
			return s
		}
		if bodies[i] = e.q.body; e.reason != unconfigured {
			bodies[i] = unhighlighted(e.q.body)
		}
		s.Shown = s.Shown || e.q.shown
		stripped = stripped || !bytes.Equal(bodies[i], body)
		collapsing, sound = collapsing || e.collapse != nil, sound && e.q.base != nil
		if reason == "" {
			x.entries = append(x.entries, e)
		}
	}
	if stripped {
		if plain.Body, err = adapters.Set(plain.Body, "searches", array(bodies)); err != nil {
			return s
		}
	}
	if reason != "" {
		s.Reason = reason
		return s
	}
	x.most = mostSearches(params, x.entries[0])
	_, replaced := adapters.Last(params, "preset") // then the engine does not read the body
	configured := slices.IndexFunc(x.entries, func(e *entry) bool { return e.reason != unconfigured })
	switch {
	case replaced:
		s.Reason = "preset"
		return s
	case configured < 0:
		s.Reason = unconfigured
		return s
	case mixed(x.entries):
		s.Reason = "scoped_key"
		return s
	case !sound || len(searches) > x.most:
		return s
	}
	if s.Reason = x.entries[configured].reason; !collapsing {
		return s
	}
	for _, e := range x.entries {
		if e.collapse != nil {
			e.collapse.atOnce = max(x.most/len(x.entries), 1)
		}
	}
	r := *plain
	r.RawQuery = unsteered(params, x.entries...)
	x.request, s.Reason, s.Exchange = &r, "", x
	return s
}

// leftOf returns why a multi-search of so many is left alone, whatever it asks for, or nothing. All that is done to its searches is then to
// take our controls out.
func leftOf(searches int, p adapters.Plan) string {
	switch {
	case searches > adapters.MaxSearches:
		return adapters.TooLarge
	case p.Struck():
		return adapters.Deadline
	}
	return ""
}

// mixed reports whether the keys of later searches may not be looked at for that of an earlier one: the server's own key, which
// can't be told from others, opens all that follow. A round that asks for some of the searches would then be another request.
func mixed(entries []*entry) bool {
	before := ""
	for _, e := range entries {
		if before != "" && e.q.key != before {
			return true
		}
		if e.q.ownKey && len(e.q.fixed) == 0 {
			before = e.q.key
		}
	}
	return false
}

// unconfigured is the reason where a search is none of our business.
const unconfigured = "unconfigured"

// known reports whether a multi-search holds nothing beside its searches but what means nothing.
func known(root []adapters.Member) bool {
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

// parseEntry reads one search and decides whether it is collapsed; left, if not empty, says why it is not whatever it is. An error is a
// bad control.
func parseEntry(
	body []byte, params []adapters.Param, key string, controls adapters.Controls, p adapters.Plan, left string,
) (*entry, error) {
	if left != "" { // it is not taken apart, which takes its length times that of the query string
		q := &query{body: body, shown: adapters.NamesOurs(body)}
		var err error
		if members, malformed := adapters.Members(body); malformed == nil {
			_, err = q.takeControls(members)
		}
		return &entry{q: q, reason: left}, err
	}
	q, reason, err := parse(body, params, key, controls)
	if err != nil {
		return nil, err
	}
	e := &entry{q: q, plan: p, reason: reason}
	scope := adapters.Scope{}
	if q.target != "" {
		if scope = p.Scope(q.target); !scope.Configured {
			e.reason = unconfigured
		}
	}
	if e.reason != "" {
		return e, nil
	}
	e.collapse, e.native = newCollapse(q, p, scope), newNative(q, params, scope)
	return e, nil
}

// unsteered returns the query string less the parameters that a reading steers, and less the engine's cache where a key imposes
// something: the cache does not tell keys apart, and readings for two clients can be alike where their own searches are not.
func unsteered(params []adapters.Param, entries ...*entry) string {
	imposed := slices.ContainsFunc(entries, func(e *entry) bool { return len(e.q.fixed) > 0 })
	return adapters.Query(params, func(name string) bool {
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
