package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// heldReply is how much of a reply, as sent, is held while it is searched for our fields. One that ends within it goes out with its length, and
	// with its own bytes where it has none of our fields. A longer one streams.
	heldReply = 8 << 20
	// streamAhead is how much is held of a reply of unknown length that has a field of ours.
	streamAhead = 1 << 20
)

// changeOf returns what is done to the reply to a request of the class, nil for nothing: our fields are cut out, unless they can't be in it or
// the client asked for them, and the header says why a search is left alone.
func (h *Handler) changeOf(class adapters.Class) func(*http.Response) {
	cleans := !class.NamesOurs && (class.Kind == adapters.KindRead || class.CleanWrite)
	if !cleans && class.Reason == "" {
		return nil
	}
	return func(resp *http.Response) {
		if class.Reason != "" && h.mayConcern(class, resp.Request) {
			h.Metrics.search("bypassed", class.Reason)
			say(resp.Header, "bypassed; reason="+string(class.Reason))
		}
		if cleans {
			h.clean(class, resp)
		}
	}
}

// clean cuts our fields out of a reply. One without any goes out with the bytes and headers that it came with.
func (h *Handler) clean(class adapters.Class, resp *http.Response) {
	encoding, readable := codingOf(resp)
	if resp.Request.Method == http.MethodHead || !textual(resp.Header.Get("Content-Type")) || !readable {
		return
	}
	a := ahead{encoding: encoding, found: class.Rewrites}
	a.read(resp)
	switch {
	case !a.found && (a.whole && a.bad == nil || a.broken): // no field of ours
	case a.bad != nil && !errors.Is(a.bad, errTooLarge) && !errors.Is(a.bad, errBusy): // it is not of its encoding
	case !class.Rewrites && !h.mayConcern(class, resp.Request):
	case a.whole && a.bad == nil && holdOf(resp.Request.Context()).take(int64(len(a.plain))):
		h.cleanWhole(class, resp, a)
	default:
		h.cleanStream(class, resp, encoding)
	}
}

// mayConcern reports whether the reply to a request may hold documents of a configured index. Where the request names none it may.
func (h *Handler) mayConcern(class adapters.Class, r *http.Request) bool {
	if class.Target == "" || signed(r) { // a look-up under another request's signature would be refused
		return len(h.Rules) > 0
	}
	if class.Elsewhere {
		class.Target = ""
	}
	if class.Target != "" && h.catalog.mayName(class.Target) {
		return true
	}
	who := senderOf(r)
	return h.catalog.scope(r.Context(), who, class.Target).Configured || h.catalog.unknown(r.Context(), who, class.Target)
}

// cleanWhole replaces a reply that was read whole by the same without our fields, unless it has none.
func (h *Handler) cleanWhole(class adapters.Class, resp *http.Response, a ahead) {
	var clean bytes.Buffer
	clean.Grow(len(a.plain))
	err := guarded(func() error { return h.Dialect.CleanReply(class, &clean, bytes.NewReader(a.plain)) })
	if err != nil || bytes.Equal(clean.Bytes(), a.plain) {
		return
	}
	out := coded(a.encoding, clean.Bytes())
	resp.Body = readCloser{bytes.NewReader(out), resp.Body}
	if resp.ContentLength >= 0 {
		resp.ContentLength = int64(len(out))
		resp.Header.Set("Content-Length", strconv.Itoa(len(out)))
	}
}

// cleanStream cuts our fields out of a reply while it streams.
func (h *Handler) cleanStream(class adapters.Class, resp *http.Response, encoding string) {
	body := resp.Body
	pipe, into := io.Pipe()
	resp.Body = readCloser{pipe, closers{pipe, body}}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	go func() {
		into.CloseWithError(guarded(func() error {
			if encoding == "" {
				return h.Dialect.CleanReply(class, into, body)
			}
			plain, err := decoder(encoding, 0, body)
			if err != nil {
				return err
			}
			z := encoder(encoding, into)
			if err := h.Dialect.CleanReply(class, z, plain); err != nil {
				return err
			}
			return z.Close()
		}))
	}()
}

// ahead is the beginning of a reply, which is read before any of it is sent on.
type ahead struct {
	encoding string
	plain    []byte // decoded
	bad      error  // of decoding
	found    bool   // a field of ours may be in the reply
	whole    bool   // it is all of the reply
	broken   bool   // the engine broke off
}

// read reads the reply until a field of ours shows, the reply ends, or no more of it can be held. What was read stays in the body.
func (a *ahead) read(resp *http.Response) {
	held, body, length := holdOf(resp.Request.Context()), resp.Body, resp.ContentLength
	var raw []byte
	for _, most := range []int64{streamAhead, heldReply} {
		if length > heldReply || length >= 0 && most < heldReply {
			continue
		}
		more, whole, err := held.readUsual(body, most-int64(len(raw)), length)
		if raw == nil {
			raw = more
		} else {
			raw = append(raw, more...)
		}
		a.whole, a.plain, a.bad = whole, raw, nil
		if a.encoding != "" && len(raw) > 0 {
			if a.plain, a.bad = held.decode(a.encoding, raw, plainAhead); !whole && errors.Is(a.bad, io.ErrUnexpectedEOF) {
				a.bad = nil
			}
		}
		rest := io.Reader(body)
		if a.broken = err != nil && !errors.Is(err, errBusy); whole || a.broken {
			rest = failing{cmp.Or(err, io.EOF)}
		}
		resp.Body = readCloser{io.MultiReader(bytes.NewReader(raw), rest), body}
		if a.found = a.found || bytes.Contains(a.plain, []byte(rule.FieldPrefix)); a.found || whole || err != nil {
			return
		}
	}
}

// textual reports whether a reply of the type can hold documents.
func textual(contentType string) bool {
	types := []string{"json", "yaml", "cbor", "smile", "text/plain", "octet-stream"}
	return slices.ContainsFunc(types, func(part string) bool { return strings.Contains(contentType, part) })
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
