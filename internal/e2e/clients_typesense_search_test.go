package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	ts "github.com/typesense/typesense-go/v2/typesense"
	tsapi "github.com/typesense/typesense-go/v2/typesense/api"
)

// paged reads a search of documents in pages.
func (s goTypesense) paged(step string, held ts.DocumentsInterface, size int, params tsapi.SearchCollectionParams) {
	s.t.Helper()
	s.search(step, size, func(from int) (any, error) {
		asked := params
		asked.Page, asked.PerPage = new(from/size+1), &size
		return held.Search(s.ctx, &asked)
	})
}

// words returns a search for them, which widen changes.
func (s goTypesense) words(q string, widen ...func(*tsapi.SearchCollectionParams)) tsapi.SearchCollectionParams {
	params := tsapi.SearchCollectionParams{Q: &q, QueryBy: new("title,body")}
	for _, change := range widen {
		change(&params)
	}
	return params
}

func (s goTypesense) searches() {
	type params = tsapi.SearchCollectionParams
	main := s.held("main")
	for step, widen := range map[string]func(*params){
		"text":           func(*params) {},
		"filter":         func(p *params) { p.FilterBy, p.SortBy = new("n:<5"), new("n:desc,_text_match:desc") },
		"facets":         func(p *params) { p.FacetBy, p.MaxFacetValues, p.FacetQuery = new("host,n"), new(4), new("host:a") },
		"fields":         func(p *params) { p.IncludeFields, p.HighlightFullFields = new("id,title,url"), new("title") },
		"not all fields": func(p *params) { p.ExcludeFields, p.EnableHighlightV1 = new("body"), new(false) },
		"highlights": func(p *params) {
			p.HighlightFields, p.HighlightAffixNumTokens, p.SnippetThreshold = new("body"), new(2), new(5)
			p.HighlightStartTag, p.HighlightEndTag = new("<b>"), new("</b>")
		},
		"how words match": func(p *params) {
			p.QueryByWeights, p.NumTypos, p.Prefix, p.Infix = new("3,1"), new("2,1"), new("true,false"), new("off,off")
			p.DropTokensThreshold, p.TypoTokensThreshold, p.ExhaustiveSearch = new(2), new(3), new(true)
			p.MaxCandidates, p.MinLen1typo, p.PrioritizeExactMatch = new(9), new(3), new(false)
		},
		"pinned and hidden": func(p *params) {
			p.PinnedHits, p.HiddenHits = new(s.list[1].ID+":1"), new(s.list[2].ID+","+s.list[3].ID)
		},
		// The engine's cache outlives a collection: a filter that is new in each run finds nothing in it.
		"cached": func(p *params) {
			p.UseCache, p.CacheTtl, p.FilterBy = new(true), new(1), new(fmt.Sprint("n:<", time.Now().UnixNano()%(1<<30)+9))
		},
		"limited": func(p *params) { p.SearchCutoffMs = new(30_000) },
	} {
		s.paged(step, main, 8, s.words("the town", widen))
	}
	s.paged("everything", main, 40, s.words("*"))
	s.paged("alias", s.held("alias"), 50, s.words("*"))
	s.paged("written in a stream", s.held("lines"), 13, s.words("old"))
	for step, widen := range map[string]func(*params){
		"counts alone":    func(p *params) { p.PerPage, p.FacetBy = new(0), new("host") },
		"grouped":         func(p *params) { p.GroupBy, p.GroupLimit = new("host"), new(3) },
		"bad field":       func(p *params) { p.QueryBy = new("nothing") },
		"bad filter":      func(p *params) { p.FilterBy = new("n:<<1") },
		"too many a page": func(p *params) { p.PerPage = new(251) },
		"page 0":          func(p *params) { p.Page = new(0) },
		"long":            func(p *params) { p.Q = new(strings.Repeat("town ", 900)) },
		"no hits":         func(p *params) { p.Q = new("nothingmatchesthis") },
	} {
		asked := s.words("the town", widen)
		s.as(step)(main.Search(s.ctx, &asked))
	}
	asked := s.words("*")
	s.as("nowhere")(s.held("nowhere").Search(s.ctx, &asked))
}

func (s goTypesense) several() {
	type entry = tsapi.MultiSearchCollectionParameters
	perform := func(common *tsapi.MultiSearchParams, searches ...entry) ([]tsapi.SearchResult, error) {
		got, err := s.client.MultiSearch.Perform(s.ctx, common, tsapi.MultiSearchSearchesParameter{Searches: searches})
		if err != nil {
			return nil, err
		}
		return got.Results, nil
	}
	common := &tsapi.MultiSearchParams{QueryBy: new("title,body"), PerPage: new(20)}
	for i := range 3 {
		s.search(fmt.Sprint("multi ", i), 20, func(from int) (any, error) {
			page := new(from/20 + 1)
			got, err := perform(common, entry{Collection: s.index("main"), Q: new("river"), Page: page},
				entry{Collection: s.index("main"), Q: new("old"), Page: page, FacetBy: new("host")},
				entry{Collection: s.index("alias"), Q: new("*"), Page: page})
			if err != nil {
				return nil, err
			}
			return got[i], nil
		})
	}
	s.search("multi with a page in common", 15, func(from int) (any, error) {
		got, err := perform(&tsapi.MultiSearchParams{QueryBy: new("title"), PerPage: new(15), Page: new(from/15 + 1)},
			entry{Collection: s.index("main"), Q: new("*"), PerPage: new(3)})
		if err != nil {
			return nil, err
		}
		return got[0], nil
	})
	s.as("multi that fails")(perform(common, entry{Collection: s.index("nowhere"), Q: new("x")},
		entry{Collection: s.index("main"), Q: new("x"), QueryBy: new("nothing")}))
	s.as("multi of nothing")(perform(common))
	s.as("multi, too many")(perform(common, slices.Repeat([]entry{{Collection: s.index("main"), Q: new("*")}}, 51)...))
	raw, err := s.client.MultiSearch.PerformWithContentType(s.ctx, common, tsapi.MultiSearchSearchesParameter{
		Searches: []entry{{Collection: s.index("nowhere"), Q: new("x")}}}, "text/plain")
	if err != nil {
		s.t.Fatal(err)
	}
	s.same("multi as plain text", []any{raw.Status(), raw.HTTPResponse.Header.Get("Content-Type"), string(raw.Body)}, nil)
}
