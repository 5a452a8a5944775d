package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// heldBody is how much of a read's body is looked through for the names of our fields.
const heldBody = 1 << 20

// read sends a read on. A field of ours that it names in its body is shown.
func (h *Handler) read(u *underway, r *http.Request) {
	if u.class.Reason != "" { // a search all the same: our controls mean nothing to the engine, which would refuse them
		_, plain, _ := adapters.TakeControls(requestOf(r))
		query := *r.URL
		r, query.RawQuery = r.WithContext(r.Context()), plain.RawQuery
		r.URL, r.Header = &query, http.Header(plain.Header)
	}
	out := r.WithContext(r.Context())
	if r.Body != nil && r.Body != http.NoBody && !u.class.NamesOurs {
		head, whole, err := u.hold.readBody(r.Body, heldBody, r.ContentLength)
		if err != nil && !errors.Is(err, errBusy) {
			h.answerError(u, r, err)
			return
		}
		out.Body = u.hold.onwardsFrom(head, r.Body)
		if other := h.readHead(u, head, r); other != nil && whole {
			u.hold.give(int64(cap(head)))
			out.Body, out.ContentLength, out.Header = io.NopCloser(bytes.NewReader(other)), int64(len(other)), r.Header.Clone()
			out.Header.Del("Content-Encoding")
			out.Header.Del("Content-Length")
		}
	}
	if r.Method == http.MethodHead && !u.class.NamesOurs && !signed(r) && h.mayConcern(u) {
		// Its length is that of a body which is to be cleaned; what we write of it, net/http leaves out. No engine compresses nothing.
		out.Method, out.Header = http.MethodGet, r.Header.Clone()
		out.Header.Del("Accept-Encoding")
	}
	h.send(u, out, func(resp *http.Response) {
		if u.class.Reason != "" && h.mayConcern(u) {
			h.Metrics.search("bypassed", u.class.Reason)
			setOutcome(resp.Header, "bypassed; reason="+string(u.class.Reason))
		}
	})
}

// readHead notes what the beginning of a body says of the reply: whether it names a field of ours, and what the dialect sees. It returns what is
// sent in place of the body, nil for the same.
func (h *Handler) readHead(u *underway, head []byte, r *http.Request) (other []byte) {
	plain := head
	if encoded(r) {
		var err error
		if plain, err = u.hold.decode(r.Header.Get("Content-Encoding"), head, plainAhead); err != nil {
			return nil
		}
		defer u.hold.give(int64(len(plain)))
	}
	u.class.NamesOurs = rule.NamesOurs(plain)
	class, sent := h.Dialect.ReadBody(u.class, plain)
	if u.class = class; !bytes.Equal(sent, plain) {
		return sent
	}
	return nil
}
