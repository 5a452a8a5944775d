package elastic

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// TestRealWithoutSortValue pages through a list that is sorted by a field of which some documents have no value. OpenSearch 3.6 leaves these out of
// a list that it does not count to the end. Where the client has it counted, each text must be shown once.
func TestRealWithoutSortValue(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		const texts, copies, size = 60, 2, 7
		index := l.name + "a"
		l.create(index, `"title":{"type":"text"},"body":{"type":"text"},"at":{"type":"date"}`, 1)
		documents := map[string]stored{}
		for n := range texts * copies {
			d := stored{source: map[string]any{"body": sentence(n/copies, 0, 40)}}
			if n/copies%3 > 0 { // every third text has no date at all
				d.source["at"] = fmt.Sprintf("2025-03-%02dT12:%02d:00Z", 1+n%28, n%60)
			}
			documents[fmt.Sprint(n)] = d
		}
		l.put(index, documents)
		folding := pageRule(l)
		folding.Window = 1000
		shown := map[string]int{}
		for from := 0; from < texts+size; from += size {
			body := fmt.Sprintf(`{"from":%d,"size":%d,"track_total_hits":true,"query":{"match_all":{}},"sort":[{"at":"desc"}]}`, from, size)
			answer := expect.Value(l.answer(requestFor("POST", "/"+index+"/_search", "", body), planOf(rule.Rules{folding}, true, 0)))(t)
			var page struct {
				Hits struct {
					Hits []struct {
						Source struct{ Body string } `json:"_source"`
					}
				}
			}
			expect.OK(t, json.Unmarshal(answer.Body, &page))
			for _, hit := range page.Hits.Hits {
				shown[hit.Source.Body]++
			}
		}
		expect.Same(t, texts, len(shown), "texts that are shown")
		for text, times := range shown {
			expect.Same(t, 1, times, "how often it is shown: %s", text)
		}
	})
}
