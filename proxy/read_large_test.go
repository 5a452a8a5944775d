package proxy_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
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
	if a.header.Get("Content-Encoding") == "gzip" {
		return unzipped(t, a.body)
	}
	return a.body
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

// TestRepliesOfAnySize: with nothing of ours in it a reply comes as it was sent, with its length: of a configured index up to some megabytes,
// and then with the same content; of others whatever its size. With a field of ours in it, it comes without.
func TestRepliesOfAnySize(t *testing.T) {
	for _, size := range []int{100, 1 << 20, 9 << 20} {
		without := `{"_id":"1","_source":{"text":"` + strings.Repeat("x", size) + `","b" : 1e3}}`
		with := without[:len(without)-2] + `,"neardup_sketch":"x"}}`
		for _, encoding := range []string{"", "gzip"} {
			for _, chunked := range []bool{false, true} {
				for _, c := range []struct{ index, body string }{{"news-1", without}, {"news-1", with}, {"other-1", without}} {
					t.Run(fmt.Sprint(size, encoding, chunked, c.index, len(c.body)-size), func(t *testing.T) {
						sent := coded(encoding, c.body)
						f := serve(t, replying(encoding, sent, chunked), nil)
						a := do(t, "GET", f.url+"/"+c.index+"/_doc/1", "", "Accept-Encoding: gzip, deflate")
						if a.header.Get("Content-Encoding") != encoding || plainOf(t, a) != without {
							t.Fatalf("%d bytes of another reply in %q", len(a.body), a.header.Get("Content-Encoding"))
						}
						if c.body == with || c.index == "news-1" && len(sent) > 8<<20 {
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

// TestNameAcrossPieces has our field's name stand across what is read at once, wherever that ends.
func TestNameAcrossPieces(t *testing.T) {
	const name = `"neardup_sketch"`
	for _, border := range []int{32 << 10, 1 << 20} {
		for shift := range len(name) + 1 {
			head := `{"_source":{"a":"`
			pad := strings.Repeat("x", border-len(head)-len(`",`)-shift)
			with, without := head+pad+`",`+name+`:"s"}}`, head+pad+`"}}`
			f := serve(t, replying("", with, true), nil)
			expect.Must(t, without, do(t, "GET", f.url+"/news-1/_doc/1", "").body, "border %d, %d before it", border, shift)
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
		expect.Same(t, `{"_source":{"a":1}}`, do(t, "GET", f.url+"/news-1/_doc/1", "").body, "cut at %d", cut)
	}
}
