package proxy_test

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/proxy"
)

// enriched reports how many documents of a body carry a sketch.
func enriched(body []byte) int { return strings.Count(string(body), rule.SketchField) }

func TestWriteEnriches(t *testing.T) {
	small, large, huge := bulk("news-1", 3), fat("news-1", 200), fat("news-1", 300)
	if z := len(zipped(huge)); len(large) < 1<<20 || z < 1<<20 {
		t.Fatalf("the bulks are not large: %d, %d in gzip", len(large), z)
	}
	for _, c := range []struct {
		name, body string
		headers    []string
		want       string // without sketches
		docs       int
		chunked    bool
	}{
		{"small", small, nil, small, 3, false},
		{"small in gzip", zipped(small), []string{"Content-Encoding: gzip"}, small, 3, false},
		{"small in deflate", coded("deflate", small), []string{"Content-Encoding: deflate"}, small, 3, false},
		{"small in gzip, loosely named", zipped(small), []string{"Content-Encoding: X-GZip"}, small, 3, false},
		{"large", large, nil, large, 200, true},
		{"large in gzip", zipped(large), []string{"Content-Encoding: gzip"}, large, 200, false},
		{"huge in gzip", zipped(huge), []string{"Content-Encoding: gzip"}, huge, 300, true},
		{"mixed", bulk("logs", 1) + bulk("news-1", 1), nil, bulk("logs", 1) + bulk("news-1", 1), 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine("news-1", "logs")
			f := serve(t, e, nil)
			a := do(t, "POST", f.url+"/_bulk", c.body, c.headers...)
			expect.Same(t, [2]any{200, "{}"}, [2]any{a.status, a.body}, "what the client got")
			got := e.arrived()
			expect.Must(t, 1, len(got), "requests to the engine: %q", uris(got))
			expect.Same(t, c.docs, enriched(got[0].body), "documents that are enriched")
			expect.Same(t, c.want, withoutSketches(string(got[0].body)), "the body less our fields")
			expect.Same(t, c.chunked, got[0].length < 0, "in chunks")
			expect.Same(t, "", got[0].header.Get("Content-Encoding"), "the coding that is left")
			expect.Same(t, int64(c.docs), f.counted(t, "documents_total change=enriched"), "documents counted")
		})
	}
}

// withoutSketches cuts our field, which is the last of its object.
func withoutSketches(body string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(body, `,"`+rule.SketchField+`":"`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, body, _ = strings.Cut(after, `"`)
	}
}

// TestBrokenOffWrite sends a part of a body and hangs up: the engine must never see a body that looks whole.
func TestBrokenOffWrite(t *testing.T) {
	large := fat("news-1", 200)
	inDocument := len(large) - 20
	lineEnd := strings.LastIndex(large[:inDocument], "\n") + 1
	afterAction := strings.LastIndex(large[:lineEnd-1], "\n") + 1
	z := zipped(fat("news-1", 300))
	for _, c := range []struct{ name, path, header, body string }{
		{"small in a document", "/_bulk", "", bulk("news-1", 3)[:150]},
		{"small at a line end", "/_bulk", "", bulk("news-1", 3)},
		{"large in a document", "/_bulk", "", large[:inDocument]},
		{"large at a line end", "/_bulk", "", large[:lineEnd]},
		{"large behind an action", "/_bulk", "", large[:afterAction]},
		{"large unconfigured", "/logs/_bulk", "", strings.ReplaceAll(large[:inDocument], "news-1", "logs")},
		{"large in gzip", "/_bulk", "Content-Encoding: gzip\r\n", z[:len(z)-30]},
		{"one document", "/news-1/_doc/1", "", `{"title":"a b c d`},
		{"large passing", "/_whatever", "", large[:inDocument]},
		{"search", "/news-1/_search", "", `{"size":1`},
	} {
		for _, framing := range []string{"length", "chunks"} {
			t.Run(c.name+" with "+framing, func(t *testing.T) {
				e := newEngine("news-1")
				f := serve(t, e, nil)
				conn := dial(t, f)
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s", c.path, c.header)
				if framing == "length" {
					fmt.Fprintf(conn, "Content-Length: %d\r\n\r\n%s", len(c.body)+500, c.body)
				} else {
					fmt.Fprintf(conn, "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(c.body), c.body)
				}
				conn.Close()
				eventually(t, "the broken request counted", func() bool { return f.counted(t, "clients_gone_total") == 1 })
				f.behind.Close() // waits for what it is at
				for _, a := range e.arrived() {
					if a.err == nil {
						t.Errorf("the engine saw a whole body of %d bytes for %s", len(a.body), a)
					}
				}
				if strings.Contains(f.log.String(), unreachable) {
					t.Error("the engine is blamed for it")
				}
			})
		}
	}
}

func dial(t testing.TB, f front) *net.TCPConn {
	t.Helper()
	conn := expect.Value(net.Dial("tcp", strings.TrimPrefix(f.url, "http://")))(t)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(60 * time.Second))
	return conn.(*net.TCPConn)
}

