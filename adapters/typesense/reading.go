package typesense

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	// noHits is all that a reply has beside its hits.
	noHits
)

// mostQueries bounds the searches of one reading: as many as fill the requests that a search may cost.
const mostQueries = 64 * maxSearches

// Requests implements adapters.Search. They go out in one round, one for each page and content: first every page as the client sees it; then, only where
// those hits may lack what is judged, every page again with that. Each is the client's own search otherwise. An ordinary reading is one page of full
// content: it sets page and per_page, and include_fields and exclude_fields so that our field comes with the client's.
func (q *query) Requests(r *adapters.Reading, replies []*adapters.Reply) (requests []*adapters.Request, err error) {
	switch {
	case len(replies) > 0:
		return nil, nil
	case r.Counts:
		return q.requestCounts(r)
	case r.AsWritten:
		return []*adapters.Request{{Body: q.base, Hits: q.page.size, Own: true}}, nil
	}
	base, err := jsonedit.Cut(q.base, func(key string) bool { return key == "limit" || key == "offset" })
	if err != nil {
		return nil, err
	}
	pages, contents := q.pagesOf(r), q.contentsOf(r)
	requests = make([]*adapters.Request, 0, len(pages)*len(contents))
	if n := len(pages) * len(contents); n > mostQueries {
		return nil, fmt.Errorf("%d searches for one reading: too many pages of too few hits", n)
	}
	near := q.vectorQuery(r) // empty but for a vector query
	for _, content := range contents {
		for _, page := range pages {
			set := append(make([]string, 0, 16), "page", strconv.Itoa(page.number), "per_page", strconv.Itoa(page.size))
			if len(requests) > 0 || !r.Frame || !r.Sources { // no facets; releases from 0.26 on would also count it again among what people search for
				set = append(set, "facet_by", "", "facet_query", "", "enable_analytics", "false")
			}
			if content != full {
				set = append(set, highlights, noField, "highlight_full_fields", "")
			}
			if content != full || !q.preset() {
				include, exclude := q.fieldsOf(content)
				set = append(set, "include_fields", strings.Join(include, ","), "exclude_fields", strings.Join(exclude, ","))
			}
			if near != "" {
				set = append(set, "vector_query", near)
			}
			body, err := put(base, q.preset(), set...) // a preset could set what we leave out: under one we send it empty
			if err != nil {
				return nil, err
			}
			judging := !r.Sources && (content == sketches || content == texts)
			requests = append(requests, &adapters.Request{Body: body, Hits: page.size, JudgingOnly: judging, For: page})
		}
	}
	return requests, nil
}

// pagesOf returns the pages of a reading. No page of neighbours ends after the number that is looked for, if the reading does not: the engine would
// look for more, and might find others.
func (q *query) pagesOf(r *adapters.Reading) []enginePage {
	if r.Own || r.From == r.To { // no other hits than the client's
		return []enginePage{q.page}
	}
	limit := q.asked.Limit
	if neighbours := q.neighbourCount(r); neighbours > 0 && r.To <= neighbours {
		limit = min(neighbours, limit)
	}
	if r.Ranks != nil {
		return q.scatter(r.Ranks, limit)
	}
	return q.cover(r.From, r.To, limit)
}

// contentsOf returns the contents of a reading: the hits as they are to be shown, and what they are judged by, if that is wanted and not shown.
func (q *query) contentsOf(r *adapters.Reading) []content {
	judged := sketches
	if r.Texts {
		judged = texts
	}
	switch {
	case r.Own:
		return []content{full}
	case r.From == r.To:
		return []content{noHits}
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

// fieldsOf returns the fields to include and to exclude for a content.
func (q *query) fieldsOf(c content) (include, exclude []string) {
	ours := []string{"id", rule.SketchField}
	if q.asked.Scope.Group && q.asked.Scope.Clusters {
		ours = append(ours, rule.ClusterField)
	}
	switch c {
	case sketches:
		return slices.Concat(ours, q.deciding), nil
	case texts:
		return slices.Concat(ours, q.deciding, q.texts), nil
	case noHits:
		include = ours[:1]
	default:
		include = append(include, q.fields.include...)
		for _, field := range ours {
			if len(include) > 0 && !slices.Contains(include, field) {
				include = append(include, field)
			}
		}
	}
	for _, name := range q.fields.exclude { // some of them are members of the reply
		if name != "id" && !rule.Our(name) {
			exclude = append(exclude, name)
		}
	}
	if len(q.fields.exclude) > 0 && len(exclude) == 0 { // the engine looks into nested documents where something is excluded
		exclude = []string{noField}
	}
	return include, exclude
}
