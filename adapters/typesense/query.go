package typesense

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	maxPerPage     = 250 // the engine's limit on per_page
	defaultPerPage = 10
	maxSearches    = 50 // the engine's default limit on the searches of a multi-search
	// maxRanks bounds what is read of a list. Engines up to 0.24 hang on a larger number of a page, and no list is as long.
	maxRanks = math.MaxInt32
)

// steered are the parameters that a reading sets or leaves out, or that mean something else in a multi-search. They never stay in the
// query string, which would override the body.
var steered = []string{
	"page", "per_page", "include_fields", "exclude_fields", "highlight_fields", "highlight_full_fields", "facet_by", "facet_query",
	"vector_query", "preset", "limit", "offset", "enable_analytics",
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

// query is one search as the client means it. It implements adapters.Search.
type query struct {
	asked adapters.Asked
	// body is the search as it stands in a multi-search, less our controls.
	body []byte
	// base is body with the client's steered parameters of the query string put in: what is asked where it is left alone. It is nil
	// where the engine will refuse the whole request.
	base []byte
	// values are the parameters that count.
	values map[string]string
	wanted
	// key is what the search is made with, ownKey says that it brings that itself. fixed is what the key imposes: it counts in place of
	// whatever is asked.
	key    string
	ownKey bool
	fixed  map[string]string
	vector *vectorQuery // nil for most searches
	rules  rule.Rules
	// texts and deciding are the fields that are read beside the client's own: the sketched ones, and those by which hits are folded or chosen.
	texts, deciding []string
	most            int // the size of the largest page that the engine grants
	atOnce          int // how many searches can be asked in one request
}

// wanted is which page the client asks for, and what of each hit.
type wanted struct {
	page, perPage int
	// preset says that the engine puts in parameters that are not seen here, where the client has none of that name.
	preset bool
	// shifted says that the client gives limit or offset, which engines ignore up to release 0.24 and obey from 0.25 on.
	shifted          bool
	include, exclude []string // fields that the client names; none included stands for all
	shown            bool     // a field of ours is among those included
}

// Asked implements adapters.Search.
func (q *query) Asked() *adapters.Asked { return &q.asked }

// newQuery returns a search of which no more than our controls are read, to be put over the outer ones. The error is a bad control.
func newQuery(body []byte, key string, outer adapters.Controls) (*query, error) {
	q := &query{body: body, key: key, most: maxPerPage, atOnce: maxSearches}
	a := &q.asked
	a.Controls, a.Reason, a.Doubting = outer, adapters.ReasonNotUnderstood, true // a backfill's sketch can be of a former text
	members, _ := jsonedit.Members(body)                                         // of which there are none where it is malformed
	narrow, found, err := adapters.MemberControls(members)
	if found {
		a.Controls = outer.Merge(narrow)
		q.body, _ = jsonedit.Cut(body, adapters.IsControl)
	}
	if err != nil {
		return q, fmt.Errorf("search: %w", err)
	}
	return q, nil
}

// read reads the rest of the search, whose reason then says why it is left alone, if it is.
func (q *query) read(params []adapters.Param) {
	members, err := jsonedit.Members(q.body)
	if err != nil {
		return
	}
	values, odd := valuesIn(members)
	maps.Copy(values, valuesOf(params))
	q.asked.Target = values["collection"]
	if odd { // the engine will refuse it
		return
	}
	if q.base, err = rebase(unhighlighted(q.body), params); err != nil {
		return
	}
	sure := q.takeKey(members)
	q.preset = values["preset"] != ""
	maps.Copy(values, q.fixed)
	q.values, q.asked.Target = values, values["collection"]
	q.include, q.exclude = fieldList(values["include_fields"]), fieldList(values["exclude_fields"])
	q.shown = slices.ContainsFunc(q.include, rule.Our)
	if q.asked.Reason = q.check(); q.asked.Reason == "" && !sure {
		q.asked.Reason = "scoped_key"
	}
}

// takeKey reads which key counts, the search's own before that of the request, and what it imposes. It is not sure where a search brings
// a scoped key to a request that has another: the engine does not look at the search's if the request's is the server's own.
func (q *query) takeKey(members []jsonedit.Member) (sure bool) {
	outer := q.key
	if own, given := jsonedit.Text(jsonedit.Get(members, keyParam)); given {
		q.key, q.ownKey = own, true
	}
	q.fixed = embedded(q.key)
	return q.key == outer || outer == "" || !steers(q.fixed)
}

// steers reports whether what a key imposes bears on how a search is read.
func steers(values map[string]string) bool {
	names := append(slices.Clone(steered), "collection", "limit_hits", limitSearches)
	for _, l := range leaves {
		names = append(names, l.name)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		_, imposed := values[name]
		return imposed
	})
}