// TestBrokenGzipInTheMiddle: what was sent on by then must not look whole, and the client is told.
func TestBrokenGzipInTheMiddle(t *testing.T) {
	z := []byte(zipped(fat("news-1", 300)))
	if len(z) < 1<<20 {
		t.Fatal("too small to be streamed")
	}
	z[len(z)-5] ^= 1 // in the checksum: all of the text is there
	e := newEngine("news-1")
	f := serve(t, e, nil)
	a := do(t, "POST", f.url+"/_bulk", string(z), "Content-Encoding: gzip")
	expect.Same(t, 400, a.status, "the client got %s", a.body)
	eventually(t, "the engine's reading ended", func() bool { return len(e.arrived()) > 0 })
	for _, got := range e.arrived() {
		if got.err == nil {
			t.Errorf("the engine saw a whole body of %d bytes", len(got.body))
		}
	}
}

// TestEarlyAnswer has an engine answer before it reads the body, and a client that waits for that answer half-way.
func TestEarlyAnswer(t *testing.T) {
	large := fat("news-1", 400)
	for _, c := range []struct {
		path                 string
		status, sent, length int
	}{
		{"/_bulk", 413, len(large) / 2, len(large)}, {"/_bulk", 401, 11 << 17, len(large)}, {"/news-1/_doc", 413, 11 << 17, len(large)},
		{"/_whatever", 401, 100, len(large)}, {"/_whatever", 401, 0, 10},
	} {
		t.Run(fmt.Sprintf("%s %d %d", c.path, c.status, c.sent), func(t *testing.T) {
			t.Parallel() // net/http takes half a second to close such a connection
			known := newEngine("news-1")
			f := serve(t, known.beside(func(w http.ResponseWriter, r *http.Request) {
				http.NewResponseController(w).EnableFullDuplex()
				w.Header().Set("Content-Length", "5")
				w.Header().Set("Connection", "close") // else net/http may panic where it reads the next request: golang.org/issue/68560
				w.WriteHeader(c.status)
				io.WriteString(w, "early")
			}), nil)
			conn := dial(t, f)
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", c.path, c.length, large[:c.sent])
			reply := make([]byte, 4096)
			n, err := conn.Read(reply)
			if want := fmt.Sprintf("HTTP/1.1 %d", c.status); err != nil || !strings.HasPrefix(string(reply[:n]), want) {
				t.Errorf("the client got %q, %v, want %s", reply[:n], err, want)
			}
		})
	}
}

