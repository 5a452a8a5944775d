package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/engines"
)

// TestContractCursors walks lists by search_after, in a point in time and without: the pages together are the collapsed list,
// each is full until it ends, and each hit is the engine's own. Where representatives are chosen by more than rank, and with
// components, the walk is the engine's own.
func TestContractCursors(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		c := randomContract(t, e, scale(6, 10), scale(300, 1500))
		for range effort.Rounds(scale(12, 80)) {
			a := c.walkable()
			if a.form == "get" {
				a.members = map[string]string{}
			}
			for _, name := range []string{"aggs", "track_total_hits", "q", "suggest"} {
				delete(a.members, name)
			}
			clear(a.params)
			a.from, a.shelves = 0, a.shelves[:1] // where ids tie, the engine's own cursors skip hits
			a.form, a.beside, a.by = "search", false, pick(c.r, "url", "header", "body")
			a.members["query"] = pick(c.r, `{"match_all":{}}`, `{"match":{"body":"the"}}`)
			a.members["sort"] = pick(c.r, `[{"n":"asc"},{"id":"desc"}]`, `[{"id":"asc"}]`, `["_score",{"id":"asc"}]`)
			if _, filtered := a.members["_source"]; c.r.IntN(2) == 0 && filtered {
				delete(a.members, "_source")
			}
			delete(a.controls, "neardup")
			delete(a.controls, "neardup_expand")
			delete(a.controls, "neardup_explain")
			delete(a.controls, "neardup_totals")
			if w := c.wishes(a); w.expand != "off" || w.dry || w.collapsed {
				continue
			}
			a.size = max(a.size, len(c.whole(a))/scale(10, 40)+1)
			c.walkCursor(a, c.r.IntN(2) == 0)
		}
	})
}

// walkCursor walks one list and holds it against the definition.
func (c *contract) walkCursor(a ask, frozen bool) {
	c.t.Helper()
	list, w := c.judged(a), c.wishes(a)
	shown, state := collapse(list, w.window, w.transitive).shown, "collapsed"
	for i, r := range c.listeners[a.listener].rules { // a search in a point in time names no index, so that all rules count
		if (frozen || c.shelves[i] == a.shelves[0]) && (r.transitive || r.by.by != "") {
			state = "bypassed"
		}
	}
	var want []string
	for _, rank := range shown {
		want = append(want, list[rank].raw)
	}
	if state == "bypassed" {
		want = nil
		for _, h := range list {
			want = append(want, h.raw)
		}
	}
	var got []string
	after, point := "", ""
	if frozen {
		point = openPIT(c.t, c.e, c.listeners[a.listener].base, a.target())
	}
	for {
		hits, header := c.cursorPage(a, after, point)
		if !strings.HasPrefix(header, state) && !(state == "bypassed" && after == "") || strings.Contains(header, "cursor=lost") {
			c.t.Fatalf("NEARDUP_SEED=%d %v, after %s: header %q, want %s", c.seed, a, after, header, state)
		}
		if state == "bypassed" && strings.HasPrefix(header, "collapsed") {
			return // a first page is no cursor yet, and is collapsed
		}
		if after = c.take(hits, frozen, &got); len(hits) < a.size {
			break
		}
	}
	if frozen {
		for i := range want {
			want[i] = c.unsorted(want[i])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		rule := c.listeners[a.listener].rules[c.place(a.shelves[0])].yaml(a.shelves[0].index)
		c.t.Fatalf("NEARDUP_SEED=%d %v in a point in time: %v, rules:\n%s: the definition (-), the pages (+):\n%.3000s", c.seed, a,
			frozen, rule, diff)
	}
}

// take adds hits to a list and returns the sort values of the last.
func (c *contract) take(hits []json.RawMessage, frozen bool, got *[]string) (after string) {
	c.t.Helper()
	for _, raw := range hits {
		text := string(raw)
		after = string(find(c.parts(raw), "sort"))
		if frozen { // the engine adds a value of its own to them
			text = c.unsorted(text)
		}
		*got = append(*got, text)
	}
	return after
}

func (c *contract) unsorted(hit string) string {
	c.t.Helper()
	var left []part
	for _, p := range c.parts([]byte(hit)) {
		if p.key != "sort" {
			left = append(left, p)
		}
	}
	return joinedParts(left)
}

// cursorPage asks for the page behind the sort values.
func (c *contract) cursorPage(a ask, after, point string) (hits []json.RawMessage, header string) {
	c.t.Helper()
	method, path, body, headers := c.request(a, true)
	body = strings.Replace(body, `"from":0,`, "", 1)
	if after != "" {
		body = `{"search_after":` + after + `,` + body[1:]
	}
	if point != "" {
		_, query, _ := strings.Cut(path, "?")
		path, body = "/_search?"+query, fmt.Sprintf(`{"pit":{"id":%q,"keep_alive":"2m"},%s`, point, body[1:])
	}
	r := call(c.t, c.e, method, c.listeners[a.listener].base+path, body, headers...).want(c.t, 200)
	decode(c.t, rawHits(c, r.body), &hits)
	return hits, r.header.Get("Neardup")
}
