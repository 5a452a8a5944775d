package elastic

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestMovedListIsReadInAPointInTime has the list change between the reading of sketches and that of sources, once or with each
// reading.
func TestMovedListIsReadInAPointInTime(t *testing.T) {
	rules := exchangeRules(t)
	document := func(n int) adaptertest.Document {
		text := fmt.Sprintf(`{"title":"%d","body":"number %d of many texts that have little in common but their length %d %d %d"}`,
			n, n, n*n, n*7, n*31)
		encoded, err := rules[0].SketchOf([]byte(text))
		if err != nil || encoded == nil {
			t.Fatal("no sketch", err)
		}
		source := strings.TrimSuffix(text, "}") + `,"neardup_sketch":"` + encoded.Text + `"}`
		return adaptertest.Document{Index: "news-1", ID: fmt.Sprint(n), Source: []byte(source)}
	}
	var documents []adaptertest.Document
	for n := range 300 {
		documents = append(documents, document(n))
	}
	still := expect.Value(adaptertest.Run(Dialect{}.ParseSearch(Dialect{}.Classify(movedRequest()), movedRequest(), parsePlan(t, "window 250\n")),
		func(ask *adapters.Request) *adapters.Reply {
			ask.RawQuery = ""
			return fakeEngine(ask, func([]string) []adaptertest.Document { return documents })
		}))(t)
	want := fakeHits(still.Body)[0]
	for name, refusal := range map[string]int{"granted": 0, "forbidden": 403, "busy": 429} {
		for _, openSearch := range []bool{false, true} {
			t.Run(fmt.Sprint(name, openSearch), func(t *testing.T) {
				d := Dialect{OpenSearch: openSearch}
				request := movedRequest()
				plan := parsePlan(t, "window 250\n")
				parsed := d.ParseSearch(d.Classify(request), request, plan)
				if parsed.Left() {
					t.Fatal(parsed.Reason)
				}
				asked, searches := []string{}, 0
				answer, err := adaptertest.Run(parsed, func(ask *adapters.Request) *adapters.Reply {
					asked = append(asked, ask.Method+" "+ask.Path+"?"+ask.RawQuery)
					if ask.Unanswered {
						asked[len(asked)-1] += string(ask.Body)
					}
					expect.Same(t, []string{"mine"}, ask.Header["Authorization"], "who asks %s", ask.Path)
					inPoint := ask.Path == "/_search"
					switch {
					case strings.HasSuffix(ask.Path, "/_pit") || strings.HasSuffix(ask.Path, "/point_in_time"):
						if refusal == 403 {
							return fakeReply(refusal, fakeError("no"))
						}
						return fakeReply(200, []byte(`{"id":"p1","pit_id":"p1"}`))
					case inPoint && refusal == 429:
						return fakeReply(refusal, fakeError("no"))
					case inPoint:
						if strings.Contains(ask.RawQuery, "preference") || !bytes.Contains(ask.Body, []byte(`"pit":{"id":"p1"`)) {
							t.Errorf("asked in the point in time: %s %s", ask.RawQuery, ask.Body)
						}
					default:
						searches++
					}
					list := documents
					if !inPoint { // a document comes in front of all others between any two readings
						for n := range searches {
							list = append([]adaptertest.Document{document(1000 + n)}, list...)
						}
					}
					ask.Path, ask.RawQuery = "/news-1/_search", ""
					ask.Body, _ = jsonedit.Cut(ask.Body, func(key string) bool { return key == "pit" })
					reply := fakeEngine(ask, func([]string) []adaptertest.Document { return list })
					if inPoint {
						reply.Body = append([]byte(`{"pit_id":"p1",`), reply.Body[1:]...)
					}
					return reply
				})
				if refusal == 429 { // it is given back all the same
					if last := asked[len(asked)-1]; err == nil || !strings.HasPrefix(last, "DELETE ") {
						t.Errorf("%v after %q", err, asked)
					}
					return
				}
				expect.OK(t, err)
				checkPointed(t, d, asked, answer, refusal)
				if diff := cmp.Diff(want, fakeHits(answer.Body)[0]); diff != "" && refusal == 0 {
					t.Error(diff)
				}
			})
		}
	}
}

// checkPointed holds what was asked and answered to what it is to be where the list moved at once.
func checkPointed(t *testing.T, d Dialect, asked []string, answer *adaptertest.Answer, refusal int) {
	t.Helper()
	open, closing := "POST /news-1/_pit?preference=me&keep_alive=1m", `DELETE /_pit?{"id":"p1"}`
	if d.OpenSearch {
		open, closing = "POST /news-1/_search/point_in_time?preference=me&keep_alive=1m&allow_partial_pit_creation=false", `DELETE `+
			`/_search/point_in_time?{"pit_id":["p1"]}`
	}
	outside, inside := "POST /news-1/_search?preference=me&pretty", "POST /_search?pretty"
	want, rounds := []string{outside, outside, open, inside, inside, closing}, 5
	if refusal != 0 {
		want, rounds = []string{outside, outside, open, outside}, 4
	}
	expect.Same(t, want, asked, "the requests")
	hits := fakeHits(answer.Body)[0]
	if len(hits) != 20 || bytes.Contains(answer.Body, []byte("pit_id")) || answer.Outcomes[0].Rounds != rounds {
		t.Errorf("%d hits in %d rounds: %.200s", len(hits), answer.Outcomes[0].Rounds, answer.Body)
	}
}

func movedRequest() *adapters.Request {
	return &adapters.Request{
		Method: "POST", Path: "/news-1/_search", RawQuery: "preference=me&pretty",
		Header: adapters.Header{"Authorization": {"mine"}, "Content-Type": {"application/json"}},
		// The page's hits can't be picked from such a list: they are read where they stood.
		Body: []byte(`{"from":150,"size":20,"query":{"neural":{}}}`),
	}
}