// TestTooLongForTheEngine has an engine refuse a body for its length and hang up while the rest is still coming: its answer is the client's, whether
// the body says how long it is, is compressed or goes through unread.
func TestTooLongForTheEngine(t *testing.T) {
	t.Parallel()
	large := fat("news-1", 400)
	known := newEngine("news-1")
	f := serve(t, known.beside(func(w http.ResponseWriter, r *http.Request) {
		io.CopyN(io.Discard, r.Body, 1<<20)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, "HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 8\r\n\r\ntoo long")
		conn.Close() // with bytes that nobody read: the rest of the body is answered by a reset
	}), func(e *proxy.Engine) { e.Limits.EngineMaxBody = 2 << 20 })
	packed := zipped(large)
	for _, c := range []struct{ name, path, header, body string }{
		{"with its length", "/_bulk", fmt.Sprintf("Content-Length: %d", len(large)), large},
		{"compressed", "/_bulk", fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d", len(packed)), packed},
		{"chunked", "/_bulk", "Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(large), large)},
		{"passing", "/_whatever", fmt.Sprintf("Content-Length: %d", len(large)), large},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for range effort.Rounds(100) {
				conn := dial(t, f)
				go fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s\r\n\r\n%s", c.path, c.header, c.body)
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil || resp.StatusCode != 413 {
					t.Fatalf("the client got %+v, %v", resp, err)
				}
				conn.Close()
			}
		})
	}
}

// dying is an engine that hangs up when a client's request is here in part.
func dying(t *testing.T, known *engine, after int64) (http.Handler, *atomic.Int64) {
	times := new(atomic.Int64)
	return known.beside(func(w http.ResponseWriter, r *http.Request) {
		times.Add(1)
		io.CopyN(io.Discard, r.Body, after)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}), times
}

// TestWritesAreNeverRetried has an engine die under a write at several moments, on a fresh connection and on a used one.
func TestWritesAreNeverRetried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, method, path, body string
		after                    int64
	}{
		{"before the body", "POST", "/_bulk", bulk("news-1", 3), 0},
		{"after the body", "POST", "/_bulk", bulk("news-1", 3), 1 << 20},
		{"in a stream", "POST", "/_bulk", fat("news-1", 400), 1 << 20},
		{"one document", "PUT", "/news-1/_doc/1", `{"title":"a"}`, 1 << 20},
		{"unconfigured", "POST", "/logs/_doc", `{"title":"a"}`, 1 << 20},
		{"passing", "POST", "/_reindex", `{}`, 1 << 20},
		{"passing without a body", "DELETE", "/news-1/_doc/1", "", 0},
		{"passing without a body by POST", "POST", "/news-1/_refresh", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			engine, times := dying(t, newEngine("news-1"), c.after)
			f := serve(t, engine, nil)
			for range 2 {
				// A client that still sends may see the connection cut rather than the answer.
				if a, err := try(t, c.method, f.url+c.path, strings.NewReader(c.body)); err == nil && a.status != 502 {
					t.Errorf("the client got %d %s", a.status, a.body)
				}
			}
			if n := times.Load(); n > 2 {
				t.Errorf("two writes became %d", n)
			}
		})
	}
}

// TestRoom fills a body up to the engine's limit: from where a sketch could cross it, documents pass as they are.
func TestRoom(t *testing.T) {
	body := bulk("news-1", 100)
	for _, c := range []struct {
		name       string
		room, docs int
	}{
		{"none", 0, 0}, {"a little", 1000, 3}, {"enough", 1 << 20, 100}, {"the body is larger than the limit", -1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine("news-1")
			limit := len(body) + c.room
			f := serve(t, e, func(p *proxy.Engine) { p.Limits.EngineMaxBody = int64(limit) })
			do(t, "POST", f.url+"/_bulk", body)
			got := e.arrived()[0].body
			if len(got) > max(limit, len(body)) {
				t.Errorf("the body grew to %d, over the limit of %d", len(got), limit)
			}
			if n := enriched(got); n < min(c.docs, 1) || n > 0 && c.docs == 0 || c.docs == 100 && n != 100 {
				t.Errorf("%d documents are enriched", n)
			}
			expect.Same(t, body, withoutSketches(string(got)), "the bulk less our fields")
			n := f.counted(t, "documents_total change=enriched") + f.counted(t, "documents_total change=oversized")
			expect.Same(t, int64(100), n, "documents counted")
		})
	}
}

// TestRoomOfAStream: the length is known, the body is not at hand.
func TestRoomOfAStream(t *testing.T) {
	body := fat("news-1", 400)
	e := newEngine("news-1")
	f := serve(t, e, func(p *proxy.Engine) { p.Limits.EngineMaxBody = int64(len(body)) + 50_000 })
	do(t, "POST", f.url+"/_bulk", body)
	got := e.arrived()[0].body
	if len(got) > len(body)+50_000 || enriched(got) < 100 || withoutSketches(string(got)) != body {
		t.Errorf("the body grew from %d to %d with %d sketches", len(body), len(got), enriched(got))
	}
}

