package proxy_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/proxy"
)

// TestDeadline: a search that takes too long beside the engine's first answer is answered as the engine answers the client's own, cut from
// the reply at hand or asked for; whatever the engine takes for the first answer. Time is made to pass, but for deadlines that are over at once.
func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		name, body, query string
		slow              int64 // from which request on the engine is slow, from 1 on
		deadline          time.Duration
		closed            bool
		want, reason      string
		status, asked     int
	}{
		{"in time", `{}`, "", 9, time.Minute, false, "0 2 3", "", 200, 1},
		{"the first answer takes its time", `{}`, "", 1, 350 * time.Millisecond, false, "0 2 3", "", 200, 1},
		{"none at all", `{"size":2}`, "", 9, 1, false, "0 1", "deadline", 200, 1},
		{"none at all, a deep page", `{"from":2,"size":2}`, "", 9, 1, false, "2 3", "deadline", 200, 1},
		{"none at all, fails closed", `{}`, "", 9, 1, true, "", "", 503, 0},
		{"the second request, no page at hand", `{"size":2}`, "?neardup_totals=collapsed", 2, 300 * time.Millisecond, false, "0 1", "deadline", 200, 3},
		{"the second request fails closed", `{"size":2}`, "?neardup_totals=collapsed", 2, 300 * time.Millisecond, true, "", "", 503, 2},
	} {
		search := func(t *testing.T) {
			e := searchEngine(t)
			plain := e.answer
			var n atomic.Int64
			e.answer = func(w http.ResponseWriter, a arrival) {
				if n.Add(1) == c.slow {
					time.Sleep(400 * time.Millisecond)
				}
				plain(w, a)
			}
			f := handler(t, []string{"http://engine"}, func(p *proxy.Engine) {
				p.Transport, p.Limits.Deadline, p.FailClosed = inMemory{e}, c.deadline, c.closed
				if strings.Contains(c.query, "totals") {
					p.Rules[0].Window = 100
				}
			})
			a := f.ask("POST", "/news-1/_search"+c.query, c.body)
			got, body := len(e.arrived()), a.Body.String()
			if a.Code != c.status || ids(body) != c.want || a.Code == 200 && strings.Contains(body, "neardup_") || got != c.asked {
				t.Errorf("%d %v, asked %d times: %s", a.Code, a.Header(), got, body)
			}
			expect.Same(t, c.reason != "", strings.HasPrefix(a.Header().Get("Neardup"), "bypassed; reason=deadline"), "Neardup: %s", a.Header().Get("Neardup"))
		}
		t.Run(c.name, func(t *testing.T) {
			if c.deadline == 1 {
				search(t)
				return
			}
			synctest.Test(t, func(t *testing.T) {
				search(t)
				time.Sleep(time.Second) // what the engine is still at ends
			})
		})
	}
}

// TestBusy: beyond the limits on what is held at once searches pass as the client wrote them, and nothing fails.
func TestBusy(t *testing.T) {
	t.Run("searches", func(t *testing.T) {
		e := searchEngine(t)
		plain, begun, goOn := e.answer, make(chan bool, 9), make(chan bool)
		e.answer = func(w http.ResponseWriter, a arrival) {
			if strings.Contains(string(a.body), "docvalue") {
				begun <- true
				<-goOn
			}
			plain(w, a)
		}
		f := serve(t, e, func(e *proxy.Engine) { e.Limits.MaxSearches = 1 })
		var first answer
		var wg sync.WaitGroup
		wg.Go(func() { first = do(t, "POST", f.url+"/news-1/_search", `{"size":3}`) })
		<-begun
		second := do(t, "POST", f.url+"/news-1/_search", `{"size":3}`)
		close(goOn)
		wg.Wait()
		if ids(first.body) != "0 2 3" || ids(second.body) != "0 1 2" || second.header.Get("Neardup") != "bypassed; reason=busy" {
			t.Errorf("%v\n%v", first, second)
		}
		expect.Same(t, "0 2 3", ids(do(t, "POST", f.url+"/news-1/_search", `{"size":3}`).body), "the hits when a place was given back")
	})
	pad := strings.Repeat("x", 600<<10)
	for _, c := range []struct{ name, method, path, body, want, reason string }{
		{"search body", "POST", "/news-1/_search", `{"size":2,"_name":"` + pad + `"}`, "0 1", "share"},
		{"search reply", "POST", "/news-1/_search", `{"size":2}`, "0 1", "busy"},
		{"read", "GET", "/news-1/_mget", `{"ids":["0"]}`, "0 1 2 3", ""},
		{"read body", "POST", "/news-1/_mget", `{"ids":["` + pad + `"]}`, "0 1 2 3", ""},
		{"write", "POST", "/news-1/_bulk", bulk("news-1", 9000), "0 1 2 3", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := searchEngine(t)
			plain := e.answer
			e.answer = func(w http.ResponseWriter, a arrival) {
				if i := strings.Index(string(a.body), `,"_name"`); i > 0 {
					a.body = append(a.body[:i:i], '}')
				}
				if !strings.HasSuffix(strings.Split(a.uri, "?")[0], "_search") {
					a.body = nil
				}
				io.WriteString(w, strings.Repeat(" ", 600<<10))
				plain(w, a)
			}
			f := serve(t, e, func(e *proxy.Engine) { e.Limits.MaxHeld = 300 << 10 })
			a := do(t, c.method, f.url+c.path, c.body)
			if a.status != 200 || ids(a.body) != c.want || strings.Contains(a.body, "neardup_sketch") {
				t.Errorf("%d %v %.200s", a.status, a.header, strings.TrimSpace(a.body))
			}
			if c.reason != "" && a.header.Get("Neardup") != "bypassed; reason="+c.reason {
				t.Errorf("Neardup: %s", a.header.Get("Neardup"))
			}
			if c.name == "write" {
				if got := e.arrived()[0]; strings.Count(string(got.body), "\n") != 18000 || strings.Count(string(got.body), `"neardup_sketch"`) != 9000 {
					t.Errorf("%d lines of %d bytes came", strings.Count(string(got.body), "\n"), len(got.body))
				}
			}
			eventually(t, "all is given back", func() bool { return f.counted(t, "held_bytes") == 0 })
		})
	}
}

