package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/adapters"
)

// deadline is when the time for collapsing one search is over. It sends the search's requests until then. It is for one goroutine.
type deadline struct {
	h        *Handler
	at       time.Time
	over     bool
	lookedUp bool // a name was
	asked    bool // the engine was, for the search
	searched bool // and for the search itself, not only for what it follows from
	ownAsked bool // and for the client's own searches, after the time was over
}

// Late implements rerank.Deadline.
func (d *deadline) Late() bool {
	d.over = d.over || time.Now().After(d.at)
	return d.over
}

// extend adds the time since start, which does not count.
func (d *deadline) extend(start time.Time) { d.at = d.at.Add(time.Since(start)) }

// ask implements [collapse.Ask]. The engine may take all the time for what it is asked first, and for the client's own search.
func (d *deadline) ask(ctx context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error) {
	d.asked = true
	switch {
	case !d.searched:
		d.searched = !requests[0].Ahead
		defer d.extend(time.Now())
		return d.h.exchangeAll(ctx, requests)
	case d.over && d.ownAsked:
		return nil, adapters.ErrLate
	case d.over: // what is asked is the client's own, where no reply at hand holds it
		d.ownAsked = true
		return d.h.exchangeAll(ctx, requests)
	}
	within, cancel := context.WithDeadline(ctx, d.at)
	defer cancel()
	replies, err := d.h.exchangeAll(within, requests)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		d.over = true
		return nil, adapters.ErrLate
	}
	return replies, err
}

// exchangeAll sends requests side by side and returns their replies, or the first that is no success alone.
func (h *Handler) exchangeAll(ctx context.Context, requests []*adapters.Request) ([]*adapters.Reply, error) {
	if len(requests) == 1 {
		reply, err := h.exchange(ctx, holdOf(ctx), requests[0])
		return []*adapters.Reply{reply}, err
	}
	if len(requests) > adapters.MaxAtOnce {
		return nil, adapters.NotUnderstood(errors.New("too many requests at once"))
	}
	if u := underwayOf(ctx); u != nil { // each counts the time for itself
		before, start := u.engine.Load(), clock()
		defer func() { u.engine.Store(before + int64(clock()-start)) }()
	}
	replies := make([]*adapters.Reply, len(requests))
	group, ctx := errgroup.WithContext(ctx)
	for i, request := range requests {
		group.Go(func() error {
			return guarded(func() (err error) {
				if replies[i], err = h.exchange(ctx, holdOf(ctx), request); err == nil && replies[i].Status/100 != 2 {
					err = errUnsuccessful
				}
				return err
			})
		})
	}
	err := group.Wait()
	if errors.Is(err, errUnsuccessful) {
		i := slices.IndexFunc(replies, func(r *adapters.Reply) bool { return r != nil && r.Status/100 != 2 })
		return replies[i : i+1], nil
	}
	return replies, err
}

// errUnsuccessful: one of several requests that go together was refused, and the others are of no use.
var errUnsuccessful = errors.New("no success")

// errUnreachable: the engine gave no answer at all.
var errUnreachable = errors.New("no answer")

// exchange sends one request of ours to the engine and returns the reply, read whole and decoded. What is read counts as held, unless held is nil.
func (h *Handler) exchange(ctx context.Context, held *hold, request *adapters.Request) (*adapters.Reply, error) {
	resp, err := h.roundTrip(ctx, request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return held.readReply(resp, h.Limits.MaxReply)
}

// roundTrip sends one request of ours to the engine.
func (h *Handler) roundTrip(ctx context.Context, request *adapters.Request) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, request.Method, "http://engine/", bytes.NewReader(request.Body))
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	r.RequestURI, r.URL.RawQuery = request.Path, request.RawQuery // as in a client's request, whose path goes on as it stands
	r.Header = askHeader(request.Header)
	resp, err := h.engine.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return resp, nil
}

// askHeader returns the client's headers for a request of ours: its own less those of its body and its connection.
func askHeader(header adapters.Header) http.Header {
	out := http.Header{}
	for key, values := range header {
		if key == "Accept" || key == "Content-Type" || !own(key) {
			out[key] = values
		}
	}
	if accepted := header["Accept-Encoding"]; len(accepted) > 0 {
		out["Accept-Encoding"] = accepted
		if kept := acceptable(accepted); kept != nil {
			out["Accept-Encoding"] = kept
		}
	}
	if len(out["User-Agent"]) == 0 {
		out["User-Agent"] = noAgent
	}
	return out
}
