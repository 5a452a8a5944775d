package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// lookAhead is how much of a write's body is read before the first byte is sent on. A body that ends within it goes on with its
	// length, as most clients send theirs.
	lookAhead = 1 << 20
	// plainAhead is how large such a body may be when it is decompressed, and of any where a rule has near-duplicates looked up.
	plainAhead = 8 << 20
	// unknownRoom is the share of the engine's body limit that may be added to a body whose length is not known beforehand.
	unknownRoom = 16
)

// errEncoding: a body is not of the encoding that it says it has.
var errEncoding = errors.New("not of its encoding")

// mayChange reports whether a write's body is one that may be changed.
func (h *Handler) mayChange(r *http.Request, class adapters.Class) bool {
	if signed(r) {
		if !class.Verbatim {
			h.Metrics.writesBypassed.WithLabelValues("signed").Inc()
		}
		return false
	}
	return !bodiless(r)
}

// write sends a write on with its documents enriched: whole with its length where it is small, as most are, or else as a
// stream. If the client breaks off, the request to the engine is cut off too, never ended as if it were whole.
func (h *Handler) write(u *underway, r *http.Request, class adapters.Class) {
	ahead := int64(lookAhead)
	if h.looks() { // for what can be found out of a body that is held
		ahead = plainAhead
	}
	raw, whole, err := u.hold.readBody(r.Body, ahead, r.ContentLength)
	if err != nil && !errors.Is(err, errBusy) { // then it streams
		h.unreachable(u, r, err)
		return
	}
	w := &writing{h: h, u: u, r: r, out: r.Clone(r.Context()), class: class, who: u.sender.client()}
	w.out.Header.Del("Content-Length")
	encoding := ""
	if w.compressed = encoded(r) && !class.Verbatim && !uncompressed(r, raw); w.compressed {
		encoding = r.Header.Get("Content-Encoding")
	}
	if whole {
		plain, err := u.hold.decode(encoding, raw, plainAhead)
		if endsEarly(encoding, plain, err) { // the engine gets what was read
			w.out.Header.Del("Content-Encoding")
			w.compressed, raw, encoding, err = false, plain, "", nil
		}
		switch {
		case err == nil && u.hold.take(enrichedRoom(len(plain))):
			w.whole(raw, plain)
			return
		case err != nil && !errors.Is(err, errTooLarge) && !errors.Is(err, errBusy):
			h.unreachable(u, r, errors.Join(errEncoding, err))
			return
		}
	}
	window := windowOf(encoding, raw)
	if err := u.hold.reserve(window); err != nil { // what an engine would read can't go on unread
		h.unreachable(u, r, err)
		return
	}
	plain, err := decoder(encoding, window, u.hold.onwardsFrom(raw, r.Body))
	if err != nil {
		h.unreachable(u, r, errors.Join(errEncoding, err))
		return
	}
	w.stream(plain)
}

// enrichedRoom is how much room is taken for a body of the length with its documents enriched.
func enrichedRoom(length int) int64 { return int64(length + length/4) }

// writing is one write. It implements rule.Writing.
type writing struct {
	h     *Handler
	u     *underway
	r     *http.Request // as the client sent it
	out   *http.Request // as it goes on
	class adapters.Class
	who   client
	// compressed says that the client sent the body so.
	compressed bool
	last       placed
}

// whole sends on a body that was read whole: raw, as it was sent, if nothing in it changes. plain is that less its encoding.
func (w *writing) whole(raw, plain []byte) {
	w.class.Shown = w.class.Shown || w.class.Alters && rule.NamesOurs(plain)
	var enriched bytes.Buffer
	enriched.Grow(int(enrichedRoom(len(plain))))
	as := rule.Writing(w)
	var found *findings
	if w.h.looks() {
		found = w.look(plain)
		as = found
	}
	_, err := w.enrich(&enriched, bytes.NewReader(plain), as, w.h.Limits.EngineMaxBody-int64(len(plain)))
	refused := adapters.Refusal("")
	switch {
	case err == nil:
	case errors.As(err, &refused), w.class.Format != "":
		w.h.unreachable(w.u, w.r, err)
		return
	default:
		w.h.Metrics.writesBypassed.WithLabelValues("failed").Inc()
		w.h.Log.Error("write could not be enriched", "error", unquoted(err))
		found = nil // nothing is left out of what was sent
	}
	if found != nil && found.leavesNothing() {
		found.answer()
		return
	}
	body := raw
	if err == nil && !bytes.Equal(enriched.Bytes(), plain) {
		body = enriched.Bytes()
		if w.compressed {
			w.out.Header.Del("Content-Encoding")
		}
	}
	w.out.Body, w.out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	w.forward(found)
}

