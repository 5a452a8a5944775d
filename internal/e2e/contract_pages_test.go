package e2e

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/engines"
)

// patchy returns writers: most papers by the first listener; of the others some past the sidecar and some by the second listener,
// as they come or, as after a backfill that stopped halfway, those at the end.
func (c *contract) patchy(n int) func(i int) int {
	half := c.r.IntN(3) == 0
	return func(i int) int {
		switch {
		case half && i > n/2:
			return past
		case half && i > n/4:
			return 1
		case half:
			return 0
		}
		return pick(c.r, 0, 0, 0, 0, 0, past, 1)
	}
}

// randomContract makes a contract with rules and papers at random.
func randomContract(t *testing.T, e *engines.Engine, listeners, papers int) *contract {
	t.Helper()
	seed := effort.Seed(t)
	r := rand.New(rand.NewPCG(seed, 12))
	shelves := 1 + r.IntN(3)
	var rules [][]*terms
	for i := range listeners {
		var own []*terms
		transitive := r.IntN(6) == 0
		for range shelves {
			if own = append(own, randomTerms(r, transitive)); i == 0 {
				own[len(own)-1] = plainTerms()
			}
		}
		rules = append(rules, own)
	}
	c := newContract(t, e, seed, shelves, rules)
	for _, s := range c.shelves {
		n := 1 + r.IntN(papers/shelves)
		if c.fill(s, n, 0.45, c.patchy(n)); c.typesense() && n > 20 {
			c.pin(s)
		}
	}
	return c
}

// pin has the operator pin two papers of a shelf, of searches for the word owls.
func (c *contract) pin(s *shelf) {
	c.t.Helper()
	ids := sortedKeys(s.papers)
	body := fmt.Sprintf(`{"rule":{"query":"owls","match":"exact"},"includes":[{"id":%q,"position":1},{"id":%q,"position":%d}]}`,
		ids[c.r.IntN(10)], ids[10+c.r.IntN(10)], 2+c.r.IntN(6))
	call(c.t, c.e, "PUT", c.e.URL+"/collections/"+s.index+"/overrides/pinned", body).want(c.t, 200)
}

// scale returns one number for the short form of a test, another for the long.
func scale(short, long int) int {
	if soaking() {
		return long
	}
	return short
}

// TestContractPages asks for pages at random, under rules at random, and holds each answer, byte for byte, against the
// definition.
func TestContractPages(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		for i := range scale(2, 10) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				c := randomContract(t, e, scale(6, 10), scale(500, 1500))
				for range effort.Rounds(scale(50, 200)) {
					a := c.randomAsk()
					if wrong := c.judge(a); wrong != "" {
						c.fail(a, wrong)
					}
				}
			})
		}
	})
}

// walk walks a search's pages to the end, each held against the definition as the list is then.
func (c *contract) walk(a ask, between func()) {
	c.t.Helper()
	for a.from = 0; c.typesense() || a.from+a.size <= 10000; a.from += a.size {
		if wrong := c.judge(a); wrong != "" {
			c.fail(a, wrong)
		}
		if a.from > len(c.whole(a)) {
			return
		}
		between()
	}
}

// walkable is a search at random that finds much.
func (c *contract) walkable() ask {
	a := c.randomAsk()
	for a.near > 0 {
		a = c.randomAsk()
	}
	delete(a.controls, "neardup")
	switch {
	case c.typesense():
		a.members["q"] = pick(c.r, "*", "the")
	case a.form == "get":
		a.members["q"] = pick(c.r, "*:*", "the")
	default:
		a.members["query"] = pick(c.r, `{"match_all":{}}`, `{"match":{"body":"the"}}`)
	}
	return a
}

// TestContractWalksOverAChangingList walks lists while papers go and others come, and the engine counts other hits then: each page is that of the list
// as it is then.
func TestContractWalksOverAChangingList(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		c := randomContract(t, e, scale(4, 10), scale(300, 1500))
		for range effort.Rounds(scale(3, 40)) {
			a := c.walkable()
			if a.size = max(a.size, len(c.whole(a))/scale(6, 30)+1); c.typesense() {
				a.size = min(a.size, 250)
			}
			c.walk(a, func() {
				before, s := len(c.whole(a)), pick(c.r, a.shelves...)
				if ids := sortedKeys(s.papers); len(ids) > 8 {
					c.r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
					c.remove(s, c.r.IntN(len(c.listeners)), ids[:1+c.r.IntN(4)]...)
				}
				if n := 1 + c.r.IntN(3); c.r.IntN(2) == 0 {
					c.fill(s, n, 0.6, c.patchy(n))
				}
				for len(c.whole(a)) == before { // as many that come as went may not be seen by the next page (docs/limits.md)
					c.fill(s, 1, 0.6, c.patchy(1))
				}
			})
		}
	})
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// plainTerms is a rule without anything that a rule need not have.
func plainTerms() *terms {
	return &terms{fields: []string{"title", "body"}, threshold: 0.64, minShingles: 8, minWords: 50, window: 1000}
}

