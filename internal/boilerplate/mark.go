package boilerplate

import (
	"slices"

	"github.com/neardup/sidecar/sketch"
)

// Marker finds passages in texts. It is safe for concurrent use.
type Marker struct {
	sketcher *sketch.Sketcher
	of       map[uint64]int // the passage of each window; the first if several have it
}

// NewMarker returns a marker of passages under the scheme of a sketcher.
func NewMarker(s *sketch.Sketcher, list []Passage) *Marker {
	m := &Marker{s, map[uint64]int{}}
	for i, p := range list {
		for _, place := range s.Places(p.Text) {
			if _, known := m.of[place.Window]; !known {
				m.of[place.Window] = i
			}
		}
	}
	return m
}

// Mark is a part of a text that is left out of its sketch: the bytes from From to To, of the passage with this number.
type Mark struct{ Passage, From, To int }

// Find returns which passages a text contains, by their numbers, and where. Of HTML it does not say where.
func (m *Marker) Find(text string) (passages []int, marks []Mark) {
	if len(m.of) == 0 {
		return nil, nil
	}
	for _, window := range m.sketcher.Windows(text) {
		if passage, is := m.of[window]; is {
			passages = append(passages, passage)
		}
	}
	slices.Sort(passages)
	passages = slices.Compact(passages)
	if len(passages) == 0 || m.sketcher.Content(text) != text {
		return passages, nil
	}
	for _, place := range m.sketcher.Places(text) {
		passage, is := m.of[place.Window]
		if !is {
			continue
		}
		if last := len(marks) - 1; last >= 0 && place.From <= marks[last].To {
			if marks[last].Passage == passage || place.To <= marks[last].To {
				marks[last].To = max(marks[last].To, place.To)
				continue
			}
			place.From = marks[last].To
		}
		marks = append(marks, Mark{passage, place.From, place.To})
	}
	return passages, marks
}
