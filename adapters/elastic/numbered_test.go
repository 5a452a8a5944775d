package elastic

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// revised makes documents of some texts, mixed, of one index or of two.
func revised(t *testing.T, r *rand.Rand, n, indices int) (list []adaptertest.Document) {
	t.Helper()
	rules := exchangeRules(t)
	for i := range n {
		text := r.IntN(n / 2)
		source := fmt.Sprintf(`{"n":%d,"title":"%d","body":"number %d of many texts with little in common but their length %d %d"}`,
			i, text, text, text*text, text*31)
		encoded, err := rules[0].SketchOf([]byte(source))
		if err != nil || encoded == nil {
			t.Fatal("no sketch", err)
		}
		source = strings.TrimSuffix(source, "}") + `,"neardup_sketch":"` + encoded.Text + `"}`
		list = append(list, adaptertest.Document{Index: fmt.Sprint("news-", 1+i%indices), ID: fmt.Sprint("d", i), Source: []byte(source)})
	}
	return list
}

// TestNumberedPages: pages whose hits are told by their sequence numbers are those whose hits are told by their ids, on one
// shard, on several, and where there are no numbers.
func TestNumberedPages(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 21))
	number := regexp.MustCompile(`"_seq_no":\d+`)
	for _, c := range []struct {
		name          string
		indices, more int // how many requests more than by ids, at most
		absent        string
	}{
		{"one shard", 1, 0, ""}, {"two shards", 2, 1, ""}, {"no numbers", 1, 1, `"_seq_no":-2`}, {"numbers hidden", 1, 1, `"was":1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			saved, picked := 0, 0
			rounds := max(effort.Rounds(60), 6)
			for range rounds {
				list := revised(t, r, 250, c.indices)
				plan, request := []string{"window 250\n", "window 250\nby n\n", "window 100\nby n\n"}[r.IntN(3)], movedRequest()
				client := []string{``, `,"seq_no_primary_term":true`, `,"_source":["title"]`, `,"_source":false`}[r.IntN(4)]
				request.Path, request.RawQuery = "/news-1,news-2/_search", ""
				request.Body = fmt.Appendf(nil, `{"from":%d,"size":%d%s}`, r.IntN(120), 1+r.IntN(12), client)
				answer := func(d Dialect) (body string, rounds int) {
					x := d.ParseSearch(d.Classify(request), request, parsePlan(t, plan))
					answer, err := adaptertest.Run(x, func(ask *adapters.Request) *adapters.Reply {
						rounds++
						if bytes.Contains(ask.Body, []byte(`"_none_"`)) {
							saved++
						}
						if bytes.Contains(ask.Body, []byte(`{"terms":{"_seq_no":`)) {
							picked++
						}
						reply := fakeEngine(ask, func([]string) []adaptertest.Document { return list })
						if c.absent != "" && bytes.Contains(ask.Body, []byte(`"_none_"`)) {
							reply.Body = number.ReplaceAll(reply.Body, []byte(c.absent))
						}
						return reply
					})
					if err != nil {
						t.Fatalf("%s: %v", request.Body, err)
					}
					return string(answer.Body), rounds
				}
				want, least := answer(Dialect{Named: true})
				got, rounds := answer(Dialect{})
				expect.Must(t, want, got, "%s, %s: by ids (-), by numbers (+)", plan, request.Body)
				if rounds > least+c.more {
					t.Errorf("%s, %s: %d requests, %d by ids", plan, request.Body, rounds, least)
				}
			}
			if saved < rounds/2 || (picked > 0) != (c.name == "one shard") {
				t.Errorf("%d readings without ids, %d picked by numbers", saved, picked)
			}
		})
	}
}
