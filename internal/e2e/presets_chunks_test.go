package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestPresetChunks retrieves passages by the distance of their vectors. Each was cut out three times, a few words on and shorter: the page
// holds as many different ones as were asked for.
func TestPresetChunks(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		const index, passages, size = "preset-chunks", 40, 10
		through := api{e, serveFile(t, ruled(t, e, fmt.Sprintf("match: %q, fields: [body], preset: chunks", index)))}
		through.vectorShelf(t, index)
		w := newWriter(9)
		var lines strings.Builder
		for p := range passages {
			source := w.words(140)
			for c, cut := range [][]string{source[:120], source[20:], source[30:90]} { // 100 and 60 words of the first
				n := p*3 + c
				if !through.typesense() {
					fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n", index, n)
				}
				fmt.Fprintf(&lines, `{"id":"%d","n":%d,"body":%q,"v":[%d,1]}`+"\n", n, n, text(cut), n)
			}
		}
		through.loadLines(t, index, lines.String())
		direct := api{e, e.URL}
		for from := 0; from < 3*size; from += size {
			near, _ := direct.neighbours(t, index, 0, 120, 120)
			var want []int
			seen := map[int]bool{}
			for _, n := range near {
				if !seen[n/3] {
					want = append(want, n)
				}
				seen[n/3] = true
			}
			got, r := through.neighbours(t, index, from, size, 3*size)
			if diff := cmp.Diff(want[from:from+size], got); diff != "" {
				t.Errorf("from %d, %s: %s", from, r.header.Get("Neardup"), diff)
			}
		}
	})
}

// vectorShelf makes an index for passages with vectors.
func (a api) vectorShelf(t *testing.T, index string) {
	t.Helper()
	api{a.e, a.e.URL}.drop(t, index)
	vector, settings := `{"type":"dense_vector","dims":2,"index":true,"similarity":"l2_norm"}`, `"number_of_shards":1`
	switch a.e.Kind {
	case engines.Typesense:
		call(t, a.e, "POST", a.base+"/collections", `{"name":"`+index+`","fields":[{"name":"n","type":"int64"},{"name":"body","type":"string"},`+
			`{"name":"v","type":"float[]","num_dim":2}]}`).want(t, 201)
		return
	case engines.OpenSearch:
		vector, settings = `{"type":"knn_vector","dimension":2,"method":{"name":"hnsw","engine":"lucene","space_type":"l2"}}`, `"index.knn":true,"number_of_shards":1`
	}
	call(t, a.e, "PUT", a.base+"/"+index, `{"settings":{`+settings+`},"mappings":{"properties":{"n":{"type":"integer"},"body":{"type":"text"},"v":`+vector+`}}}`).want(t, 200)
}

// neighbours asks for a page of the k nearest.
func (a api) neighbours(t *testing.T, index string, from, size, k int) ([]int, reply) {
	t.Helper()
	var r reply
	switch a.e.Kind {
	case engines.Typesense:
		path := fmt.Sprintf("/collections/%s/documents/search?q=*&page=%d&per_page=%d&vector_query=%s",
			index, from/size+1, size, url.QueryEscape(fmt.Sprintf("v:([0.001,1],k:%d)", k)))
		r = call(t, a.e, "GET", a.base+path, "")
	case engines.OpenSearch:
		r = call(t, a.e, "POST", a.base+"/"+index+"/_search", fmt.Sprintf(`{"from":%d,"size":%d,"query":{"knn":{"v":{"vector":[0,1],"k":%d}}}}`, from, size, k))
	default:
		r = call(t, a.e, "POST", a.base+"/"+index+"/_search",
			fmt.Sprintf(`{"from":%d,"size":%d,"knn":{"field":"v","query_vector":[0,1],"k":%d,"num_candidates":%d}}`, from, size, k, max(k, 200)))
	}
	return numbers(t, a.e, r.want(t, 200)), r
}
