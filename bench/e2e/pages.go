package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/measured"
)

// Names of contenders of pages, other than direct and ours.
const (
	ownCollapse = "the engine's own collapse"
	ownPipeline = "oversample, collapse, truncate_hits"
	asMany      = "direct, as many ranks"
	passedOn    = "sidecar, the plain page"
)

// unhurried lets no search give up because the machine is busy: on time alone it then would be answered uncollapsed.
const unhurried = "deadline: 60s"

// page is a page that is compared, and the part of the run that does it.
type page struct {
	what   string
	search search
	// to, if above 0, is the number of the last page: all from page 2 on are asked for in order, by one search after the other.
	to int
	// most is what ours may take, as a multiple of the plain page, and mostTypesense where the engine is Typesense.
	most, mostTypesense float64
	// clients is that of pace.
	clients int
}

var (
	pageOne     = page{what: "page 1", search: search{size: 10}, most: 1.4, mostTypesense: 1.5}
	pageOneGzip = page{what: "page 1, gzip", search: search{size: 10, gzip: true}, most: 1.6, mostTypesense: 1.6}
	pageFifty   = page{what: "page 50", search: search{from: 490, size: 10}, most: 3, mostTypesense: 4}
	inSequence  = page{what: "pages 2 to 50 in sequence", search: search{from: 10, size: 10}, to: 50, most: 1.5, mostTypesense: 1.5, clients: 1}
	pageLong    = page{what: "page 1 of long hits, half of them fold", search: search{size: 10}, most: 1.4, mostTypesense: 1.4, clients: 1}
)

// pageColumns are those of tables of pages.
var pageColumns = append(slices.Clone(timeColumns), measured.Column{Name: "engine", Unit: "ms a request"}, measured.Column{Name: "own", Unit: "ms a request"})

// run measures a collapsed page at every engine, and the same page of the engine.
func (one page) run(b *bench) error {
	if err := b.fillStocks(); err != nil {
		return err
	}
	words := b.texts.queries(b.stocked(), b.few(50, 10))
	switch {
	case b.short && one.to > 0:
		one.to, words = 2, words[:5]
	case b.short && one.search.from > 0:
		one.search.from = 10
	case one.to > 0:
		words = words[:2]
	}
	t := measured.Table{
		Name: "pages", Title: "Collapsed pages", Columns: pageColumns,
		Notes: []string{
			fmt.Sprintf("%d documents of 2 kB (%s), 30 %% of them near-duplicates of another one, in one shard; searches of two words each, ten hits a page. Pages in sequence are asked for by one client, which waits for one before it asks for the next.",
				b.stocked().Count, b.texts.Source),
			"The engine alone is asked for the same documents in an index of their own, which has no sketches.",
			"The engine's own collapse (`collapse`, `group_by`) and the search pipeline go by a stored field that names each document's group: " +
				"made with the documents, without a mistake.",
			"“" + asMany + "” is what the engine alone takes to show what the sidecar reads: on page 1 that many hits with their sketches, " +
				"on later ones that many sketches and nothing else. “" + passedOn + "” and nginx show what it takes to stand in between at all: they hand on the plain page.",
			"*engine* is the mean time the sidecar waited for the engine, *own* what it took besides, by its own metrics.",
		},
	}
	for _, e := range b.engines {
		row, err := b.page(e, e.stock, words, one)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		b.add(t, row)
	}
	return nil
}

// long measures page 1 of long hits of which half fold.
func (b *bench) long() error {
	s := shelf{Count: b.few(3000, 1000), Bytes: 5000, Duplicates: .5}
	t := measured.Table{
		Name: "long", Title: "Long hits, of which half fold", Columns: pageColumns,
		Notes: []string{fmt.Sprintf("%d documents of 5 kB, half of them near-duplicates of another one; ten hits a page, asked for by one client that waits for its answer. All else as above.", s.Count)},
	}
	for _, e := range b.engines {
		if e.typesense() {
			continue
		}
		made, err := b.twice(e, "long", s)
		if err != nil {
			return err
		}
		row, err := b.page(e, made, b.texts.queries(s, b.few(50, 10)), pageLong)
		e.dropStock(made)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		b.add(t, row)
	}
	return nil
}

