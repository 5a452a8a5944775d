package collapse

import (
	"context"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// texts says which readings bring the sketched texts too, from which missing sketches are computed.
type texts struct {
	beside bool // sketches are known to be missing
	always bool // texts come with every reading, of however many ranks
}

// textsBeside is up to how many ranks texts are read beside the sketches, where some are known to be missing. Of more ranks those are read
// that turn out to have no sketch: some documents never have one.
const textsBeside = 100

// wanted reports whether a reading of the span is to bring texts.
func (t texts) wanted(span rerank.Span) bool {
	return t.beside && (!span.SketchOnly || span.To <= textsBeside || t.always)
}

// sighted are the hits of a reading, of which some were read once more with their texts.
type sighted struct {
	adapters.Hits
	places []int         // of those, ascending
	with   adapters.Hits // and they themselves, in that order
}

// seen returns what a Judge takes of a hit.
func (h *sighted) seen(i int) adapters.Seen {
	if at, again := slices.BinarySearch(h.places, i); again {
		seen := h.with.Seen(at)
		seen.Pinned = h.Hits.Seen(i).Pinned
		return seen
	}
	return h.Hits.Seen(i)
}

// judged returns what is compared of the hits of a reading. Where texts are missing of which sketches are to be computed it reads them,
// unless the reading brought texts. It returns no hits where these turn out to be of other documents: the ranks are to be read anew.
func (s *search) judged(ctx context.Context, span rerank.Span, l *adapters.Listing, texts bool) (h sighted, hits []rerank.Hit, err error) {
	h.Hits = l.Hits
	if !s.pager.Judged(span) { // the page's own hits, whose sketches are known
		return h, unjudged(l), nil
	}
	hits, missing, err := s.judgeAll(&h)
	if err != nil || len(missing) == 0 || texts {
		return h, hits, err
	}
	s.texts.beside = true
	r := adapters.Reading{From: span.From, To: span.To, Texts: true}
	for _, i := range missing {
		rank := span.From + i
		if span.Ranks != nil {
			rank = span.Ranks[i]
		}
		r.Ranks = append(r.Ranks, rank)
	}
	more, err := s.look(ctx, &r)
	if err != nil || more == nil {
		return sighted{}, nil, err
	}
	h.places, h.with = missing, more.Hits
	if s.texts.always = !h.agrees(); s.texts.always {
		return sighted{}, nil, nil
	}
	hits, _, err = s.judgeAll(&h)
	return h, hits, err
}

// agrees reports whether the hits that were read once more are the same ones.
func (h *sighted) agrees() bool {
	if h.with.Len() != len(h.places) {
		return false
	}
	for at, i := range h.places {
		if h.with.Seen(at).ID != h.Hits.Seen(i).ID {
			return false
		}
	}
	return true
}

// judgeAll judges hits, and returns which of them lack a sketch that could be computed from their text.
func (s *search) judgeAll(h *sighted) (hits []rerank.Hit, missing []int, err error) {
	s.judge.Reset()
	hits = make([]rerank.Hit, h.Len())
	for i := range hits {
		if i%adapters.BetweenLooks == 0 && s.plan.Struck() {
			return nil, nil, adapters.ErrLate
		}
		unread := s.judge.Unread
		if hits[i] = s.judge.Hit(h.seen(i)); s.judge.Unread > unread {
			missing = append(missing, i)
		}
	}
	if s.judge.Lacking > 0 && s.plan.Struck() { // sketches may not have been computed
		return nil, nil, adapters.ErrLate
	}
	return hits, missing, nil
}

// unjudged returns the hits of a listing where only which documents they are matters.
func unjudged(l *adapters.Listing) []rerank.Hit {
	hits := make([]rerank.Hit, l.Hits.Len())
	for i := range hits {
		hits[i] = identityOf(l.Hits.Seen(i))
	}
	return hits
}

// identityOf returns what tells a hit from all others.
func identityOf(seen adapters.Seen) rerank.Hit {
	if seen.Key != "" {
		return rerank.Hit{ID: seen.Key}
	}
	return adapters.Unjudged(seen.Index, seen.ID)
}