// stream sends on a body while it is read.
func (w *writing) stream(plain io.Reader) {
	room := w.h.Limits.EngineMaxBody / unknownRoom
	if w.compressed {
		w.out.Header.Del("Content-Encoding")
	} else if w.r.ContentLength >= 0 {
		room = w.h.Limits.EngineMaxBody - w.r.ContentLength
	}
	as := rule.Writing(w)
	if w.h.looks() {
		as = &findings{writing: w, tooLong: true}
	}
	pipe, into := io.Pipe()
	defer pipe.Close() // ends the copying below if the engine answers early
	w.u.made = &made{ReadCloser: pipe}
	w.out.Body, w.out.ContentLength = w.u.made, -1
	go func() {
		long := struct {
			io.Reader
			*hold
		}{plain, &w.u.hold}
		_, err := w.enrich(into, long, as, room)
		if refused := adapters.Refusal(""); err != nil && !errors.Is(err, errBrokenOff) && !errors.As(err, &refused) && w.compressed {
			err = errors.Join(errEncoding, err)
		}
		into.CloseWithError(err)
	}()
	w.forward(nil)
}

// enrich copies the body from src to dst with its documents enriched, as far as there is room for more bytes. as is the write itself, or its
// findings. It returns what takes the reply apart.
func (w *writing) enrich(dst io.Writer, src io.Reader, as rule.Writing, room int64) (replies adapters.Replies, err error) {
	err = guarded(func() (err error) {
		replies, err = w.h.Dialect.EnrichWrite(w.class, dst, src, as, room)
		return err
	})
	return replies, err
}

// forward sends the enriched write on. found is what was found out about its documents, nil for nothing; it completes the reply.
func (w *writing) forward(found *findings) {
	completes := found != nil && len(found.left) > 0
	if accepted := acceptable(w.out.Header["Accept-Encoding"]); accepted != nil && (w.class.CleanWrite && !w.class.Shown || completes) {
		w.out.Header["Accept-Encoding"] = accepted
	}
	change := w.h.changeOf(w.class)
	w.h.send(w.u, w.out, func(resp *http.Response) {
		if found != nil {
			found.remember(resp.StatusCode)
		}
		if completes {
			found.complete(resp)
		}
		if change != nil {
			change(resp)
		}
	})
}

// Rule implements rule.Writing. A document that makes its index ends what is known of the names that now lead to it as well.
func (w *writing) Rule(index string, whole bool) (*rule.Rule, rule.Fit) {
	if l := &w.last; l.rule != nil && l.index == index && l.whole == whole && time.Now().Before(l.until) {
		return l.rule, l.fit
	}
	p := w.h.catalog.placing(w.u, index, whole)
	if p.makes {
		w.u.makes.Store(true)
	}
	if w.last = (placed{}); p.rule != nil && p.fit == rule.Fits && !p.makes {
		w.last = placed{p, index, whole, time.Now().Add(placedFor)}
	}
	return p.rule, p.fit
}

// Hold implements rule.Writing.
func (w *writing) Hold(n int) bool { return w.u.hold.Room(n) }

// Count implements rule.Writing.
func (w *writing) Count(c rule.Change) { w.h.Metrics.documents.WithLabelValues(c.String()).Inc() }

// placedFor is how long the documents of one write take the rule of the one before that went to the same name. It is little beside known.
const placedFor = 10 * time.Millisecond

// placed is how the last document of a write was enriched whose index was prepared.
type placed struct {
	placing
	index string
	whole bool
	until time.Time
}

// guarded runs a step of the dialect and turns its panic, a bug of ours that no client is to pay for, into an error.
func guarded(step func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	return step()
}

// errPanicked: a step of the dialect panicked.
var errPanicked = errors.New("a bug in the adapter")
