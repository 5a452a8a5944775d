package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/neardup/sidecar/adapters"
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

// readable reports whether a write's body is one that may be changed.
func (h *Handler) readable(r *http.Request, class adapters.Class) bool {
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
	class.Shown = class.Shown || class.Alters && adapters.NamesOurs(plain)
	var enriched bytes.Buffer
	var makes atomic.Bool
	found := h.look(r, class, plain, &makes)
	e := h.enricher(r, int64(len(plain)), &makes)
	found.apply(e)
	enriched.Grow(int(enrichedRoom(len(plain))))
	err := guarded(func() error {
		return h.Dialect.EnrichWrite(class, &enriched, bytes.NewReader(plain), e)
	})
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
	found.count()
	if found.nothing() {
		found.answer(w, r)
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
	h.forwardWrite(w, out, class, &makes, found, plain)
}

// enrichedRoom is how much room is taken for a body of the length with its documents enriched.
func enrichedRoom(length int) int64 { return int64(length + length/4) }

// writeStream sends on a body while it is read. compressed says that the client sent it compressed.
func (h *Handler) writeStream(w http.ResponseWriter, r *http.Request, class adapters.Class, plain io.Reader, compressed bool) {
	length := int64(-1)
	if !compressed {
		length = r.ContentLength
	}
	var makes atomic.Bool
	e := h.enricher(r, length, &makes)
	e.Cluster = h.tooLong()
	pipe, into := io.Pipe()
	defer pipe.Close() // ends the copying below if the engine answers early
	out := r.Clone(r.Context())
	if compressed {
		out.Header.Del("Content-Encoding")
	}
	out.Header.Del("Content-Length")
	out.Body, out.ContentLength = making(r.Context(), pipe), -1
	go func() {
		long := struct {
			io.Reader
			*hold
		}{plain, holdOf(r.Context())}
		err := guarded(func() error { return h.Dialect.EnrichWrite(class, into, long, e) })
		if refused := adapters.Refusal(""); err != nil && !errors.Is(err, errBrokenOff) && !errors.As(err, &refused) && compressed {
			err = errors.Join(errEncoding, err)
		}
		into.CloseWithError(err)
	}()
	h.forwardWrite(w, out, class, &makes, nil, nil)
}

// forwardWrite sends an enriched write on. One that makes an index ends what is known of the names that now lead to it as
// well. What was found out about its documents, if anything, completes the reply; plain is the body as the client sent it.
func (h *Handler) forwardWrite(
	w http.ResponseWriter, r *http.Request, class adapters.Class, makes *atomic.Bool, found *findings, plain []byte,
) {
	complete := found.completing(r, plain)
	if accepted := readable(r.Header["Accept-Encoding"]); accepted != nil && (class.CleanWrite && !class.Shown || complete != nil) {
		r.Header["Accept-Encoding"] = accepted
	}
	change, told := h.changeOf(class), false
	made := func(status int) {
		if told = true; makes.Load() {
			h.catalog.altered(senderOf(r), status)
		}
	}
	send := h.send
	if class.Alters {
		send = func(w http.ResponseWriter, r *http.Request, change func(*http.Response)) {
			h.sendAltering(w, r, true, change)
		}
	}
	defer func() {
		if !told { // it may have been made all the same
			made(0)
		}
	}()
	send(w, r, func(resp *http.Response) {
		made(resp.StatusCode)
		found.remember(resp.StatusCode)
		if complete != nil {
			complete(resp)
		}
		if change != nil {
			change(resp)
		}
	})
}

// declaring has our field declared in the index that a request of the class makes, when the engine has made it and before the
// client knows.
func (h *Handler) declaring(r *http.Request, class adapters.Class, change func(*http.Response)) func(*http.Response) {
	if class.Makes == "" || signed(r) { // a look-up under another request's signature would be refused
		return change
	}
	return func(resp *http.Response) {
		if resp.StatusCode < 300 {
			h.catalog.rule(r.Context(), senderOf(r), class.Makes, false)
		}
		if change != nil {
			change(resp)
		}
	}
}

// enricher returns what enriches the documents of a body of the length (-1 if it is not known), with as much room as the engine's
// limit leaves. It sets makes when a document comes that makes its index.
func (h *Handler) enricher(r *http.Request, length int64, makes *atomic.Bool) *adapters.Enricher {
	e := &adapters.Enricher{
		Count: func(c adapters.Change) { h.Metrics.documents.WithLabelValues(c.String()).Inc() },
		Room:  h.Limits.EngineMaxBody - length,
	}
	if length < 0 {
		e.Room = h.Limits.EngineMaxBody / unknownRoom
	}
	who := senderOf(r)
	var last ruled
	e.Rule = func(index string, whole bool) (*adapters.Rule, bool) {
		change := h.catalog.changed(who)
		if last.holds(index, whole, change) {
			return last.rule, true
		}
		rule, fit, absent := h.catalog.rule(r.Context(), who, index, whole)
		if absent {
			makes.Store(true)
		}
		if last = (ruled{}); rule != nil && fit == fits && !absent {
			last = ruled{index, whole, rule, change, time.Now().Add(ruledFor)}
		}
		return rule, fit == fits
	}
	e.Clears = func(index string) bool {
		_, fit, _ := h.catalog.rule(r.Context(), who, index, false)
		return fit != unfit
	}
	e.ClearsAll = func(index string) bool { return h.catalog.known(r.Context(), who, index) }
	e.Hold = holdOf(r.Context()).Room
	if h.looks() {
		e.Number = h.numbers(r, who)
	}
	return e
}

// ruledFor is how long the documents of one write take the rule of the one before that went to the same name. It is little beside known.
const ruledFor = 100 * time.Millisecond

// ruled is the rule of the last document of a write whose index was prepared.
type ruled struct {
	index  string
	whole  bool
	rule   *adapters.Rule
	change int // the catalog's when it was asked
	until  time.Time
}

func (l *ruled) holds(index string, whole bool, change int) bool {
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
