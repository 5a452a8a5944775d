package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/differ"
)

// TestSamePages pages through more documents than a page holds, sorted by what all of them share, by scores and by a field.
func TestSamePages(t *testing.T) {
	eachFamily(t, func(f *family) []known { return f.known }, func(t *testing.T, d *diffing) { d.diff(t, d.family.pages()) })
}

// pageCases are 160 documents on three shards, some of them written twice, and the pages of several lists of them.
func pageCases() []differ.Case {
	var list []differ.Case
	add := func(name, head, body string) {
		if body != "" {
			head += "\nContent-Type: application/json"
		}
		list = append(list, differ.Case{Name: name, Requests: []differ.Request{{Head: ownNames(head), Body: []byte(body)}}})
	}
	var lines strings.Builder
	for i := range 200 {
		id := i % 160 // what is written again leaves a deleted document behind, which scores may count
		fmt.Fprintf(&lines, "{\"index\":{\"_id\":\"%d\"}}\n{\"n\":%d,\"even\":%t,\"title\":%q,\"body\":%q}\n", id, i, i%2 == 0,
			"common "+words(i, 40), strings.Repeat("common ", 1+i%3)+words(500+i, 200))
	}
	add("setup: drop", "DELETE /differ-p?ignore_unavailable=true", "")
	add("setup: index", "PUT /differ-p", `{"settings":{"number_of_shards":3,"number_of_replicas":0,"refresh_interval":-1}}`)
	add("setup: documents", "POST /differ-p/_bulk?refresh=true", lines.String())
	for _, size := range []int{7, 50} {
		for from := 0; from <= 170; from += 17 {
			page := fmt.Sprintf(`"from":%d,"size":%d,"_source":["n"]`, from, size)
			add("ties", "POST /differ-p/_search", "{"+page+"}")
			add("scores", "POST /differ-p/_search", `{"query":{"match":{"body":"common"}},`+page+"}")
			add("a field", "POST /differ-p/_search", `{"sort":[{"even":"desc"},{"n":"asc"}],`+page+"}")
			add("two in one", "POST /differ-p/_msearch", "{}\n{"+page+"}\n{}\n{\"sort\":[{\"n\":\"desc\"}],"+page+"}\n")
			add("a few, counted up to ten", "POST /differ-p/_search",
				`{"track_total_hits":10,"query":{"term":{"even":true}},"aggs":{"n":{"max":{"field":"n"}}},`+page+"}")
		}
	}
	add("all", "GET /differ-p/_search?size=200", "")
	add("all, by score", "GET /differ-p/_search?size=200&q=common", "")
	add("beyond", "GET /differ-p/_search?from=160&size=10&q=common", "")
	add("teardown", "DELETE /differ-p", "")
	return list
}
