package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
)

// leaf is a document of a corpus made at random for walks.
type leaf struct {
	ID    string  `json:"id"`
	Title string  `json:"title"`
	Body  string  `json:"body"`
	Place int     `json:"place"`          // many share one
	Day   string  `json:"day"`            // a date, many share one
	Word  *string `json:"word"`           // a keyword, often none
	Share float64 `json:"share"`          // a number with decimals
	Bare  bool    `json:"bare,omitempty"` // it was stored without a sketch
}

// leaves makes n documents of which about the share are near to one before.
func leaves(r *rand.Rand, n int, share float64) []leaf {
	words := make([]string, 400)
	for i := range words {
		words[i] = fmt.Sprintf("%c%c%c%d", 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26), r.IntN(100))
	}
	list := make([]leaf, n)
	for i := range list {
		var text []string
		for range 25 + r.IntN(30) {
			text = append(text, words[r.IntN(len(words))])
		}
		if i > 0 && r.Float64() < share {
			text = strings.Fields(list[r.IntN(i)].Body)
			for range r.IntN(4) {
				text[r.IntN(len(text))] = words[r.IntN(len(words))]
			}
		}
		l := leaf{ID: fmt.Sprintf("d%05d", i), Title: "leaf", Body: strings.Join(text, " "), Place: r.IntN(1 + n/5), Share: float64(r.IntN(5*n)) / 8}
		l.Day = fmt.Sprintf("2024-%02d-%02dT%02d:00:00Z", 1+r.IntN(12), 1+r.IntN(28), r.IntN(24))
		if r.IntN(3) > 0 {
			word := words[r.IntN(40)]
			l.Word = &word
		}
		l.Bare = r.IntN(5) == 0
		list[i] = l
	}
	return list
}

// plant stores the leaves: most through the sidecar, the bare ones directly.
func plant(t *testing.T, direct api, through, index string, shards int, list []leaf) {
	t.Helper()
	call(t, direct.e, "DELETE", direct.base+"/"+index, "") // of a run that was broken off
	direct.drop(t, index)
	call(t, direct.e, "PUT", through+"/"+index, fmt.Sprintf(`{"settings":{"number_of_shards":%d,"number_of_replicas":0,"max_result_window":20000},`+
		`"mappings":{"properties":{"id":{"type":"keyword"},"title":{"type":"text"},"body":{"type":"text"},"place":{"type":"integer"},`+
		`"day":{"type":"date"},"word":{"type":"keyword"},"share":{"type":"double"},"bare":{"type":"boolean"}}}}`, shards)).want(t, 200)
	for _, bare := range []bool{false, true} {
		base := through
		if bare {
			base = direct.base
		}
		for part := range slices.Chunk(list, 2000) {
			var b strings.Builder
			for _, l := range part {
				if l.Bare != bare {
					continue
				}
				line := must(json.Marshal(l))(t)
				fmt.Fprintf(&b, "{\"index\":{\"_index\":%q,\"_id\":%q}}\n%s\n", index, l.ID, line)
			}
			if b.Len() > 0 {
				api{direct.e, base}.loadLines(t, index, b.String())
			}
		}
	}
	direct.refresh(t, index)
}

// newJudge returns the definition for a list of leaves.
func newJudge(t *testing.T, direct api, list []leaf, window int) *oracle {
	t.Helper()
	texts := make([]corpus.Document, len(list))
	for i, l := range list {
		texts[i] = corpus.Document{ID: l.ID, Title: l.Title, Body: l.Body}
	}
	o := newOracle(t, direct, texts)
	o.window = window
	return o
}

// walk is how a list is walked.
type walk struct {
	e     *engines.Engine
	bases func() string // whom to ask for the next page
	index string
	query string // JSON
	sort  string // JSON, empty for none
	size  int
	pit   bool
	more  string         // further members of the body, with a comma in front
	url   string         // parameters
	each  func(page int) // between pages
}

// walked is what a walk showed.
type walked struct {
	ids     []string
	pages   []int
	totals  []int // of each reply
	headers []string
}

// lost reports how many pages said that the cursor was lost.
func (w walked) lost() (n int) {
	for _, h := range w.headers {
		if strings.Contains(h, "cursor=lost") {
			n++
		}
	}
	return n
}

// run walks the list to its end.
func (w walk) run(t *testing.T) (out walked) {
	t.Helper()
	pit := ""
	if w.pit {
		pit = openPIT(t, w.e, w.bases(), w.index)
		defer func() { closePIT(t, w.e, pit) }()
	}
	after := ""
	for page := range 3000 {
		body := fmt.Sprintf(`{"size":%d,"query":%s%s`, w.size, w.query, w.more)
		if w.sort != "" {
			body += `,"sort":` + w.sort
		}
		if after != "" {
			body += `,"search_after":` + after
		}
		path := "/" + w.index + "/_search?"
		if w.pit {
			path = "/_search?"
			body += fmt.Sprintf(`,"pit":{"id":%q,"keep_alive":"2m"}`, pit)
		}
		r := call(t, w.e, "POST", w.bases()+path+w.url, body+"}").want(t, 200)
		var reply struct {
			PIT  string `json:"pit_id"`
			Hits struct {
				Total struct{ Value int }
				Hits  []struct {
					ID   string          `json:"_id"`
					Sort json.RawMessage `json:"sort"`
				}
			}
		}
		decode(t, r.body, &reply)
		if reply.PIT != "" {
			pit = reply.PIT
		}
		out.headers, out.totals = append(out.headers, r.header.Get("Neardup")), append(out.totals, reply.Hits.Total.Value)
		if len(reply.Hits.Hits) == 0 {
			return out
		}
		for _, h := range reply.Hits.Hits {
			out.ids = append(out.ids, h.ID)
		}
		out.pages = append(out.pages, len(reply.Hits.Hits))
		after = string(reply.Hits.Hits[len(reply.Hits.Hits)-1].Sort)
		if w.each != nil {
			w.each(page)
		}
	}
	t.Fatal("the walk does not end")
	return out
}

// openPIT opens a point in time.
func openPIT(t *testing.T, e *engines.Engine, base, index string) string {
	t.Helper()
	path := "/" + index + "/_pit?keep_alive=2m"
	if e.Kind == engines.OpenSearch {
		path = "/" + index + "/_search/point_in_time?keep_alive=2m"
	}
	var reply struct {
		ID  string `json:"id"`
		PIT string `json:"pit_id"`
	}
	decode(t, call(t, e, "POST", base+path, "").want(t, 200).body, &reply)
	return reply.ID + reply.PIT
}

func closePIT(t *testing.T, e *engines.Engine, id string) {
	t.Helper()
	path, body := "/_pit", fmt.Sprintf(`{"id":%q}`, id)
	if e.Kind == engines.OpenSearch {
		path, body = "/_search/point_in_time", fmt.Sprintf(`{"pit_id":[%q]}`, id)
	}
	call(t, e, "DELETE", e.URL+path, body)
}

// always asks one sidecar, or the engine.
func always(base string) func() string { return func() string { return base } }

// full fails the test unless all pages but the last are of the size.
func (w walked) full(t *testing.T, size int) {
	t.Helper()
	for i, n := range w.pages {
		if n != size && i < len(w.pages)-1 {
			t.Errorf("page %d of %d holds %d hits, not %d", i+1, len(w.pages), n, size)
		}
	}
}
