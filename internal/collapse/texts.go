package collapse

import (
	"context"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// texts says which readings bring the sketched texts too, to compute missing sketches from.
type texts struct {
	beside bool // sketches are known to be missing
	always bool // texts come with every reading, of however many ranks
}

// textsBeside is the longest span whose texts are read together with the sketches, where some sketches are known to be missing. In a longer
// span the sketches are read first, then the texts of the hits without one.
const textsBeside = 100

// wanted reports whether a reading of the span is to bring texts.
func (t texts) wanted(span rerank.Span) bool {
	return t.beside && (span.Sources || span.To <= textsBeside || t.always)
}

// withTexts are hits of which some were read once more, with their texts.
type withTexts struct {
	adapters.Hits
	places []int         // of those, ascending
	again  adapters.Hits // and they themselves, in that order
}

// Seen implements adapters.Hits.
func (h *withTexts) Seen(i int) rule.Seen {
	at, found := slices.BinarySearch(h.places, i)
	if !found {
		return h.Hits.Seen(i)
	}
	seen := h.again.Seen(at)
	seen.Pinned = h.Hits.Seen(i).Pinned
	return seen
}

// judgeWithTexts judges a reading anew, by the texts of those hits that lack a sketch, as far as they can be read, and adds the hits.
func (s *search) judgeWithTexts(ctx context.Context, span rerank.Span, of *adapters.Reading, hits []rerank.Hit, missing []int) error {
	ways := s.asked.Ways
	switch {
	case of.Sources && (ways.Apart || ways.TextsApart && of.Texts): // read again at once, it does not show all
		return portError(adapters.ErrMoved)
	case of.Texts:
		return s.found.Add(span, hits)
	case ways.Scattered:
		s.texts.beside = true
		return errAnew
	}
	s.texts.beside = true
	r := adapters.Reading{From: of.From, To: of.To, Texts: true}
	for _, i := range missing {
		r.Ranks = append(r.Ranks, of.From+i)
	}
	more, err := s.read(ctx, &r)
	if err != nil {
		return err
	}
	s.texts.always = more.Hits.Len() != len(missing)
	for at := 0; at < len(missing) && !s.texts.always; at++ {
		s.texts.always = more.Hits.Seen(at).ID != s.compared.Seen(missing[at]).ID
	}
	if s.texts.always { // they are of other documents
		return s.readSpan(ctx, span)
	}
	s.texted = &withTexts{s.compared, missing, more.Hits}
	if hits, _, err = s.judgeAll(s.judge, s.texted); err != nil {
		return err
	}
	return s.found.Add(span, hits)
}
