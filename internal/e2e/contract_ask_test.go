package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/internal/rule"
)

// ask is a search, with what it asks of us apart from what it asks of the engine.
type ask struct {
	shelves    []*shelf
	listener   int
	members    map[string]string // of the body, as JSON; Typesense: parameters as text
	params     map[string]string // of the URL
	controls   map[string]string
	by         string // where the controls stand: url, body, header; or header>url and the like: the first outdone by the second
	form       string // search, get (no body), source (its body in the URL), multi (of many)
	lone       bool   // the list of such a search is that of no more neighbours than asked for
	near       int    // of a search for nearest neighbours, how many: it takes the place of KKK among the members
	from, size int
}

// clone returns a copy that goes its own way.
func (a ask) clone() ask {
	a.members, a.params, a.controls = maps.Clone(a.members), maps.Clone(a.params), maps.Clone(a.controls)
	a.shelves = slices.Clone(a.shelves)
	return a
}

func (a ask) String() string {
	return fmt.Sprintf("listener %d, %s %s: members %v, params %v, controls by %s %v, from %d size %d, near %d (%v)",
		a.listener, a.form, a.target(), a.members, a.params, a.by, a.controls, a.from, a.size, a.near, a.lone)
}

// target is the index or indices that are searched.
func (a ask) target() string {
	var names []string
	for _, s := range a.shelves {
		names = append(names, s.index)
	}
	return strings.Join(names, ",")
}

