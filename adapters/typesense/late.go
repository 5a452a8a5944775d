package typesense

import "github.com/neardup/sidecar/adapters"

// ownPage is a reading that holds the client's own page whole.
type ownPage struct {
	hits []hit // from rank 0 on
	raw  []byte
}

// struck reports whether the time for the search is over.
func (c *collapse) struck() bool { return c.plan.Struck() }

// keep keeps a reading in the client's own content that begins with the list: it holds the client's own page whole.
func (c *collapse) keep(list []hit, raw []byte) {
	if c.ownPage == nil && c.base == nil && !c.leads() && !c.span.SketchOnly && c.span.From == 0 && c.wanted() == nil &&
		c.span.To >= c.q.first+c.q.perPage {
		c.ownPage = &ownPage{list, raw}
	}
}

// ownReply returns the client's own page, nil if no reply held it.
func (c *collapse) ownReply() []byte {
	var hits []hit
	raw := c.base
	switch {
	case c.leads() && raw == nil:
		return nil
	case c.leads() && (c.q.unseen() || c.show.DryRun):
		return c.q.clean(raw)
	case c.leads():
		hits = c.q.near.hits
	case c.ownPage == nil:
		return nil
	default:
		hits, raw = c.ownPage.hits, c.ownPage.raw
		hits = hits[min(c.q.first, len(hits)):min(c.q.first+c.q.perPage, len(hits))]
	}
	shown := make([][]byte, len(hits))
	for i, h := range hits {
		var err error
		if shown[i], err = c.q.bare(h); err != nil {
			return nil
		}
	}
	body, err := c.q.present(raw, shown)
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
	x.bodies, x.results = nil, nil
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
