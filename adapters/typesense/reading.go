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

// ask is one search of a multi-search: one page of the engine's list.
type ask struct {
	content
	page, perPage int
	// facets says that the client's facets are asked for, as they are once.
	facets bool
	// neighbours is how many of them are looked for, 0 for as many as the client says.
	neighbours int
}

func (a ask) from() int { return (a.page - 1) * a.perPage }

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
	asks := q.asks(&r)
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
		queries[i] = adapters.Query{
			Body: body, Hits: a.perPage, Bare: !r.Sources && (a.content == sketches || a.content == texts), Own: a.content == asSent,
		}
		if a.content == asSent {
			queries[i].Hits = r.q.perPage
		}
	}
	return queries, nil
}

// asks returns the pages of the engine's list that make up a reading.
func (q *query) asks(r *adapters.Reading) []ask {
	beside := sketches
	if r.Texts {
		beside = texts
	}
	switch {
	case r.AsSent:
		return []ask{{content: asSent}}
	case r.Own:
		return []ask{{page: q.page, perPage: q.perPage, facets: true}}
	case r.From == r.To: // no hit of the client's page is wanted
		return []ask{{content: frame, page: q.page, perPage: q.perPage, facets: true, neighbours: r.Neighbours}}
	case q.hidesID(): // nothing shows that another content is of the same hits
		return q.pages(nil, full, r)
	case !r.Sources:
		return q.pages(nil, beside, r)
	}
	list := q.pages(nil, full, r)
	// Whether the client's own hits show our field can't be told under a preset, so that it is read beside them; and so is whatever else
	// is looked at and may not be shown in them.
	if q.preset || r.Ranks == nil && (r.Texts && !q.seesText(q.needed.texts) || !q.seesText(q.needed.deciding)) {
		list = q.pages(list, beside, r)
	}
	return list
}

// pages appends pages that hold what is wanted of a reading, in a content. No page of neighbours ends after the number that is looked for,
// if the reading does not: the engine would look for more, and might find others.
func (q *query) pages(list []ask, content content, r *adapters.Reading) []ask {
	limit := q.asked.Limit
	if r.Neighbours > 0 && r.To <= r.Neighbours {
		limit = min(r.Neighbours, limit)
	}
	var pages []slice
	if r.Ranks != nil {
		pages = scatter(r.Ranks, q.sizes(), limit, q.atOnce)
	} else {
		pages = cover(r.From, r.To, q.sizes(), limit)
	}
	for i, page := range pages {
		facets := content == full && i == 0 && r.Frame && r.Sources
		list = append(list, ask{content: content, page: page.page, perPage: page.size, facets: facets, neighbours: r.Neighbours})
	}
	return list
}

// sizes returns the sizes of the pages that can be read.
func (q *query) sizes() sizes {
	if size := q.fixedSize(); size > 0 {
		return sizes{size, size}
	}
	return sizes{1, q.most}
}

// fixedSize is the size of every page that can be read, 0 if any can.
func (q *query) fixedSize() int {
	if _, fixed := q.fixed["per_page"]; fixed {
		return q.perPage
	}
	return 0
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

// nothing is the name of no field. It is given where no field is to be highlighted, which costs more than reading sketches or texts, or
// where a list of fields that was not empty would be.
const nothing = rule.FieldPrefix + "none"

// fields are those that are read of each hit whatever the client asks for.
type fields struct{ texts, deciding []string }

// element returns the ask as an element of a multi-search. Where a preset can hold more, what is to be left out is asked for empty.
func (q *query) element(a ask) ([]byte, error) {
	if a.content == asSent {
		return q.base, nil
	}
	set := map[string]string{"page": strconv.Itoa(a.page), "per_page": strconv.Itoa(a.perPage)}
	drop := []string{"page", "per_page"}
	if !a.facets { // nor does it count a second time among what people search for, to releases from 0.26 on
		drop = append(drop, "facet_by", "facet_query", "enable_analytics")
		set["enable_analytics"] = "false"
	}
	if a.content != full {
		drop = append(drop, "highlight_fields", "highlight_full_fields")
		set["highlight_fields"] = nothing
	}
	if a.content != full || !q.preset {
		drop = append(drop, "include_fields", "exclude_fields")
		include, exclude := q.visible(a.content)
		set["include_fields"], set["exclude_fields"] = strings.Join(include, ","), strings.Join(exclude, ",")
	}
	if a.neighbours > 0 {
		drop = append(drop, "vector_query")
		set["vector_query"] = q.vector.raised(a.neighbours)
	}
	body, err := jsonedit.Cut(q.base, func(key string) bool { return key == "limit" || key == "offset" || slices.Contains(drop, key) })
	for _, name := range drop {
		if err == nil && (set[name] != "" || q.preset) {
			body, err = jsonedit.Set(body, name, jsonedit.AppendString(nil, set[name]))
		}
	}
	return body, err
}

// visible returns the fields to include and to exclude for a content.
func (q *query) visible(c content) (include, exclude []string) {
	switch c {
	case sketches:
		return append([]string{"id", rule.SketchField}, q.needed.deciding...), nil
	case texts:
		return slices.Concat([]string{"id", rule.SketchField}, q.needed.deciding, q.needed.texts), nil
	case frame:
		include = []string{"id"}
	default:
		include = append(include, q.include...)
		for _, ours := range []string{"id", rule.SketchField} {
			if len(q.include) > 0 && !slices.Contains(include, ours) {
				include = append(include, ours)
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

// textFields returns the sketched fields of all rules that compute, each with the object around it.
func textFields(rules rule.Rules) []string {
	var fields []string
	for _, rule := range rules {
		if rule.Compute {
			fields = append(fields, rule.Fields...)
		}
	}
	return rooted(fields)
}

// sketched returns the sketched fields of all rules.
func sketched(rules rule.Rules) (fields []string) {
	for _, rule := range rules {
		fields = append(fields, rule.Fields...)
	}
	return fields
}