// readPage reads page and size, and is false for what only the engine can judge. Where limit or offset is given it takes these for what they
// mean to engines that obey them: the page and its size count before them, and the reply tells whether the guess was right.
func (q *query) readPage() bool {
	values, a, otherwise := q.values, &q.asked, defaultPerPage
	if values["facet_query"] != "" {
		otherwise = 0 // as the engine has it
	}
	q.page, q.perPage = number(values, "page", 1), number(values, "per_page", otherwise)
	a.Limit = number(values, "limit_hits", maxRanks)
	limit, offset := number(values, "limit", q.perPage), number(values, "offset", 0)
	if q.shifted = values["limit"]+values["offset"] != ""; q.shifted && values["per_page"] == "" {
		q.perPage = limit
	}
	if a.From = min(q.page-1, maxRanks/max(q.perPage, 1)) * q.perPage; q.shifted && values["page"] == "" {
		a.From = offset
	}
	return q.page > 0 && q.perPage >= 0 && a.Limit >= 0 && (!q.shifted || limit >= 0 && offset >= 0)
}

// check returns why the search is left alone, or nothing. It reads what the paging and the neighbours follow from.
func (q *query) check() adapters.Reason {
	values, a := q.values, &q.asked
	if a.Controls.Off {
		return adapters.ReasonOff
	}
	for _, l := range leaves {
		if value := values[l.name]; value != "" && value != "false" {
			return l.reason
		}
	}
	switch paged := q.readPage(); {
	// Newer engines take patterns and other collections' fields here; what they then show can't be told from here.
	case strings.ContainsAny(values["include_fields"]+values["exclude_fields"], "*$"):
		return adapters.ReasonNotUnderstood
	case a.Target == "" || !paged:
		return adapters.ReasonNotUnderstood // the engine says what is wrong
	case q.perPage > maxPerPage:
		return "per_page" // servers can be told to take more; ours then can't be told from here
	case int64(a.From)+int64(q.perPage) > int64(a.Limit):
		return "limit_hits"
	case q.perPage == 0:
		return adapters.ReasonSizeZero
	case q.fixed["page"]+q.fixed["limit"]+q.fixed["offset"] != "":
		return "scoped_key" // the rest of the list is not to be had
	case q.fixed["preset"] != "":
		return "preset"
	case q.preset && q.hidesID():
		return "scoped_key" // what is read beside the client's hits could not be told to be of them
	}
	if text := values["vector_query"]; text != "" {
		if q.vector = parseVectorQuery(text); q.vector == nil || values["q"] != "*" || q.unseen() || q.fixed["vector_query"] != "" {
			return adapters.ReasonVector
		}
	}
	return ""
}

// under reads the search under the rules of its scope, which can leave it alone too.
func (q *query) under(p adapters.Plan) {
	a := &q.asked
	if a.Target == "" {
		return
	}
	if a.Scope = p.ScopeUnder(a.Target, a.Controls); !a.Scope.Configured {
		a.Reason = adapters.ReasonUnconfigured
	}
	if a.Reason != "" {
		return
	}
	q.rules, a.Size = p.Rules, q.perPage
	switch {
	case q.preset:
		a.Unseen = "preset"
	case q.shifted:
		a.Unseen = "offset"
	}
	if q.groupable() {
		a.Native = q
	}
	for _, rule := range p.Rules {
		if rule.Compute {
			q.texts = append(q.texts, rule.Fields...)
		}
	}
	q.texts, q.deciding = rooted(q.texts), decidingFields(a.Scope.Deciding)
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
}

