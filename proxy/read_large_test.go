package proxy_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// coded returns a text in an encoding.
func coded(encoding, text string) string {
	var b bytes.Buffer
	var z io.WriteCloser
	switch encoding { // none is made smaller: that would take most of a test's time
	case "gzip":
		z, _ = gzip.NewWriterLevel(&b, gzip.NoCompression)
	case "deflate":
		z, _ = zlib.NewWriterLevel(&b, zlib.NoCompression)
	default:
		return text
	}
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

// plainOf returns a reply's body less its encoding.
func plainOf(t *testing.T, a answer) string {
	t.Helper()
	switch a.header.Get("Content-Encoding") {
	case "gzip":
		return unzipped(t, a.body)
	case "deflate":
		z, err := zlib.NewReader(strings.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return string(plain)
	}
	return a.body
}

// noise returns n random letters.
func noise(n int) string {
	out := make([]byte, n)
	rand.NewChaCha8([32]byte{7}).Read(out)
	for i, b := range out {
		out[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[b%64]
	}
	return string(out)
}

// replying is an engine that answers every read with the reply.
func replying(encoding, reply string, chunked bool) *engine {
	e := newEngine("news-1", "other-1")
	e.answer = func(w http.ResponseWriter, a arrival) {
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		if chunked {
			http.NewResponseController(w).Flush()
		} else {
			w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
		}
		io.WriteString(w, reply)
	}
	return e
}

// TestRepliesKeepTheirBytes: with nothing of ours in it a reply comes as it was sent, with its length: of a configured index up to some
// megabytes, and then with the same content; of others whatever its size.
func TestRepliesKeepTheirBytes(t *testing.T) {
	for _, size := range []int{0, 100, 1 << 20, 7 << 20, 9 << 20} {
		if testing.Short() && size == 7<<20 {
			continue
		}
		body := `{"_id":"1","_source":{"text":"` + noise(size) + `","b" : 1e3}}`
		for _, encoding := range []string{"", "gzip", "deflate"} {
			if encoding == "deflate" && size > 1<<20 {
				continue // as gzip
			}
			sent := coded(encoding, body)
			for _, chunked := range []bool{false, true} {
				for _, index := range []string{"news-1", "other-1"} {
					t.Run(fmt.Sprint(size, " ", encoding, " ", chunked, " ", index), func(t *testing.T) {
						f := serve(t, replying(encoding, sent, chunked), nil)
						a := do(t, "GET", f.url+"/"+index+"/_doc/1", "", "Accept-Encoding: gzip, deflate")
						if a.header.Get("Content-Encoding") != encoding || plainOf(t, a) != body {
							t.Fatalf("%d bytes of another reply in %q", len(a.body), a.header.Get("Content-Encoding"))
						}
						if index == "news-1" && len(sent) > 8<<20 {
							return
						}
						length := ""
						if !chunked {
							length = strconv.Itoa(len(sent))
						}
						if a.body != sent || a.header.Get("Content-Length") != length {
							t.Errorf("the same reply comes in other bytes; Content-Length %q, want %q", a.header.Get("Content-Length"), length)
						}
					})
				}
			}
		}
	}
}

// TestLongRepliesAreCleaned whatever their size and their index.
func TestLongRepliesAreCleaned(t *testing.T) {
	for _, size := range []int{100, 2 << 20, 6 << 20, 9 << 20} {
		if testing.Short() && size == 6<<20 {
			continue
		}
		one := `{"_id":"1","_source":{"text":"` + noise(size/2) + `"`
		with, without := one+`,"neardup_sketch":"x"}}`, one+`}}`
		for _, encoding := range []string{"", "gzip", "deflate"} {
			if encoding == "deflate" && size > 2<<20 {
				continue // as gzip
			}
			sent := coded(encoding, `{"docs":[`+with+`,`+without+`]}`)
			for path, chunked := range map[string]bool{"/news-1/_mget": false, "/_mget": true} {
				f := serve(t, replying(encoding, sent, chunked), nil)
				a := do(t, "POST", f.url+path, `{}`, "Accept-Encoding: gzip, deflate")
				if got := plainOf(t, a); got != `{"docs":[`+without+`,`+without+`]}` || a.header.Get("Content-Encoding") != encoding {
					t.Errorf("%d %q chunked %t %s: %.100s…", size, encoding, chunked, path, got[max(0, len(got)-100):])
				}
				if length := a.header.Get("Content-Length"); length == "" && !chunked && size < 4<<20 || length != "" && length != strconv.Itoa(len(a.body)) {
					t.Errorf("%d %q %s: Content-Length %q of %d", size, encoding, path, length, len(a.body))
				}
			}
		}
	}
}

// TestNameAcrossPieces has our field's name stand across what is read at once, wherever that ends.
func TestNameAcrossPieces(t *testing.T) {
	const name = `"neardup_sketch"`
	for _, border := range []int{32 << 10, 64 << 10, 1 << 20, 8 << 20} {
		for shift := range len(name) + 1 {
			head := `{"_source":{"a":"`
			pad := strings.Repeat("x", border-len(head)-len(`",`)-shift)
			with, without := head+pad+`",`+name+`:"s"}}`, head+pad+`"}}`
			for _, encoding := range []string{"", "gzip"} {
				if border > 64<<10 && (shift%5 != 0 || encoding != "") {
					continue
				}
				f := serve(t, replying(encoding, coded(encoding, with), true), nil)
				a := do(t, "GET", f.url+"/news-1/_doc/1", "", "Accept-Encoding: gzip")
				if got := plainOf(t, a); got != without {
					t.Fatalf("border %d, %d before it, %q: …%s", border, shift, encoding, got[max(0, len(got)-60):])
				}
			}
		}
	}
	for cut := range len(name) + 1 { // pieces as the network brings them
		f := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if strings.Contains(r.RequestURI, fieldPath) {
				io.WriteString(w, `{"news-1":{"mappings":{}}}`)
				return
			}
			for _, piece := range []string{`{"_source":{`, name[:cut], name[cut:] + `:"s","a":1}}`} {
				io.WriteString(w, piece)
				http.NewResponseController(w).Flush()
			}
		}), nil)
		if a := do(t, "GET", f.url+"/news-1/_doc/1", ""); a.body != `{"_source":{"a":1}}` {
			t.Errorf("cut at %d: %s", cut, a.body)
		}
	}
}