// randomTerms makes up a rule. Windows go up to the largest that lists of so many documents make use of.
func randomTerms(r *rand.Rand, transitive bool) *terms {
	t := plainTerms()
	t.threshold = pick(r, 0.3, 0.5, 0.64, 0.64, 0.8, 0.95, 1)
	t.minShingles = pick(r, 1, 8, 8, 20)
	t.minWords, t.decide = pick(r, 0, 30, 50, 50, 80), r.IntN(5) == 0
	t.window = pick(r, 10, 25, 60, 150, 400, 1000, contractMaxWindow)
	t.alone = r.IntN(4) == 0
	t.fields = pick(r, t.fields, t.fields, []string{"body"}, []string{"body", "title"})
	if r.IntN(4) == 0 {
		t.scheme = pick(r, scheme{positions: 256}, scheme{words: 3}, scheme{family: "permutations"}, scheme{seed: "another secret"})
	}
	if r.IntN(4) == 0 {
		t.measure = pick(r, "containment", "resemblance")
	}
	if r.IntN(2) == 0 {
		t.keep = 1 + r.IntN(5)
	}
	t.transitive = transitive
	t.collapsed = r.IntN(5) == 0
	t.dry = r.IntN(12) == 0
	if r.IntN(6) == 0 {
		t.expand = pick(r, "ids", "source", "off")
	}
	t.group = r.IntN(6) == 0
	if r.IntN(2) == 0 {
		t.by = pick(r, chooser{by: "newest"}, chooser{by: "oldest"}, chooser{by: "longest"}, chooser{by: "field", field: "votes"},
			chooser{by: "field", field: "votes", ascending: true}, chooser{by: "field", field: "host"},
			chooser{by: "field", field: "host", ascending: true},
			chooser{by: "prefer", field: "host", values: []string{paperHosts[3], paperHosts[1]}},
			chooser{by: "prefer", field: "tags", values: []string{paperTags[2], paperTags[5], paperTags[0]}})
	}
	if t.by.by == "newest" || t.by.by == "oldest" {
		t.dateField = "at"
	}
	if r.IntN(4) == 0 {
		t.dateField, t.span = "at", pick(r, 12*time.Hour, 36*time.Hour, 72*time.Hour, time.Minute)
	}
	if r.IntN(5) == 0 {
		t.same = pick(r, []string{"host"}, []string{"tags"}, []string{"host", "n"})
		if r.IntN(3) == 0 {
			t.same, t.different = []string{"host"}, []string{"tags"}
		}
	}
	if len(t.same) == 0 && r.IntN(4) == 0 {
		t.different = pick(r, []string{"host"}, []string{"tags"}, []string{"tags", "host"})
	}
	return t
}

// randomAsk makes up a search.
func (c *contract) randomAsk() ask {
	r := c.r
	a := ask{listener: r.IntN(len(c.listeners)), members: map[string]string{}, params: map[string]string{},
		controls: map[string]string{}}
	a.form = pick(r, "search", "search", "search", "get", "multi", "source")
	a.by = pick(r, "url", "header", "header>url")
	if a.form != "get" {
		a.by = pick(r, a.by, "body", "body", "url>body", "header>body")
	}
	if c.typesense() {
		a.shelves = []*shelf{pick(r, c.shelves...)}
		a.form = pick(r, "search", "multi")
		if a.form == "search" {
			a.by = pick(r, "url", "header", "header>url")
		}
		c.randomParameters(&a)
	} else {
		for _, s := range c.shelves {
			if r.IntN(2) == 0 {
				a.shelves = append(a.shelves, s)
			}
		}
		if len(a.shelves) == 0 {
			a.shelves = []*shelf{pick(r, c.shelves...)}
		}
		c.randomMembers(&a)
	}
	c.randomControls(&a)
	a.size = pick(r, 1, 2, 3, 7, 10, 10, 10, 20, 33, 50, 100, 249, 250)
	length := len(c.whole(a))
	if a.from = a.size * r.IntN(length/a.size+2); r.IntN(3) == 0 {
		a.from = 0
	}
	if !c.typesense() && r.IntN(3) == 0 {
		a.from = r.IntN(length + 2)
	}
	switch {
	case !c.typesense() && a.from+a.size > 10000:
		a.from = 0
	case c.typesense() && a.near > 0: // beyond, the engine looks for more neighbours than it was asked for
		a.size = min(a.size, a.near)
		a.from = a.size * r.IntN(a.near/a.size)
	}
	return a
}

