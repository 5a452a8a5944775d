package elastic

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// collapse is one search being collapsed, of a request of its own or of a multi-search.
type collapse struct {
	d     Dialect
	q     *query
	page  rerank.Page
	pager *rerank.Pager
	judge *adapters.Judge
	rules adapters.Rules

	span      rerank.Span     // what was asked last
	texts     bool            // readings of sketches alone bring the sketched texts too, for hits that lack a sketch
	judged    bool            // the sketches of the reading asked last are looked at
	baseReply *adapters.Reply // the first with sources: it holds everything but the page's hits
	hits      [][]byte        // of the last reading with sources, as they stand in its reply
	total     int             // the engine's count, -1 where it gave none
	lacking   int             // hits without a sketch, of the longest reading
	empty     bool            // the page holds nothing; base is all that lacks
	rounds    int             // how often the engine was asked
	near      *neighbours     // until it is settled which list is collapsed; nil for most searches
}

// newCollapse returns nil if the search is not understood.
func newCollapse(d Dialect, q *query, p adapters.Plan, scope adapters.Scope) *collapse {
	near, q, err := newNeighbours(q, scope.VectorWindow)
	if err != nil {
		return nil
	}
	c := &collapse{d: d, q: q, rules: p.Rules, judge: adapters.NewJudge(p.Rules, q.controls), total: -1, near: near}
	c.page = p.Page(q.from, q.size, scope, q.controls, q.limit)
	c.readTexts(scope.Lacking)
	return c
}

// readTexts begins the page, with the texts of hits read beside their sketches or not. Where the client's hits do not come with
// their whole source, the texts are read in a reading of their own: asked for in the client's, they could not be told from what
// the client asked for.
func (c *collapse) readTexts(texts bool) {
	c.texts, c.page.SketchFirst = texts, texts && !c.q.whole
	if c.near != nil {
		// As far as the page goes at least: where the client's own list ends is to be seen.
		c.page.First, c.page.SketchFirst = max(c.near.ranks, c.q.from+c.q.size), c.page.SketchFirst || c.near.mixed
	}
	c.pager = rerank.NewPager(c.page)
}

// next returns the body to ask, with the URL parameters that it makes void, or false when the page is settled.
func (c *collapse) next() (body []byte, void []string, more bool, err error) {
	c.span, more = c.pager.Next()
	if !more {
		if _, err := c.pager.Ranks(); err != nil {
			return nil, nil, false, err
		}
		if c.q.limit < maxResultWindow && c.pager.Stats().Limited {
			return nil, nil, false, adapters.Alone{Reason: "rescore", Searched: true}
		}
		if c.baseReply != nil {
			return nil, nil, false, nil
		}
		c.empty, c.span = true, rerank.Span{From: c.q.from, To: c.q.from + c.q.size}
	}
	r := reading{from: c.span.From, size: c.span.To - c.span.From, sketchOnly: c.span.SketchOnly, settled: c.baseReply != nil || c.span.SketchOnly && c.near == nil}
	if c.texts && r.sketchOnly {
		r.texts = c.fields()
	}
	c.judged = !c.empty && c.pager.Judged(c.span)
	c.rounds++
	body, void, err = c.q.ask(r)
	return body, void, true, err
}

