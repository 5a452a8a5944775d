package proxy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// cleanWhole is the largest reply, in bytes as sent, that is read whole to be cleaned; it then keeps its length. A larger one
// streams.
const cleanWhole = 1 << 20

// changeOf returns what cuts our fields out of the reply to a request of the class, or nil where they can't be in it or are to be
// shown.
func (h *Handler) changeOf(class adapters.Class) func(*http.Response) {
	if class.Shown || class.Kind != adapters.Read && !class.CleanWrite {
		return nil
	}
	return h.cleaner(class)
}

// cleaner returns a function that cuts our fields out of a response. A reply in which there are none goes out with the bytes and
// headers it came with.
func (h *Handler) cleaner(class adapters.Class) func(*http.Response) {
	return func(resp *http.Response) {
		encoding := strings.ToLower(resp.Header.Get("Content-Encoding"))
		if resp.Request.Method == http.MethodHead || !textual(resp.Header.Get("Content-Type")) || encoding != "" && encoding != "gzip" {
			return
		}
		head, whole, err := readUpTo(resp.Body, cleanWhole)
		body := resp.Body
		if err == nil && whole {
			clean, changed, fits := h.clean(class, head, encoding)
			if fits {
				resp.Body = readCloser{bytes.NewReader(clean), body}
				if changed && resp.ContentLength >= 0 {
					resp.ContentLength = int64(len(clean))
					resp.Header.Set("Content-Length", strconv.Itoa(len(clean)))
				}
				return
			}
		}
		rest := io.Reader(io.MultiReader(bytes.NewReader(head), body))
		if err != nil {
			rest = io.MultiReader(bytes.NewReader(head), failing{err})
		}
		if _, err := gzip.NewReader(bytes.NewReader(head)); err != nil && encoding == "gzip" {
			resp.Body = readCloser{rest, body} // not the compressed reply it says it is
			return
		}
		h.cleanStream(class, resp, rest, encoding)
	}
}

// clean returns the reply's body less our fields in the encoding it had, or as it was if there are none. fits is false where it is
// too large, decompressed, to be cleaned whole.
func (h *Handler) clean(class adapters.Class, body []byte, encoding string) (out []byte, changed, fits bool) {
	plain := body
	if encoding == "gzip" {
		var err error
		if plain, err = decode(encoding, body, plainAhead); err != nil {
			return body, false, !errors.Is(err, errTooLarge)
		}
	}
	if !bytes.Contains(plain, []byte(adapters.FieldPrefix)) {
		return body, false, true
	}
	var clean bytes.Buffer
	err := guarded(func() error { return h.Dialect.CleanReply(class, &clean, bytes.NewReader(plain)) })
	if err != nil || bytes.Equal(clean.Bytes(), plain) {
		return body, false, true
	}
	if encoding == "gzip" {
		return gzipped(clean.Bytes()), true, true
	}
	return clean.Bytes(), true, true
}

// cleanStream puts the dialect between the engine and the client.
func (h *Handler) cleanStream(class adapters.Class, resp *http.Response, src io.Reader, encoding string) {
	pipe, into := io.Pipe()
	upstream := resp.Body
	resp.Body = readCloser{pipe, closers{pipe, upstream}}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	go func() {
		into.CloseWithError(guarded(func() error { return h.copyClean(class, into, src, encoding) }))
	}()
}

func (h *Handler) copyClean(class adapters.Class, dst io.Writer, src io.Reader, encoding string) error {
	if encoding != "gzip" {
		return h.Dialect.CleanReply(class, dst, src)
	}
	plain, err := gzip.NewReader(src)
	if err != nil {
		return err
	}
	z, _ := gzip.NewWriterLevel(dst, gzip.BestSpeed)
	if err := h.Dialect.CleanReply(class, z, plain); err != nil {
		return err
	}
	return z.Close()
}

// textual reports whether a reply of the type can hold documents in JSON.
func textual(contentType string) bool {
	for _, part := range []string{"json", "text/plain", "octet-stream"} {
		if strings.Contains(contentType, part) {
			return true
		}
	}
	return false
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is a valid one, and a Buffer takes every write
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

type readCloser struct {
	io.Reader
	io.Closer
}

type closers []io.Closer

func (c closers) Close() error {
	for _, each := range c {
		_ = each.Close()
	}
	return nil
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
