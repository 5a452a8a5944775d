package typesense

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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

// leaf is a parameter whose presence leaves a search alone, and the reason.
type leaf struct {
	name   string
	reason adapters.Reason
}

// leaves are all of them, the most telling first.
var leaves = []leaf{
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
	paging
	view
	apiKey
	vector *vectorQuery  // nil for most searches
	native *nativeSearch // nil for most searches
	rules  rule.Rules
	needed fields
	most   int // the size of the largest page that the engine grants
	atOnce int // how many searches can be asked in one request
}

// paging is which page the client asks for.
type paging struct {
	page, perPage int
	// preset says that the engine puts in parameters that are not seen here, where the client has none of that name.
	preset bool
	// shifted says that the client gives limit or offset, which engines ignore up to release 0.24 and obey from 0.25 on.
	shifted bool
}

// view is what the client wants to see of each hit.
type view struct {
	include, exclude []string // fields that the client names; none included stands for all
	shown            bool     // a field of ours is among those included
}

// apiKey is the key that a search is made with.
type apiKey struct {
	key    string
	ownKey bool              // the search brings it
	fixed  map[string]string // what it imposes: it counts in place of whatever is asked
}

// Asked implements adapters.Search.
func (q *query) Asked() *adapters.Asked { return &q.asked }

// parse reads one search: its body, over which the query string's parameters count, and over these what the key imposes. The reason, if
// not empty, says why it is left alone; body and base are good in any case. An error is a bad control.
func parse(body []byte, params []adapters.Param, key string, outer adapters.Controls) (q *query, reason adapters.Reason, err error) {
	q = &query{body: body, apiKey: apiKey{key: key}, most: maxPerPage, atOnce: maxSearches}
	q.asked.Controls, q.asked.Doubting = outer, true // a backfill's sketch can be of a former text
	members, err := jsonedit.Members(body)
	if err != nil {
		return q, "not_understood", nil
	}
	if members, err = q.takeControls(members); err != nil {
		return q, "", err
	}
	values, ok := effective(members, params)
	q.asked.Target = values["collection"]
	if !ok {
		return q, "not_understood", nil
	}
	if q.base, err = rebase(unhighlighted(q.body), params); err != nil {
		return q, "not_understood", nil
	}
	sure := q.takeKey(members)
	q.preset = values["preset"] != ""
	for name, value := range q.fixed {
		values[name] = value
	}
	q.asked.Target = values["collection"]
	q.include, q.exclude = fieldList(values["include_fields"]), fieldList(values["exclude_fields"])
	q.shown = slices.ContainsFunc(q.include, rule.Our)
	if reason = q.check(values); reason == "" && !sure {
		reason = "scoped_key"
	}
	return q, reason, nil
}

// takeControls takes our controls out of the body and puts them over those of the request.
func (q *query) takeControls(members []jsonedit.Member) ([]jsonedit.Member, error) {
	narrow, found, err := adapters.MemberControls(members)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	if !found {
		return members, nil
	}
	q.asked.Controls = q.asked.Controls.Merge(narrow)
	if q.body, err = jsonedit.Cut(q.body, adapters.IsControl); err != nil {
		return nil, err
	}
	return jsonedit.Members(q.body)
}

// effective returns the parameters that count, and false if the engine will refuse one for its type.
func effective(members []jsonedit.Member, params []adapters.Param) (values map[string]string, ok bool) {
	values = map[string]string{}
	bad := false
	for _, m := range members {
		text, isText := jsonedit.Text(m.Value)
		switch m.Value[0] {
		case '{', '[', 'n':
			bad = true
			continue
		}
		if !isText {
			text = string(m.Value)
		}
		values[m.Key] = text
	}
	for name, value := range valuesOf(params) {
		values[name] = value
	}
	return values, !bad
}

// valuesOf returns the value that counts of each parameter.
func valuesOf(params []adapters.Param) map[string]string {
	values := map[string]string{}
	for _, p := range params {
		values[p.Name] = p.Value
	}
	return values
}

