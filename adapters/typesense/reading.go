package typesense

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// content is what is read of each hit.
type content int

const (
	// full is what the client asked for, with the id and our field.
	full content = iota
	// sketches are the id, our field and the deciding fields alone.
	sketches
	// texts are the sketched texts with them.
	texts
	// frame is no hit, but all that a reply has beside them.
	frame
)

// part is a search of a reading: a page of the engine's list, and what is read of its hits.
type part struct {
	enginePage
	content
}

// enginePage is a page of the engine's list: the ranks [from, to).
type enginePage struct{ number, size int }

func (p enginePage) from() int { return (p.number - 1) * p.size }

func (p enginePage) to() int { return p.number * p.size }

// mostQueries bounds the searches of one reading: as many as fill the requests that a search may cost.
const mostQueries = 64 * maxSearches

// Requests implements adapters.Search. They go out in one round. Each is the client's own search, for the page of a part and with what is read of its
// hits. Under a preset, which can set it, a parameter that is to be left out is empty.
func (q *query) Requests(r *adapters.Reading, replies []*adapters.Reply) (requests []*adapters.Request, err error) {
	switch {
	case len(replies) > 0:
		return nil, nil
	case r.AsWritten:
		return []*adapters.Request{{Body: q.base, Hits: q.page.size, Own: true}}, nil
	}
	base, err := jsonedit.Cut(q.base, func(key string) bool { return key == "limit" || key == "offset" })
	if err != nil {
		return nil, err
	}
	parts := q.parts(r)
	if len(parts) > mostQueries {
		return nil, fmt.Errorf("%d searches for one reading: too many pages of too few hits", len(parts))
	}
	for i, p := range parts {
		set := []string{"page", strconv.Itoa(p.number), "per_page", strconv.Itoa(p.size)}
		if i > 0 || !r.Frame || !r.Sources { // no facets; releases from 0.26 on would also count it again among what people search for
			set = append(set, "facet_by", "", "facet_query", "", "enable_analytics", "false")
		}
		if p.content != full {
			set = append(set, highlights, nothing, "highlight_full_fields", "")
		}
		if p.content != full || !q.preset() {
			include, exclude := q.fieldsOf(p.content)
			set = append(set, "include_fields", strings.Join(include, ","), "exclude_fields", strings.Join(exclude, ","))
		}
		if neighbours := q.neighbours(r); neighbours > 0 {
			set = append(set, "vector_query", q.vector.raised(neighbours))
		}
		body, err := put(base, q.preset(), set...)
		if err != nil {
			return nil, err
		}
		judging := !r.Sources && (p.content == sketches || p.content == texts)
		requests = append(requests, &adapters.Request{Body: body, Hits: p.size, JudgingOnly: judging, For: p})
	}
	return requests, nil
}

// parts returns the searches of a reading: for all pages with the first content, then, if there is a second content, for all pages with that. No page of
// neighbours ends after the number that is looked for, if the reading does not: the engine would look for more, and might find others.
func (q *query) parts(r *adapters.Reading) (parts []part) {
	switch { // no other hits than the client's
	case r.Own:
		return []part{{q.page, full}}
	case r.From == r.To:
		return []part{{q.page, frame}}
	}
	limit := q.asked.Limit
	if neighbours := q.neighbours(r); neighbours > 0 && r.To <= neighbours {
		limit = min(neighbours, limit)
	}
	var pages []enginePage
	if r.Ranks != nil {
		pages = q.scatter(r.Ranks, limit)
	} else {
		pages = q.cover(r.From, r.To, limit)
	}
	for _, content := range q.contentsOf(r) {
		for _, page := range pages {
			parts = append(parts, part{page, content})
		}
	}
	return parts
}

// contentsOf returns the contents of a reading: the hits as they are to be shown, and what they are judged by, if that is wanted and not shown.
func (q *query) contentsOf(r *adapters.Reading) []content {
	judged := sketches
	if r.Texts {
		judged = texts
	}
	switch {
	case q.hidesID(): // nothing shows that two contents are of the same hits
		return []content{full}
	case !r.Sources:
		return []content{judged}
	case q.preset(): // it is not known whether the client's hits show our field
		return []content{full, judged}
	case r.Judged && (r.Texts && !q.seesText(q.texts) || !q.seesText(q.deciding)):
		return []content{full, judged}
	}
	return []content{full}
}

// cover returns as few pages as hold the ranks [from, to), in order; they can overlap. No page ends after limit, and to is not greater.
func (q *query) cover(from, to, limit int) (list []enginePage) {
	least, most := 1, q.most
	if size := q.fixedSize(); size > 0 {
		least, most = size, size
	}
	to = max(to, from+1)
	if pages := (to + most - 1) / most; from == 0 && least < most { // alike, since they are read at once
		if size := (to + pages - 1) / pages; size*pages <= limit {
			for i := range pages {
				list = append(list, enginePage{i + 1, size})
			}
			return list
		}
	}
	for at := from; at < to; at = list[len(list)-1].to() {
		best := enginePage{} // the page with the rank that reaches farthest, the smallest of several
		for size := least; size <= most; size++ {
			p := enginePage{at/size + 1, size}
			if p.to() <= limit && min(p.to(), to) > min(best.to(), to) {
				best = p
			}
		}
		if best.size == 0 {
			return list
		}
		list = append(list, best)
	}
	return list
}

// steered are the parameters that a reading sets or leaves out, or that mean something else in a multi-search. They never stay in the
// query string, which would override the body.
var steered = []string{
	"page", "per_page", "include_fields", "exclude_fields", "highlight_fields", "highlight_full_fields", "facet_by", "facet_query",
	"vector_query", "preset", "limit", "offset", "enable_analytics",
}

// unsteered returns the query string less the parameters that a reading steers, and less the engine's cache where a key imposes
// something: the cache does not tell keys apart, and readings for two clients can be alike where their own searches are not.
func unsteered(params []adapters.Param, list []*query) string {
	imposed := slices.ContainsFunc(list, func(q *query) bool { return len(q.key.fixed) > 0 })
	return adapters.RawQuery(params, func(name string) bool {
		return !slices.Contains(steered, name) && !(imposed && name == "use_cache")
	})
}

// rebase puts the steered parameters of the query string into the body.
func rebase(body []byte, params []adapters.Param) ([]byte, error) {
	var moved []string
	for _, name := range steered {
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

// fieldsOf returns the fields to include and to exclude for a content.
func (q *query) fieldsOf(c content) (include, exclude []string) {
	ours := []string{"id", rule.SketchField}
	switch c {
	case sketches:
		return slices.Concat(ours, q.deciding), nil
	case texts:
		return slices.Concat(ours, q.deciding, q.texts), nil
	case frame:
		include = ours[:1]
	default:
		include = append(include, q.asks.include...)
		for _, field := range ours {
			if len(include) > 0 && !slices.Contains(include, field) {
				include = append(include, field)
			}
		}
	}
	for _, name := range q.asks.exclude { // some of them are members of the reply
		if name != "id" && !rule.Our(name) {
			exclude = append(exclude, name)
		}
	}
	if len(q.asks.exclude) > 0 && len(exclude) == 0 { // the engine looks into nested documents where something is excluded
		exclude = []string{nothing}
	}
	return include, exclude
}