// TestBombs: what is small on the way and large in memory, or deep, or never ends, passes or is refused by the engine, in little memory.
func TestBombs(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 20 { // more than is read of anything
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	for _, c := range []struct {
		name, path, body string
		headers          []string
		reply            func(w http.ResponseWriter)
		want             string
	}{
		{"search in gzip", "/news-1/_search", bomb.String(), []string{"Content-Encoding: gzip"}, nil, "bypassed; reason=too_large"},
		{"deep search", "/news-1/_search", `{"query":` + deep + `}`, nil, nil, "bypassed; reason=not_understood"},
		{"many searches", "/news-1/_msearch", strings.Repeat("{}\n{}\n", 200_000), nil, nil, "bypassed; reason=too_large"},
		{"many searches, cut short", "/news-1/_msearch", strings.Repeat("{}\n{}\n", 2_000) + `{"index":"news-1"`, nil, nil, "bypassed; reason=too_large"},
		{"reply in gzip", "/news-1/_search", `{}`, []string{"Accept-Encoding: gzip"}, func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb.Bytes())
		}, "bypassed; reason=too_large"},
		{"deep reply", "/news-1/_search", `{}`, nil, func(w http.ResponseWriter) {
			fmt.Fprintf(w, `{"hits":{"hits":[{"_index":"news-1","_id":"1","_source":%s}]}}`, deep)
		}, ""},
		{"deep document", "/news-1/_bulk", "{\"index\":{}}\n" + deep + "\n", nil, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine("news-1")
			e.answer = func(w http.ResponseWriter, a arrival) {
				if c.reply != nil {
					c.reply(w)
					return
				}
				w.WriteHeader(http.StatusBadRequest)
				io.WriteString(w, `{"error":"no"}`)
			}
			f := serve(t, e, func(e *proxy.Engine) { e.Limits.MaxReply, e.Limits.Deadline = 8<<20, 10*time.Second })
			began := time.Now()
			a := do(t, "POST", f.url+c.path, c.body, c.headers...)
			took := time.Since(began)
			last := e.last()
			want := 200
			if c.reply == nil {
				want = 400
			}
			if a.status != want || !strings.HasPrefix(a.header.Get("Neardup"), c.want) || took > time.Minute { // some would take hours
				t.Errorf("%d after %v, Neardup: %s", a.status, took, a.header.Get("Neardup"))
			}
			if c.reply == nil && string(last.body) != c.body {
				t.Errorf("the engine got %d bytes of %d", len(last.body), len(c.body))
			}
			eventually(t, "all is given back", func() bool { return f.counted(t, "held_bytes") == 0 })
		})
	}
}

// waiting is a client that takes nothing of an answer before what it does is done.
type waiting struct {
	*httptest.ResponseRecorder
	meanwhile func()
}

func (w waiting) Write(p []byte) (int, error) {
	w.meanwhile()
	return w.ResponseRecorder.Write(p)
}

// TestCompressedReplyHolds: while a client takes its time with a compressed answer, what is on its way is held and counted, and nothing else.
func TestCompressedReplyHolds(t *testing.T) {
	e := searchEngine(t)
	plain, pad := e.answer, strings.Repeat(" ", 4<<20)
	e.answer = func(w http.ResponseWriter, a arrival) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		all := httptest.NewRecorder()
		a.header = a.header.Clone()
		a.header.Del("Accept-Encoding")
		plain(all, a)
		io.WriteString(z, strings.TrimSuffix(strings.TrimSpace(all.Body.String()), "}")+pad+"}")
	}
	f := handler(t, []string{"http://engine"}, func(p *proxy.Engine) { p.Transport, p.Limits.Deadline = inMemory{e}, time.Minute })
	r := httptest.NewRequest("POST", "/news-1/_search", strings.NewReader(`{}`))
	r.Header.Set("Accept-Encoding", "gzip")
	held := int64(-1)
	w := waiting{httptest.NewRecorder(), nil}
	w.meanwhile = func() { held = int64(f.counted(t, "held_bytes")) }
	f.ServeHTTP(w, r)
	if sent := int64(w.Body.Len()); !strings.HasPrefix(w.Header().Get("Neardup"), "collapsed") || sent == 0 || held != sent {
		t.Errorf("%d %v: %d bytes were held of %d", w.Code, w.Header(), held, sent)
	}
}
