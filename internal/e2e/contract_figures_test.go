package e2e

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// tally stands before an engine and counts what it is asked for and what it shows.
type tally struct {
	http.Handler
	mu       sync.Mutex
	searches int
	ranks    int // each rank of each request once, though it be shown in two contents
}

// tallied holds a reply back until it is counted.
type tallied struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *tallied) WriteHeader(status int)      { w.status = status }
func (w *tallied) Write(b []byte) (int, error) { return w.body.Write(b) }

var shownID = regexp.MustCompile(`"_id":"(p\d+)"|"id":"(p\d+)"`)

// ServeHTTP implements http.Handler.
func (s *tally) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kept := &tallied{ResponseWriter: w, status: 200}
	r.Header.Set("Accept-Encoding", "identity")
	s.Handler.ServeHTTP(kept, r)
	if strings.HasSuffix(r.URL.Path, "search") {
		seen := map[string]bool{}
		for _, id := range shownID.FindAllSubmatch(kept.body.Bytes(), -1) {
			seen[string(id[1])+string(id[2])] = true
		}
		s.mu.Lock()
		s.searches, s.ranks = s.searches+1, s.ranks+len(seen)
		s.mu.Unlock()
	}
	w.WriteHeader(kept.status)
	_, _ = w.Write(kept.body.Bytes()) // a client that is gone misses nothing
}

// reset returns the counts and begins anew.
func (s *tally) reset() (searches, ranks int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	searches, ranks, s.searches, s.ranks = s.searches, s.ranks, 0, 0
	return searches, ranks
}

// figureClients are clients of whose searches the cost is measured.
var figureClients = []string{"plain", "source-filtered", "neighbours"}

// figureAsk makes up a first page of a client.
func (c *contract) figureAsk(client string, s *shelf, size int) ask {
	from := c.r.IntN(len(s.papers) / 4)
	a := ask{shelves: []*shelf{s}, form: "search", size: size, members: map[string]string{}, params: map[string]string{}}
	to := from + len(s.papers)/3 + c.r.IntN(len(s.papers)/3)
	x := float64(c.r.IntN(400)) / 10
	if c.typesense() {
		a.members = map[string]string{"q": pick(c.r, "*", "the"), "query_by": "title,body",
			"filter_by": fmt.Sprintf("n:>%d && n:<%d", from, to)}
		switch client {
		case "source-filtered":
			a.members["include_fields"] = "id,title"
		case "neighbours":
			a.members = map[string]string{"q": "*", "vector_query": fmt.Sprintf("v:([%v,1], k:%d)", x, size)}
		}
		return a
	}
	a.members["query"] = fmt.Sprintf(`{"bool":{"must":[%s],"filter":[{"range":{"n":{"gt":%d,"lt":%d}}}]}}`,
		pick(c.r, `{"match_all":{}}`, `{"match":{"body":"the"}}`), from, to)
	switch {
	case client == "source-filtered":
		a.members["_source"] = pick(c.r, `["title"]`, `false`, `{"excludes":["body"]}`)
	case client == "neighbours" && c.e.Kind == engines.OpenSearch:
		a.members["query"] = fmt.Sprintf(`{"knn":{"v":{"vector":[%v,1],"k":%d}}}`, x, size)
	case client == "neighbours":
		delete(a.members, "query")
		a.members["knn"] = fmt.Sprintf(`{"field":"v","query_vector":[%v,1],"k":%d,"num_candidates":%d}`, x, size, max(size, 100))
	}
	return a
}

// needed returns how many ranks of the engine's list a page could not do without.
func (c *contract) needed(a ask, last string) int {
	c.t.Helper()
	a = a.clone()
	for _, name := range []string{"_source", "include_fields"} {
		delete(a.members, name)
	}
	if c.typesense() {
		a.members["include_fields"] = "id"
		if v := a.members["vector_query"]; v != "" {
			a.members["vector_query"] = regexp.MustCompile(`k:\d+`).ReplaceAllString(v, "k:250")
		}
		a.size = min(250, 4*a.size+20)
	} else {
		a.members["_source"] = `false`
		if v := a.members["knn"]; v != "" {
			a.members["knn"] = regexp.MustCompile(`"k":\d+,"num_candidates":\d+`).ReplaceAllString(v, `"k":250,"num_candidates":250`)
		}
		a.members["query"] = regexp.MustCompile(`"k":\d+`).ReplaceAllString(a.members["query"], `"k":250`)
		if a.members["query"] == "" {
			delete(a.members, "query")
		}
		a.size = 4*a.size + 20
	}
	result, r := c.send(c.e.URL, a, false)
	r.want(c.t, 200)
	ids := shownIDs(c, result)
	if at := slices.Index(ids, last); at >= 0 {
		return at + 1
	}
	return len(ids)
}

