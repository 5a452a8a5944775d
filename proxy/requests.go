package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// This file holds what the flows share: requests of ours, and replies that were read whole.

// signed reports whether a request is signed over what it is, so that nothing of it may change.
func signed(r *http.Request) bool { return adapters.Signed(adapters.Header(r.Header), r.URL.RawQuery) }

// guarded runs a step of the dialect and turns its panic, a bug of ours that no client is to pay for, into an error.
func guarded(step func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	return step()
}

// careful is a dialect whose panics in what copies a body are errors.
type careful struct{ adapters.Dialect }

// EnrichWrite implements adapters.Dialect.
func (d careful) EnrichWrite(c adapters.Class, dst io.Writer, src io.Reader, w rule.Writing, growth int64) (replies adapters.Replies, err error) {
	err = guarded(func() (err error) {
		replies, err = d.Dialect.EnrichWrite(c, dst, src, w, growth)
		return err
	})
	return replies, err
}

// CleanReply implements adapters.Dialect.
func (d careful) CleanReply(c adapters.Class, dst io.Writer, src io.Reader) error {
	return guarded(func() error { return d.Dialect.CleanReply(c, dst, src) })
}

// errPanicked: a step of the dialect panicked.
var errPanicked = errors.New("a bug in the adapter")

// exchangeAll sends requests side by side and returns their replies, or the first that is no success alone.
func (h *Handler) exchangeAll(ctx context.Context, requests []*adapters.Request) ([]*adapters.Reply, error) {
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

// givingBack bounds how long it may take to close what a search opened in the engine.
const givingBack = 5 * time.Second

// giveBack sends the last request for a search, whose reply no one waits for: the engine closes what it is to close
// by itself after a while.
func (h *Handler) giveBack(ctx context.Context, last *adapters.Request) {
	if last == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBack)
	go func() {
		defer cancel()
		_, _ = h.exchange(ctx, nil, last)
	}()
}

// askHeader returns the client's headers for a request of ours: its own less those of its body and its connection.
func askHeader(header adapters.Header) http.Header {
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

// writeReply writes a reply that was read whole, compressed if its header says so.
func writeReply(w http.ResponseWriter, reply *adapters.Reply) {
	body := reply.Body
	if coding := reply.Header["Content-Encoding"]; len(coding) == 1 {
		body = coded(coding[0], body)
	}
	writePieces(w, reply, adapters.Pieces{body})
}

// writePieces writes a reply with a body in pieces.
func writePieces(w http.ResponseWriter, reply *adapters.Reply, body adapters.Pieces) {
	header := http.Header(maps.Clone(reply.Header))
	dropHops(header)
	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(reply.Status)
	buffer := pieces.Get() // net/http would hand the kernel 4 kB at a time: on page 1 that took a tenth of the processor time
	defer pieces.Put(buffer)
	rest := net.Buffers(body)
	// A client that went away has its answer.
	_, _ = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{&rest}, buffer)
}
