package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// verdict is what a search has to be answered by the definition.
type verdict struct {
	wishes
	list    []standing
	fold    folding
	page    []int // ranks
	body    string
	total   int  // the engine's, -1 where it gives none
	atLeast bool // there are more by the engine's count
	exactly bool
	length  int // of a list of nearest neighbours
	state   string
}

// expected works out what a search has to be answered.
func (c *contract) expected(a ask) (v verdict, r reply) {
	c.t.Helper()
	v = verdict{list: c.judged(a), wishes: c.wishes(a)}
	v.fold = collapse(v.list, v.window, v.transitive)
	frame, r := c.send(c.e.URL, a, false)
	shown := v.fold.shown
	if a.near > 0 {
		shown = c.nearest(a, &v)
		v.length = len(shown)
	}
	v.state = v.wishes.state()
	if v.state != "collapsed" {
		shown, v.collapsed = nil, false
		for rank := range v.list {
			shown = append(shown, rank)
		}
	}
	v.page = shown[min(a.from, len(shown)):min(a.from+a.size, len(shown))]
	if r.status != 200 {
		v.body = string(frame)
		return v, r
	}
	var hits []string
	for _, rank := range v.page {
		hits = append(hits, v.list[rank].raw)
	}
	v.body = framed(c, steady(untimed(oursAnywhere.ReplaceAll(frame, nil))), hits)
	var relation string
	v.total, relation = totalOf(c, frame)
	if v.atLeast = relation != "eq"; v.collapsed && v.total >= 0 && !v.atLeast {
		total := v.total - v.fold.folded
		if a.near > 0 {
			total = v.length
		}
		v.body = withTotal(c, v.body, v.total, total)
	}
	v.exactly = len(v.list) <= v.window
	return v, r
}

var approximated = regexp.MustCompile(`Approximate\(([^()]*)\)`)

// steady returns a reply less two things of OpenSearch that differ with the size of a page. It adds terminated_early where nothing is counted and
// a shard is asked after another one's hits have shown that none of its own can be on the page. And it explains a range as Approximate(…).
func steady(reply []byte) string {
	return approximated.ReplaceAllString(strings.ReplaceAll(string(reply), `"terminated_early":true,`, ""), "$1")
}

// framed returns a reply with other hits in it.
func framed(c *contract, body string, hits []string) string {
	c.t.Helper()
	own := rawHits(c, []byte(body))
	for _, colon := range []string{":", " : "} {
		body = strings.Replace(body, `"hits"`+colon+string(own), `"hits"`+colon+"["+strings.Join(hits, ",")+"]", 1)
	}
	return body
}

// rawHits returns the hits of a result as they stand.
func rawHits(c *contract, result []byte) json.RawMessage {
	c.t.Helper()
	var outer struct{ Hits json.RawMessage }
	if json.Unmarshal(result, &outer) != nil || c.typesense() || len(outer.Hits) == 0 {
		return outer.Hits
	}
	var inner struct{ Hits json.RawMessage }
	decode(c.t, outer.Hits, &inner)
	return inner.Hits
}

// totalOf returns the total that a result states, -1 if none.
func totalOf(c *contract, result []byte) (total int, relation string) {
	c.t.Helper()
	if c.typesense() {
		var found struct{ Found *int }
		decode(c.t, result, &found)
		if found.Found == nil {
			return -1, "eq"
		}
		return *found.Found, "eq"
	}
	var outer struct {
		Hits struct{ Total json.RawMessage }
	}
	decode(c.t, result, &outer)
	if len(outer.Hits.Total) == 0 {
		return -1, "eq"
	}
	if n, err := strconv.Atoi(string(outer.Hits.Total)); err == nil {
		return n, "eq"
	}
	var stated struct {
		Value    int
		Relation string
	}
	decode(c.t, outer.Hits.Total, &stated)
	return stated.Value, stated.Relation
}

