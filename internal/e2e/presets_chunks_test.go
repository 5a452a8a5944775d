package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// TestPresetChunks retrieves passages by the distance of their vectors. Each was cut out three times, a few words on and shorter: the page
// holds as many different ones as were asked for.
func TestPresetChunks(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const index, passages, size = "preset-chunks", 40, 10
	through := api{e, serveFile(t, ruled(t, e, fmt.Sprintf("match: %q, fields: [body], preset: chunks", index)))}
	through.drop(t, index)
	call(t, e, "POST", through.base+"/collections", `{"name":"`+index+`","fields":[{"name":"n","type":"int64"},{"name":"body","type":"string"},`+
		`{"name":"v","type":"float[]","num_dim":2}]}`).want(t, 201)
	w := newWriter(9)
	var lines strings.Builder
	var want []int
	for p := range passages {
		source := w.words(140)
		for c, cut := range [][]string{source[:120], source[20:], source[30:90]} { // 100 and 60 words of the first
			fmt.Fprintf(&lines, `{"id":"%d","n":%d,"body":%q,"v":[%d,1]}`+"\n", p*3+c, p*3+c, text(cut), p*3+c)
		}
		want = append(want, p*3)
	}
	through.loadLines(t, index, lines.String())
	for from := 0; from < 3*size; from += size {
		path := fmt.Sprintf("/collections/%s/documents/search?q=*&page=%d&per_page=%d&vector_query=%s",
			index, from/size+1, size, url.QueryEscape(fmt.Sprintf("v:([0.001,1],k:%d)", 3*size)))
		r := call(t, e, "GET", through.base+path, "").want(t, 200)
		same(t, want[from:from+size], numbers(t, e, r), "from %d, %s", from, r.header.Get("Neardup"))
	}
}
