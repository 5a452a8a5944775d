package proxy_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// hit is a document as a reply shows it; its text is padded to 8 kB.
func hit(i int) string {
	return fmt.Sprintf(`{"_index":"news-1","_id":"%d","_source":{"title":"%s","neardup_sketch":"x%d"}}`, i, strings.Repeat("word ", 1600), i)
}

// TestRepliesStream has an engine send a large reply of which it keeps back the end until the client has seen the beginning.
func TestRepliesStream(t *testing.T) {
	for _, c := range []struct {
		name, path string
		gzip       bool
		size       int
		ahead      int // how much of it may be held back by us
	}{
		{"passing", "/_whatever", false, 50 << 20, 1},
		{"cleaned", "/news-1/_doc/1", false, 10 << 20, 2 << 20},
		{"cleaned in gzip", "/news-1/_doc/1", true, 10 << 20, 2 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := make(chan struct{})
			f := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				out := io.Writer(w)
				if c.gzip {
					w.Header().Set("Content-Encoding", "gzip")
					z, _ := gzip.NewWriterLevel(w, gzip.NoCompression)
					defer z.Close()
					out = z
				}
				one := []byte(hit(1))
				for sent, waited := 0, false; sent < c.size; sent += len(one) {
					if sent >= c.ahead && !waited {
						http.NewResponseController(w).Flush()
						waited = true
						select {
						case <-seen:
						case <-time.After(30 * time.Second):
							t.Error("the client saw nothing of the reply")
						}
					}
					out.Write(one)
				}
			}), nil)
			resp := expect.Value(client.Get(f.url + c.path))(t)
			defer resp.Body.Close()
			first := make([]byte, 100)
			expect.Value(io.ReadFull(resp.Body, first))(t)
			close(seen)
			body := io.MultiReader(bytes.NewReader(first), resp.Body)
			if c.gzip {
				body = expect.Value(gzip.NewReader(body))(t)
			}
			got := expect.Value(io.ReadAll(body))(t)
			shown := bytes.Contains(got, []byte("neardup_sketch"))
			if cleaned := c.path != "/_whatever"; cleaned == shown || len(got) < c.size-c.size/100 {
				t.Errorf("%d bytes came, our field shown: %v", len(got), shown)
			}
		})
	}
}

// slowly yields a bulk of n documents of 8 kB without holding it.
type slowly struct {
	n    int
	left []byte
}

func (s *slowly) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		if s.n == 0 {
			return 0, io.EOF
		}
		s.n--
		s.left = fmt.Appendf(s.left[:0], "{\"index\":{\"_index\":\"news-1\",\"_id\":\"%d\"}}\n{\"title\":\"the story number %d\",\"pad\":\"%s\"}\n", s.n, s.n, strings.Repeat("x", 8000))
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// heap samples the heap while something is done and returns how far it grew.
func heap(while func()) uint64 {
	alloc := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before, most := alloc(), uint64(0)
	done := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				most = max(most, alloc())
			}
		}
	})
	while()
	close(done)
	sampling.Wait()
	return most - min(before, most)
}

// TestLargeBulkInLittleMemory sends 200 MB through a sidecar, or 100 in a short run.
func TestLargeBulkInLittleMemory(t *testing.T) {
	if effort.Race {
		t.Skip("the race detector takes memory of its own")
	}
	size := 200 << 20
	if testing.Short() {
		size /= 2
	}
	documents := size / 8000
	known, got, sketches := newEngine("news-1"), int64(0), 0
	f := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/_bulk") {
			known.ServeHTTP(w, r)
			return
		}
		buf := make([]byte, 64<<10)
		for {
			n, err := r.Body.Read(buf)
			got += int64(n)
			sketches += bytes.Count(buf[:n], []byte("neardup_sketch"))
			if err != nil {
				break
			}
		}
		io.WriteString(w, "{}")
	}), nil)
	grown := heap(func() {
		if a, err := try(t, "POST", f.url+"/_bulk", &slowly{n: documents}); err != nil || a.status != 200 {
			t.Errorf("the client got %d, %v", a.status, err)
		}
	})
	if got < int64(size) || sketches < documents/2 {
		t.Errorf("%d bytes arrived with %d sketches", got, sketches)
	}
	if grown > 48<<20 {
		t.Errorf("the heap grew by %d MB for a bulk of %d MB", grown>>20, got>>20)
	}
	t.Logf("the heap grew by %d MB for a bulk of %d MB", grown>>20, got>>20)
}

// TestHeadsComeAtOnce has an engine say that it answers, or give the beginning of its answer, and no more until the client knows. (A short
// answer of known length goes to the client when it is whole.)
func TestHeadsComeAtOnce(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, c := range map[string]struct{ begun, rest string }{
		"of unknown length": {"", "{}"}, "begun": {"{", "}"}, "of known length": {"", long}, "of known length, begun": {long[:1], long[1:]},
	} {
		t.Run(name, func(t *testing.T) {
			known := make(chan struct{})
			f := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if len(c.rest) > 2 {
					w.Header().Set("Content-Length", strconv.Itoa(len(long)))
				}
				_, _ = io.WriteString(w, c.begun)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-known:
				case <-time.After(30 * time.Second):
					t.Error("the client was not told")
				}
				_, _ = io.WriteString(w, c.rest)
			}), nil)
			resp := expect.Value(client.Get(f.url + "/_whatever"))(t)
			defer resp.Body.Close()
			begun := make([]byte, len(c.begun))
			if _, err := io.ReadFull(resp.Body, begun); err != nil || string(begun) != c.begun {
				t.Errorf("%q, %v", begun, err)
			}
			close(known)
			if body, err := io.ReadAll(resp.Body); string(begun)+string(body) != c.begun+c.rest || err != nil {
				t.Errorf("%d bytes, %v", len(begun)+len(body), err)
			}
		})
	}
}
