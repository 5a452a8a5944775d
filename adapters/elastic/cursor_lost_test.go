package elastic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestLostCursors goes on from a cursor of which nothing is remembered: by the ranks in front of the page's first hit, as far
// as they can be had.
func TestLostCursors(t *testing.T) {
	texts := map[byte]string{
		'a': "one text of some words that are its own", 'b': "another text whose words are quite different ones",
		'c': "the third is about something else altogether again",
	}
	// Each hit is a letter for its text, its id and the value that it is sorted by.
	hits := func(list string) string {
		var out []string
		for _, h := range strings.Fields(list) {
			out = append(out, fmt.Sprintf(`{"_index":"news-1","_id":%q,"_score":null,"_source":{"title":%q},"sort":[%s]}`, h[:2],
				texts[h[0]], h[3:]))
		}
		return fmt.Sprintf(`{"hits":{"total":{"value":9,"relation":"eq"},"hits":[%s]}}`, strings.Join(out, ","))
	}
	for _, c := range []struct {
		name, after, own, before string
		status, window           int
		want                     string // ids
		lost                     bool
	}{
		{"within the window", "[2]", "a3:3 c4:4", "a1:1 b2:2 a3:3 c4:4", 200, 30, "c4", false},
		{"what the cursor leads past hides nothing", "[2]", "c4:4", "a1:1 b2:2 c3:2 c4:4", 200, 30, "c4", false},
		{"the first of a tie was shown", "[2]", "b4:4 c5:5", "a1:1 b2:2 c3:2 b4:4 c5:5", 200, 30, "c5", false},
		{"beyond the window", "[2]", "a3:3 b4:4 a5:5", "a1:1 b2:2", 200, 2, "a3b4a5", false},
		{"across the window's end", "[2]", "a3:3 b4:4", "a1:1 b2:2 a3:3", 200, 3, "b4", false},
		{"not to be found", "[2]", "a3:3 a4:4 c5:5", "a1:1 b2:2", 200, 30, "a3c5", true},
		{"refused", "[2]", "a3:3 a4:4 c5:5", "", 429, 30, "a3c5", true},
		{"no list", "[2]", "a3:3 a4:4", "", 200, 30, "a3", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			class, r := searchFor("/news-1/_search", "",
				`{"size":3,"sort":["n"],"search_after":`+c.after+`,"track_total_hits":true,"aggs":{"m":{}}}`)
			plan, kept := searchPlan(t, false), adaptertest.Cursors{}
			plan.Cursors = kept
			plan.Scope = func(string) adapters.Scope {
				return adapters.Scope{Configured: true, Window: c.window, Texts: []string{"title", "body"}}
			}
			asks := 0
			answer := expect.Value(adaptertest.Run((Dialect{}).ParseSearch(class, r, plan), func(ask *adapters.Request) *adapters.Reply {
				asks++
				body, reply := string(ask.Body), fakeReply(200, []byte(hits(c.own)))
				switch {
				case strings.Contains(body, "search_after"):
					if !strings.Contains(body, `"from":0`) || !strings.Contains(body, `"search_after":[2]`) {
						t.Errorf("asked %s", body)
					}
				case c.status == 0:
					t.Errorf("the ranks before were asked for: %s", body)
				default:
					want := fmt.Sprintf(`{"sort":["n"],"from":0,"size":%d,"_source":["body","title"],`+
						`"track_total_hits":false,"docvalue_fields":["neardup_sketch"]}`, c.window)
					if diff := cmp.Diff(want, body); diff != "" && asks > 2 {
						t.Error(diff)
					}
					reply = fakeReply(c.status, []byte(hits(c.before)))
					if c.status != 200 || c.name == "no list" {
						reply.Body = fakeError("no")
					}
				}
				return reply
			}))(t)
			got := ""
			for _, h := range fakeHits(answer.Body)[0] {
				got += idIn(t, h)
			}
			o := answer.Outcomes[0]
			if got != c.want || o.CursorLost != c.lost || o.Window != c.window || o.Rounds != asks || asks > 5 ||
				(len(kept) > 0) == (c.lost || c.want == "") {
				t.Errorf("%s, %+v after %d asks, %d kept", got, o, asks, len(kept))
			}
		})
	}
}

func idIn(t *testing.T, hit string) string {
	t.Helper()
	members := expect.Value(jsonedit.Members([]byte(hit)))(t)
	id, _ := jsonedit.Text(jsonedit.Get(members, "_id"))
	return id
}
