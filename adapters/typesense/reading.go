package typesense

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// content is what a page of the engine's list shows of each hit.
type content int

const (
	// full is what the client asked for, and the id and our field with it.
	full content = iota
	// sketches are the id, our field and the deciding fields alone.
	sketches
	// texts are the sketched texts with them.
	texts
	// frame is all of the reply but hits.
	frame
	// asSent is the client's own search, unchanged.
	asSent
)

// ask is one search of a multi-search: one page of the engine's list, the ranks [from, to).
type ask struct {
	content
	page, perPage int
	// facets says that the client's facets are asked for, as they are once.
	facets bool
	// neighbours is how many of them are looked for, 0 for as many as the client says.
	neighbours int
}

func (a ask) from() int { return (a.page - 1) * a.perPage }

func (a ask) to() int { return a.page * a.perPage }

// mostAsks bounds the searches of one reading: as many as fill the requests that a search may cost.
const mostAsks = 64 * maxSearches

// reader reads pages of the engine's list: in the order of the ranks, and one content after the other. It implements adapters.Reader.
type reader struct {
	q *query
	adapters.Reading
	asks []ask
}

// Read implements adapters.Search.
func (q *query) Read(r adapters.Reading) (adapters.Reader, error) {
	contents, beside := []content{full}, sketches
	if r.Texts {
		beside = texts
	}
	own := ask{page: q.page, perPage: q.perPage, facets: true}
	switch {
	case r.AsSent:
		return &reader{q, r, []ask{{content: asSent, perPage: q.perPage}}}, nil
	case r.Own:
		return &reader{q, r, []ask{own}}, nil
	case r.From == r.To: // no hit of the client's page is wanted
		own.content, own.neighbours = frame, r.Neighbours
		return &reader{q, r, []ask{own}}, nil
	case q.hidesID(): // nothing shows that another content is of the same hits
	case !r.Sources:
		contents[0] = beside
	// Whether the client's own hits show our field can't be told under a preset, so that it is read beside them; and so is whatever else
	// is looked at and may not be shown in them.
	case q.preset || r.Ranks == nil && (r.Texts && !q.seesText(q.texts) || !q.seesText(q.deciding)):
		contents = append(contents, beside)
	}
	var asks []ask
	pages := q.pages(&r)
	for _, content := range contents { // of the same pages
		for i, page := range pages {
			page.content, page.neighbours = content, r.Neighbours
			page.facets = content == full && i == 0 && r.Frame && r.Sources
			asks = append(asks, page)
		}
	}
	if len(asks) > mostAsks {
		return nil, fmt.Errorf("%d searches for one reading: too many pages of too few hits", len(asks))
	}
	return &reader{q, r, asks}, nil
}

// Queries implements adapters.Reader.
func (r *reader) Queries(results []adapters.QueryResult) ([]adapters.Query, error) {
	if len(results) > 0 {
		return nil, nil
	}
	queries := make([]adapters.Query, len(r.asks))
	for i, a := range r.asks {
		body, err := r.q.element(a)
		if err != nil {
			return nil, err
		}
		bare := !r.Sources && (a.content == sketches || a.content == texts)
		queries[i] = adapters.Query{Body: body, Hits: a.perPage, Bare: bare, Own: a.content == asSent}
	}
	return queries, nil
}

// pages returns pages that hold what is wanted of a reading. No page of neighbours ends after the number that is looked for, if the reading
// does not: the engine would look for more, and might find others.
func (q *query) pages(r *adapters.Reading) []ask {
	limit := q.asked.Limit
	if r.Neighbours > 0 && r.To <= r.Neighbours {
		limit = min(r.Neighbours, limit)
	}
	if r.Ranks != nil {
		return q.scatter(r.Ranks, limit)
	}
	return q.cover(r.From, r.To, limit)
}

