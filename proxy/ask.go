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

// asking asks the engine for one client's request, while there is time. It is for one goroutine.
type asking struct {
	h     *Handler
	watch *watch
	begun bool // the search itself was asked for
	last  bool // so were the client's own searches, after the time was over
}

// ask implements [collapse.Ask]. The engine may take all the time for what it is asked first, and for the client's own search.
func (a *asking) ask(ctx context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error) {
	w := a.watch
	switch {
	case !a.begun:
		a.begun, w.asked = !requests[0].Ahead, true
		w.stop()
		defer w.goOn()
		return a.h.askAll(ctx, requests)
	case w.over && a.last:
		return nil, adapters.ErrLate
	case w.over: // what is asked is the client's own, where no reply at hand holds it
		a.last = true
		return a.h.askAll(ctx, requests)
	}
	within, cancel := context.WithDeadline(ctx, w.until)
	defer cancel()
	replies, err := a.h.askAll(within, requests)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		w.over = true
		return nil, adapters.ErrLate
	}
	return replies, err
}

// askAll sends requests side by side and returns their replies, or the first that is no success alone.
func (h *Handler) askAll(ctx context.Context, requests []*adapters.Request) ([]*adapters.Reply, error) {
	if len(requests) == 1 {
		reply, err := h.ask(ctx, requests[0])
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
				if replies[i], err = h.ask(ctx, request); err == nil && replies[i].Status/100 != 2 {
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

// ask sends one request for a search and reads its reply, decoded. The header of a compressed reply goes on saying so.
func (h *Handler) ask(ctx context.Context, ask *adapters.Request) (*adapters.Reply, error) {
	return h.askOn(ctx, holdOf(ctx), ask)
}

// askOn is ask where the reply is held on another account than the request's.
func (h *Handler) askOn(ctx context.Context, held *hold, ask *adapters.Request) (*adapters.Reply, error) {
	resp, err := h.roundTrip(ctx, ask)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, whole, err := held.readReply(resp.Body, h.Limits.MaxReply, resp.ContentLength)
	if errors.Is(err, errBusy) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	if !whole {
		return nil, errTooLarge
	}
	reply, err := h.decoded(held, resp, body)
	if err == nil && resp.Header.Get("Content-Encoding") != "" {
		held.give(int64(len(body)))
	}
	return reply, err
}

// roundTrip sends one request for a search.
func (h *Handler) roundTrip(ctx context.Context, ask *adapters.Request) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, ask.Method, "http://engine/", bytes.NewReader(ask.Body))
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	r.RequestURI, r.URL.RawQuery = ask.Path, ask.RawQuery // as in a client's request, whose path goes on as it stands
	r.Header = askHeader(ask.Header)
	resp, err := h.engine.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return resp, nil
}

// decoded returns a reply with its body, as it was sent, decoded. Its header goes on saying how it was sent.
func (h *Handler) decoded(held *hold, resp *http.Response, body []byte) (reply *adapters.Reply, err error) {
	reply = &adapters.Reply{Status: resp.StatusCode, Header: adapters.Header(resp.Header), Body: body}
	coding, readable := codingOf(resp)
	switch {
	case !readable:
		return nil, adapters.NotUnderstood(fmt.Errorf("content encoding %q", coding))
	case coding == "":
		return reply, nil
	}
	if reply.Body, err = held.decode(coding, body, h.Limits.MaxReply); errors.Is(err, errBusy) {
		return nil, err
	} else if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	return reply, nil
}

// askHeader returns the client's headers for a request of ours: its own less those of its body and its connection.
func askHeader(header adapters.Header) http.Header {
	out := http.Header{}
	for key, values := range header {
		switch key {
		case "Accept", "Content-Type":
		default:
			if own(key) {
				continue
			}
		}
		out[key] = values
	}
	if accepted := header["Accept-Encoding"]; len(accepted) > 0 {
		out["Accept-Encoding"] = accepted
		if readable := readable(accepted); readable != nil {
			out["Accept-Encoding"] = readable
		}
	}
	if len(out["User-Agent"]) == 0 {
		out["User-Agent"] = []string{""} // or else Go puts in its own
	}
	return out
}

// watch measures the time for collapsing one search: all that passes but for what it is stopped for. It is for one goroutine.
type watch struct {
	until   time.Time
	stopped time.Time
	over    bool
	looked  bool // a name was looked up
	asked   bool // the engine was, for the search
}

func newWatch(most time.Duration) *watch { return &watch{until: time.Now().Add(most)} }

// Late implements rerank.Deadline.
func (w *watch) Late() bool {
	w.over = w.over || time.Now().After(w.until)
	return w.over
}

// stop stops the watch until it goes on.
func (w *watch) stop() { w.stopped = time.Now() }

func (w *watch) goOn() {
	if !w.stopped.IsZero() {
		w.until, w.stopped = w.until.Add(time.Since(w.stopped)), time.Time{}
	}
}

// lookUp stops the watch for the first name that is looked up, until what it returns is called. The engine answers to that as to the
// search itself, and it is remembered.
func (w *watch) lookUp() (done func()) {
	if w.looked {
		return func() {}
	}
	w.looked = true
	w.stop()
	return w.goOn
}