// randomControls asks for something of us in one search of two.
func (c *contract) randomControls(a *ask) {
	r := c.r
	if r.IntN(2) == 0 {
		a.controls["neardup_threshold"] = pick(r, "0.2", "0.5", "0.7", "0.9", "1")
	}
	if r.IntN(3) == 0 {
		a.controls["neardup_window"] = pick(r, "1", "10", "30", "100", "500", "10000", "99999999")
	}
	if r.IntN(3) == 0 {
		a.controls["neardup_keep"] = pick(r, "1", "2", "3", "5", "100")
	}
	if r.IntN(5) == 0 {
		a.controls["neardup_totals"] = pick(r, "engine", "collapsed", "collapsed")
	}
	if r.IntN(4) == 0 {
		a.controls["neardup_expand"] = pick(r, "ids", "source", "true", "off", "")
	}
	if r.IntN(5) == 0 {
		a.controls["neardup_explain"] = pick(r, "true", "", "false")
	}
	if r.IntN(3) == 0 {
		a.controls["neardup_group"] = pick(r, "true", "true", "", "false")
	}
	if r.IntN(10) == 0 {
		a.controls["neardup"] = pick(r, "on", "off", "dry_run", "true", "false")
	}
	if r.IntN(2) == 0 {
		clear(a.controls)
	}
	if len(a.controls) == 0 {
		a.by = ""
	}
}

// randomMembers makes up what a search of Elasticsearch or OpenSearch holds.
func (c *contract) randomMembers(a *ask) {
	r := c.r
	if a.form == "get" {
		a.members["q"] = pick(r, "*:*", "the", "town river", "title:old", "host:"+paperHosts[0])
		if r.IntN(2) == 0 {
			a.members["sort"] = pick(r, "n:asc", "n:desc,at:asc", "_score", "votes:desc")
		}
		if r.IntN(3) == 0 {
			a.members["_source"] = pick(r, "false", "title,n", "host")
		}
		return
	}
	if r.IntN(6) == 0 && c.e.Vectors() {
		c.randomNeighbours(a)
		return
	}
	query := pick(r, `{"match_all":{}}`, `{"match":{"body":"the"}}`, `{"match":{"body":"river town old bread"}}`,
		`{"match_none":{}}`, `{"multi_match":{"query":"old ferry","fields":["title^2","body"]}}`, `{"match":{"body":"the"}}`,
		`{"match_all":{}}`, `{"bool":{"must":[{"match":{"body":"the"}},{"nested":{"path":"c","query":{"match_all":{}},"inner_hits":{"size":1}}}]}}`)
	if r.IntN(3) == 0 {
		filter := pick(r, `{"term":{"host":"`+paperHosts[1]+`"}}`, `{"range":{"n":{"gte":4}}}`, `{"exists":{"field":"at"}}`,
			`{"term":{"tags":"sea"}}`)
		query = `{"bool":{"must":[` + query + `],"filter":[` + filter + `]}}`
	}
	a.members["query"] = query
	if r.IntN(2) == 0 {
		a.members["sort"] = pick(r, `["_score",{"id":"asc"}]`, `[{"n":"asc"}]`, `{"n":"desc"}`, `[{"n":"desc"},{"at":"asc"}]`, `"n"`,
			`[{"votes":{"order":"desc","missing":"_last"}},"_score"]`, `[{"at":"desc"}]`, `[{"host":"asc"},{"n":"desc"}]`, `[{"tags":{"order":"asc"}},"_score"]`)
	}
	if r.IntN(2) == 0 {
		a.members["_source"] = randomSource(r)
	}
	for _, one := range []struct {
		name   string
		values []string
	}{
		{"aggs", []string{`{"n":{"value_count":{"field":"n"}}}`,
			`{"h":{"terms":{"field":"host"},"aggs":{"t":{"top_hits":{"size":1,"_source":["id"]}}}}}`,
			`{"h":{"terms":{"field":"host"},"aggs":{"t":{"top_hits":{"size":2,"sort":["n","_doc"]}}}}}`}},
		{"highlight", []string{`{"fields":{"body":{"number_of_fragments":1}}}`, `{"fields":{"title":{}}}`}},
		{"docvalue_fields", []string{`["n"]`, `["votes","host"]`, `[{"field":"at"}]`, `["a*"]`}},
		{"fields", []string{`["at"]`, `["title","at"]`, `["*"]`}},
		{"stored_fields", []string{`["title"]`, `["_source"]`}},
		{"explain", []string{`true`}},
		{"min_score", []string{`0.01`}},
		{"seq_no_primary_term", []string{`true`}},
		{"track_total_hits", []string{`false`, `true`, `5`}},
		{"version", []string{`true`}},
		{"track_scores", []string{`true`}},
		{"post_filter", []string{`{"range":{"n":{"lt":12}}}`,
			`{"bool":{"should":[{"term":{"host":{"value":"` + paperHosts[0] + `","_name":"h"}}},{"range":{"n":{"lt":9,"_name":"l"}}}]}}`}},
		{"script_fields", []string{`{"twice":{"script":"doc['n'].value * 2"}}`}},
	} {
		if r.IntN(7) == 0 {
			a.members[one.name] = pick(r, one.values...)
		}
	}
	if r.IntN(8) == 0 && a.members["track_total_hits"] != "5" {
		a.params["rest_total_hits_as_int"] = "true"
	}
	if r.IntN(8) == 0 {
		a.params["typed_keys"] = "true"
	}
	if r.IntN(8) == 0 && a.form != "multi" {
		a.params["pretty"] = "true"
	}
	if r.IntN(8) == 0 && a.form != "multi" {
		a.params["preference"] = "steady"
	}
}

