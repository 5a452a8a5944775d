package typesense

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	maxPerPage     = 250 // the engine's limit on per_page
	defaultPerPage = 10
	// maxRanks bounds what is read of a list. Engines up to 0.24 hang on a larger number of a page, and no list is as long.
	maxRanks = math.MaxInt32
	// maxQuery is the length from which on the engine refuses the query string of a GET.
	maxQuery = 4000
	// maxSearches is the engine's default limit on the searches of a multi-search, limitSearches the parameter that changes it.
	maxSearches   = 50
	limitSearches = "limit_multi_searches"
)

// query is one search as the client means it. It implements adapters.Search.
type query struct {
	asked    adapters.Asked
	controls adapters.Controls
	// body is the search as an element of a multi-search, less our controls; members are its own, nil with malformed if it is no object.
	body      []byte
	members   []jsonedit.Member
	malformed error
	// base is body with the steered parameters of the query string put in. Readings are made from it; a search that is left alone is sent
	// as base. nil says that the engine will refuse the whole request.
	base []byte
	// values are the parameters that count.
	values    map[string]string
	key       key        // a scoped one imposes parameters, an ordinary one none
	page      enginePage // the client's
	fields    fields     // of each document, as the client asks for them
	namesOurs bool       // a field of ours is included
	vector    *vectorQuery
	fuses     bool // its list is a fused one
	rules     rule.Rules
	// texts and deciding are the fields that are read beside the client's own: the sketched ones, and those by which hits are folded or chosen.
	texts, deciding []string
	most            int // the size of the largest page that the engine grants
	atOnce          int // how many searches can be asked in one request
}

// enginePage is a page of the engine's list: the ranks [from, to).
type enginePage struct{ number, size int }

func (p enginePage) from() int { return (p.number - 1) * p.size }

func (p enginePage) to() int { return p.number * p.size }

// Asked implements adapters.Search.
func (q *query) Asked() *adapters.Asked { return &q.asked }

// preset reports whether the engine puts in parameters that are not seen here, where the client has none of that name.
func (q *query) preset() bool { return q.asked.Unseen == "preset" }

// ParseSearch implements adapters.Dialect.
func (d Dialect) ParseSearch(c adapters.Class, r *adapters.Request, p adapters.Plan) *adapters.Searches {
	controls, plain, err := adapters.TakeControls(r)
	if err != nil {
		return &adapters.Searches{Plain: plain, Refusal: d.ErrorReply(r, 400, err.Error())}
	}
	if c.Form == formMulti {
		return d.multi(plain, controls, p)
	}
	if len(plain.RawQuery) >= maxQuery { // the engine refuses it
		return &adapters.Searches{Plain: plain, Reason: "query_length"}
	}
	// The path says which collection, and what limits a multi-search means nothing here.
	params := slices.DeleteFunc(paramsOf(plain.RawQuery), func(p adapters.Param) bool { return p.Name == "collection" || p.Name == limitSearches })
	body := append(jsonedit.AppendString([]byte(`{"collection":`), c.Target), '}')
	q, err := parseQuery(body, keyOf(plain, params), params, controls, p)
	if err != nil {
		return &adapters.Searches{Plain: plain, Refusal: d.ErrorReply(r, 400, err.Error())}
	}
	s := &adapters.Searches{Plain: plain, Reason: q.asked.Reason, NamesOurs: q.namesOurs, Single: true, Plan: p}
	if s.Reason == adapters.ReasonUnconfigured {
		return s
	}
	unhighlight(plain) // the engine could hang if that is sent in place of the page
	switch most := mostSearches(params, q); {
	case s.Reason != "":
	case most == 0: // the key allows no multi-search
		s.Reason = "scoped_key"
	default:
		request := *plain
		setList(s, &wire{request: &request, most: most, lone: true, single: extensible(plain.RawQuery) && !q.preset()}, []*query{q}, params)
	}
	return s
}

// asMulti returns the request for a search of one collection as that for a multi-search of none.
func asMulti(r *adapters.Request) *adapters.Request {
	multi := *r
	multi.Method, multi.Path, multi.Body = "POST", "/multi_search", []byte(`{"searches":[]}`)
	multi.Header = adapters.Header{}
	maps.Copy(multi.Header, r.Header)
	multi.Header["Content-Type"] = []string{"application/json"}
	delete(multi.Header, "Content-Length")
	return &multi
}

// mostSearches returns how many searches a request may hold, given its first one: what its key imposes counts, then the query string.
func mostSearches(params []adapters.Param, first *query) int {
	most := maxSearches
	given, _ := adapters.Last(params, limitSearches)
	for _, text := range []string{given, first.key.fixed[limitSearches]} {
		if n := digits(text); n >= 0 {
			most = n
		}
	}
	return most
}