// withTotal returns a result with another total.
func withTotal(c *contract, body string, from, to int) string {
	form := regexp.MustCompile(fmt.Sprintf(`(?:"hits" ?: ?\{\s*"total" ?: ?(?:\{\s*"value" ?: ?)?|"found":)(%d),`, from))
	if at := form.FindStringSubmatchIndex(body); at != nil {
		return body[:at[2]] + fmt.Sprint(to) + body[at[3]:]
	}
	c.t.Fatalf("no total of %d in %.300s", from, body)
	return ""
}

// judge asks for a page through the sidecar and holds it against the definition. It returns what is wrong, "" if nothing is.
func (c *contract) judge(a ask) (wrong string) {
	c.t.Helper()
	for range 4 {
		v, direct := c.expected(a)
		result, r := c.send(c.listeners[a.listener].base, a, true)
		if wrong = c.compare(a, v, direct, result, r); wrong == "" {
			return ""
		}
		if a.near > 0 || c.still(a, v.list) {
			return wrong
		}
	}
	return "the engine's list does not stand still, and: " + wrong
}

// still reports whether the engine's list is what it was, read anew.
func (c *contract) still(a ask, list []standing) bool {
	c.t.Helper()
	clear(c.lists)
	now := c.whole(a)
	return slices.EqualFunc(list, now, func(x, y standing) bool { return x.raw == y.raw })
}

// compare returns what is wrong with an answer.
func (c *contract) compare(a ask, v verdict, direct reply, result []byte, r reply) string {
	c.t.Helper()
	header := r.header.Get("Neardup")
	if direct.status != 200 {
		if diff := cmp.Diff(string(untimed(direct.body)), string(untimed(r.body))); diff != "" || r.status != direct.status {
			return fmt.Sprintf("status %d, directly %d; directly (-), through us (+): %.2000s", r.status, direct.status, diff)
		}
		return ""
	}
	if r.status != 200 {
		return fmt.Sprintf("status %d: %.500s", r.status, r.body)
	}
	plain := steady(untimed(result))
	if v.collapsed && v.atLeast { // of the hits that are known
		stated, relation := totalOf(c, result)
		if want := max(v.total, min(len(v.list), v.window)) - v.fold.folded; relation != "gte" || stated != want {
			return fmt.Sprintf("total %d %s, want %d, where the engine's own is at least %d", stated, relation, want, v.total)
		}
		plain = withTotal(c, plain, stated, v.total)
	}
	if v.shows() || v.labels() || a.params["pretty"] != "" { // which puts white space between hits
		var wrong string
		if plain, wrong = c.stripped(v, plain, header); wrong != "" {
			return wrong + "\nheader: " + header
		}
	}
	if plain != v.body {
		return fmt.Sprintf("header: %s\nranks by the definition: %v\nthe definition (-), the page (+):\n%s", header, v.page,
			difference(c, v.body, plain))
	}
	return c.wrongHeader(a, v, header)
}

// state is what the header says of such a search.
func (w wishes) state() string {
	switch {
	case w.off:
		return "bypassed"
	case w.dry:
		return "dry-run"
	}
	return "collapsed"
}

// difference shows how two results differ, hit by hit.
func difference(c *contract, want, got string) string {
	var x, y []json.RawMessage
	_ = json.Unmarshal(rawHits(c, []byte(want)), &x)
	_ = json.Unmarshal(rawHits(c, []byte(got)), &y)
	short := func(list []json.RawMessage) (names []string) {
		for _, raw := range list {
			var h struct {
				Index    string `json:"_index"`
				ID       string `json:"_id"`
				Document struct{ ID string }
			}
			_ = json.Unmarshal(raw, &h)
			names = append(names, h.Index+"/"+h.ID+h.Document.ID)
		}
		return names
	}
	if diff := cmp.Diff(short(x), short(y)); diff != "" {
		return fmt.Sprintf("%.2500s", diff)
	}
	return fmt.Sprintf("%.2500s", cmp.Diff(want, got))
}

// stated are the figures of the header.
func stated(header string) (state string, figures map[string]string) {
	figures = map[string]string{}
	state, rest, _ := strings.Cut(header, "; ")
	for item := range strings.SplitSeq(rest, "; ") {
		name, value, _ := strings.Cut(item, "=")
		figures[name] = value
	}
	return state, figures
}

