package collapse

import (
	"context"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// texts says which readings bring the sketched texts too, to compute missing sketches from.
type texts struct {
	beside    bool // sketches are known to be missing
	anyLength bool // with beside: texts come with readings of any number of ranks
}

// textsBeside is the longest reading that brings texts together with the sketches, where some sketches are known to be missing. In a longer
// one the sketches are read first, then the texts of the hits without one.
const textsBeside = 100

// wanted reports whether a reading from rank 0 on is to bring texts.
func (t texts) wanted(r *adapters.Reading) bool {
	return t.beside && (r.Sources || r.To <= textsBeside || t.anyLength)
}

// lacksTexts reports whether a reading does not show all that its hits are judged by.
func (s *search) lacksTexts(r *adapters.Reading, unread []int) bool {
	return len(unread) > 0 || r.Sources && s.asked.Ways.Apart
}

// judgeWithTexts judges a reading anew, by the texts of those hits that lack a sketch, as far as they can be read, and adds the hits.
func (s *search) judgeWithTexts(ctx context.Context, of *adapters.Reading, hits []rerank.Hit, missing []int) error {
	ways := s.asked.Ways
	switch {
	case s.special.sequence.ahead() > 0: // their ranks are not those of the reading
		s.forget()
		return errAnew
	case of.Sources && (ways.Apart || ways.TextsApart && of.Texts): // read again at once, it does not show all
		return portError(adapters.ErrMoved)
	case of.Texts:
		return s.found.Add(hits)
	case ways.Scattered:
		s.special.texts.beside = true
		return errAnew
	}
	s.special.texts.beside = true
	r := adapters.Reading{From: of.From, To: of.To, Judged: true, Texts: true}
	for _, i := range missing {
		r.Ranks = append(r.Ranks, of.From+i)
	}
	more, err := s.read(ctx, &r)
	if err != nil {
		return err
	}
	moved := len(more.Hits) != len(missing) // the texts are of other documents
	for at := 0; at < len(missing) && !moved; at++ {
		moved = more.Hits[at].ID != s.compared[missing[at]].ID
	}
	if s.special.texts.anyLength = moved; moved {
		return s.compare(ctx, of.To)
	}
	s.compared = slices.Clone(s.compared) // the page may be shown from the hits as they were
	for at, i := range missing {
		pinned := s.compared[i].Pinned
		s.compared[i] = more.Hits[at]
		s.compared[i].Pinned = pinned
	}
	if hits, _, err = s.judge.Hits(s.compared); err != nil {
		return err
	}
	return s.found.Add(hits)
}
