package faults

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// with returns the reply with another body, well framed, under the same status and header less what told of the old one.
func (w *Whole) with(body []byte, without ...string) []byte {
	return w.framed(body, len(body), without...)
}

// framed returns the reply with a body and what its Content-Length is to say.
func (w *Whole) framed(body []byte, length int, without ...string) []byte {
	without = append(without, "content-length", "transfer-encoding", "connection")
	var out bytes.Buffer
	for i, line := range strings.Split(strings.TrimRight(string(w.Head), "\r\n"), "\r\n") {
		key, _, _ := strings.Cut(strings.ToLower(line), ":")
		if i == 0 || !slices.Contains(without, key) {
			out.WriteString(line + "\r\n")
		}
	}
	fmt.Fprintf(&out, "Content-Length: %d\r\nConnection: close\r\n\r\n", length)
	out.Write(body)
	return out.Bytes()
}

// Garbage are ways to make another reply of an engine's, by name, for [Alter].
var Garbage = map[string]func(*Whole) []byte{
	"half JSON": func(w *Whole) []byte { return w.with(w.Body[:len(w.Body)/2]) }, // framed as if it were all of it
	"empty":     func(w *Whole) []byte { return w.with(nil, "content-encoding") },
	"HTML": func(w *Whole) []byte { // a page of some gateway under the engine's status and type
		return w.with([]byte("<html><body><h1>It works!</h1></body></html>\n"), "content-encoding")
	},
	"noise": func(w *Whole) []byte { // random bytes, the same each time
		random := rand.New(rand.NewPCG(1, 2))
		body := make([]byte, 500)
		for i := range body {
			body[i] = byte(random.Uint32())
		}
		return w.with(body, "content-encoding")
	},
	"not HTTP":     func(*Whole) []byte { return []byte("\x16\x03\x01\x02\x00 no reply at all\r\n\r\n") },
	"other JSON":   func(w *Whole) []byte { return w.with([]byte(`["this is",{"not":"the reply"}]`), "content-encoding") },
	"long length":  func(w *Whole) []byte { return w.framed(w.Body, len(w.Body)+10) },
	"short length": func(w *Whole) []byte { return w.framed(w.Body, max(len(w.Body)-10, 0)) },
	"half gzip": func(w *Whole) []byte { // cut off within the compressed stream, framed as if it were all of it
		if w.Response.Header.Get("Content-Encoding") != "" {
			return w.with(w.Body[:len(w.Body)/2])
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(w.Body)
		_ = z.Close()
		out := w.with(b.Bytes()[:b.Len()/2])
		return bytes.Replace(out, []byte("\r\n"), []byte("\r\nContent-Encoding: gzip\r\n"), 1)
	},
}

// Made returns a reply with a status and a JSON body.
func Made(status int, body string) []byte {
	const form = "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
	return fmt.Appendf(nil, form, status, http.StatusText(status), len(body), body)
}