func sortedKeys[K ~string | ~int, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// at returns the controls that stand in a place: header, url or body. Of two places the first of these is outdone by the second.
func (a ask) at(place string) map[string]string {
	wide, narrow, both := strings.Cut(a.by, ">")
	switch {
	case place == a.by || both && place == narrow:
		return a.controls
	case both && place == wide:
		others := map[string]string{"neardup": "off", "neardup_threshold": "0.01", "neardup_window": "3", "neardup_keep": "9",
			"neardup_expand": "off", "neardup_explain": "false", "neardup_totals": "engine", "neardup_group": "false"}
		for name := range others {
			if _, ok := a.controls[name]; !ok {
				delete(others, name)
			}
		}
		return others
	}
	return nil
}

// request returns the HTTP request of the search, with our controls or without.
func (c *contract) request(a ask, controls bool) (method, path, body string, header []string) {
	query, inBody := url.Values{}, map[string]string{}
	for k, v := range a.params {
		query.Set(k, v)
	}
	if controls {
		for k, v := range a.at("url") {
			query.Set(k, v)
		}
		inBody = a.at("body")
		var items []string
		place := a.at("header")
		for _, k := range sortedKeys(place) {
			items = append(items, strings.TrimPrefix(strings.TrimPrefix(k, "neardup_"), "neardup=")+"="+place[k])
		}
		if len(items) > 0 {
			header = []string{"Neardup-Control", strings.Join(items, "; ")}
		}
	}
	if c.typesense() {
		return c.typesenseRequest(a, query, inBody, header)
	}
	if a.form == "get" {
		for k, v := range a.members {
			query.Set(k, v)
		}
		query.Set("from", fmt.Sprint(a.from))
		query.Set("size", fmt.Sprint(a.size))
		return "GET", "/" + a.target() + "/_search?" + query.Encode(), "", header
	}
	body = a.body(inBody)
	switch a.form {
	case "multi":
		head, _ := json.Marshal(map[string]any{"index": strings.Split(a.target(), ",")})
		return "POST", "/_msearch?" + query.Encode(), fmt.Sprintf("%s\n%s\n%[1]s\n{\"size\":0}\n", head, body), header
	case "source":
		query.Set("source_content_type", "application/json")
		query.Set("source", body)
		return "GET", "/" + a.target() + "/_search?" + query.Encode(), "", header
	}
	return "POST", "/" + a.target() + "/_search?" + query.Encode(), body, header
}

// body returns the body of a search of Elasticsearch, with controls among its members.
func (a ask) body(controls map[string]string) string {
	parts := []string{fmt.Sprintf(`"from":%d`, a.from), fmt.Sprintf(`"size":%d`, a.size)}
	for _, k := range sortedKeys(a.members) {
		parts = append(parts, fmt.Sprintf("%q:%s", k, strings.ReplaceAll(a.members[k], "KKK", fmt.Sprint(a.near))))
	}
	return "{" + strings.Join(append(parts, controlMembers(controls)...), ",") + "}"
}

// controlMembers returns controls as members of a body: numbers as numbers or as text.
func controlMembers(controls map[string]string) (parts []string) {
	for i, k := range sortedKeys(controls) {
		v := controls[k]
		if _, err := strconv.ParseFloat(v, 64); err != nil || i%2 == 1 {
			v = strconv.Quote(v)
		}
		parts = append(parts, fmt.Sprintf("%q:%s", k, v))
	}
	return parts
}

func (c *contract) typesenseRequest(a ask, query url.Values, inBody map[string]string, headers []string) (
	method, path, body string, header []string) {
	own := map[string]string{"page": fmt.Sprint(a.from/a.size + 1), "per_page": fmt.Sprint(a.size)}
	for k, v := range a.members {
		own[k] = strings.ReplaceAll(v, "KKK", fmt.Sprint(a.near))
	}
	if a.form != "multi" {
		for k, v := range own {
			query.Set(k, v)
		}
		return "GET", "/collections/" + a.target() + "/documents/search?" + query.Encode(), "", headers
	}
	parts := []string{fmt.Sprintf(`"collection":%q`, a.target())}
	for _, k := range sortedKeys(own) {
		parts = append(parts, fmt.Sprintf("%q:%q", k, own[k]))
	}
	parts = append(parts, controlMembers(inBody)...)
	return "POST", "/multi_search?" + query.Encode(), `{"searches":[{` + strings.Join(parts, ",") + `}]}`, headers
}

// send sends the search and returns its result: of a search of many, that of the first.
func (c *contract) send(base string, a ask, controls bool) (result []byte, r reply) {
	c.t.Helper()
	method, path, body, header := c.request(a, controls)
	r = call(c.t, c.e, method, base+path, body, header...)
	result = r.body
	if a.form == "multi" && r.status == 200 {
		var many struct{ Responses, Results []json.RawMessage }
		decode(c.t, r.body, &many)
		for _, one := range slices.Concat(many.Responses, many.Results) {
			return one, r
		}
	}
	return result, r
}

// whole returns the engine's whole list for a search, as it is now.
func (c *contract) whole(a ask) []standing {
	c.t.Helper()
	a = a.clone()
	a.controls, a.by = nil, ""
	a.from, a.size = 0, 0
	if a.form == "source" || c.typesense() { // of Elasticsearch, inner hits in a multi-search have no _seq_no
		a.form = "search"
	}
	if a.near > 0 && !a.lone { // as many neighbours at least as the rule's vector_window says, which is the default
		a.near = max(a.near, 100)
	}
	key := fmt.Sprint(c.changed, a)
	list, ok := c.lists[key]
	if !ok {
		if c.typesense() {
			list = c.wholeTypesense(a)
		} else {
			list = c.wholeElastic(a)
		}
		c.lists[key] = list
	}
	return slices.Clone(list)
}

// oursAnywhere is our field as a member of a source, which engines that filter it put in any place.
var oursAnywhere = regexp.MustCompile(`,\s*"neardup_sketch" ?: ?("[^"]*"|\[\s*"[^"]*"\s*\])|"neardup_sketch" ?: ?("[^"]*"|\[\s*"[^"]*"\s*\]),?`)

func (c *contract) wholeElastic(a ask) (list []standing) {
	c.t.Helper()
	for _, name := range []string{"aggs", "suggest"} {
		delete(a.members, name)
	}
	a.size = 10000
	result, r := c.send(c.e.URL, a, false)
	r.want(c.t, 200)
	var found struct {
		Hits struct{ Hits []json.RawMessage }
	}
	decode(c.t, result, &found)
	for _, raw := range found.Hits.Hits {
		var h struct {
			Index string `json:"_index"`
			ID    string `json:"_id"`
		}
		decode(c.t, raw, &h)
		list = append(list, standing{index: h.Index, id: h.ID, raw: steady(oursAnywhere.ReplaceAll(raw, nil))})
	}
	return list
}

func (c *contract) wholeTypesense(a ask) (list []standing) {
	c.t.Helper()
	if a.size = 250; a.near > 0 { // the engine looks for as many as a page can show
		a.size = a.near
	}
	for ; ; a.from += a.size {
		ids, seen := a.clone(), a.clone()
		ids.members["include_fields"] = "id"
		delete(ids.members, "exclude_fields")
		seen.members["exclude_fields"] = strings.TrimPrefix(a.members["exclude_fields"]+","+rule.SketchField, ",")
		var replies [2]struct{ Hits []json.RawMessage }
		for i, one := range []ask{ids, seen} {
			result, r := c.send(c.e.URL, one, false)
			r.want(c.t, 200)
			decode(c.t, result, &replies[i])
		}
		for i, raw := range replies[0].Hits {
			var h struct {
				Document struct{ ID string }
				Curated  bool
			}
			decode(c.t, raw, &h)
			list = append(list, standing{index: a.shelves[0].index, id: h.Document.ID, raw: string(replies[1].Hits[i]), pinned: h.Curated})
		}
		if len(replies[0].Hits) < a.size || a.near > 0 {
			return list
		}
	}
}

// rules returns the rules of a search's shelves under its controls.
func (c *contract) rules(a ask) map[string]*terms {
	rules := map[string]*terms{}
	for _, s := range a.shelves {
		r := *c.listeners[a.listener].rules[c.place(s)]
		for name, value := range a.controls {
			n, _ := strconv.ParseFloat(value, 64)
			switch name {
			case "neardup_threshold":
				r.threshold = n
			case "neardup_keep":
				r.keep = int(n)
			case "neardup_window":
				r.window = int(n)
			}
		}
		r.window = min(r.window, contractMaxWindow)
		rules[s.index] = &r
	}
	return rules
}

// wishes are what a search is answered with beside its page, by its rules and its controls.
type wishes struct {
	window                int
	transitive, collapsed bool
	off, dry, explain     bool
	group                 bool   // each hit says which group it is of
	expand                string // off, ids or source
}

// wishes works out what a search asks for.
func (c *contract) wishes(a ask) (w wishes) {
	w.dry, w.expand = true, "off"
	reach := []string{"off", "ids", "source"}
	for _, r := range c.rules(a) {
		w.window, w.transitive, w.collapsed = max(w.window, r.window), w.transitive || r.transitive, w.collapsed || r.collapsed
		w.dry, w.group = w.dry && r.dry, w.group || r.group
		if slices.Index(reach, r.expand) > slices.Index(reach, w.expand) {
			w.expand = r.expand
		}
	}
	if totals, asked := a.controls["neardup_totals"]; asked {
		w.collapsed = totals == "collapsed"
	}
	if group, asked := a.controls["neardup_group"]; asked {
		w.group = group != "false"
	}
	if expand, asked := a.controls["neardup_expand"]; asked {
		w.expand = map[string]string{"": "ids", "true": "ids", "false": "off"}[expand]
		if w.expand == "" {
			w.expand = expand
		}
	}
	if value, asked := a.controls["neardup_explain"]; asked && value != "false" {
		if w.explain = true; w.expand == "off" {
			w.expand = "ids"
		}
	}
	switch value, asked := a.controls["neardup"]; {
	case !asked:
	case value == "off" || value == "false":
		w.off = true
	default:
		w.dry = value == "dry_run"
	}
	return w
}

// judged returns the engine's list with what the definition goes by.
func (c *contract) judged(a ask) (list []standing) {
	c.t.Helper()
	list = c.whole(a)
	rules := c.rules(a)
	for i := range list {
		h := &list[i]
		s := c.shelf(h.index)
		h.rule, h.source = rules[h.index], c.stored(s, h.id)
		h.sketch = c.sketch(s, h.id, h.rule, h.source)
	}
	return list
}
