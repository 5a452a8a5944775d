package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// maxWhole is how much of a write's body is read before the first byte is sent on. A body that ends within it goes on with its length.
	maxWhole = 1 << 20
	// plainAhead bounds such a body once decoded. Where a rule looks for near-duplicates, it also takes the place of maxWhole.
	plainAhead = 8 << 20
	// unknownGrowth is the share of the engine's body limit that may be added to a body of unknown length.
	unknownGrowth = 16
)

// errEncoding: a body is not of the encoding that it says it has.
var errEncoding = errors.New("not of its encoding")

// mayChange reports whether a write has a body that may be changed.
func (h *Handler) mayChange(u *underway, r *http.Request) bool {
	if signed(r) {
		if !u.class.Verbatim {
			h.Metrics.writesBypassed.WithLabelValues("signed").Inc()
		}
		return false
	}
	return !bodiless(r)
}

// writing is a client's write on its way. It implements rule.Writing. Only [findings], for rules that look for near-duplicates, implements rule.Clustering.
type writing struct {
	h        *Handler
	u        *underway
	r        *http.Request // as the client sent it
	out      *http.Request // as it goes on
	encoding string        // of the client's body; empty for one that engines read as it is
	last     struct {      // the rule of the last document whose index takes all of our fields
		rule  *rule.Rule
		index string
		until time.Time
	}
}

// write sends a write on with its documents enriched: a short body, as most are, whole and with its length, a longer one as it streams. If the
// client breaks off, the request to the engine is cut off too, never ended as if it were whole.
func (h *Handler) write(u *underway, r *http.Request) {
	most := int64(maxWhole)
	if h.seeksDuplicates() { // duplicates are looked up for a body that is held
		most = plainAhead
	}
	raw, ended, err := u.hold.readBody(r.Body, most, r.ContentLength)
	if err != nil && !errors.Is(err, errBusy) { // errBusy: it can't be held whole, so ended is false and it streams
		h.answerError(u, r, err)
		return
	}
	w := &writing{h: h, u: u, r: r, out: r.Clone(r.Context())}
	w.out.Header.Del("Content-Length")
	if encoded(r) && !u.class.Verbatim && !uncompressed(r, raw) {
		w.encoding = r.Header.Get("Content-Encoding")
	}
	if !ended {
		w.sendStream(raw)
		return
	}
	plain, err := u.hold.decode(w.encoding, raw, plainAhead)
	if endsEarly(w.encoding, plain, err) { // the engine gets what could be decoded
		w.out.Header.Del("Content-Encoding")
		w.encoding, raw, err = "", plain, nil
	}
	switch {
	case err == nil && u.hold.take(enrichedLength(plain)):
		w.sendWhole(raw, plain)
	case err == nil, errors.Is(err, errTooLarge), errors.Is(err, errBusy):
		w.sendStream(raw)
	default:
		h.answerError(u, r, errors.Join(errEncoding, err))
	}
}

// enrichedLength is how long a body is taken to be with its documents enriched.
func enrichedLength(plain []byte) int64 { return bufferSize(int64(len(plain) + len(plain)/4)) }

// sendWhole enriches a body that was read whole, and sends it on. plain is raw, as it was sent, decoded.
func (w *writing) sendWhole(raw, plain []byte) {
	class := &w.u.class
	class.NamesOurs = class.NamesOurs || class.Alters && rule.NamesOurs(plain)
	if w.h.seeksDuplicates() {
		w.findDuplicates(plain).sendOthers(raw)
		return
	}
	decoded := w.encoding != ""
	body, err := w.enriched(plain, w)
	switch {
	case err != nil:
		w.h.answerError(w.u, w.r, err)
		return
	case body == nil:
		body = raw
	default: // the old bodies are given back before the engine is waited for
		w.u.hold.reuse(raw)
		if decoded {
			w.u.hold.reuse(plain)
		}
	}
	w.sendBody(body, nil)
}