// setList sets which searches are to be collapsed, and how they are asked.
func setList(s *adapters.Searches, w *wire, list []*query, params []adapters.Param) {
	names := steered
	if slices.ContainsFunc(list, func(q *query) bool { return q.asked.Counting != nil }) {
		names = slices.Concat(steered, countSteered)
		for _, q := range list {
			q.base, _ = rebase(q.base, params, countSteered)
		}
	}
	w.request.RawQuery = unsteered(params, names, list)
	w.sketched = sketchedBy(s.Plan.Rules)
	s.Wire = w
	for _, q := range list {
		q.atOnce = max(w.most/len(list), 1)
		s.List = append(s.List, q)
	}
}

// sketchedBy returns the fields that the rules sketch.
func sketchedBy(rules rule.Rules) (fields []string) {
	for _, rule := range rules {
		fields = append(fields, rule.Fields...)
	}
	return fields
}

// steered are the parameters that a reading sets or leaves out, or that mean something else in a multi-search. They never stay in the
// query string, which would override the body.
var steered = []string{
	"page", "per_page", "include_fields", "exclude_fields", "highlight_fields", "highlight_full_fields", "facet_by", "facet_query",
	"vector_query", "preset", "limit", "offset", "enable_analytics",
}

// unsteered returns the query string less the named parameters, those that a reading steers, and less the engine's cache where a key imposes
// something: the cache does not tell keys apart, and readings for two clients can be alike where their own searches are not.
func unsteered(params []adapters.Param, names []string, list []*query) string {
	imposed := slices.ContainsFunc(list, func(q *query) bool { return len(q.key.fixed) > 0 })
	return adapters.RawQuery(params, func(name string) bool {
		return !slices.Contains(names, name) && !(imposed && name == "use_cache")
	})
}

// parseQuery reads a search, an element of a multi-search, under the rules of its collection. asked.Reason then says why it is left alone, if it is.
// The error is a bad control.
func parseQuery(body []byte, key string, params []adapters.Param, outer adapters.Controls, p adapters.Plan) (*query, error) {
	q, err := newQuery(body, key, outer)
	if err != nil {
		return q, err
	}
	a, known := &q.asked, q.readParams(params)
	if a.Target != "" {
		a.Scope = p.Scope(a.Target).Under(q.controls, p.MaxWindow)
	}
	switch {
	case a.Target != "" && !a.Scope.Configured:
		a.Reason = adapters.ReasonUnconfigured
	case !known:
		a.Reason = adapters.ReasonNotUnderstood // the engine says what is wrong
	default:
		a.Reason = cmp.Or(q.check(), q.readPage(), q.key.check(q), q.readNeighbours(), q.key.doubt, q.readCounts())
	}
	if a.Reason == "" {
		q.rules, q.texts, q.deciding = p.Rules, withRoots(a.Scope.Texts), decidingFields(a.Scope.Deciding)
		if a.Scope.Native != nil && q.groupable() {
			a.Native = q
		}
		if a.Unseen == "" && !q.hidesID() {
			a.Sequence = q
		}
	}
	return q, nil
}

// newQuery returns a search with what is the same for all: nothing of the client's is read but our controls, to be put over the outer ones.
// The error is a bad control.
func newQuery(body []byte, with string, outer adapters.Controls) (*query, error) {
	q := &query{body: body, key: key{text: with}, most: maxPerPage, atOnce: maxSearches}
	q.controls, q.asked.Doubting = outer, true // a backfill's sketch can be of a former text: see the package
	q.members, q.malformed = jsonedit.Members(body)
	narrow, found, err := adapters.MemberControls(q.members)
	if found {
		q.controls = outer.Merge(narrow)
		q.body, _ = jsonedit.Cut(body, adapters.IsControl)
		q.members, q.malformed = jsonedit.Members(q.body)
	}
	if err != nil {
		return q, fmt.Errorf("search: %w", err)
	}
	return q, nil
}

// readParams reads the parameters that count: the key's before those of the query string, and these before those of the body. It is false
// where the engine will refuse the search.
func (q *query) readParams(params []adapters.Param) bool {
	if q.malformed != nil {
		return false
	}
	values, odd := valuesIn(q.members)
	maps.Copy(values, valuesOf(params))
	q.asked.Target = values["collection"]
	if odd {
		return false
	}
	var err error
	if q.base, err = rebase(q.body, params, steered); err != nil {
		return false
	}
	q.base = unhighlighted(q.base)
	if values["preset"] != "" {
		q.asked.Unseen = "preset"
	}
	q.key.read(q.members)
	maps.Copy(values, q.key.fixed)
	q.values, q.asked.Target = values, values["collection"]
	q.fields = fields{fieldList(values["include_fields"]), fieldList(values["exclude_fields"])}
	q.namesOurs = slices.ContainsFunc(q.fields.include, rule.Our)
	return true
}

// rebase puts the named parameters of the query string into the body.
func rebase(body []byte, params []adapters.Param, names []string) ([]byte, error) {
	moved := make([]string, 0, 2*len(params))
	for _, name := range names {
		value, given := adapters.Last(params, name)
		if !utf8.ValidString(value) {
			return nil, fmt.Errorf("%s is not UTF-8", name)
		}
		if given {
			moved = append(moved, name, value)
		}
	}
	return put(body, true, moved...)
}

