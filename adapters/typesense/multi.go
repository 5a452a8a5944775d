package typesense

import (
	"bytes"
	"iter"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// multi parses a multi-search.
func (d Dialect) multi(plain *adapters.Request, controls adapters.Controls, p adapters.Plan) *adapters.Searches {
	params := paramsOf(plain.RawQuery)
	bodies, sound, united := searchesIn(plain.Body)
	s := &adapters.Searches{Plain: plain, Plan: p}
	if len(bodies) == 0 {
		s.Reason = adapters.ReasonNotUnderstood
	}
	var list []*query
	key, stripped := keyOf(plain, params), false
	for i, body := range bodies {
		switch {
		case len(bodies) > adapters.MaxSearches:
			s.Reason = adapters.ReasonTooLarge
		case i > 0 && p.Late():
			s.Reason = adapters.ReasonDeadline
		}
		var q *query
		var err error
		own := body
		if united {
			own, _ = jsonedit.Cut(body, func(key string) bool { return slices.Contains(ownPage, key) })
		}
		if s.Reason == "" {
			q, err = parseQuery(own, key, params, controls, p)
			list = append(list, q)
		} else { // it is not read, which takes its length times that of the query string
			q, err = newQuery(own, key, controls)
			q.namesOurs = rule.NamesOurs(own)
		}
		if err != nil {
			return &adapters.Searches{Plain: plain, Refusal: d.ErrorReply(plain, 400, err.Error())}
		}
		if bodies[i] = q.body; united {
			bodies[i], _ = jsonedit.Cut(body, adapters.IsControl)
		}
		if q.asked.Reason != adapters.ReasonUnconfigured {
			bodies[i] = unhighlighted(bodies[i])
		}
		s.NamesOurs = s.NamesOurs || q.namesOurs
		stripped = stripped || !bytes.Equal(bodies[i], body)
	}
	if stripped {
		plain.Body, _ = jsonedit.Set(plain.Body, "searches", jsonedit.Array(bodies)) // it is well-formed
	}
	if s.Reason == "" {
		most := mostSearches(params, list[0])
		switch s.Reason = leftAlone(list, params, most, sound); {
		case s.Reason != "":
		case united:
			var u *union
			if u, s.Reason = unite(plain, list, params, p); u != nil {
				s.List, s.Single = []adapters.Search{u}, true
			}
		default:
			carrier := *plain
			w := &wire{request: &carrier, most: most}
			setList(s, w, list, params)
			s.Envelope = w
		}
	}
	if s.Reason != adapters.ReasonUnconfigured {
		unhighlight(plain)
	}
	return s
}

// searchesIn returns the searches of a multi-search, none if it is not well-formed: what is between them does not get into a reading. sound says that
// nothing else in it has a meaning, but for what makes it a union: then it is united.
func searchesIn(body []byte) (searches [][]byte, sound, united bool) {
	root, err := jsonedit.FewMembers(body)
	if err != nil || !jsonedit.Strict(body) {
		return nil, false, false
	}
	searches, _ = jsonedit.Elements(jsonedit.Get(root, "searches"))
	united = string(jsonedit.Get(root, "union")) == "true"
	return searches, !jsonedit.Repeated(root) && !slices.ContainsFunc(root, func(m jsonedit.Member) bool {
		truth := string(m.Value) == "true" || string(m.Value) == "false"
		return m.Key != "searches" && !(truth && (m.Key == "union" || united && m.Key == "remove_duplicates"))
	}), united
}

// leftAlone returns why all searches of a multi-search are left alone, or nothing.
func leftAlone(list []*query, params []adapters.Param, most int, sound bool) adapters.Reason {
	configured := slices.IndexFunc(list, func(q *query) bool { return q.asked.Reason != adapters.ReasonUnconfigured })
	_, preset := adapters.Last(params, "preset")
	switch {
	case preset: // then the engine does not read the body
		return "preset"
	case configured < 0:
		return adapters.ReasonUnconfigured
	case mixed(list):
		return "scoped_key"
	case !sound || slices.ContainsFunc(list, func(q *query) bool { return q.base == nil }):
		return adapters.ReasonNotUnderstood
	case !slices.ContainsFunc(list, func(q *query) bool { return q.asked.Reason == "" }):
		return list[configured].asked.Reason
	case most == 0: // the key allows no multi-search
		return "scoped_key"
	case len(list) > most:
		return adapters.ReasonNotUnderstood
	}
	return ""
}

// mixed reports whether an earlier search's key may count for later ones, which bring their own: the server's own key, and any may be that one,
// opens all that follow. A request for only some of the searches would then mean something else.
func mixed(list []*query) bool {
	before := ""
	for _, q := range list {
		if before != "" && q.key.text != before {
			return true
		}
		if q.key.own && len(q.key.fixed) == 0 {
			before = q.key.text
		}
	}
	return false
}

// Targets implements adapters.Dialect.
func (Dialect) Targets(c adapters.Class, r *adapters.Request) iter.Seq[string] {
	return func(yield func(string) bool) {
		if c.Form != formMulti {
			yield(c.Target)
			return
		}
		searches, _ := jsonedit.Elements(member(r.Body, "searches"))
		params := paramsOf(r.RawQuery)
		for _, search := range searches {
			q, _ := newQuery(search, keyOf(r, params), adapters.Controls{})
			if q.readParams(params); q.asked.Target != "" && !yield(q.asked.Target) {
				return
			}
		}
	}
}
