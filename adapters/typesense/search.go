package typesense

import (
	"bytes"

	"github.com/neardup/sidecar/adapters"
)

// Search implements adapters.Dialect.
func (d Dialect) Search(c adapters.Class, r *adapters.Request, p adapters.Plan) adapters.ParsedSearch {
	controls, plain, err := adapters.TakeControls(r)
	if err != nil {
		return adapters.ParsedSearch{Plain: plain, Refusal: d.ErrorReply(r, 400, err.Error())}
	}
	params := adapters.Params(plain.RawQuery)
	if c.Form == formMulti {
		return d.multi(plain, params, controls, p)
	}
	return d.single(c.Target, plain, params, controls, p)
}

// single takes the search of one collection apart, whose parameters all stand in the query string.
func (d Dialect) single(target string, plain *adapters.Request, params []adapters.Param, controls adapters.Controls, p adapters.Plan) adapters.ParsedSearch {
	s := adapters.ParsedSearch{Plain: plain}
	if len(plain.RawQuery) >= maxQuery {
		s.Reason = "not_understood" // the engine refuses it
		return s
	}
	// The path names the collection; a parameter of that name means nothing here, and everything to a multi-search.
	steering := without(params, func(name string) bool { return name == "collection" })
	body := append(adapters.AppendString([]byte(`{"collection":`), target), '}')
	e, err := parseEntry(body, steering, keysOf(plain, params), controls, p)
	if err != nil {
		s.Refusal = d.ErrorReply(plain, 400, err.Error())
		return s
	}
	if s.Reason, s.Shown = e.reason, e.q.shown; e.collapse == nil {
		return s
	}
	r := *plain
	r.Method, r.Path, r.Header = "POST", "/multi_search", jsonHeader(plain.Header)
	r.RawQuery = unsteered(steering)
	s.Exchange = &exchange{request: &r, body: []byte(`{"searches":[]}`), single: true, entries: []*entry{e}}
	return s
}

// maxQuery is the length from which on the engine refuses the query string of a GET.
const maxQuery = 4000

// multi takes a multi-search apart.
func (d Dialect) multi(plain *adapters.Request, params []adapters.Param, controls adapters.Controls, p adapters.Plan) adapters.ParsedSearch {
	s := adapters.ParsedSearch{Plain: plain, Reason: "not_understood"}
	root, err := adapters.Members(plain.Body)
	if err != nil {
		return s
	}
	searches, err := adapters.Elements(adapters.Get(root, "searches"))
	if err != nil || len(searches) == 0 {
		return s
	}
	x := &exchange{body: plain.Body}
	collapsing, stripped, sound := false, false, known(root) && len(searches) <= maxSearches
	bodies := make([][]byte, len(searches))
	for i, body := range searches {
		e, err := parseEntry(body, params, keysOf(plain, params), controls, p)
		if err != nil {
			s.Refusal = d.ErrorReply(plain, 400, err.Error())
			return s
		}
		bodies[i] = e.q.body
		s.Shown = s.Shown || e.q.shown
		stripped = stripped || !bytes.Equal(bodies[i], body)
		collapsing, sound = collapsing || e.collapse != nil, sound && e.q.base != nil
		x.entries = append(x.entries, e)
	}
	if stripped {
		if plain.Body, err = adapters.Set(plain.Body, "searches", array(bodies)); err != nil {
			return s
		}
	}
	if !sound {
		return s
	}
	if s.Reason = x.entries[0].reason; !collapsing {
		return s
	}
	r := *plain
	r.RawQuery = unsteered(params)
	x.request, s.Reason, s.Exchange = &r, "", x
	return s
}

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

// parseEntry reads one search and decides whether it is collapsed. An error is a bad control.
func parseEntry(body []byte, params []adapters.Param, keys []string, controls adapters.Controls, p adapters.Plan) (*entry, error) {
	q, reason, err := parse(body, params, keys, controls)
	if err != nil {
		return nil, err
	}
	e := &entry{q: q, reason: reason}
	if reason != "" {
		return e, nil
	}
	scope := p.Scope(q.target)
	if !scope.Configured {
		e.reason = "unconfigured"
		return e, nil
	}
	e.collapse = newCollapse(q, p, scope)
	return e, nil
}

// unsteered returns the query string less the parameters that a reading steers.
func unsteered(params []adapters.Param) string {
	steers := map[string]bool{}
	for _, name := range steered {
		steers[name] = true
	}
	return adapters.Query(params, func(name string) bool { return !steers[name] })
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