func shownIDs(c *contract, result []byte) (ids []string) {
	c.t.Helper()
	var hits []struct {
		ID       string `json:"_id"`
		Document struct{ ID string }
	}
	decode(c.t, rawHits(c, result), &hits)
	for _, h := range hits {
		ids = append(ids, h.ID+h.Document.ID)
	}
	return ids
}

// TestContractFiguresOfFirstPages measures, where three in ten documents are near-duplicates, how many first pages cost the
// engine one request, and how many ranks are read for each one that was needed.
func TestContractFiguresOfFirstPages(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		front := &tally{Handler: relay(t, e)}
		server := httptest.NewServer(front)
		t.Cleanup(server.Close)
		behind := *e
		behind.URL = server.URL
		c := newContract(t, &behind, seeded(t), 2, [][]*terms{{plainTerms(), plainTerms()}})
		c.e = e // asked directly
		for i, s := range c.shelves {
			s.press = newPress(t, c.r)
			s.press.even = true
			c.fill(s, scale(900, 1500), 0.42, func(int) int { return []int{0, past}[i] })
		}
		for i, s := range c.shelves {
			for _, client := range figureClients {
				c.figures(front, []string{"with sketches", "without"}[i], client, s)
			}
		}
	})
}

// figures measures one client on one index.
func (c *contract) figures(front *tally, index, client string, s *shelf) {
	c.t.Helper()
	warm, measured, once, hold := scale(3, 15), scale(12, 250), 0, 0
	all, fetched, wanted := 0, 0, 0
	var report strings.Builder
	for _, size := range []int{10, 20, 50, 100} {
		settled, read, needs, folds := 0, 0, 0, 0
		for i := range warm + measured {
			a := c.figureAsk(client, s, size)
			front.reset()
			result, r := c.send(c.listeners[0].base, a, true)
			searches, ranks := front.reset()
			state, figures := stated(r.header.Get("Neardup"))
			if r.status != 200 || state != "collapsed" {
				c.t.Fatalf("NEARDUP_SEED=%d %v: %d %s %.500s", c.seed, a, r.status, r.header.Get("Neardup"), r.body)
			}
			if i < warm {
				continue
			}
			if (figures["rounds"] == "1") != (searches == 1) {
				c.t.Errorf("NEARDUP_SEED=%d %v: %d requests, header %s", c.seed, a, searches, r.header.Get("Neardup"))
			}
			if searches == 1 {
				settled++
			}
			if figures["folded"] != "0" {
				folds++
			}
			ids := shownIDs(c, result)
			if len(ids) == 0 {
				c.t.Fatalf("NEARDUP_SEED=%d %v: an empty page", c.seed, a)
			}
			read, needs = read+ranks, needs+c.needed(a, ids[len(ids)-1])
		}
		fmt.Fprintf(&report, " %d: %.1f%%, %.2f, folds on %d of %d;", size,
			100*float64(settled)/float64(measured), float64(read)/float64(needs), folds, measured)
		once, all, hold = once+settled, all+measured, hold+folds
		fetched, wanted = fetched+read, wanted+needs
	}
	share, over := float64(once)/float64(all), float64(fetched)/float64(wanted)
	c.t.Logf("%s, %s: %.1f%% in one request, %.2f ranks for each needed;%s", index, client, 100*share, over, report.String())
	const wantShare, wantOver = 0.95, 1.6
	least := wantShare - 2.5*math.Sqrt(0.95*0.05/float64(all)) // so many could miss by chance where 95 % is the truth
	if share < least || over > wantOver || hold < all/2 {
		c.t.Errorf("NEARDUP_SEED=%d %s, %s: %.1f%% of first pages in one request (want %.0f), %.2f ranks for each needed (want %.1f), "+
			"folds on %d of %d", c.seed, index, client, 100*share, 100*wantShare, over, wantOver, hold, all)
	}
}
