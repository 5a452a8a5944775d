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

// This file sends requests of ours to the engine. Those for a search have a deadline.

// Late implements rerank.Deadline.
func (s *search) Late() bool {
	s.late = s.late || time.Now().After(s.deadline)
	return s.late
}

// extend adds the time since start, which does not count.
func (s *search) extend(start time.Time) { s.deadline = s.deadline.Add(time.Since(start)) }

// exchange sends requests for the search to the engine and returns their replies, as [collapse.Exchange] says. The first request and the client's own
// search go out without a deadline; the time of the first does not count. All others have what is left of the time for collapsing.
func (s *search) exchange(ctx context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error) {
	if requests[0].Unanswered {
		s.h.giveBack(ctx, requests[0])
		return nil, nil
	}
	s.begun = true
	within := ctx
	switch {
	case !s.firstDone: // the first request: the engine may take its time
		s.firstDone = !requests[0].Ahead
		defer s.extend(time.Now())
	case s.late && s.ownAsked:
		return nil, adapters.ErrLate
	case s.late: // what is asked is the client's own, where no reply at hand holds it
		s.ownAsked = true
	default:
		var cancel context.CancelFunc
		within, cancel = context.WithDeadline(ctx, s.deadline)
		defer cancel()
	}
	replies, err := make([]*adapters.Reply, 1), error(nil)
	if requests[0].Undo != nil {
		replies[0], err = s.h.opened(within, requests[0])
	} else if len(requests) == 1 {
		replies[0], err = s.h.roundTrip(within, holdOf(ctx), requests[0])
	} else {
		replies, err = s.h.roundTrips(within, requests)
	}
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		s.late = true
		return nil, adapters.ErrLate
	}
	if err == nil {
		s.replies = append(s.replies, replies...)
	}
	return replies, err
}

// errUnreachable: the engine gave no answer at all.
var errUnreachable = errors.New("no answer")

// roundTrip sends one request of ours to the engine and returns the reply, read whole and decoded. Its bytes count in held, if that is not nil.
func (h *Handler) roundTrip(ctx context.Context, held *hold, request *adapters.Request) (*adapters.Reply, error) {
	start := clock()
	r, err := http.NewRequestWithContext(ctx, request.Method, "http://engine/", bytes.NewReader(request.Body))
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	r.RequestURI, r.URL.RawQuery = request.Path, request.RawQuery // as in a client's request, whose path goes on unchanged
	r.Header = headerOf(request.Header)
	finish := h.plainly(r.Header)
	resp, err := h.toEngine.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	defer resp.Body.Close()
	reply, err := held.readReply(resp, h.Limits.MaxReply)
	if err == nil {
		reply.Took = (clock() - start).Seconds() * 1000
		finish(reply)
	}
	return reply, err
}

// roundTrips sends requests side by side and returns their replies, or the first that is no success alone.
func (h *Handler) roundTrips(ctx context.Context, requests []*adapters.Request) ([]*adapters.Reply, error) {
	if len(requests) > adapters.MaxAtOnce {
		return nil, adapters.NotUnderstood(errors.New("too many requests at once"))
	}
	if u := underwayOf(ctx); u != nil { // each counts the time for itself
		before, start := u.engineTime.Load(), clock()
		defer func() { u.engineTime.Store(before + int64(clock()-start)) }()
	}
	replies := make([]*adapters.Reply, len(requests))
	group, ctx := errgroup.WithContext(ctx)
	for i, request := range requests {
		group.Go(func() error {
			return guarded(func() (err error) {
				if replies[i], err = h.roundTrip(ctx, holdOf(ctx), request); err == nil && replies[i].Status/100 != 2 {
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

// givingBack bounds how long it may take to open or to close what a search keeps in the engine.
const givingBack = 5 * time.Second

// opened sends a request that opens something in the engine. If ctx ends first, the request goes on, and what it opens is given back.
func (h *Handler) opened(ctx context.Context, request *adapters.Request) (*adapters.Reply, error) {
	type result struct {
		reply *adapters.Reply
		err   error
	}
	done := make(chan result) // unbuffered: who sends knows whether it was received
	go func() {
		alone, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBack)
		defer cancel()
		var r result
		r.err = guarded(func() (err error) {
			r.reply, err = h.roundTrip(alone, nil, request)
			return err
		})
		select {
		case done <- r:
			return
		case <-ctx.Done():
		}
		_ = guarded(func() error {
			if r.err != nil {
				return r.err
			}
			if undo := request.Undo(r.reply); undo != nil {
				_, _ = h.roundTrip(alone, nil, undo)
			}
			return nil
		})
	}()
	select {
	case r := <-done:
		return r.reply, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errUnreachable, ctx.Err())
	}
}

// giveBack sends the last request for a search, to whose reply no one listens: the engine closes what it is to close by itself after a while.
func (h *Handler) giveBack(ctx context.Context, last *adapters.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBack)
	go func() {
		defer cancel()
		_, _ = h.roundTrip(ctx, nil, last)
	}()
}

// headerOf returns the client's headers for a request of ours: its own less those of its body and its connection.
func headerOf(header adapters.Header) http.Header {
	out := http.Header{}
	for key, values := range header {
		if key == "Accept" || key == "Content-Type" || !ofOneRequest(key) {
			out[key] = values
		}
	}
	if accepted := header["Accept-Encoding"]; len(accepted) > 0 {
		out["Accept-Encoding"] = accepted
		acceptReadable(out)
	}
	if len(out["User-Agent"]) == 0 {
		out["User-Agent"] = noAgent
	}
	return out
}
