package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// TestCursorDeepPages asks for the last pages that the engine's limit on from and size allows. They lack nothing, though they
// take ranks beyond it.
func TestCursorDeepPages(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			direct := api{e, e.URL}
			list := leaves(rand.New(rand.NewPCG(31, 2)), 10_900, 0.35)
			for i := range list {
				list[i].Bare = i%10 != 0
			}
			base := serveFile(t, walking(t, e, walkRule{match: "deep-*", window: 600}))
			plant(t, direct, base, "deep-1", 3, list)
			call(t, e, "PUT", e.URL+"/deep-1/_settings", `{"index.max_result_window":20000}`).want(t, 200)
			j := newJudge(t, direct, list, 600)
			for _, c := range []struct{ query, sort, more string }{
				{`{"match_all":{}}`, `,"sort":[{"place":"asc"},{"day":"desc"}]`, `,"track_total_hits":true`},
				{`{"match_all":{}}`, `,"sort":["id"]`, `,"_source":["id"],"aggs":{"n":{"max":{"field":"place"}}}`},
			} {
				call(t, e, "PUT", e.URL+"/deep-1/_settings", `{"index.max_result_window":20000}`).want(t, 200)
				rawPage := deepPage(t, e, e.URL, "deep-1", fmt.Sprintf(`{"size":11000,"query":%s%s,"_source":false}`, c.query, c.sort))
				call(t, e, "PUT", e.URL+"/deep-1/_settings", `{"index.max_result_window":10000}`).want(t, 200)
				want := j.collapsed(rawPage.ids)
				if len(want) == len(rawPage.ids) {
					t.Fatal("nothing folds")
				}
				for _, at := range [][2]int{{9990, 10}, {9000, 1000}, {0, 10}} {
					body := fmt.Sprintf(`{"from":%d,"size":%d,"query":%s%s%s}`, at[0], at[1], c.query, c.sort, c.more)
					got := deepPage(t, e, base, "deep-1", body)
					if diff := cmp.Diff(want[min(at[0], len(want)):min(at[0]+at[1], len(want))], got.ids); diff != "" {
						t.Errorf("%v %s, outcome %q: %s", at, c.sort, got.outcome, diff)
					}
					if strings.Contains(got.outcome, "engine_limit") || !strings.HasPrefix(got.outcome, "collapsed") {
						t.Errorf("%v %s: outcome %q", at, c.sort, got.outcome)
					}
					if bytes.Contains(got.reply.body, []byte("pit_id")) || bytes.Contains(got.reply.body, []byte("neardup")) {
						t.Errorf("something of ours is shown: %.300s", got.reply.body)
					}
					plain := call(t, e, "POST", e.URL+"/deep-1/_search", body).want(t, 200).body
					plain = storedSketch.ReplaceAll(plain, nil)
					sameDeepHits(t, plain, got.reply.body)
					sameAround(t, plain, got.reply.body)
				}
			}
			for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				if openContexts(t, e, "deep-1") == 0 { // they are closed behind the answer
					return
				}
			}
			t.Errorf("%d searches are left open", openContexts(t, e, "deep-1"))
		})
	}
}

// storedSketch is our field as it stands in a document behind another.
var storedSketch = regexp.MustCompile(`,"neardup_sketch":"[^"]*"`)

// deepPage asks for one page.
func deepPage(t *testing.T, e *engines.Engine, base, index, body string) page {
	t.Helper()
	r := call(t, e, "POST", base+"/"+index+"/_search", body).want(t, 200)
	p := page{outcome: r.header.Get("Neardup"), reply: r}
	for _, hit := range hitList(t, r.body) {
		p.ids = append(p.ids, idInHit(t, hit))
	}
	return p
}

// hitList returns the hits of a reply as they stand.
func hitList(t *testing.T, body []byte) [][]byte {
	t.Helper()
	root, err := adapters.Members(body)
	if err != nil {
		t.Fatal(err)
	}
	outer, err := adapters.Members(adapters.Get(root, "hits"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := adapters.Elements(adapters.Get(outer, "hits"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func idInHit(t *testing.T, hit []byte) string {
	t.Helper()
	members, err := adapters.Members(hit)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := adapters.Text(adapters.Get(members, "_id"))
	return id
}

// sameDeepHits fails the test unless the hits that two replies share have the same bytes.
func sameDeepHits(t *testing.T, want, got []byte) {
	t.Helper()
	direct := map[string]string{}
	for _, hit := range hitList(t, want) {
		direct[idInHit(t, hit)] = string(hit)
	}
	shared := 0
	for _, hit := range hitList(t, got) {
		if plain, ok := direct[idInHit(t, hit)]; ok {
			if shared++; plain != string(hit) {
				t.Errorf("a hit is\n%s\nnot\n%s", hit, plain)
				return
			}
		}
	}
}

// sameAround fails the test unless two replies are the same but for their hits and times.
func sameAround(t *testing.T, want, got []byte) {
	t.Helper()
	around := func(body []byte) string {
		root, err := adapters.Members(body)
		if err != nil {
			t.Fatal(err)
		}
		outer, err := adapters.Set(adapters.Get(root, "hits"), "hits", []byte("[]"))
		if err != nil {
			t.Fatal(err)
		}
		if body, err = adapters.Set(body, "hits", outer); err != nil {
			t.Fatal(err)
		}
		return string(untimed(body))
	}
	if a, b := around(want), around(got); a != b {
		t.Errorf("around the hits stands\n%s\nnot\n%s", b, a)
	}
}

// openContexts returns how many searches the engine keeps open on an index.
func openContexts(t *testing.T, e *engines.Engine, index string) int {
	t.Helper()
	var stats struct {
		All struct {
			Total struct {
				Search struct {
					Open int `json:"open_contexts"`
					PIT  int `json:"point_in_time_current"`
				}
			}
		} `json:"_all"`
	}
	if err := json.Unmarshal(call(t, e, "GET", e.URL+"/"+index+"/_stats/search", "").want(t, 200).body, &stats); err != nil {
		t.Fatal(err)
	}
	return stats.All.Total.Search.Open + stats.All.Total.Search.PIT
}