// BenchmarkFirstByte takes the time until a client sees the first byte of a reply of 50 MB, and the time for all of it, with the
// sidecar and without.
func BenchmarkFirstByte(b *testing.B) {
	ours := []byte(hit(1) + ",")
	for _, c := range []struct {
		name, index   string
		found, length bool
	}{
		{"ours, in chunks", "news-1", true, false}, {"ours, with a length", "news-1", true, true}, {"nothing of ours, in chunks", "news-1", false, false},
		{"of another index, in chunks", "other-1", false, false}, {"of another index, with a length", "other-1", false, true},
	} {
		piece := ours
		if !c.found {
			piece = bytes.ReplaceAll(ours, []byte("neardup_"), []byte("another_"))
		}
		pieces := 50 << 20 / len(piece)
		e := newEngine("news-1", "other-1")
		e.answer = func(w http.ResponseWriter, a arrival) {
			if c.length {
				w.Header().Set("Content-Length", strconv.Itoa(len(`{"docs":[{}]}`)+pieces*len(piece)))
			}
			io.WriteString(w, `{"docs":[`)
			for range pieces {
				w.Write(piece)
			}
			io.WriteString(w, `{}]}`)
		}
		f := serve(b, e, nil)
		for _, base := range []string{f.behind.URL, f.url} {
			b.Run(c.name+map[bool]string{true: ", directly", false: ""}[base == f.behind.URL], func(b *testing.B) {
				var first time.Duration
				for b.Loop() {
					began := time.Now()
					resp, err := client.Get(base + "/" + c.index + "/_mget")
					if err != nil {
						b.Fatal(err)
					}
					if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
						b.Fatal(err)
					}
					first += time.Since(began)
					n, err := io.Copy(io.Discard, resp.Body)
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(n)
					resp.Body.Close()
				}
				b.ReportMetric(float64(first.Microseconds())/1000/float64(b.N), "ms/first")
			})
		}
	}
}
