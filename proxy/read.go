package proxy

import (
	"errors"
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
		head, _, err := u.hold.readBody(r.Body, heldBody, r.ContentLength)
		if err != nil && !errors.Is(err, errBusy) {
			h.answerError(u, r, err)
			return
		}
		u.class.NamesOurs = u.names(head, r)
		out.Body = u.hold.onwardsFrom(head, r.Body)
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

// names reports whether the beginning of a body names a field of ours.
func (u *underway) names(head []byte, r *http.Request) bool {
	if encoded(r) {
		var err error
		if head, err = u.hold.decode(r.Header.Get("Content-Encoding"), head, plainAhead); err != nil {
			return false
		}
		defer u.hold.give(int64(len(head)))
	}
	return rule.NamesOurs(head)
}
