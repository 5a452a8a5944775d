package typesense

import (
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// judged judges the span's hits, with what was read beside them, and hands them to the pager; or, where texts lack that were not asked
// for, has them asked. withTexts are hits with their texts: all of the span, or those that lacked them and no document in the others.
func (c *collapse) judged(withTexts []hit) error {
	if c.beside != nil && len(c.beside) != len(c.main) || withTexts != nil && len(withTexts) != len(c.main) {
		return errMoved
	}
	judge := c.judge
	if !c.pager.Judged(c.span) { // the page's own hits, of which the sketches are known
		judge = adapters.NewJudge(nil, adapters.Controls{})
	}
	judge.Reset()
	var lacks []int
	hits := make([]rerank.Hit, len(c.main))
	sights := make([]sight, len(c.main))
	at := sight{readable: c.readable(), bare: c.span.SketchOnly && !c.q.hidesID()}
	document := func(rule *adapters.Rule) []byte { return at.document(c.q, rule) }
	for i := range c.main {
		h := &c.main[i]
		if i%adapters.BetweenLooks == 0 && c.struck() {
			return adapters.ErrLate
		}
		if h.id == "" && !c.q.hidesID() {
			return c.refused(errors.New("a hit without id"))
		}
		read := h
		if c.beside != nil {
			read = &c.beside[i]
		}
		if at.shown, at.text = h, nil; withTexts != nil && withTexts[i].document != nil {
			at.text = &withTexts[i]
		}
		if read.id != h.id || at.text != nil && at.text.id != h.id {
			return errMoved
		}
		sights[i] = at
		unread := judge.Unread
		seen := adapters.Seen{Index: c.index, ID: h.identity(), Stored: read.stored, Document: document}
		if at.text == nil && !h.dotted {
			seen.Members = h.members
		}
		if len(c.scope.Deciding) > 0 {
			seen.Values = deciding(read.document)
		}
		hits[i] = judge.Hit(seen)
		hits[i].Pinned = h.curated
		if judge.Unread > unread {
			lacks = append(lacks, c.span.From+i)
		}
	}
	if judge.Lacking > 0 && c.struck() {
		return adapters.ErrLate
	}
	if lacks != nil && withTexts == nil && c.readable() && !c.q.hidesID() {
		c.lacks, c.texts = lacks, true
		return nil
	}
	c.hand(hits, sights)
	return nil
}

// filled judges the span's hits once more, now with the texts that lacked. If these are of other hits the list has moved: the span is then
// read anew, with all of its texts.
func (c *collapse) filled(list []hit) error {
	lacks := c.lacks
	c.lacks = nil
	c.along = len(list) != len(lacks)
	withTexts := make([]hit, len(c.main))
	for i, rank := range lacks {
		if c.along = c.along || list[i].id != c.main[rank-c.span.From].id; c.along {
			return nil
		}
		withTexts[rank-c.span.From] = list[i]
	}
	return c.judged(withTexts)
}

// hand hands what was judged to the pager.
func (c *collapse) hand(hits []rerank.Hit, sights []sight) {
	if c.show.Explain && c.pager.Judged(c.span) {
		c.sights = sights
	}
	if !c.span.SketchOnly {
		if c.full = c.main; c.base == nil {
			c.base = c.first
		}
	}
	if c.span.Ranks != nil {
		c.pager.Pick(c.span, hits)
	} else {
		c.pager.Take(c.span, hits)
	}
}

// readable reports whether the client's key lets the texts of the collection's rule be seen.
func (c *collapse) readable() bool {
	rule := c.rules.For(c.index)
	return rule != nil && c.q.mayRead(rule.Fields)
}

// sight is what was read of a hit beside its sketch.
type sight struct {
	shown, text *hit // as shown in the span's content, and with the texts of rules that compute, nil if those were not read
	readable    bool // see readable
	bare        bool // shown are no more than the id and what is judged
}

// document returns the hit's document with all of a rule's fields, nil if it is not at hand.
func (s sight) document(q *query, rule *adapters.Rule) []byte {
	switch {
	case !s.readable:
		return nil
	case s.text != nil && rule.Compute:
		return s.text.plain()
	case s.bare || !q.seesText(rule.Fields):
		return nil
	}
	return s.shown.plain()
}

// identity tells whether two readings show the same hit. Where the id is hidden, it is all that is shown.
func (h *hit) identity() string {
	if h.id == "" {
		return "\x00" + string(h.document)
	}
	return h.id
}
