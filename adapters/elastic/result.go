package elastic

import (
	"bytes"
	"slices"

	"github.com/neardup/sidecar/adapters"
)

// result returns the reply that the client gets, when next has said that there is no more.
func (c *collapse) result() ([]byte, error) {
	body := c.baseReply.Body
	if !c.plain {
		ranks, err := c.pager.Ranks()
		if err != nil {
			return nil, err
		}
		page, shows := make([][]byte, len(ranks)), c.shower()
		for i, rank := range ranks {
			if c.show.Explain && c.struck() {
				return nil, adapters.ErrLate
			}
			if page[i], err = shows.full(rank); err == nil {
				page[i], err = shows.hit(rank, page[i])
			}
			if err != nil {
				return nil, err
			}
		}
		total := c.collapsedTotal()
		if !c.q.shown {
			if body, ok := c.base.bare(page, total); ok {
				return body, nil
			}
		}
		body = c.base.with(page, total)
	}
	if c.q.shown {
		return body, nil
	}
	if c.plain { // it is the engine's own
		return adapters.Cleaned(body, inDocument), nil
	}
	return adapters.CleanedInPlace(body, inDocument), nil
}

// shower returns what shows the groups of the ranks read.
func (c *collapse) shower() *shower {
	bare := func(s *sources) func(int) ([]byte, error) {
		return func(rank int) ([]byte, error) {
			if hit := s.at(rank); hit != nil {
				return c.bare(hit)
			}
			return nil, errMoved
		}
	}
	var views *adapters.Views
	if c.show.Expand > adapters.ExpandOff {
		views = adapters.NewViews(c.pager.Groups(), c.pager.Hit, c.pager.Stats().Ended, c.page.Window)
	}
	return &shower{
		d: c.d, judge: c.judge, show: c.show, views: views,
		read: bare(&c.read), full: bare(&c.full),
		source: func(rank int) []byte {
			for _, s := range []*sources{&c.read, &c.full} {
				if members, err := adapters.Members(s.at(rank)); err == nil && s.texts {
					return sourceIn(members)
				}
			}
			return nil
		},
	}
}

// collapsedTotal returns what stands in place of the reply's total where that of the collapsed list is asked for, nil elsewhere.
func (c *collapse) collapsedTotal() []byte {
	total := c.base.of(c.base.count)
	switch {
	case !c.show.Collapsed && c.most > 0:
		return totalOf(total, 0, 0, c.most)
	case !c.show.Collapsed:
		return nil
	}
	stats := c.pager.Stats()
	read, folded := min(stats.Read, c.page.Window), stats.Folded // alike on all pages
	if before := c.page.After; before != nil {
		read, folded = read+before.Ranks(), folded+before.Folded()
	}
	return totalOf(total, max(c.listTotal, read), folded, c.page.Length)
}

// bare returns a hit less what we asked for: the fields extracted, and texts that the client does not see.
func (c *collapse) bare(hit []byte) ([]byte, error) {
	if c.own.filter != nil && c.texts {
		hit = c.own.cut(hit)
	}
	hit, err := c.unnumbered(hit)
	if err != nil {
		return nil, err
	}
	if !c.q.shown && c.show.Expand == adapters.ExpandOff && (c.apart || len(c.deciding) == 0) {
		return hit, nil // our fields are all that was extracted for us: they go from the whole reply at once
	}
	members, err := adapters.Members(hit)
	if err != nil {
		return nil, err
	}
	fields := adapters.Get(members, "fields")
	if fields == nil {
		return hit, nil
	}
	left, err := adapters.Cut(fields, c.extracted)
	if err != nil || bytes.Equal(left, fields) {
		return hit, err
	}
	if rest, err := adapters.Members(left); err != nil {
		return nil, err
	} else if len(rest) == 0 {
		return adapters.Cut(hit, func(key string) bool { return key == "fields" })
	}
	return adapters.Set(hit, "fields", left)
}

// extracted reports whether a field is extracted from the hits for us alone.
func (c *collapse) extracted(field string) bool {
	switch {
	case field == adapters.SketchField:
		return !c.q.extracted
	case adapters.Our(field):
		return !c.q.shown
	}
	return !c.apart && slices.ContainsFunc(c.deciding, func(d adapters.Deciding) bool { return d.Field == field })
}

// outcome returns what was done.
func (c *collapse) outcome() adapters.Outcome {
	stats := c.pager.Stats()
	o := adapters.OutcomeOf(c.q.target, c.page, stats, c.lacking, c.total)
	o.HitBytes = c.hitBytes
	o.Rounds, o.DryRun, o.Sketches = c.rounds, c.show.DryRun, c.judge.Sketches()
	if o.DryRun || c.longer {
		o.Raw = max(c.listTotal, stats.Read)
	}
	if c.show.Collapsed { // what lies beyond the window is not known
		all := c.listTotal >= 0 && c.listTotal <= c.page.Window && !c.lowest
		o.Exact = stats.Ended && (stats.Read < c.page.Window || all)
	}
	return o
}