// wrongHeader returns what is wrong with the header.
func (c *contract) wrongHeader(a ask, v verdict, header string) string {
	state, figures := stated(header)
	if state != v.state {
		return fmt.Sprintf("header %q, want %s", header, v.state)
	}
	if state == "bypassed" {
		if figures["reason"] != "off" {
			return fmt.Sprintf("header %q, want reason=off", header)
		}
		return ""
	}
	if a.near > 0 { // the figures are those of two lists
		return ""
	}
	folded, err := strconv.Atoi(figures["folded"])
	exact := figures["exact"] == "true"
	last := -1 // the last rank that had to be known
	for _, rank := range v.page {
		last = max(last, min(rank, v.window-1))
	}
	least := 0
	for _, f := range v.fold.groups {
		for _, rank := range f.folded {
			if rank < last && state == "collapsed" {
				least++
			}
		}
	}
	switch {
	case err != nil || figures["window"] != fmt.Sprint(v.window):
		return fmt.Sprintf("header %q, want window=%d", header, v.window)
	case v.total >= 0 && !v.atLeast && figures["raw"] != fmt.Sprint(v.total):
		return fmt.Sprintf("header %q, want raw=%d", header, v.total)
	case exact && !v.collapsed && folded != v.fold.folded:
		return fmt.Sprintf("header %q, want folded=%d, since it is exact", header, v.fold.folded)
	case folded > v.fold.folded || folded < least:
		return fmt.Sprintf("header %q, want folded from %d to %d", header, least, v.fold.folded)
	case v.collapsed && folded != v.fold.folded:
		return fmt.Sprintf("header %q, want folded=%d, since totals are collapsed", header, v.fold.folded)
	case v.collapsed && exact != v.exactly:
		return fmt.Sprintf("header %q, want exact=%t: %d hits, window %d", header, v.exactly, len(v.list), v.window)
	}
	return ""
}

// fail reports what is wrong with a search.
func (c *contract) fail(a ask, wrong string) {
	c.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "NEARDUP_SEED=%d\n%v\n", c.seed, a)
	method, path, body, header := c.request(a, true)
	fmt.Fprintf(&b, "%s %s %s\n%s\n", method, path, header, body)
	for _, s := range a.shelves {
		rule := c.listeners[a.listener].rules[c.place(s)]
		fmt.Fprintf(&b, "rule of %s:\n%s%d documents\n", s.index, rule.yaml(s.index), len(s.papers))
	}
	c.t.Fatalf("%s%s", b.String(), wrong)
}

// labels reports whether the hits of the answer say which group they are of.
func (v *verdict) labels() bool { return v.state == "collapsed" && v.group }

// shows reports whether the answer shows what was folded.
func (v *verdict) shows() bool { return v.state == "collapsed" && v.expand != "off" }

// nearest makes the list of a search for nearest neighbours its own where nothing in the ranks that are looked at folds or is shown in another's place; else it cuts
// what is shown of at least as many as the rule's vector_window says to the length of the client's own.
func (c *contract) nearest(a ask, v *verdict) []int {
	c.t.Helper()
	own := a.clone()
	own.lone = true
	list := c.judged(own)
	looked := v.fold
	switch _, beside := a.members["aggs"]; {
	case c.typesense(): // the longer list is looked at
	case beside: // aggregations are of the client's own list, so that it is asked for first
		looked = collapse(list, min(v.window, 100), v.transitive)
	default:
		looked = collapse(v.list, min(v.window, 100), v.transitive)
	}
	inPlace := slices.ContainsFunc(looked.groups, func(g foldGroup) bool { return g.leader != g.representative })
	if looked.folded == 0 && !inPlace || v.off || v.dry {
		v.list, v.fold = list, collapse(list, v.window, v.transitive)
		return v.fold.shown
	}
	return v.fold.shown[:min(len(list), len(v.fold.shown))]
}
