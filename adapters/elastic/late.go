package elastic

import (
	"bytes"

	"github.com/neardup/sidecar/adapters"
)

// ownPage is a reading that holds the client's own page whole, and the search as it was when that came.
type ownPage struct {
	collapse
	reply *adapters.Reply
	list  []hit // from rank 0 on
}

// struck reports whether the time for the search is over.
func (c *collapse) struck() bool { return c.late != nil && c.late() }

// keep keeps a reading that holds the client's own page whole: the first of the client's own list that shows all that it asked for.
func (c *collapse) keep(reply *adapters.Reply, list []hit) {
	if c.ownPage == nil && c.baseReply == nil && c.basic() && !c.span.SketchOnly && !c.longer && !c.fetch.picked && c.fetch.from == 0 &&
		(c.fetch.to >= c.q.from+c.q.size) {
		c.ownPage = &ownPage{*c, reply, list}
	}
}

// ownReply returns the client's own page, nil if no reading held it.
func (c *collapse) ownReply() []byte {
	if c.ownPage == nil {
		return nil
	}
	body, err := c.ownPage.body()
	if err != nil {
		return nil
	}
	return body
}

func (o *ownPage) body() ([]byte, error) {
	page := o.list[min(o.q.from, len(o.list)):min(o.q.from+o.q.size, len(o.list))]
	hits := make([][]byte, len(page))
	for i, hit := range page {
		var err error
		if hits[i], err = o.bare(hit.raw); err != nil {
			return nil, err
		}
	}
	body, err := withHits(o.reply.Body, hits)
	if err != nil || o.q.shown {
		return body, err
	}
	return adapters.Cleaned(body, inDocument), nil
}

// lately ends a search for which the time is over.
func (s *single) lately() (*adapters.Request, *adapters.Answer, error) {
	body := s.ownReply()
	if body == nil {
		return nil, nil, adapters.ErrLate
	}
	body, err := s.d.filtered(s.q.params, body, s.late)
	if err != nil {
		return nil, nil, adapters.ErrLate
	}
	answer := &adapters.Answer{Reply: *s.ownPage.reply, Outcomes: []adapters.Outcome{adapters.LateOutcome(s.client.target)}}
	answer.Body = body
	return nil, answer, nil
}

// lately gives up collapsing the entry because the time is over: its result is the client's own page, or it is asked for that.
func (e *entry) lately() {
	asked, body := e.rounds > 0 || e.native != nil && e.native.asked, e.ownReply()
	e.leave(adapters.ReasonDeadline)
	e.result, e.again = body, body == nil && asked
}

// lately gives up collapsing the searches whose results did not come while there was time.
func (m *multi) lately() {
	for _, e := range m.pending {
		if e.collapse != nil {
			e.lately()
		}
	}
}

// bare leaves a multi-search alone for the reason: all that is done to it is to take our controls out.
func (d Dialect) bare(c adapters.Class, plain *adapters.Request, controls adapters.Controls, reason adapters.Reason) adapters.ParsedSearch {
	s := adapters.ParsedSearch{Plain: plain, Reason: reason}
	out := make([]byte, 0, len(plain.Body))
	for lines := plain.Body; len(lines) > 0; {
		header, rest, parted := bytes.Cut(lines, []byte("\n"))
		body, rest, ended := bytes.Cut(rest, []byte("\n"))
		lines = rest
		q, _, err := parse(c.Target, nil, body, controls)
		if err != nil {
			s.Refusal = d.ErrorReply(plain, 400, err.Error())
			return s
		}
		if s.Shown = s.Shown || q.shown; q.stripped {
			body = bytes.ReplaceAll(q.body, []byte("\n"), []byte(" "))
		}
		if out = append(out, header...); parted {
			out = append(out, '\n')
		}
		if out = append(out, body...); ended {
			out = append(out, '\n')
		}
	}
	plain.Body = out
	return s
}
