package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/proxy"
)

// together is a dialect whose searches ask for so many things at once and answer with what came, in order.
type together struct {
	elastic.Dialect
	asks int
}

func (d together) ParseSearch(_ adapters.Class, r *adapters.Request, p adapters.Plan) *adapters.Searches {
	return &adapters.Searches{Plain: r, List: []adapters.Search{d}, Single: true, Plan: p}
}

func (d together) Asked() *adapters.Asked {
	return &adapters.Asked{Size: 1, Limit: 1, Scope: adapters.Scope{Window: 1}}
}

func (d together) Narrowed(error) adapters.Search { return nil }

func (d together) Refusal([]*adapters.Request, *adapters.Reply) error { return adapters.ErrRefused }

func (d together) Requests(_ *adapters.Reading, replies []*adapters.Reply) (list []*adapters.Request, _ error) {
	if len(replies) > 0 {
		return nil, nil
	}
	for n := range d.asks {
		list = append(list, &adapters.Request{Method: "POST", Path: "/part/" + string(rune('a'+n))})
	}
	return list, nil
}

// Listing takes the bodies of all replies for one hit.
func (d together) Listing(_ *adapters.Reading, replies []*adapters.Reply) (*adapters.Listing, error) {
	all := ""
	for _, r := range replies {
		all += string(r.Body)
	}
	return &adapters.Listing{Hits: []rule.Seen{{ID: all}}, Framed: true}, nil
}

func (d together) Render(frame *adapters.Listing, _ []*rule.Seen, _ []*adapters.Group, _ int) (adapters.Pieces, error) {
	return adapters.Pieces{[]byte(frame.Hits[0].ID)}, nil
}

func (d together) Name(*rule.Seen) []byte { return []byte("{}") }

func (d together) Clean(raw []byte) []byte { return raw }

// What a search asks for together is under way together, and comes back in its order; where one of it is refused, that is the answer,
// and where more is asked for than may be, the client's own search is sent.
func TestRequestsTogether(t *testing.T) {
	for _, c := range []struct {
		name, odd string // what becomes of the second
		asks      int
		status    int
		want      string
	}{
		{"all", "", adapters.MaxAtOnce, 200, "abcd"},
		{"refused", "refuse", 3, 429, "no"},
		{"cut", "cut", 3, 502, "can't be reached"},
		{"too many", "", adapters.MaxAtOnce + 1, 200, "own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			here, all := atomic.Int64{}, make(chan struct{})
			e := newEngine("news-1")
			e.answer = func(w http.ResponseWriter, a arrival) {
				part, ok := strings.CutPrefix(a.uri, "/part/")
				if !ok {
					_, _ = io.WriteString(w, "own")
					return
				}
				if here.Add(1) == int64(c.asks) {
					close(all)
				}
				select {
				case <-all:
				case <-time.After(30 * time.Second):
					t.Error("a request waits for another")
				}
				switch {
				case part == "b" && c.odd == "cut":
					panic(http.ErrAbortHandler)
				case part == "b" && c.odd == "refuse":
					w.WriteHeader(http.StatusTooManyRequests)
					part = "no"
				}
				time.Sleep(time.Duration(max('e'-int(part[0]), 0)) * time.Millisecond) // the last answers first
				_, _ = io.WriteString(w, part)
			}
			f := serve(t, e, func(e *proxy.Engine) { e.Dialect = together{asks: c.asks} })
			w := f.ask("POST", "/news-1/_search", "{}")
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d %q", w.Code, w.Body)
			}
		})
	}
}

// timed notes how long the replies took that its searches list.
type timed struct {
	together
	took *[]float64
}

func (d timed) ParseSearch(_ adapters.Class, r *adapters.Request, p adapters.Plan) *adapters.Searches {
	return &adapters.Searches{Plain: r, List: []adapters.Search{d}, Single: true, Plan: p}
}

func (d timed) Listing(r *adapters.Reading, replies []*adapters.Reply) (*adapters.Listing, error) {
	*d.took = nil
	for _, r := range replies {
		*d.took = append(*d.took, r.Took)
	}
	return d.together.Listing(r, replies)
}

// Each reply says how long it took, to its last byte.
func TestRepliesAreTimed(t *testing.T) {
	const header, body = 10 * time.Millisecond, 20 * time.Millisecond
	e := newEngine("news-1")
	e.answer = func(w http.ResponseWriter, _ arrival) {
		time.Sleep(header)
		w.(http.Flusher).Flush()
		time.Sleep(body)
		io.WriteString(w, "{}")
	}
	for asks := 1; asks <= 2; asks++ {
		var took []float64
		f := serve(t, e, func(e *proxy.Engine) { e.Dialect = timed{together{asks: asks}, &took} })
		f.ask("POST", "/news-1/_search", "{}")
		expect.Must(t, asks, len(took), "how many replies were timed")
		for _, ms := range took {
			if least := float64((header + body).Milliseconds()); ms < least {
				t.Errorf("a reply took %v ms, want %v at least", ms, least)
			}
		}
	}
}

// opening is a dialect whose searches ask twice: for what they are made from, and for something that the engine keeps open.
type opening struct{ together }

func (d opening) ParseSearch(_ adapters.Class, r *adapters.Request, p adapters.Plan) *adapters.Searches {
	return &adapters.Searches{Plain: r, List: []adapters.Search{d}, Single: true, Plan: p}
}

func (d opening) Requests(_ *adapters.Reading, replies []*adapters.Reply) ([]*adapters.Request, error) {
	switch len(replies) {
	case 0:
		return []*adapters.Request{{Method: "POST", Path: "/first"}}, nil
	case 1:
		return []*adapters.Request{{Method: "POST", Path: "/open", Undo: func(r *adapters.Reply) *adapters.Request {
			return &adapters.Request{Method: "DELETE", Path: "/" + string(r.Body)}
		}}}, nil
	}
	return nil, nil
}

// TestOpenedIsGivenBack: what the engine opens for a search that was broken off meanwhile, or whose time was over, is given back.
func TestOpenedIsGivenBack(t *testing.T) {
	for name, deadline := range map[string]time.Duration{"client breaks off": time.Minute, "time is over": time.Millisecond, "neither": time.Minute} {
		t.Run(name, func(t *testing.T) {
			begun, gone := make(chan struct{}), make(chan struct{})
			e := newEngine("news-1")
			e.answer = func(w http.ResponseWriter, a arrival) {
				if a.uri == "/open" {
					close(begun)
					<-gone
					_, _ = io.WriteString(w, "opened")
				}
			}
			f := serve(t, e, func(e *proxy.Engine) { e.Dialect, e.Limits.Deadline = opening{}, deadline })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				defer func() { _ = recover() }() // http.ErrAbortHandler, where the client is gone
				f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "POST", "/news-1/_search", strings.NewReader("{}")))
			}()
			<-begun
			switch name {
			case "client breaks off":
				cancel()
				<-answered
			case "time is over":
				<-answered
			}
			close(gone)
			<-answered
			if log := f.log.String(); name == "client breaks off" && strings.Contains(log, "could not be collapsed") {
				t.Errorf("it counts as a search of which we can make no page: %s", log)
			}
			given := func() bool {
				return slices.ContainsFunc(e.arrived(), func(a arrival) bool { return a.String() == "DELETE /opened" })
			}
			if name == "neither" {
				expect.Same(t, false, given(), "what the search itself is to give back is given back")
				return
			}
			for end := time.Now().Add(10 * time.Second); !given(); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the engine was asked %v", e.arrived())
				}
			}
		})
	}
}