// TestWriteReplies: a write's reply is the engine's, less our fields where it shows documents.
func TestWriteReplies(t *testing.T) {
	e := newEngine("news-1")
	e.answer = func(w http.ResponseWriter, a arrival) {
		w.WriteHeader(201)
		fmt.Fprintf(w, `{"get":{"_source":{"title":"a","neardup_sketch":"x"}}}`)
	}
	f := serve(t, e, nil)
	a := do(t, "POST", f.url+"/news-1/_update/1?_source=true", `{"doc":{"title":"a b"}}`)
	expect.Same(t, [2]any{201, `{"get":{"_source":{"title":"a"}}}`}, [2]any{a.status, a.body}, "what the client got")
}

// TestUnsupportedWritesPass: bodies that no engine takes, and signed ones, go through as they came.
func TestUnsupportedWritesPass(t *testing.T) {
	for _, header := range []string{"Content-Type: application/cbor", "Content-Type: application/yaml", "Authorization: AWS4-HMAC-SHA256 x"} {
		e := newEngine("news-1")
		f := serve(t, e, nil)
		do(t, "POST", f.url+"/_bulk", bulk("news-1", 2), header)
		if got := e.arrived(); len(got) != 1 || string(got[0].body) != bulk("news-1", 2) || len(e.lookups()) != 0 {
			t.Errorf("%s: the engine got %q after %q", header, got, uris(e.lookups()))
		}
	}
}

// TestEncodedWrites: a body is read as the engine reads it, whatever the client calls its encoding. An encoding that the engine does not know
// counts for nothing.
func TestEncodedWrites(t *testing.T) {
	plain := bulk("news-1", 2)
	pack := func(make func(io.Writer) io.WriteCloser) string {
		var out bytes.Buffer
		w := make(&out)
		io.WriteString(w, plain)
		w.Close()
		return out.String()
	}
	zlibbed := pack(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	zipped := string(zipped(plain))
	for _, body := range []string{zipped[:len(zipped)-8], zipped[:len(zipped)-3], zipped + "and more", zipped + "\x00\x00"} { // engines take these
		e := newEngine("news-1")
		f := serve(t, e, nil)
		do(t, "POST", f.url+"/_bulk", body, "Content-Encoding: gzip")
		if got := e.arrived(); len(got) != 1 || enriched(got[0].body) != 2 {
			t.Errorf("gzip that does not end well: the engine got %q", got)
		}
	}
	for encoding, body := range map[string]string{
		"br": plain, "foo": plain, "gzip,gzip": plain, "gzip, identity": plain, "foo-gzip": plain, "identity": plain, "zstd": plain,
		"x-deflate": zlibbed, "X-Deflate": zlibbed,
		"snappy": pack(func(w io.Writer) io.WriteCloser { return s2.NewWriter(w, s2.WriterSnappyCompat()) }),
		"ZSTD":   pack(func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }),
	} {
		e := newEngine("news-1")
		f := serve(t, e, nil)
		do(t, "POST", f.url+"/_bulk", body, "Content-Encoding: "+encoding)
		if got := e.arrived(); len(got) != 1 || enriched(got[0].body) != 2 {
			t.Errorf("%s: the engine got %q", encoding, got)
		}
	}
}