// cover returns as few pages as hold the ranks [from, to), in order; they can overlap. No page ends after limit, and to is not greater.
func (q *query) cover(from, to, limit int) (list []ask) {
	least, most := 1, q.most
	if size := q.fixedSize(); size > 0 {
		least, most = size, size
	}
	to = max(to, from+1)
	if pages := (to + most - 1) / most; from == 0 && least < most { // alike, since they are read at once
		if size := (to + pages - 1) / pages; size*pages <= limit {
			for page := range pages {
				list = append(list, ask{page: page + 1, perPage: size})
			}
			return list
		}
	}
	for at := from; at < to; at = list[len(list)-1].to() {
		best := ask{} // the page with the rank that reaches farthest, the smallest of several
		for size := least; size <= most; size++ {
			a := ask{page: at/size + 1, perPage: size}
			if a.to() <= limit && min(a.to(), to) > min(best.to(), to) {
				best = a
			}
		}
		if best.perPage == 0 {
			return list
		}
		list = append(list, best)
	}
	return list
}

// worthAPage is how many hits that nobody needs are read rather than asking for one more page. (Measured where 30,000 documents match:
// one more search takes 5 ms, as long as a hundred hits of 1.5 KB, whose bytes have to be moved, too.)
const worthAPage = 50

// scatter returns small pages that hold the ranks, which ascend: neighbours share one where what lies between them costs less than
// another page. Where that makes more pages than are read at once, more is read in fewer of them, as far as that helps.
func (q *query) scatter(ranks []int, limit int) []ask {
	for gap := worthAPage; ; gap *= 2 {
		var list []ask
		for i := 0; i < len(ranks); {
			end := i + 1
			for end < len(ranks) && ranks[end]-ranks[end-1] <= gap {
				end++
			}
			list = append(list, q.cover(ranks[i], ranks[end-1]+1, limit)...)
			i = end
		}
		if list = slices.Compact(list); len(list) <= q.atOnce || gap > maxPerPage {
			return list
		}
	}
}

// Narrowed implements adapters.Search: servers can be told to grant smaller pages than most do.
func (q *query) Narrowed(err error) adapters.Search {
	declined, is := errors.AsType[*adapters.Declined](err)
	if !is || declined.Most == 0 || declined.Most < q.perPage || declined.Most >= q.most {
		return nil
	}
	narrowed := *q
	narrowed.most = declined.Most
	return &narrowed
}

// element returns the ask as an element of a multi-search. Where a preset can hold more, what is to be left out is asked for empty.
func (q *query) element(a ask) ([]byte, error) {
	if a.content == asSent {
		return q.base, nil
	}
	set := []param{{"page", strconv.Itoa(a.page)}, {"per_page", strconv.Itoa(a.perPage)}}
	if !a.facets { // nor does it count a second time among what people search for, to releases from 0.26 on
		set = append(set, param{"facet_by", ""}, param{"facet_query", ""}, param{"enable_analytics", "false"})
	}
	if a.content != full {
		set = append(set, param{highlights, nothing}, param{"highlight_full_fields", ""})
	}
	if a.content != full || !q.preset {
		include, exclude := q.visible(a.content)
		set = append(set, param{"include_fields", strings.Join(include, ",")}, param{"exclude_fields", strings.Join(exclude, ",")})
	}
	if a.neighbours > 0 {
		set = append(set, param{"vector_query", q.vector.raised(a.neighbours)})
	}
	body, err := jsonedit.Cut(q.base, func(key string) bool { return key == "limit" || key == "offset" })
	if err != nil {
		return nil, err
	}
	return put(body, q.preset, set...)
}

// visible returns the fields to include and to exclude for a content.
func (q *query) visible(c content) (include, exclude []string) {
	ours := []string{"id", rule.SketchField}
	switch c {
	case sketches:
		return slices.Concat(ours, q.deciding), nil
	case texts:
		return slices.Concat(ours, q.deciding, q.texts), nil
	case frame:
		include = ours[:1]
	default:
		include = append(include, q.include...)
		for _, field := range ours {
			if len(q.include) > 0 && !slices.Contains(include, field) {
				include = append(include, field)
			}
		}
	}
	for _, name := range q.exclude { // some of them are members of the reply
		if name != "id" && !rule.Our(name) {
			exclude = append(exclude, name)
		}
	}
	if len(q.exclude) > 0 && len(exclude) == 0 { // the engine looks into nested documents where something is excluded
		exclude = []string{nothing}
	}
	return include, exclude
}
