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

	"github.com/neardup/sidecar/internal/rule"

	fastgzip "github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"

	fastzlib "github.com/klauspost/compress/zlib"

	"github.com/neardup/sidecar/adapters"
)

const (
	// heldReply is how much of a reply, as sent, is held while it is looked through. One that ends within it goes out with its
	// length, and where nothing of ours is in it, with its bytes. A longer one streams.
	heldReply = 8 << 20
	// streamAhead is how much is held of one that has no length and in which there is something of ours.
	streamAhead = 1 << 20
	// heldBody is how much of a read's body is looked through for the names of our fields.
	heldBody = 1 << 20
)

// read sends a read on. A field of ours that it names in its body is shown.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, class adapters.Class) {
	if class.Reason != "" { // a search all the same: our controls mean nothing to the engine, which would refuse them
		_, plain, _ := adapters.TakeControls(requestOf(r))
		query := *r.URL
		r, query.RawQuery = r.WithContext(r.Context()), plain.RawQuery
		r.URL, r.Header = &query, http.Header(plain.Header)
	}
	out := r.WithContext(r.Context())
	if r.Body != nil && r.Body != http.NoBody && !class.Shown {
		head, _, err := holdOf(r.Context()).readBody(r.Body, heldBody, r.ContentLength)
		if err != nil && !errors.Is(err, errBusy) {
			h.unreachable(w, r, err)
			return
		}
		class.Shown = names(head, r)
		out.Body = holdOf(r.Context()).onwardsFrom(head, r.Body)
	}
	if accepted := acceptable(r.Header["Accept-Encoding"]); accepted != nil && !class.Shown && !signed(r) {
		out.Header = r.Header.Clone()
		out.Header["Accept-Encoding"] = accepted
	}
	if r.Method == http.MethodHead && !class.Shown && !signed(r) && h.mayConcern(class, out) {
		// Its length is that of a body which is to be cleaned; what we write of it, net/http leaves out. No engine compresses nothing.
		out.Method, out.Header = http.MethodGet, r.Header.Clone()
		out.Header.Del("Accept-Encoding")
	}
	h.send(w, out, h.changeOf(class))
}

// signed reports whether a request is signed over what it is, so that nothing of it may change.
func signed(r *http.Request) bool { return adapters.Signed(adapters.Header(r.Header), r.URL.RawQuery) }

// names reports whether the beginning of a body names a field of ours.
func names(head []byte, r *http.Request) bool {
	if encoded(r) {
		var err error
		held := holdOf(r.Context())
		if head, err = held.decode(r.Header.Get("Content-Encoding"), head, plainAhead); err != nil {
			return false
		}
		defer held.give(int64(len(head)))
	}
	return rule.NamesOurs(head)
}

// changeOf returns what is done to the reply to a request of the class: our fields are cut out, unless they can't be in it or are
// to be shown, and a search that is left alone says why. It returns nil for nothing.
func (h *Handler) changeOf(class adapters.Class) func(*http.Response) {
	var clean func(*http.Response)
	if !class.Shown && (class.Kind == adapters.KindRead || class.CleanWrite) {
		clean = h.cleaner(class)
	}
	if class.Reason == "" {
		return clean
	}
	return func(resp *http.Response) {
		if h.mayConcern(class, resp.Request) {
			h.Metrics.search("bypassed", class.Reason)
			say(resp.Header, "bypassed; reason="+string(class.Reason))
		}
		if clean != nil {
			clean(resp)
		}
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

// cleaner returns a function that cuts our fields out of a response. A reply in which there are none goes out with the bytes and
// headers it came with.
func (h *Handler) cleaner(class adapters.Class) func(*http.Response) {
	return func(resp *http.Response) {
		encoding, readable := codingOf(resp)
		if resp.Request.Method == http.MethodHead || !textual(resp.Header.Get("Content-Type")) || !readable {
			return
		}
		a := ahead{encoding: encoding, found: class.Rewrites}
		a.look(resp)
		switch {
		case !a.found && (a.whole && a.bad == nil || a.broken): // nothing of ours has come
		case a.bad != nil && !errors.Is(a.bad, errTooLarge) && !errors.Is(a.bad, errBusy): // it is not of its encoding
		case !class.Rewrites && !h.mayConcern(class, resp.Request):
		case a.whole && a.bad == nil && holdOf(resp.Request.Context()).take(int64(len(a.plain))):
			h.cleanWhole(class, resp, a)
		default:
			h.cleanStream(class, resp, encoding)
		}
	}
}

// ahead is the beginning of a reply, which is looked through before anything of it is sent on.
type ahead struct {
	encoding string
	plain    []byte // less the encoding
	bad      error  // of decoding it
	found    bool   // something in it may be ours
	whole    bool   // that is all of it
	broken   bool   // the engine broke off
}

// look reads until it is known what becomes of the reply: to its end, or until it can't be held whole, or need not be. What was read stays in
// the body.
func (a *ahead) look(resp *http.Response) {
	held, body, left := holdOf(resp.Request.Context()), resp.Body, resp.ContentLength
	var raw []byte
	for _, most := range []int64{streamAhead, heldReply} {
		if left > heldReply || left >= 0 && most < heldReply {
			continue
		}
		more, whole, err := held.readUsual(body, most-int64(len(raw)), left)
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

// cleanWhole puts the reply less our fields in the place of one that is held whole, unless there are none.
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

// cleanStream puts the dialect between the engine and the client.
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

// textual reports whether a reply of the type can hold documents.
func textual(contentType string) bool {
	types := []string{"json", "yaml", "cbor", "smile", "text/plain", "octet-stream"}
	return slices.ContainsFunc(types, func(part string) bool { return strings.Contains(contentType, part) })
}

// encoder returns what writes a reply in an encoding that can be read.
func encoder(encoding string, dst io.Writer) io.WriteCloser {
	switch encoding {
	case "snappy":
		return s2.NewWriter(dst, s2.WriterSnappyCompat(), s2.WriterConcurrency(1))
	case "deflate":
		z, _ := fastzlib.NewWriterLevel(dst, fastzlib.BestSpeed) // the level is a valid one, here and below
		return z
	}
	if z, ok := zippers.Get().(*fastgzip.Writer); ok {
		z.Reset(dst)
		return z
	}
	z, _ := fastgzip.NewWriterLevel(dst, fastgzip.BestSpeed)
	return z
}

func encode(encoding string, data []byte) []byte {
	var b bytes.Buffer
	z := encoder(encoding, &b)
	_, _ = z.Write(data) // a Buffer takes every write
	_ = z.Close()
	if z, ok := z.(*fastgzip.Writer); ok {
		zippers.Put(z)
	}
	return b.Bytes()
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