// unseen reports whether the reply alone tells page and size.
func (q *query) unseen() bool { return q.preset || q.shifted }

// fixedSize is the size of every page that can be read, 0 if any can.
func (q *query) fixedSize() int {
	if _, fixed := q.fixed["per_page"]; fixed {
		return q.perPage
	}
	return 0
}

// sees reports whether the client sees a top-level field that is named whole or not at all, such as id.
func (q *query) sees(field string) bool {
	return (len(q.include) == 0 || slices.Contains(q.include, field)) && !slices.Contains(q.exclude, field)
}

// seesText reports whether the hits that the client asked for are known to hold all of the fields' texts.
func (q *query) seesText(fields []string) bool {
	return !q.preset && shows(q.include, q.exclude, fields)
}

// mayRead reports whether the client's key lets all of the fields' texts be seen.
func (q *query) mayRead(fields []string) bool {
	return len(q.fixed) == 0 || shows(fieldList(q.fixed["include_fields"]), fieldList(q.fixed["exclude_fields"]), fields)
}

// hidesID reports whether the client's key keeps the id out of every hit.
func (q *query) hidesID() bool { return !q.mayRead([]string{"id"}) }

// shows reports whether lists of included and excluded names let all of the fields be seen whole.
func shows(include, exclude, fields []string) bool {
	for _, field := range fields {
		inside := func(name string) bool { return field == name || strings.HasPrefix(field, name+".") }
		// A dotted field is a name to a collection without nested fields and a path to one with them: both have to be included.
		root, _, _ := strings.Cut(field, ".")
		if len(include) > 0 && !(slices.Contains(include, field) && slices.Contains(include, root)) {
			return false
		}
		if slices.ContainsFunc(exclude, func(name string) bool { return inside(name) || strings.HasPrefix(name, field+".") }) {
			return false
		}
	}
	return true
}

// vectorQuery is a search for nearest neighbours. The engine looks for k of them, and for no fewer than its page's last rank: so its list
// differs with k, which changes what the index's graph finds, as with the page.
type vectorQuery struct {
	head   string   // up to and with the vector: "field:([0.1, 0.2]"
	params []string // what follows it, each "name: value", but for k
	own    int      // the client's k
}

// maxNeighbours bounds the client's k: all of so many ranks are read.
const maxNeighbours = 10000

// parseVectorQuery takes a vector query apart, nil if it is not of the form that the engine documents, or asks for more than
// maxNeighbours.
func parseVectorQuery(text string) *vectorQuery {
	end := strings.IndexByte(text, ']')
	tail, closed := strings.CutSuffix(strings.TrimSpace(text[end+1:]), ")")
	if end < 0 || !closed || strings.ContainsAny(tail, "()[]") {
		return nil
	}
	n := &vectorQuery{head: text[:end+1]}
	for i, param := range strings.Split(tail, ",") {
		param = strings.TrimSpace(param)
		if i == 0 && param == "" {
			continue // the comma behind the vector
		}
		name, value, ok := strings.Cut(param, ":")
		if !ok || i == 0 {
			return nil
		}
		if strings.TrimSpace(name) != "k" {
			n.params = append(n.params, param)
			continue
		}
		k, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || k < 0 || k > maxNeighbours {
			return nil
		}
		n.own = k
	}
	return n
}

// raised returns the vector query for k neighbours.
func (n *vectorQuery) raised(k int) string {
	params := append([]string{n.head}, n.params...)
	return strings.Join(append(params, "k:"+strconv.Itoa(k)), ", ") + ")"
}