// randomSource makes up a source filter.
func randomSource(r *rand.Rand) string {
	names := func(n int) string {
		list := []string{}
		for range n {
			list = append(list, strconv.Quote(pick(r, "title", "body", "n", "o", "o.title", "o.y", "c.x", "t*", "b*", "*y", "f", "title.x",
				"none", "at", "bo", "o.*", "host")))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	return pick(r, `false`, `true`, strings.Trim(names(1), "[]"), names(r.IntN(4)), `{"includes":`+names(r.IntN(4))+`}`,
		`{"excludes":`+names(r.IntN(4))+`}`, `{"includes":`+names(r.IntN(4))+`,"excludes":`+names(r.IntN(4))+`}`)
}

// randomParameters makes up what a search of Typesense holds.
func (c *contract) randomParameters(a *ask) {
	r := c.r
	if r.IntN(6) == 0 {
		c.randomNeighbours(a)
		return
	}
	a.members["q"] = pick(r, "*", "the", "the", "town", "old river", "owls", "owls", "nothingmatchesthis")
	a.members["query_by"] = pick(r, "title,body", "body")
	if r.IntN(2) == 0 {
		a.members["sort_by"] = pick(r, "n:asc", "n:desc,_text_match:desc", "votes:desc", "at:asc,n:desc", "_text_match:desc")
	}
	if r.IntN(3) == 0 {
		a.members["filter_by"] = pick(r, "n:>3", "host:="+paperHosts[1], "tags:=[sea,town]", "n:<14 && votes:>1")
	}
	if r.IntN(4) == 0 {
		a.members["facet_by"] = pick(r, "host", "tags,n")
	}
	switch r.IntN(5) {
	case 0:
		a.members["include_fields"] = pick(r, "title", "id", "n,host", "body,title")
	case 1:
		a.members["exclude_fields"] = pick(r, "body", "id", "title,body", "host")
	}
	if r.IntN(6) == 0 {
		a.members["highlight_fields"] = strings.Split(fmt.Sprint(a.members["query_by"]), ",")[0]
	}
}

// randomNeighbours makes up a search for nearest neighbours, of one index.
func (c *contract) randomNeighbours(a *ask) {
	r := c.r
	a.shelves, a.near = a.shelves[:1], pick(r, 1, 5, 10, 30, 100, 150)
	at := fmt.Sprintf("[%v,%v]", float64(r.IntN(400))/10, 1+float64(r.IntN(10))/10)
	switch c.e.Kind {
	case engines.Typesense:
		a.members["q"], a.members["vector_query"] = "*", "v:("+at+", k:KKK)"
		if r.IntN(3) == 0 {
			a.members["filter_by"] = "n:>3"
		}
		return
	case engines.OpenSearch:
		a.members["query"] = `{"knn":{"v":{"vector":` + at + `,"k":KKK}}}`
	default:
		a.members["knn"] = `{"field":"v","query_vector":` + at + `,"k":KKK,"num_candidates":200}`
	}
	if r.IntN(3) == 0 {
		a.members["_source"] = pick(r, `false`, `["title"]`)
	}
	if r.IntN(4) == 0 {
		a.members["aggs"] = `{"n":{"value_count":{"field":"n"}}}`
	}
}