// TestUndecodableWrites: no body goes on unread that an engine could decode and we can't. Both engines take the first and the third, OpenSearch
// the last two.
func TestUndecodableWrites(t *testing.T) {
	plain := bulk("news-1", 2)
	z := string(zipped(plain))
	member := func(comment int) string {
		return z[:3] + "\x10" + z[4:10] + strings.Repeat("a", comment) + "\x00" + z[10:]
	}
	stored := func(text string) string {
		n := len(text)
		return string([]byte{1, byte(n), byte(n >> 8), ^byte(n), ^byte(n >> 8)}) + text
	}
	for _, c := range []struct {
		what, encoding, body string
		enriched             int
	}{
		{"gzip with a long comment", "gzip", member(600), 0},
		{"gzip with a short comment", "gzip", member(100), 2},
		{"gzip with a long comment in its second member", "gzip", string(zipped(" ")) + member(600), 0},
		{"gzip behind which ten bytes stand", "gzip", z + "0123456789", 0},
		{"gzip with a wrong checksum", "gzip", z[:len(z)-5] + "\x7f" + z[len(z)-4:], 0},
		{"gzip that is none", "gzip", plain, 0},
		{"deflate that begins like zlib with a small window", "deflate", "\x08\x1d\x00\xe2\xff" + strings.Repeat("\n", 29) + stored(plain), 2},
		{"zstd 0.7", "zstd", "\x27\xB5\x2F\xFD\x00\x50", 0},
		{"zstd 0.6", "zstd", "\x26\xB5\x2F\xFD\x04", 0},
	} {
		e := newEngine("news-1")
		f := serve(t, e, nil)
		a := do(t, "POST", f.url+"/_bulk", c.body, "Content-Encoding: "+c.encoding)
		switch got := e.arrived(); {
		case c.enriched > 0:
			if len(got) != 1 || enriched(got[0].body) != c.enriched {
				t.Errorf("%s: the engine got %q", c.what, got)
			}
		case len(got) > 0 || a.status != 400:
			t.Errorf("%s: the client got %d, the engine %q", c.what, a.status, got)
		}
	}
}

// TestShortWrites: of a compressed body that ends early the engine gets what the sidecar read of it, even where that changes nothing. An engine
// can read a character more than we do.
func TestShortWrites(t *testing.T) {
	e := newEngine("news-1")
	f := serve(t, e, nil)
	plain := bulk("logs", 2)
	for cut := 9; cut < 30; cut++ {
		z := string(zipped(plain))
		do(t, "POST", f.url+"/_bulk", z[:len(z)-cut], "Content-Encoding: gzip")
	}
	for _, got := range e.arrived() {
		if got.header.Get("Content-Encoding") != "" || !strings.HasPrefix(plain, string(got.body)) {
			t.Errorf("the engine got %q in %q", got.body, got.header.Get("Content-Encoding"))
		}
	}
	expect.Same(t, 21, len(e.arrived()), "writes that arrived")
}

// panicking is a dialect with a bug.
type panicking struct{ adapters.Dialect }

func (panicking) EnrichWrite(adapters.Class, io.Writer, io.Reader, rule.Writing, int64) (adapters.Replies, error) {
	panic("a bug")
}
func (panicking) CleanReply(adapters.Class, io.Writer, io.Reader) error { panic("a bug") }
func (panicking) ParseSearch(adapters.Class, *adapters.Request, adapters.Plan) *adapters.Searches {
	panic("a bug")
}

// TestBugsInADialect: none takes the sidecar down, and where nothing was sent yet the request goes through as it came.
func TestBugsInADialect(t *testing.T) {
	t.Parallel()
	e := newEngine("news-1")
	e.answer = func(w http.ResponseWriter, a arrival) {
		if strings.Contains(a.uri, "huge") {
			io.WriteString(w, strings.Repeat(`{"neardup_sketch":1}`, 1<<17))
		}
	}
	f := serve(t, e, func(p *proxy.Engine) { p.Dialect = panicking{p.Dialect} })
	small := bulk("news-1", 2)
	do(t, "POST", f.url+"/_bulk", small)
	do(t, "POST", f.url+"/news-1/_search", `{}`)
	if got := e.arrived(); len(got) != 2 || string(got[0].body) != small || string(got[1].body) != `{}` {
		t.Errorf("the engine got %q", got)
	}
	expect.Same(t, 502, do(t, "POST", f.url+"/_bulk", fat("news-1", 200)).status, "a stream")
	if _, err := try(t, "GET", f.url+"/news-1/_doc/huge", nil); err == nil {
		t.Error("a reply that could not be cleaned ended well")
	}
}
