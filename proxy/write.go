package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
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
	return r.Body != nil && r.Body != http.NoBody
}

// write sends a write on with its documents enriched: whole with its length where it is small, as most are, or else as a
// stream. If the client breaks off, the request to the engine is cut off too, never ended as if it were whole.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, class adapters.Class) {
	ahead := int64(lookAhead)
	if h.looks() { // for what can be found out of a body that is held
		ahead = plainAhead
	}
	held := holdOf(r.Context())
	raw, whole, err := held.readBody(r.Body, ahead, r.ContentLength)
	if err != nil && !errors.Is(err, errBusy) { // then it streams
		h.unreachable(w, r, err)
		return
	}
	encoding := r.Header.Get("Content-Encoding")
	compressed := encoded(r) && !class.Verbatim && !uncompressed(r, raw)
	if whole {
		plain, err := raw, error(nil)
		if compressed {
			plain, err = held.decode(encoding, raw, plainAhead)
		}
		if endsEarly(encoding, plain, err) { // the engine gets what was read
			r = r.Clone(r.Context())
			r.Header.Del("Content-Encoding")
			raw, compressed, err = plain, false, nil
		}
		switch {
		case err == nil && held.take(enrichedRoom(len(plain))):
			h.writeWhole(w, r, class, raw, plain, compressed)
			return
		case err != nil && !errors.Is(err, errTooLarge) && !errors.Is(err, errBusy):
			h.unreachable(w, r, errors.Join(errEncoding, err))
			return
		}
	}
	body := held.onwardsFrom(raw, r.Body)
	if !compressed {
		h.writeStream(w, r, class, body, false)
		return
	}
	window := windowOf(encoding, raw)
	if err := held.reserve(window); err != nil { // what an engine would read can't go on unread
		h.unreachable(w, r, err)
		return
	}
	plain, err := decoder(encoding, window, body)
	if err != nil {
		h.unreachable(w, r, errors.Join(errEncoding, err))
		return
	}
	h.writeStream(w, r, class, plain, true)
}

// writeWhole sends on a body that was read whole: as it was sent if nothing in it changes. compressed says that raw is plain compressed.
func (h *Handler) writeWhole(w http.ResponseWriter, r *http.Request, class adapters.Class, raw, plain []byte, compressed bool) {
	class.Shown = class.Shown || class.Alters && rule.NamesOurs(plain)
	var enriched bytes.Buffer
	enriched.Grow(int(enrichedRoom(len(plain))))
	wr := &writing{h: h, r: r, class: class, who: senderOf(r)}
	var found *findings
	as := rule.Writing(wr)
	if h.looks() {
		if found = wr.look(plain); found != nil {
			as = found
		}
	}
	_, err := wr.enrich(&enriched, bytes.NewReader(plain), as, h.Limits.EngineMaxBody-int64(len(plain)))
	refused := adapters.Refusal("")
	switch {
	case err == nil:
	case errors.As(err, &refused), class.Format != "":
		h.unreachable(w, r, err)
		return
	default:
		h.Metrics.writesBypassed.WithLabelValues("failed").Inc()
		h.Log.Error("write could not be enriched", "error", unquoted(err))
		found = nil // nothing is left out of what was sent
	}
	if found != nil && found.leavesNothing() {
		found.answer(w)
		return
	}
	out := r.Clone(r.Context())
	body := raw
	if err == nil && !bytes.Equal(enriched.Bytes(), plain) {
		body = enriched.Bytes()
		if compressed {
			out.Header.Del("Content-Encoding")
		}
	}
	out.Header.Del("Content-Length")
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	wr.forward(w, out, found)
}

// enrichedRoom is how much room is taken for a body of the length with its documents enriched.
func enrichedRoom(length int) int64 { return int64(length + length/4) }

// writeStream sends on a body while it is read. compressed says that the client sent it compressed.
func (h *Handler) writeStream(w http.ResponseWriter, r *http.Request, class adapters.Class, plain io.Reader, compressed bool) {
	out, room := r.Clone(r.Context()), h.Limits.EngineMaxBody/unknownRoom
	if compressed {
		out.Header.Del("Content-Encoding")
	} else if r.ContentLength >= 0 {
		room = h.Limits.EngineMaxBody - r.ContentLength
	}
	wr := &writing{h: h, r: r, class: class, who: senderOf(r), streams: true}
	pipe, into := io.Pipe()
	defer pipe.Close() // ends the copying below if the engine answers early
	out.Header.Del("Content-Length")
	out.Body, out.ContentLength = making(r.Context(), pipe), -1
	go func() {
		long := struct {
			io.Reader
			*hold
		}{plain, holdOf(r.Context())}
		_, err := wr.enrich(into, long, wr, room)
		if refused := adapters.Refusal(""); err != nil && !errors.Is(err, errBrokenOff) && !errors.As(err, &refused) && compressed {
			err = errors.Join(errEncoding, err)
		}
		into.CloseWithError(err)
	}()
	wr.forward(w, out, nil)
}