// rebase puts the steered parameters of the query string into the body.
func rebase(body []byte, params []adapters.Param) ([]byte, error) {
	var err error
	for _, name := range steered {
		value, given := adapters.Last(params, name)
		switch {
		case !given:
			continue
		case !utf8.ValidString(value):
			return nil, fmt.Errorf("%s is not UTF-8", name)
		}
		if body, err = with(body, name, jsonedit.AppendString(nil, value)); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// with returns a search with one parameter set, wherever and however often it stood.
func with(body []byte, name string, value []byte) ([]byte, error) {
	body, err := jsonedit.Cut(body, func(key string) bool { return key == name })
	if err != nil {
		return nil, err
	}
	return jsonedit.Set(body, name, value)
}

// unhighlighted returns a search without our field among those to be highlighted: engines up to 0.24 hang on a field that is not indexed,
// and ignore one that is not there.
func unhighlighted(body []byte) []byte {
	members, err := jsonedit.Members(body)
	if err != nil {
		return body
	}
	value, _ := jsonedit.Text(jsonedit.Get(members, highlights))
	kept, changed := highlightable(value)
	if !changed {
		return body
	}
	clean, err := with(body, highlights, jsonedit.AppendString(nil, kept))
	if err != nil {
		return body
	}
	return clean
}

// unhighlightedParams returns a query string's parameters without our field among those to be highlighted.
func unhighlightedParams(params []adapters.Param) (clean []adapters.Param, changed bool) {
	clean = slices.Clone(params)
	for i, p := range clean {
		if kept, ours := highlightable(p.Value); ours && p.Name == highlights {
			clean[i] = adapters.Param{Raw: highlights + "=" + url.QueryEscape(kept), Name: highlights, Value: kept}
			changed = true
		}
	}
	return clean, changed
}

const highlights = "highlight_fields"

// highlightable returns a list of fields without ours, and whether there was one.
func highlightable(value string) (kept string, changed bool) {
	fields := fieldList(value)
	others := slices.DeleteFunc(slices.Clone(fields), rule.Our)
	if len(others) == 0 {
		others = []string{nothing}
	}
	return strings.Join(others, ","), slices.ContainsFunc(fields, rule.Our)
}

// check returns why the search is left alone, or nothing. It reads what the paging and the neighbours follow from.
func (q *query) check(values map[string]string) adapters.Reason {
	if q.asked.Controls.Off {
		return adapters.ReasonOff
	}
	for _, l := range leaves {
		if value := values[l.name]; value != "" && value != "false" {
			return l.reason
		}
	}
	// Newer engines take patterns and other collections' fields here; what they then show can't be told from here.
	if strings.ContainsAny(values["include_fields"]+values["exclude_fields"], "*$") {
		return adapters.ReasonNotUnderstood
	}
	if reason := q.checkPaging(values); reason != "" {
		return reason
	}
	if q.fixed["preset"] != "" {
		return "preset"
	}
	if q.preset && q.hidesID() {
		return "scoped_key" // what is read beside the client's hits could not be told to be of them
	}
	if text := values["vector_query"]; text != "" {
		if q.vector = parseVectorQuery(text); q.vector == nil || values["q"] != "*" || q.unseen() || q.fixed["vector_query"] != "" {
			return adapters.ReasonVector
		}
	}
	return ""
}

// checkPaging reads page and size.
func (q *query) checkPaging(values map[string]string) adapters.Reason {
	otherwise := defaultPerPage
	if values["facet_query"] != "" {
		otherwise = 0 // as the engine has it
	}
	var ok1, ok2, ok3 bool
	q.page, ok1 = number(values, "page", 1)
	q.perPage, ok2 = number(values, "per_page", otherwise)
	q.asked.Limit, ok3 = number(values, "limit_hits", maxRanks)
	ok4 := q.shift(values)
	paged := slices.ContainsFunc([]string{"page", "limit", "offset"}, func(name string) bool { return q.fixed[name] != "" })
	switch {
	case q.asked.Target == "" || !ok1 || !ok2 || !ok3 || !ok4 || q.page == 0:
		return adapters.ReasonNotUnderstood // the engine says what is wrong
	case q.perPage > maxPerPage:
		return "per_page" // servers can be told to take more; ours then can't be told from here
	case int64(q.asked.From)+int64(q.perPage) > int64(q.asked.Limit):
		return "limit_hits"
	case q.perPage == 0:
		return adapters.ReasonSizeZero
	case paged:
		return "scoped_key" // the rest of the list is not to be had
	}
	return ""
}

// shift takes limit and offset for what they mean to engines that obey them, and is false for what only the engine can judge. The page
// and its size count before them; the reply tells whether the guess was right.
func (q *query) shift(values map[string]string) bool {
	limit, ok1 := number(values, "limit", q.perPage)
	offset, ok2 := number(values, "offset", 0)
	if q.shifted = values["limit"]+values["offset"] != ""; q.shifted && values["per_page"] == "" {
		q.perPage = limit
	}
	if q.asked.From = min(q.page-1, maxRanks/max(q.perPage, 1)) * q.perPage; q.shifted && values["page"] == "" {
		q.asked.From = offset
	}
	return !q.shifted || ok1 && ok2
}

// unseen reports whether the reply alone tells page and size.
func (q *query) unseen() bool { return q.preset || q.shifted }

// hidden returns the reason where what makes the page unseen leaves the search alone, or nothing.
func (q *query) hidden() adapters.Reason {
	switch {
	case q.preset:
		return "preset"
	case q.shifted:
		return "offset"
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
