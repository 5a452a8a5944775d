package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/proxy"
)

// guarded is a search engine that grants nothing without credentials.
func guarded(t testing.TB) *engine {
	e := searchEngine(t)
	plain := e.answer
	e.refuse = func(a arrival) int {
		if !strings.HasPrefix(a.header.Get("Authorization"), "known") {
			return http.StatusUnauthorized
		}
		return 0
	}
	e.answer = func(w http.ResponseWriter, a arrival) {
		if e.refuse(a) != 0 {
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"status":401}`)
			return
		}
		plain(w, a)
	}
	return e
}

// send sends a request whose body is what comes from the reader, in an encoding where one is given.
func (f front) send(method, path string, body io.Reader, length int64, who string, encoding ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	r.ContentLength = length
	r.Header.Set("Authorization", who)
	r.Header.Set("Content-Type", "application/json")
	r.Header["Content-Encoding"] = encoding
	rec := httptest.NewRecorder()
	f.ServeHTTP(rec, r)
	return rec
}

// TestStalledRequests has a thousand clients without credentials, each under a name of its own, send a part of a body and no more. What is
// held for them stays within their share, and goes on to the engine in the end; searches and writes of others are treated as ever.
func TestStalledRequests(t *testing.T) {
	const size, sent, most, n, few = 60 << 10, 40 << 10, 2 << 20, 1000, 5
	for _, c := range []struct{ name, path, head string }{
		{"search", "/news-1/_search", `{"size":2,"_name":"`},
		{"multi-search", "/news-1/_msearch", `{"_name":"`},
		{"read", "/news-1/_mget", `{"ids":["`},
		{"bulk", "/news-1/_bulk", `{"index":{"_id":"`},
		{"one long line", "/news-1/_doc/1", `{"title":"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := guarded(t)
				f := handler(t, []string{"http://engine"}, func(p *proxy.Engine) { p.Transport, p.Limits.MaxHeld = inMemory{e}, most })
				others := func(when string) {
					t.Helper()
					for _, body := range []string{`{"size":3}`, `{"size":3,"query":{"match":{"title":"` + strings.Repeat("x", size) + `"}}}`} {
						a := f.send("POST", "/news-1/_search", strings.NewReader(body), int64(len(body)), "known")
						if got := a.Header().Get("Neardup"); !strings.HasPrefix(got, "collapsed") {
							t.Errorf("%s: a search of %d bytes of another client is %q", when, len(body), got)
						}
					}
					if !f.writes(e, "Authorization: known") {
						t.Errorf("%s: another client's document is not enriched", when)
					}
				}
				others("before")
				var all sync.WaitGroup
				var ends []*io.PipeWriter
				var mu sync.Mutex
				reasons := map[string]int{}
				for i := range n {
					if i == few { // these have memory for what they sent before the others want some
						synctest.Wait()
					}
					body, into := io.Pipe()
					ends = append(ends, into)
					all.Go(func() {
						a := f.send("POST", c.path, body, size, fmt.Sprint("guess ", i))
						mu.Lock()
						defer mu.Unlock()
						expect.Same(t, http.StatusUnauthorized, a.Code, "the status")
						reasons[a.Header().Get("Neardup")]++
					})
					all.Go(func() { io.WriteString(into, c.head+strings.Repeat("x", sent-len(c.head))) })
				}
				synctest.Wait()
				if held := f.counted(t, "held_bytes"); held > most/2 {
					t.Errorf("%d bytes are held of %d", held, most)
				}
				others("while they stall")
				time.Sleep(time.Minute)
				synctest.Wait()
				others("later")
				t.Logf("%d bytes are held after a minute", f.counted(t, "held_bytes"))
				for _, into := range ends {
					all.Go(func() {
						io.WriteString(into, strings.Repeat("x", size-sent))
						into.Close()
					})
				}
				all.Wait()
				expect.Same(t, int64(0), f.counted(t, "held_bytes"), "bytes held at the end")
				if strings.Contains(c.name, "search") && (reasons["bypassed; reason=slow"] == 0 || reasons["bypassed; reason=share"] == 0 || len(reasons) != 2) {
					t.Errorf("they are told %v", reasons)
				}
				for _, a := range e.arrived() {
					if !strings.HasPrefix(a.header.Get("Authorization"), "known") && len(a.body) < size {
						t.Fatalf("of a body of %d bytes %d came", size, len(a.body))
					}
				}
			})
		})
	}
}

// TestSlowBodies: a body that goes on is waited for, one that does not goes on to the engine as it comes.
func TestSlowBodies(t *testing.T) {
	for _, c := range []struct {
		name        string
		size, each  int // so many bytes come each half second
		pause       time.Duration
		want        string
		least, most time.Duration // when the engine has the request
	}{
		{"all at once", 1 << 20, 1 << 20, 0, "collapsed", 0, time.Second},
		{"24 kB a second", 200 << 10, 12 << 10, 0, "collapsed", 7 * time.Second, 10 * time.Second},
		{"10 kB a second", 200 << 10, 5 << 10, 0, "bypassed; reason=slow", 0, 5 * time.Second},
		{"24 kB a second for long", 1 << 20, 12 << 10, 0, "bypassed; reason=slow", 0, 35 * time.Second},
		{"a short one takes its time", 10 << 10, 100, 0, "collapsed", 30 * time.Second, 60 * time.Second},
		{"stops behind its head", 200 << 10, 50 << 10, 10 * time.Second, "bypassed; reason=slow", 0, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := guarded(t)
				var begun time.Duration
				start := time.Now()
				f := handler(t, []string{"http://engine"}, func(p *proxy.Engine) {
					p.Transport = inMemory{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if begun == 0 && strings.HasSuffix(r.URL.Path, "_search") {
							begun = time.Since(start)
						}
						e.ServeHTTP(w, r)
					})}
				})
				body, into := io.Pipe()
				head, tail := `{"size":3,"query":{"match":{"title":"`, `"}}}`
				text := head + strings.Repeat("x", c.size-len(head)-len(tail)) + tail
				go func() {
					for at := 0; at < len(text); at += c.each {
						if at > 0 {
							time.Sleep(time.Second/2 + c.pause)
						}
						io.WriteString(into, text[at:min(at+c.each, len(text))])
					}
					into.Close()
				}()
				a := f.send("POST", "/news-1/_search", body, int64(len(text)), "known")
				if got := a.Header().Get("Neardup"); !strings.HasPrefix(got, c.want) || a.Code != 200 {
					t.Errorf("%d, Neardup: %s", a.Code, got)
				}
				if begun < c.least || begun > c.most {
					t.Errorf("the engine has the request after %v", begun)
				}
				if c.want != "collapsed" && string(e.last().body) != text {
					t.Errorf("the engine got %d bytes of %d", len(e.last().body), len(text))
				}
			})
		})
	}
}

// TestStalledZstd: a body in zstd can have 8 MB taken for its decoding by its first bytes. That counts as held, and where there is no room the
// client is told.
func TestStalledZstd(t *testing.T) {
	const most, n = 36 << 20, 30
	frame := "\x28\xB5\x2F\xFD\x00\x68" + strings.Repeat("\x20\x00\x00////", 3000) // a window of 8 MB, and blocks of four bytes
	synctest.Test(t, func(t *testing.T) {
		e := guarded(t)
		f := handler(t, []string{"http://engine"}, func(p *proxy.Engine) { p.Transport, p.Limits.MaxHeld = inMemory{e}, most })
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var all sync.WaitGroup
		var ends []*io.PipeWriter
		answers := make([]int, n)
		for i := range n {
			body, into := io.Pipe()
			ends = append(ends, into)
			all.Go(func() { answers[i] = f.send("POST", "/news-1/_bulk", body, -1, fmt.Sprint("guess ", i), "zstd").Code })
			all.Go(func() { io.WriteString(into, frame) })
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); f.counted(t, "held_bytes") > most/2 || grown > 2*most {
			t.Errorf("%d bytes are held of %d, in %d of memory", f.counted(t, "held_bytes"), most, grown)
		}
		for _, into := range ends {
			into.CloseWithError(io.ErrUnexpectedEOF)
		}
		all.Wait()
		refused := 0
		for _, status := range answers {
			if status == http.StatusServiceUnavailable {
				refused++
			}
		}
		if refused < n-2 || refused == n || f.counted(t, "held_bytes") != 0 {
			t.Errorf("of %d, %d were told that there is no room; %d bytes are held at the end", n, refused, f.counted(t, "held_bytes"))
		}
	})
}