// page compares the ways to one page.
func (b *bench) page(e *engine, made *stock, words []string, one page) (measured.Row, error) {
	b.log("%s, %s", e.name, one.what)
	if err := b.warm(e, made); err != nil {
		return measured.Row{}, err
	}
	row, index := measured.Row{What: one.what, Engine: e.name}, made.with
	p, err := b.sidecar(e, setup{limits: unhurried})
	if err != nil {
		return row, err
	}
	defer p.stop()
	full := func(r reply) error {
		n, err := e.hits(r)
		if err == nil && (n == 0 || n < one.search.size && !b.short) {
			err = fmt.Errorf("%d hits: %.300s", n, r.body)
		}
		return err
	}
	asked := func(base, index, name string, s search) *contender {
		c := &contender{name: name, base: base, check: full, watch: []*process{e.process}}
		for _, w := range words {
			c.requests = append(c.requests, e.request(index, w, s))
			for next := s; next.from+next.size < one.to*next.size; {
				next.from += next.size
				c.requests = append(c.requests, e.request(index, w, next))
			}
		}
		return c
	}
	plain := asked(e.base, made.bare, direct, one.search)
	through := asked(p.base, index, ours, one.search)
	through.collapsed, through.clocks, through.watch = true, p.admin, []*process{p, e.process}
	grouped := one.search
	grouped.grouped = true
	list := []*contender{plain, through, asked(e.base, made.bare, ownCollapse, grouped)}
	if e.kind == engines.OpenSearch {
		piped := one.search
		piped.more = "?search_pipeline=" + index
		c := asked(e.base, made.bare, ownPipeline, piped)
		c.check = nil // what it oversampled may be too little to fill a page
		c.absent = b.pipeline(e, index)
		defer e.do(context.WithoutCancel(b.ctx), e.base, request{method: "DELETE", path: "/_search/pipeline/" + index}, nil)
		list = append(list, c)
	}
	read, err := b.ranksRead(through)
	if err != nil {
		return row, err
	}
	many := asked(e.base, index, asMany, e.asMany(one.search, read))
	many.check = e.someHits
	if one.search.from > 0 && e.typesense() {
		many.requests = e.sketches(index, words, read)
	}
	if one.to > 0 {
		many.absent = "each page reads other ranks"
	}
	list = append(list, many)
	by := asked("", made.bare, nginx, one.search)
	if one.search.from > 0 || one.search.gzip {
		by.absent = "asked for page 1 alone, without gzip"
	} else if hop, err := b.nginx(e.base); err != nil {
		by.absent = err.Error()
	} else {
		defer hop.stop()
		by.base, by.watch = hop.base, []*process{hop, e.process}
	}
	handed := asked(p.base, made.bare, passedOn, one.search)
	handed.watch = []*process{p, e.process}
	switch {
	case made.bare == made.with:
		handed.absent = "a rule matches the index"
	case one.search.gzip || one.search.from > 0 && one.to == 0:
		handed.absent = "asked for page 1 and pages in sequence alone, without gzip"
	}
	list = append(list, by, handed)
	how := b.pace()
	if how.clients = one.clients; one.search.from > 0 { // such pages take long
		how.enough = 20
	}
	found, err := b.compare(list, how, direct)
	if err != nil {
		return row, err
	}
	row.Contenders = found.rows(list)
	limit := fmt.Sprintf("the median is %.1f ms for the plain page", found.figure(direct, p50))
	if found.index(passedOn) >= 0 {
		limit += fmt.Sprintf(", %.1f ms where we hand it on", found.figure(passedOn, p50))
	}
	spent := fmt.Sprintf("%.1f", found.engineCPU(direct))
	if found.index(asMany) >= 0 {
		limit += fmt.Sprintf(", %.1f ms for %.0f ranks asked of the engine", found.figure(asMany, p50), read)
		spent += fmt.Sprintf(", %.1f", found.engineCPU(asMany))
	}
	limit += fmt.Sprintf("; processor time a request: the engine %s and, collapsed, %.1f ms, the sidecar %.1f ms", spent, found.engineCPU(ours), found.cpu(ours))
	most := one.most
	if e.typesense() {
		most = one.mostTypesense
	}
	row.Verdicts = []measured.Verdict{judged(within(found.ratio("p50", ours, direct, p50), most), limit)}
	if one.what == pageOne.what {
		row.Verdicts = append(row.Verdicts, judged(within(found.ratio("p50", ours, nginx, p50), 1.3), limit))
	}
	beside := found.ratio("p50", ours, ownCollapse, p50)
	if one.search.from == 0 {
		beside = judged(within(beside, 1.2), limit)
	}
	row.Verdicts = append(row.Verdicts, beside)
	if e.kind == engines.OpenSearch && one.search.from == 0 {
		row.Verdicts = append(row.Verdicts, judged(within(found.ratio("p50", ours, ownPipeline, p50), 1), limit))
	}
	row.Verdicts = append(row.Verdicts, found.tailRatio(ours, direct))
	for _, name := range []string{asMany, nginx, passedOn} {
		if found.index(name) >= 0 {
			row.Verdicts = append(row.Verdicts, found.ratio("p50 of "+name, name, direct, p50))
		}
	}
	return row, nil
}

