package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/proxy"
)

// scroller is an engine with one scroll, whose pages are answered but once each, as they are given.
type scroller struct {
	t     *testing.T
	mu    sync.Mutex
	first string   // the body that opened it
	mark  string   // the name of a query in it
	pages []string // hits of each page; a page "cut" breaks off, a page "status" is an error
	gzip  bool
	asked int
	ended int
}

func (s *scroller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == "DELETE":
		s.ended++
		return
	case !strings.Contains(r.URL.Path, "_search"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"news-1":{"aliases":{},"mappings":{"properties":{"neardup_sketch":{"type":"binary","doc_values":true}}}}}`)
		return
	case strings.HasSuffix(r.URL.Path, "/news-1/_search"):
		s.first, s.mark, s.asked = string(body), "", 0
		if at := strings.Index(s.first, `"neardup_scroll `); at >= 0 {
			_ = json.NewDecoder(strings.NewReader(s.first[at:])).Decode(&s.mark)
		}
	}
	page := `[]`
	if s.asked < len(s.pages) {
		page = s.pages[s.asked]
	}
	s.asked++
	if page == "status" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	mark := ""
	if s.mark != "" {
		quoted, _ := json.Marshal(s.mark)
		mark = `,"matched_queries":[` + string(quoted) + `]`
	}
	reply := fmt.Sprintf(`{"_scroll_id":"s1","hits":{"total":{"value":9},"hits":%s}}`, strings.ReplaceAll(page, `,"M":0`, mark))
	w.Header().Set("Content-Type", "application/json")
	if s.gzip {
		w.Header().Set("Content-Encoding", "gzip")
		reply = zipped(reply)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
	if page == "cut" {
		_, _ = io.WriteString(w, reply[:10])
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, reply)
}

// texts returns hits, each with its id and a text of one of a few words.
func texts(pairs ...string) string {
	var hits []string
	for i := 0; i < len(pairs); i += 2 {
		hits = append(hits, fmt.Sprintf(`{"_index":"news-1","_id":%q,"_source":{"title":%q,"n":"%s"},"fields":{}%s}`, pairs[i], pairs[i+1], strings.Repeat("x", 10), `,"M":0`))
	}
	return "[" + strings.Join(hits, ",") + "]"
}

// copies returns pages of one hit each, A, B and so on, all of one text.
func copies(n int, text string) (pages []string) {
	for i := range n {
		pages = append(pages, texts(string(rune('A'+i)), text))
	}
	return pages
}

const scrollOn = "Neardup-Control: on"

// TestScrollPagesComeOnce collapses the pages of a scroll, of which none can be asked for again.
func TestScrollPagesComeOnce(t *testing.T) {
	one, two, three := "one text of some words", "another of other words altogether", "the third of them"
	long := `[{"_index":"news-1","_id":"L","_source":{"title":"long","n":"` + strings.Repeat("y", 9<<20) + `"},"M":0}]`
	for _, c := range []struct {
		name  string
		pages []string
		want  []string // ids of each page, "" for one that is refused
		asks  int      // how often the engine is asked
		limit int64
	}{
		{"pages without a hit left", []string{texts("a", one), texts("b", one), texts("c", one), texts("d", two)}, []string{"a", "d", ""}, 5, 0},
		{"more pages without a hit left than one answer waits for", append(append([]string{texts("a", one)}, copies(20, one)...), texts("x", one, "d", two)), []string{"a", "P", "d", ""}, 23, 0},
		{"a refusal behind a page without a hit left", []string{texts("a", one), texts("b", one), "status"}, []string{"a", "503"}, 3, 0},
		{"a break behind a page without a hit left", []string{texts("a", one), texts("b", one), "cut"}, []string{"a", "502"}, 3, 0},
		{"a page too large", []string{texts("a", one), long, texts("b", one, "c", three)}, []string{"a", "L", "c", ""}, 4, 8 << 20},
		{"hits that are none", []string{texts("a", one), `[{"_id":1,"M":0}]`, texts("b", one)}, []string{"a", "?", ""}, 4, 0},
	} {
		for _, zip := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " gzip ", zip), func(t *testing.T) {
				e := &scroller{t: t, pages: c.pages, gzip: zip}
				f := serve(t, e, func(e *proxy.Engine) { e.Rules[0].Compute = true; e.Limits.MaxReply = c.limit })
				a := do(t, "POST", f.url+"/news-1/_search?scroll=1m", `{"size":2}`, scrollOn, "Accept-Encoding: gzip")
				for i, want := range c.want {
					body := a.body
					if a.header.Get("Content-Encoding") == "gzip" {
						body = unzipped(t, body)
					}
					switch {
					case len(want) == 3:
						if strconv.Itoa(a.status) != want {
							t.Errorf("page %d: status %d, want %s: %.200s", i, a.status, want, body)
						}
					case want == "?" && strings.Contains(body, "neardup"):
						t.Errorf("page %d shows something of ours: %.300s", i, body)
					case want == "?":
						if a.status != 200 || !strings.Contains(body, `"_id":1`) || !strings.HasPrefix(a.header.Get("Neardup"), "bypassed") {
							t.Errorf("page %d: %d %q %.200s", i, a.status, a.header.Get("Neardup"), body)
						}
					case ids(body) != want:
						t.Errorf("page %d holds %q, want %q: %q", i, ids(body), want, a.header.Get("Neardup"))
					case strings.Contains(body, "neardup"):
						t.Errorf("page %d shows something of ours: %.300s", i, body)
					}
					a = do(t, "POST", f.url+"/_search/scroll", `{"scroll_id":"s1","scroll":"1m"}`, scrollOn, "Accept-Encoding: gzip")
				}
				if e.asked != c.asks+1 { // the last page was asked for behind the loop
					t.Errorf("the engine was asked %d times, want %d", e.asked-1, c.asks)
				}
			})
		}
	}
}

// TestScrollsOfOthers: a scroll that another client, or no one, had collapsed passes byte for byte.
func TestScrollsOfOthers(t *testing.T) {
	e := &scroller{t: t, pages: []string{texts("a", "one", "b", "one"), texts("c", "one"), `[ {"_id" : "x"} ]`}}
	f := serve(t, e, func(e *proxy.Engine) { e.Rules[0].Compute = true })
	a := do(t, "POST", f.url+"/news-1/_search?scroll=1m", `{"size":2}`)
	if ids(a.body) != "a b" || a.header.Get("Neardup") != "bypassed; reason=export" {
		t.Errorf("%q %s", a.header.Get("Neardup"), a.body)
	}
	for _, page := range e.pages[1:] {
		a := do(t, "POST", f.url+"/_search/scroll", `{"scroll_id":"s1"}`, scrollOn)
		if want := `{"_scroll_id":"s1","hits":{"total":{"value":9},"hits":` + strings.ReplaceAll(page, `,"M":0`, "") + `}}`; a.body != want {
			t.Errorf("got %s\nwant %s", a.body, want)
		}
		if a.header.Get("Neardup") != "bypassed; reason=export" {
			t.Errorf("header %q", a.header.Get("Neardup"))
		}
	}
	a = do(t, "POST", f.url+"/news-1/_search?scroll=1m", `{"size":2}`, scrollOn, "Authorization: me")
	b := do(t, "POST", f.url+"/_search/scroll", `{"scroll_id":"s1"}`, "Authorization: you")
	if ids(a.body) != "a" || ids(b.body) != "c" || !strings.Contains(b.header.Get("Neardup"), "cursor=lost") {
		t.Errorf("another client is told by what this one saw: %q %s", b.header.Get("Neardup"), b.body)
	}
}