// enriched returns the enriched body, nil where nothing changed, or where we failed: the body then goes on as it was sent. Its error is for the client:
// nothing may go on. Where a decoded body goes on, it takes Content-Encoding out of w.out. by is what the Enricher asks: w itself, or its findings.
func (w *writing) enriched(plain []byte, by rule.Writing) ([]byte, error) {
	body := bytes.NewBuffer(newBuffer(enrichedLength(plain)))
	_, err := w.h.Dialect.EnrichWrite(w.u.class, body, bytes.NewReader(plain), by, w.h.Limits.EngineMaxBody-int64(len(plain)))
	_, refused := errors.AsType[adapters.Refusal](err)
	switch {
	case refused, err != nil && w.u.class.Format != "":
		return nil, err
	case err != nil:
		w.h.Metrics.writesBypassed.WithLabelValues("failed").Inc()
		w.h.Log.Error("write could not be enriched", "error", unquoted(err))
	case bytes.Equal(body.Bytes(), plain):
	default:
		if w.encoding != "" {
			w.out.Header.Del("Content-Encoding")
		}
		return body.Bytes(), nil
	}
	reuseBuffer(body.Bytes())
	return nil, nil
}

// sendBody sends the request on with a body and its length. edit, if not nil, changes the reply. The body's memory is reused after the request.
func (w *writing) sendBody(body []byte, edit func(*http.Response)) {
	w.out.Body, w.out.ContentLength = w.u.hold.lend(body), int64(len(body))
	w.h.send(w.u, w.out, edit)
}

// sendStream enriches a body while it is sent on. head is what was read of it.
func (w *writing) sendStream(head []byte) {
	window := windowOf(w.encoding, head)
	if err := w.u.hold.reserve(window); err != nil { // what an engine would decode can't go on unread
		w.h.answerError(w.u, w.r, err)
		return
	}
	plain, err := decoder(w.encoding, window, w.u.hold.onwardsFrom(head, w.r.Body))
	if err != nil {
		w.h.answerError(w.u, w.r, errors.Join(errEncoding, err))
		return
	}
	growth := w.h.Limits.EngineMaxBody / unknownGrowth
	if w.encoding != "" {
		w.out.Header.Del("Content-Encoding")
	} else if w.r.ContentLength >= 0 {
		growth = w.h.Limits.EngineMaxBody - w.r.ContentLength
	}
	pipe, into := io.Pipe()
	defer pipe.Close() // ends the copying below if the engine answers early
	w.u.streamed = &streamed{ReadCloser: pipe}
	w.out.Body, w.out.ContentLength = w.u.streamed, -1
	go func() {
		held := struct {
			io.Reader
			*hold
		}{plain, &w.u.hold}
		_, err := w.h.Dialect.EnrichWrite(w.u.class, into, held, w.unsought(), growth)
		if refused := adapters.Refusal(""); err != nil && !errors.Is(err, errBrokenOff) && !errors.As(err, &refused) && w.encoding != "" {
			err = errors.Join(errEncoding, err)
		}
		into.CloseWithError(err)
	}()
	w.h.send(w.u, w.out, nil)
}

// sameRuleFor is how long documents take the rule of the one before. It is little beside [knownFor].
const sameRuleFor = 10 * time.Millisecond

// Rule implements rule.Writing. Documents that follow each other to the same index take the same rule for a moment.
func (w *writing) Rule(index string, creates bool) (*rule.Rule, rule.Takes) {
	if w.last.index == index && time.Now().Before(w.last.until) {
		return w.last.rule, rule.TakesAll
	}
	r, takes, steady := w.h.catalog.ruleOfDocument(w.u, index, creates)
	if steady {
		w.last.rule, w.last.index, w.last.until = r, index, time.Now().Add(sameRuleFor)
	}
	return r, takes
}

// Hold implements rule.Writing.
func (w *writing) Hold(n int) bool { return w.u.hold.Hold(n) }

// Count implements rule.Writing.
func (w *writing) Count(c rule.Change) { w.h.Metrics.documents.WithLabelValues(c.String()).Inc() }
