package typesense

import "github.com/neardup/sidecar/adapters"

// ownPage is a reading that holds the client's own page whole.
type ownPage struct {
	hits []hit // from rank 0 on
	in   *result
}

// struck reports whether the time for the search is over.
func (c *collapse) struck() bool { return c.plan.Struck() }

// keep keeps a reading in the client's own content that begins with the list: it holds the client's own page whole.
func (c *collapse) keep(list []hit, in *result) {
	if c.ownPage == nil && c.base == nil && !c.leads() && !c.span.SketchOnly && c.span.From == 0 && c.wanted() == nil &&
		c.span.To >= c.q.first+c.q.perPage {
		c.ownPage = &ownPage{list, in}
	}
}

// ownReply returns the client's own page, nil if no reply held it.
func (c *collapse) ownReply() []byte {
	var hits []hit
	in := c.base
	switch {
	case c.leads() && in == nil:
		return nil
	case c.leads() && (c.q.unseen() || c.show.DryRun):
		return c.q.clean(in.raw)
	case c.leads():
		hits = c.q.near.hits
	case c.ownPage == nil:
		return nil
	default:
		hits, in = c.ownPage.hits, c.ownPage.in
		hits = hits[min(c.q.first, len(hits)):min(c.q.first+c.q.perPage, len(hits))]
	}
	body, err := c.q.present(in, -1, func(dst []byte) (_ []byte, err error) {
		for i := range hits {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = c.q.appendBare(dst, &hits[i]); err != nil {
				return nil, err
			}
		}
		return dst, nil
	})
	if err != nil {
		return nil
	}
	return body
}

// lately gives up collapsing the entry because the time is over: its result is the client's own page, or it is asked for that.
func (e *entry) lately() {
	asked, body := e.collapse.rounds > 0 || e.native != nil && e.native.asked, e.collapse.ownReply()
	e.collapse, e.reason, e.result, e.again = nil, adapters.Deadline, body, body == nil && asked
}

// lately gives up collapsing the searches whose results did not come while there was time.
func (x *exchange) lately() error {
	x.asks, x.results = nil, nil
	for _, e := range x.entries {
		if e.collapse == nil || e.result != nil {
			continue
		}
		if e.lately(); x.single && e.result == nil {
			return adapters.ErrLate
		}
	}
	return nil
}