// ranksRead asks a sidecar each of the searches, once so that it learns how much folds, and returns how many ranks it then reads in the
// mean.
func (b *bench) ranksRead(c *contender) (float64, error) {
	if err := c.checkAll(b.ctx); err != nil {
		return 0, err
	}
	before, err := readClocks(b.ctx, c.clocks)
	if err == nil {
		err = c.checkAll(b.ctx)
	}
	if err != nil {
		return 0, err
	}
	after, err := readClocks(b.ctx, c.clocks)
	if err == nil && after.stored-before.stored < after.hits-before.hits {
		err = fmt.Errorf("of %.0f hits only %.0f have a stored sketch", after.hits-before.hits, after.stored-before.stored)
	}
	return (after.hits - before.hits) / float64(len(c.requests)), err
}

// asMany is a search for a number of ranks: with their shown fields for the first page, their sketches alone for later ones.
func (e *engine) asMany(s search, ranks float64) search {
	many := search{size: int(ranks + .5), gzip: s.gzip}
	switch {
	case e.typesense(): // a document's sketch is one of its fields
	case s.from > 0:
		many.more = `,"_source":false,"stored_fields":"_none_","track_total_hits":false,"docvalue_fields":["neardup_sketch"]`
	default:
		many.more = `,"docvalue_fields":["neardup_sketch"]`
	}
	return many
}

// sketches are requests for the sketches of a number of ranks. Typesense returns at most 250 hits at once.
func (e *engine) sketches(index string, words []string, ranks float64) (list []request) {
	for _, w := range words {
		var searches []map[string]any
		for at := 0; at < int(ranks+.5); at += 250 {
			searches = append(searches, map[string]any{
				"collection": index, "q": w, "query_by": "title,body", "drop_tokens_threshold": 10000, "per_page": 250, "page": 1 + at/250,
				"include_fields": "neardup_sketch", "highlight_fields": "none", "highlight_full_fields": "none",
			})
		}
		body, _ := json.Marshal(map[string]any{"searches": searches}) // texts and numbers
		list = append(list, request{"POST", "/multi_search", e.header(), body})
	}
	return list
}

// someHits says what is wrong with a reply to one or several searches of which each must have hits.
func (e *engine) someHits(r reply) error {
	body, err := unzipped(r)
	if err != nil {
		return err
	}
	var several struct{ Results []json.RawMessage }
	if err := json.Unmarshal(body, &several); err != nil {
		return err
	}
	if several.Results == nil {
		several.Results = []json.RawMessage{body}
	}
	sum := 0
	for _, one := range several.Results { // a later one may be after the end of the list
		if bytes.Contains(one[:min(100, len(one))], []byte(`"error"`)) {
			return fmt.Errorf("refused: %.300s", one)
		}
		n, err := e.hits(reply{body: one})
		if err != nil {
			return err
		}
		sum += n
	}
	if sum == 0 {
		return fmt.Errorf("no hits: %.300s", body)
	}
	return nil
}

// pipeline makes the search pipeline that oversamples, collapses and cuts, or returns why it can't.
func (b *bench) pipeline(e *engine, name string) (absent string) {
	var nodes struct {
		Nodes map[string]struct {
			Pipelines map[string][]struct{ Type string } `json:"search_pipelines"`
		}
	}
	if err := e.do(b.ctx, e.base, request{method: "GET", path: "/_nodes/search_pipelines"}, &nodes); err != nil {
		return err.Error()
	}
	known := map[string]bool{}
	for _, node := range nodes.Nodes {
		for _, list := range node.Pipelines {
			for _, processor := range list {
				known[processor.Type] = true
			}
		}
	}
	for _, wanted := range []string{"oversample", "collapse", "truncate_hits"} {
		if !known[wanted] {
			return "the engine at hand lacks the processor " + wanted
		}
	}
	err := e.do(b.ctx, e.base, request{method: "PUT", path: "/_search/pipeline/" + name, body: []byte(
		`{"request_processors":[{"oversample":{"sample_factor":2}}],"response_processors":[{"collapse":{"field":"cluster"}},{"truncate_hits":{}}]}`)}, nil)
	if err != nil {
		return err.Error()
	}
	return ""
}
