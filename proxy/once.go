package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// givingBack bounds how long it may take to give back what an exchange held in the engine.
const givingBack = 5 * time.Second

// giveBack sends the last request of an exchange, whose reply no one waits for: what it is to give back ends by itself after a
// while.
func (h *Handler) giveBack(ctx context.Context, last *adapters.Request) {
	if last == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBack)
	go func() {
		defer cancel()
		if resp, err := h.roundTrip(ctx, last); err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, heldBody)) // so that the connection is used again
			_ = resp.Body.Close()
		}
	}()
}

// once answers a search that the engine answers but once: whatever can't be collapsed of the reply goes to the client as it came.
func (h *Handler) once(w http.ResponseWriter, r *http.Request, s searching, parsed adapters.ParsedSearch, began time.Time, watch *watch) {
	exchange := parsed.Exchange
	var first *adapters.Request
	err := guarded(func() (err error) {
		first, _, err = exchange.Next(nil)
		return err
	})
	if err != nil || first == nil {
		h.fallBack(w, r, s, errors.Join(adapters.ErrNotUnderstood, err))
		return
	}
	s.plain = first
	held := holdOf(r.Context())
	watch.stop()
	h.send(w, h.outgoing(r, s, ""), func(resp *http.Response) {
		watch.goOn()
		defer held.end()
		for range maxRounds {
			reply, err := h.held(held, resp, parsed)
			var ask *adapters.Request
			var answer *adapters.Answer
			if err == nil {
				err = guarded(func() (err error) {
					ask, answer, err = exchange.Next(reply)
					return err
				})
			}
			switch {
			case err != nil:
				h.asItCame(resp, s, err)
				return
			case answer != nil:
				h.account(s, answer)
				h.giveBack(r.Context(), answer.After)
				answer.Header = maps.Clone(answer.Header)
				say(answer.Header, outcomeLine(answer.Outcomes, time.Since(began)))
				h.settled(r.Context(), int64(len(answer.Body)))
				replace(resp, &answer.Reply)
				return
			}
			next, err := h.roundTrip(r.Context(), ask)
			if err != nil {
				h.counts.add("unreachable", "")
				replace(resp, h.ErrorReply(requestOf(r), http.StatusBadGateway, "the search engine can't be reached for the next page"))
				return
			}
			_ = resp.Body.Close() // it was read
			resp.Status, resp.StatusCode, resp.Header, resp.Trailer = next.Status, next.StatusCode, next.Header, next.Trailer
			resp.Body, resp.ContentLength, resp.TransferEncoding = next.Body, next.ContentLength, next.TransferEncoding
		}
		h.asItCame(resp, s, adapters.NotUnderstood(errEndless))
	})
}

// asItCame says why a reply that comes but once is not collapsed, and cuts our fields out of it.
func (h *Handler) asItCame(resp *http.Response, s searching, err error) {
	reason := adapters.ReasonOf(err)
	switch {
	case errors.Is(err, errTooLarge):
		reason = "too_large"
	case errors.Is(err, errBusy):
		reason = busyReason(err)
	case errors.Is(err, adapters.ErrRefused):
		h.counts.add("passed", "refused")
		return
	}
	h.counts.add("passed", reason)
	say(resp.Header, "bypassed; reason="+reason)
	h.cleanerOf(s)(resp)
}

// held reads a reply whole, which stays there to be read as it came; but not one of which the beginning tells that it can't be
// collapsed.
func (h *Handler) held(held *hold, resp *http.Response, parsed adapters.ParsedSearch) (*adapters.Reply, error) {
	body, whole, err := held.read(resp.Body, min(heldReply, h.Limits.MaxReply), resp.ContentLength)
	encoded := resp.Header.Get("Content-Encoding") != ""
	if err == nil && !whole && !encoded && !bytes.Contains(body, []byte(parsed.Once)) {
		resp.Body = readCloser{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
		return nil, adapters.Alone{Reason: parsed.Reason}
	}
	if err == nil && !whole {
		var more []byte
		more, whole, err = held.read(resp.Body, h.Limits.MaxReply-int64(len(body)), -1)
		body = append(body, more...)
	}
	rest := io.Reader(bytes.NewReader(body))
	switch {
	case errors.Is(err, errBusy):
		rest = io.MultiReader(rest, resp.Body)
	case err != nil:
		rest = io.MultiReader(rest, failing{err})
	case !whole:
		rest, err = io.MultiReader(rest, resp.Body), errTooLarge
	}
	resp.Body = readCloser{rest, resp.Body}
	if err != nil {
		return nil, err
	}
	return h.decoded(held, resp, body)
}

// replace puts a reply that was read whole in the place of a response, compressed if its header says so.
func replace(resp *http.Response, reply *adapters.Reply) {
	body := reply.Body
	if coding := reply.Header["Content-Encoding"]; len(coding) == 1 {
		body = coded(coding[0], body)
	}
	resp.StatusCode, resp.Status, resp.Header = reply.Status, "", http.Header(maps.Clone(reply.Header))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.ContentLength, resp.TransferEncoding = int64(len(body)), nil
	resp.Body = readCloser{bytes.NewReader(body), resp.Body}
}