// fields returns the sketched fields of all rules that compute.
func (c *collapse) fields() []string {
	var fields []string
	for _, rule := range c.rules {
		if rule.Compute {
			fields = append(fields, rule.Fields...)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// take reads the reply to what next returned.
func (c *collapse) take(reply *adapters.Reply) error {
	list, total, err := hitsOf(reply.Body)
	if err != nil {
		return err
	}
	c.judge.Reset()
	hits := make([]rerank.Hit, len(list))
	for i, raw := range list {
		if hits[i], err = c.hit(raw); err != nil {
			return err
		}
	}
	c.lacking = max(c.lacking, c.judge.Lacking)
	if !c.span.SketchOnly {
		c.hits = list
	}
	if c.baseReply == nil && (!c.span.SketchOnly || c.near != nil) {
		c.baseReply, c.total = reply, total
	}
	switch {
	case c.empty:
	case c.judge.Unread > 0 && c.texts:
		return errMoved // read again with its sources, the list does not show the texts that it did before
	case c.judge.Unread > 0:
		c.readTexts(true)
	case c.near != nil && c.settle(hits):
	default:
		c.pager.Take(c.span, hits)
	}
	return nil
}

// settle decides, by the ranks of the client's own list that are looked at on every page, which list of neighbours is collapsed, and
// reports whether it is the longer one, which is then to be read.
func (c *collapse) settle(hits []rerank.Hit) bool {
	near := c.near
	c.near = nil
	looked := hits[:min(near.ranks, len(hits), c.page.Window)]
	if len(rerank.Collapse(looked, c.page.Window, false).Groups) == len(looked) {
		return false
	}
	longer := *c.q
	longer.body, c.q = near.raised, &longer
	if len(hits) < c.span.To {
		c.page.Length = len(hits)
	}
	c.page.First = 0
	c.readTexts(c.texts)
	return true
}

var errMoved = errors.New("the list moved between two readings")

// hitsOf returns the hits of a reply as they stand, and the engine's count or -1. A shard that failed leaves its hits out: where that can be
// for what we asked, be it our field or more ranks than an index of several grants, that is ErrWidened.
func hitsOf(reply []byte) (list [][]byte, total int, err error) {
	root, err := adapters.Members(reply)
	if err != nil {
		return nil, 0, err
	}
	if failedForUs(adapters.Get(root, "_shards")) {
		return nil, 0, adapters.ErrWidened
	}
	outer, err := adapters.Members(adapters.Get(root, "hits"))
	if err != nil {
		return nil, 0, err
	}
	count := adapters.Get(outer, "total")
	if members, err := adapters.Members(count); err == nil {
		count = adapters.Get(members, "value")
	}
	if total, err = strconv.Atoi(string(count)); err != nil {
		total = -1
	}
	list, err = adapters.Elements(adapters.Get(outer, "hits"))
	return list, total, err
}

// ours are words in the failures of shards that what we ask can be the reason of: limits of an index on ranks and extracted fields
// (index.max_result_window and the like), our field mapped otherwise, memory and load. A shard that is not there, or can't run
// the client's query, fails for the client's own search too.
var ours = [][]byte{
	[]byte("[index.max_"), []byte(adapters.SketchField), []byte("circuit_breaking_exception"), []byte("rejected_execution_exception"),
}

// failedForUs reports whether a shard failed that may answer the client's own search.
func failedForUs(shards []byte) bool {
	members, err := adapters.Members(shards)
	if err != nil {
		return false
	}
	if failed := adapters.Get(members, "failed"); failed == nil || string(failed) == "0" {
		return false
	}
	failures, err := adapters.Elements(adapters.Get(members, "failures"))
	if err != nil {
		return true
	}
	return slices.ContainsFunc(failures, func(failure []byte) bool {
		return slices.ContainsFunc(ours, func(word []byte) bool { return bytes.Contains(failure, word) })
	})
}

func (c *collapse) hit(raw []byte) (rerank.Hit, error) {
	members, err := adapters.Members(raw)
	if err != nil {
		return rerank.Hit{}, err
	}
	index, ok1 := adapters.Text(adapters.Get(members, "_index"))
	id, ok2 := adapters.Text(adapters.Get(members, "_id"))
	if !ok1 || !ok2 {
		return rerank.Hit{}, errors.New("a hit without _index or _id")
	}
	if !c.judged {
		return adapters.Unjudged(index, id), nil
	}
	seen := adapters.Seen{Index: c.d.ruleName(index), ID: id, Stored: storedSketch(adapters.Get(members, "fields"))}
	seen.Document = func(*adapters.Rule) []byte {
		if c.span.SketchOnly && !c.texts || !c.span.SketchOnly && !c.q.whole {
			return nil
		}
		if source := adapters.Get(members, "_source"); source != nil {
			return source
		}
		return []byte("{}")
	}
	hit := c.judge.Hit(seen)
	hit.ID = adapters.Unjudged(index, id).ID // two indices can stand behind one name
	return hit, nil
}

// storedSketch returns our field's value among the fields extracted from a hit, or nothing. OpenSearch gives it once for each time that
// it was asked for, be it by a pattern of the client's.
func storedSketch(fields []byte) string {
	members, err := adapters.Members(fields)
	if err != nil {
		return ""
	}
	values, err := adapters.Elements(adapters.Get(members, adapters.SketchField))
	if err != nil || len(values) == 0 {
		return ""
	}
	for _, value := range values[1:] {
		if !bytes.Equal(value, values[0]) {
			return ""
		}
	}
	text, _ := adapters.Text(values[0])
	return padded(text)
}

// padded returns base64 with the padding that OpenSearch leaves out when it shows a binary field.
func padded(text string) string {
	if missing := -len(text) & 3; missing < 3 && !strings.HasSuffix(text, "=") {
		return text + "=="[:missing]
	}
	return text
}

// result returns the reply that the client gets, when next has said that there is no more.
func (c *collapse) result() ([]byte, error) {
	ranks, err := c.pager.Ranks()
	if err != nil {
		return nil, err
	}
	root, err := adapters.Members(c.baseReply.Body)
	if err != nil {
		return nil, err
	}
	outer := adapters.Get(root, "hits")
	members, err := adapters.Members(outer)
	if err != nil {
		return nil, err
	}
	page := make([][]byte, len(ranks))
	for i, rank := range ranks {
		place, _ := c.pager.At(rank)
		if page[i], err = c.bare(c.hits[place]); err != nil {
			return nil, err
		}
	}
	if outer, err = adapters.Set(outer, "hits", joinLike(adapters.Get(members, "hits"), page)); err != nil {
		return nil, err
	}
	body, err := adapters.Set(c.baseReply.Body, "hits", outer)
	if err != nil || c.q.shown {
		return body, err
	}
	return adapters.Cleaned(body, inDocument), nil
}

// bare returns a hit less the field that we asked to be extracted.
func (c *collapse) bare(hit []byte) ([]byte, error) {
	members, err := adapters.Members(hit)
	if err != nil {
		return nil, err
	}
	fields := adapters.Get(members, "fields")
	if fields == nil {
		return hit, nil
	}
	left, err := adapters.Cut(fields, func(key string) bool { return adapters.Our(key) && !c.q.extracted })
	if err != nil || bytes.Equal(left, fields) {
		return hit, err
	}
	if rest, err := adapters.Members(left); err != nil {
		return nil, err
	} else if len(rest) == 0 {
		return adapters.Cut(hit, func(key string) bool { return key == "fields" })
	}
	return adapters.Set(hit, "fields", left)
}

// joinLike returns an array of the elements with the white space of the array that they stood in, so that a pretty-printed reply
// stays one.
func joinLike(array []byte, elements [][]byte) []byte {
	lead, between, tail := []byte("["), []byte(","), []byte("]")
	old, err := adapters.Elements(array)
	switch {
	case err == nil && len(old) == 0 && len(elements) == 0:
		return array
	case len(elements) == 0:
		return []byte("[]")
	case err == nil && len(old) > 0:
		at := func(i int) int { return cap(array) - cap(old[i]) } // elements share the array's memory
		lead, tail = array[:at(0)], array[at(len(old)-1)+len(old[len(old)-1]):]
		if len(old) > 1 {
			between = array[at(0)+len(old[0]) : at(1)]
		}
	}
	out := append([]byte{}, lead...)
	for i, element := range elements {
		if i > 0 {
			out = append(out, between...)
		}
		out = append(out, element...)
	}
	return append(out, tail...)
}

// outcome returns what was done.
func (c *collapse) outcome() adapters.Outcome {
	o := adapters.OutcomeOf(c.q.target, c.page, c.pager.Stats(), c.lacking, c.total)
	o.Rounds = c.rounds
	return o
}