// leaves are the parameters whose presence leaves a search alone, with the reason, the most telling first.
var leaves = []struct {
	name   string
	reason adapters.Reason
}{
	{"group_by", "grouped"}, {"union", "union"},
	{"conversation", "conversation"}, {"conversation_stream", "conversation"}, {"conversation_model_id", "conversation"},
	{"conversation_id", "conversation"}, {"nl_query", "nl_query"}, {"voice_query", "voice_query"},
}

// check returns why a search that the client wrote so is left alone, or nothing.
func (q *query) check() adapters.Reason {
	if q.controls.Off {
		return adapters.ReasonOff
	}
	for _, l := range leaves {
		if value := q.values[l.name]; value != "" && value != "false" {
			return l.reason
		}
	}
	// Newer engines take patterns and other collections' fields here, and only they know what these show.
	if q.asked.Target == "" || strings.ContainsAny(q.values["include_fields"]+q.values["exclude_fields"], "*$") {
		return adapters.ReasonNotUnderstood
	}
	return ""
}

// readPage reads the page and how many ranks of the list can be read. It returns why the search is left alone, or nothing. Engines ignore limit and
// offset up to release 0.24: it reads them as 0.25 does, where page and per_page override them, and the reply tells whether the guess was right.
func (q *query) readPage() adapters.Reason {
	values, a, otherwise := q.values, &q.asked, defaultPerPage
	if values["facet_query"] != "" {
		otherwise = 0 // as the engine has it
	}
	q.page = enginePage{number(values, "page", 1), number(values, "per_page", otherwise)}
	a.Limit = number(values, "limit_hits", maxRanks)
	limit, offset := number(values, "limit", q.page.size), number(values, "offset", 0)
	shifted := values["limit"]+values["offset"] != ""
	if shifted {
		a.Unseen = cmp.Or(a.Unseen, "offset")
	}
	if shifted && values["per_page"] == "" {
		q.page.size = limit
	}
	a.Size = q.page.size
	if a.From = min(q.page.number-1, maxRanks/max(a.Size, 1)) * a.Size; shifted && values["page"] == "" {
		a.From = offset
	}
	switch {
	case q.page.number < 1 || a.Size < 0 || a.Limit < 0 || shifted && (limit < 0 || offset < 0):
		return adapters.ReasonNotUnderstood // the engine says what is wrong
	case a.Size > maxPerPage:
		return "per_page" // some servers are configured to take more, which does not show here
	case int64(a.From)+int64(a.Size) > int64(a.Limit):
		return "limit_hits"
	}
	if size := q.fixedSize(); size > 0 {
		a.Limit = a.Limit / size * size
	}
	return ""
}

// fixedSize is the size of every page that can be read, 0 if any can.
func (q *query) fixedSize() int {
	if _, fixed := q.key.fixed["per_page"]; fixed {
		return q.page.size
	}
	return 0
}

// seesText reports whether the hits that the client asked for are known to hold all of the fields' texts.
func (q *query) seesText(names []string) bool { return !q.preset() && q.fields.all(names) }

// mayRead reports whether the client's key lets all of the fields' texts be seen.
func (q *query) mayRead(names []string) bool { return q.key.shows().all(names) }

// List implements adapters.Sequence.
func (q *query) List() string {
	scope := &q.asked.Scope
	parts := []string{fmt.Sprint(scope.Window, scope.Threshold, scope.Keep, scope.Group), q.key.text}
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if name != "page" {
			parts = append(parts, name, q.values[name])
		}
	}
	return fmt.Sprintf("%q", parts)
}

// hidesID reports whether the client's key keeps the id out of every hit.
func (q *query) hidesID() bool { return !q.mayRead([]string{"id"}) }

// fields are those of a document that are asked for: all, if none is included, less those that are excluded.
type fields struct{ include, exclude []string }

// sees reports whether a top-level field that is named whole or not at all, such as id, is asked for.
func (f fields) sees(name string) bool {
	return (len(f.include) == 0 || slices.Contains(f.include, name)) && !slices.Contains(f.exclude, name)
}

// all reports whether fields of these names are all asked for, each whole.
func (f fields) all(names []string) bool {
	for _, name := range names {
		inside := func(of string) bool { return name == of || strings.HasPrefix(name, of+".") }
		// A dotted field is a name to a collection without nested fields and a path to one with them: both have to be included.
		root, _, _ := strings.Cut(name, ".")
		if len(f.include) > 0 && !(slices.Contains(f.include, name) && slices.Contains(f.include, root)) {
			return false
		}
		if slices.ContainsFunc(f.exclude, func(other string) bool { return inside(other) || strings.HasPrefix(other, name+".") }) {
			return false
		}
	}
	return true
}
