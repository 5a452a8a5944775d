package collapse

import (
	"context"
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
)

// maxRounds bounds how often one search may ask the engine, whatever its dialect says.
const maxRounds = 64

// read makes a reading: the dialect writes its requests and lists the hits of the replies. For most engines one request is a whole reading. The
// client's own search goes along where that is still to be asked.
func (s *search) read(ctx context.Context, r *adapters.Reading) (*adapters.Listing, error) {
	if listing := s.special.cursor.atHand(r); listing != nil {
		return listing, nil
	}
	var replies []*adapters.Reply
	before := s.all.took
	r = s.special.sequence.shifted(r)
	for {
		requests, err := s.query.Requests(r, replies)
		if err != nil {
			return nil, s.readingFailed(err)
		}
		if len(requests) == 0 {
			break
		}
		if s.rounds == maxRounds {
			return nil, adapters.NotUnderstood(errors.New("the search does not end"))
		}
		ask := s.ask
		if s.frame == nil && s.asksOwn() {
			ask = s.askBesideOwn
		}
		more, err := ask(ctx, requests...)
		if !adapters.IsLate(err) {
			s.rounds++
		}
		if _, declined := errors.AsType[*adapters.Declined](err); declined {
			return nil, s.readingFailed(err)
		}
		if err != nil {
			return nil, err
		}
		replies = append(replies, more...)
	}
	listing, err := s.query.Listing(r, replies)
	if err != nil {
		return nil, s.readingFailed(err)
	}
	listing.Took = s.all.took - before
	if !s.unmovedIn(listing) {
		return nil, errAnew
	}
	return listing, nil
}

// asker asks the engine for a search, and returns a successful reply to each request.
type asker interface {
	ask(ctx context.Context, requests ...*adapters.Request) (replies []*adapters.Reply, err error)
}

// ask implements asker, for one search or several. If there is a Wire, it joins their requests in as few as they fit in; those without room go out
// next.
func (c *conversation) ask(ctx context.Context, requests ...*adapters.Request) (results []*adapters.Reply, err error) {
	if c.Wire == nil {
		return c.send(ctx, requests, allOwn(requests))
	}
	for len(requests) > 0 {
		joined, parts, err := c.Wire.Join(requests)
		if err != nil {
			return nil, adapters.NotUnderstood(err)
		}
		replies, err := c.send(ctx, joined, allOwn(requests))
		if err != nil {
			return nil, err
		}
		for i, part := range parts {
			split, err := c.Wire.Split(part, replies[i])
			switch {
			case err != nil:
				return nil, portError(err)
			case len(split) != len(part):
				return nil, adapters.NotUnderstood(errors.New("not as many results as searches"))
			}
			results, requests = append(results, split...), requests[len(part):]
		}
	}
	return results, nil
}

// send sends requests side by side, and returns a successful reply to each. It keeps the one whose header the client gets. When the time is over it sends
// nothing but the client's own searches.
func (c *conversation) send(ctx context.Context, requests []*adapters.Request, own bool) ([]*adapters.Reply, error) {
	if c.Plan.Late() && !own {
		return nil, adapters.ErrLate
	}
	replies, err := c.exchange(ctx, requests...)
	if err != nil {
		return nil, err
	}
	took := 0.0 // the longest: they came side by side
	for i, reply := range replies[:min(len(replies), len(requests))] {
		if reply.Status != 200 {
			if err := c.refusal(requests, reply); err != nil {
				return nil, err
			}
		}
		if judging := requests[i].JudgingOnly; c.reply == nil || c.judging && !judging {
			c.reply, c.judging = reply, judging
		}
		took = max(took, reply.Took)
	}
	if len(replies) != len(requests) {
		return nil, adapters.NotUnderstood(errors.New("not as many replies as requests"))
	}
	c.took += took
	return replies, nil
}

// refusal returns the error of a reply in which the engine refuses requests, nil if it does not.
func (c *conversation) refusal(requests []*adapters.Request, reply *adapters.Reply) error {
	err := c.List[0].Refusal(requests, reply)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, adapters.ErrRefused):
		return &Refused{reply}
	}
	return portError(err)
}

// allOwn reports whether all requests are for the client's own searches.
func allOwn(requests []*adapters.Request) bool {
	return !slices.ContainsFunc(requests, func(r *adapters.Request) bool { return !r.Own })
}

// portError returns an error of the dialect as one of the port's.
func portError(err error) error {
	_, alone := errors.AsType[adapters.Alone](err)
	_, declined := errors.AsType[*adapters.Declined](err)
	if alone || declined || errors.Is(err, adapters.ErrWidened) || errors.Is(err, adapters.ErrNotUnderstood) {
		return err
	}
	return adapters.NotUnderstood(err)
}
