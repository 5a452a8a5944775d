package typesense

import (
	"bytes"
	"iter"
	"maps"
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
		searches, _ := jsonedit.Elements(member(r.Body, "searches"))
		params := queryOf(r.RawQuery)
		for _, search := range searches {
			q, _ := newQuery(search, keyOf(r, params), adapters.Controls{})
			if q.read(params); q.asked.Target != "" && !yield(q.asked.Target) {
				return
			}
		}
	}
}

const (
	// maxQuery is the length from which on the engine refuses the query string of a GET.
	maxQuery = 4000
	// limitSearches is the parameter that changes how many searches a multi-search may hold.
	limitSearches = "limit_multi_searches"
)

// Search implements adapters.Dialect. The search of one collection is asked as a multi-search of one.
func (d Dialect) Search(c adapters.Class, r *adapters.Request, p adapters.Plan) (s *adapters.Searches) {
	controls, plain, err := adapters.TakeControls(r)
	if s = (&adapters.Searches{Plain: plain, Plan: p}); err != nil {
		s.Refusal = d.ErrorReply(r, 400, err.Error())
		return s
	}
	params, sent := queryOf(plain.RawQuery), plain.RawQuery
	if unhighlightedParams(params) {
		plain.RawQuery = adapters.RawQuery(params, func(string) bool { return true })
	}
	w, bodies, sound := &wire{single: c.Form != formMulti}, [][]byte(nil), true
	switch {
	case w.single && len(sent) >= maxQuery:
		s.Reason = "query_length" // the engine refuses it
	case w.single: // the target says which collection, and what limits a multi-search means nothing here
		params = slices.DeleteFunc(params, func(p adapters.Param) bool { return p.Name == "collection" || p.Name == limitSearches })
		bodies = [][]byte{append(jsonedit.AppendString([]byte(`{"collection":`), c.Target), '}')}
	default:
		if bodies, sound = searchesIn(plain.Body); len(bodies) == 0 {
			s.Reason = adapters.ReasonNotUnderstood
		}
	}
	var list []*query
	stripped := false
	for i, body := range bodies {
		switch {
		case len(bodies) > adapters.MaxSearches:
			s.Reason = adapters.ReasonTooLarge
		case i > 0 && p.Struck():
			s.Reason = adapters.ReasonDeadline
		}
		q, err := newQuery(body, keyOf(plain, params), controls)
		if err != nil {
			s.Refusal = d.ErrorReply(plain, 400, err.Error())
			return s
		}
		if s.Reason == "" {
			q.read(params)
			q.under(p)
			list = append(list, q)
		} else { // it is not read, which takes its length times that of the query string
			q.shown = rule.NamesOurs(body)
		}
		if bodies[i] = q.body; q.asked.Reason != adapters.ReasonUnconfigured {
			bodies[i] = unhighlighted(q.body)
		}
		s.Shown = s.Shown || q.shown
		stripped = stripped || !w.single && !bytes.Equal(bodies[i], body)
	}
	if stripped {
		plain.Body, _ = jsonedit.Set(plain.Body, "searches", jsonedit.Array(bodies)) // it is well-formed
	}
	if s.Reason == "" {
		w.most = mostSearches(params, list[0])
		s.Reason = w.left(list, params, sound)
	}
	if s.Reason == adapters.ReasonUnconfigured {
		plain.RawQuery = sent
	}
	if s.Reason != "" {
		return s
	}
	asked := *plain
	if asked.RawQuery, w.body = unsteered(params, list), plain.Body; w.single {
		w.body = []byte(`{"searches":[]}`)
		asked.Method, asked.Path, asked.Header = "POST", "/multi_search", adapters.Header{}
		maps.Copy(asked.Header, plain.Header)
		asked.Header["Content-Type"] = []string{"application/json"}
		delete(asked.Header, "Content-Length")
	}
	w.request = &asked
	for _, rule := range p.Rules {
		w.texts = append(w.texts, rule.Fields...)
	}
	s.Single, s.Wire = w.single, w
	for _, q := range list {
		q.atOnce = max(w.most/len(list), 1)
		s.List = append(s.List, q)
	}
	return s
}

// searchesIn returns the searches of a multi-search, none of one that is not well-formed: what stands between them does not get into a reading. It
// is sound if it holds nothing else but what means nothing.
func searchesIn(body []byte) (searches [][]byte, sound bool) {
	root, err := jsonedit.FewMembers(body)
	if err != nil || !jsonedit.Strict(body) {
		return nil, false
	}
	searches, _ = jsonedit.Elements(jsonedit.Get(root, "searches"))
	return searches, !jsonedit.Repeated(root) && !slices.ContainsFunc(root, func(m jsonedit.Member) bool {
		return m.Key != "searches" && (m.Key != "union" || string(m.Value) != "false")
	})
}

// left returns why the searches of a request are left alone, or nothing.
func (w *wire) left(list []*query, params []adapters.Param, sound bool) adapters.Reason {
	_, replaced := adapters.Last(params, "preset")
	configured := slices.IndexFunc(list, func(q *query) bool { return q.asked.Reason != adapters.ReasonUnconfigured })
	switch {
	case replaced && !w.single: // then the engine does not read the body
		return "preset"
	case configured < 0:
		return adapters.ReasonUnconfigured
	case mixed(list):
		return "scoped_key"
	case !sound || slices.ContainsFunc(list, func(q *query) bool { return q.base == nil }):
		return adapters.ReasonNotUnderstood
	case !slices.ContainsFunc(list, func(q *query) bool { return q.asked.Reason == "" }):
		return list[configured].asked.Reason
	case w.most == 0: // no multi-search can be made with this key
		return "scoped_key"
	case len(list) > w.most:
		return adapters.ReasonNotUnderstood
	}
	return ""
}

// mostSearches returns how many searches a request may hold, given its first one: what its key imposes counts, then the query string.
func mostSearches(params []adapters.Param, first *query) int {
	most := maxSearches
	for _, values := range []map[string]string{valuesOf(params), first.fixed} {
		if n := number(values, limitSearches, most); n >= 0 {
			most = n
		}
	}
	return most
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

// unsteered returns the query string less the parameters that a reading steers, and less the engine's cache where a key imposes
// something: the cache does not tell keys apart, and readings for two clients can be alike where their own searches are not.
func unsteered(params []adapters.Param, list []*query) string {
	imposed := slices.ContainsFunc(list, func(q *query) bool { return len(q.fixed) > 0 })
	return adapters.RawQuery(params, func(name string) bool {
		return !slices.Contains(steered, name) && !(imposed && name == "use_cache")
	})
}