// writing is one write, of which nothing is known but what the request says. It implements rule.Writing.
type writing struct {
	h     *Handler
	r     *http.Request // as the client sent it
	class adapters.Class
	who   client
	// streams says that the body is not held whole, so that no near-duplicates are looked up.
	streams bool
	// makes says that a document has come that makes its index. The documents of a stream come while the reply may.
	makes atomic.Bool
	last  placed
	made  sketch.Sketch
}

// enrich copies the body from src to dst with its documents enriched, as far as there is room for more bytes. as is the write itself, or its
// findings. It returns what takes the reply apart.
func (w *writing) enrich(dst io.Writer, src io.Reader, as rule.Writing, room int64) (adapters.Replies, error) {
	var replies adapters.Replies
	err := guarded(func() (err error) {
		replies, err = w.h.Dialect.EnrichWrite(w.class, dst, src, as, room)
		return err
	})
	return replies, err
}

// forward sends the enriched write on. One that makes an index ends what is known of the names that now lead to it as
// well. found is what was found out about its documents, nil for nothing; it completes the reply.
func (w *writing) forward(rw http.ResponseWriter, out *http.Request, found *findings) {
	h, class, completes := w.h, w.class, found != nil && len(found.left) > 0
	if accepted := acceptable(out.Header["Accept-Encoding"]); accepted != nil && (class.CleanWrite && !class.Shown || completes) {
		out.Header["Accept-Encoding"] = accepted
	}
	change, answered := h.changeOf(class), false
	made := func(status int) {
		if answered = true; w.makes.Load() {
			h.catalog.altered(w.who, status)
		}
	}
	defer func() {
		if !answered { // it may have been made all the same
			made(0)
		}
	}()
	h.sendAltering(rw, out, class.Alters, func(resp *http.Response) {
		made(resp.StatusCode)
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

// Rule implements rule.Writing.
func (w *writing) Rule(index string, whole bool) (*rule.Rule, rule.Fit) {
	change := w.h.catalog.changed(w.who)
	if w.last.holds(index, whole, change) {
		return w.last.rule, w.last.fit
	}
	p := w.h.catalog.placing(w.r.Context(), w.who, index, whole)
	if p.makes {
		w.makes.Store(true)
	}
	if w.last = (placed{}); p.rule != nil && p.fit == rule.Fits && !p.makes {
		w.last = placed{p, index, whole, change, time.Now().Add(placedFor)}
	}
	return p.rule, p.fit
}

// Identifies implements rule.Writing.
func (w *writing) Identifies() bool { return w.h.looks() }

// Start implements rule.Writing.
func (w *writing) Start(rule.Operation) bool { return true }

// Sketch implements rule.Writing.
func (w *writing) Sketch(rule *rule.Rule, texts []string) (*sketch.Sketch, bool) {
	return &w.made, rule.SketchInto(&w.made, texts)
}

// Cluster implements rule.Writing: the document is alone, as far as is known.
func (w *writing) Cluster(_ rule.Operation, r *rule.Rule, _ *sketch.Sketch, _ bool) string {
	if w.streams && r.OnDuplicate != rule.IndexDuplicates {
		w.h.Metrics.duplicates.WithLabelValues("too_long").Inc()
	}
	return ""
}

// Number implements rule.Writing: by the id and the index that a document goes to, and at random where it has no id.
func (w *writing) Number(o rule.Operation) uint64 {
	if o.ID == "" {
		return max(rand.Uint64(), 1)
	}
	name := o.Index
	if index, err := w.h.catalog.concrete(w.r.Context(), w.who, name); err == nil && index.Name != "" {
		name = index.Name
	}
	return max(binary.BigEndian.Uint64([]byte(entryKey(client{key: name}, o.ID))), 1)
}

// Hold implements rule.Writing.
func (w *writing) Hold(n int) bool { return n == 0 || holdOf(w.r.Context()).Room(n) }

// Count implements rule.Writing.
func (w *writing) Count(c rule.Change) { w.h.Metrics.documents.WithLabelValues(c.String()).Inc() }

// declaring has our field declared in the index that a request of the class makes, when the engine has made it and before the
// client knows.
func (h *Handler) declaring(r *http.Request, class adapters.Class, change func(*http.Response)) func(*http.Response) {
	if class.Makes == "" || signed(r) { // a look-up under another request's signature would be refused
		return change
	}
	return func(resp *http.Response) {
		if resp.StatusCode < 300 {
			h.catalog.placing(r.Context(), senderOf(r), class.Makes, false)
		}
		if change != nil {
			change(resp)
		}
	}
}

// placedFor is how long the documents of one write take the rule of the one before that went to the same name. It is little beside known.
const placedFor = 100 * time.Millisecond

// placed is how the last document of a write was enriched whose index was prepared.
type placed struct {
	placing
	index  string
	whole  bool
	change int // the catalog's when it was asked
	until  time.Time
}

func (l *placed) holds(index string, whole bool, change int) bool {
	return l.rule != nil && l.index == index && l.whole == whole && l.change == change && time.Now().Before(l.until)
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
