package jobs

import (
	"context"
	"fmt"

	"github.com/neardup/sidecar/adapters"
)

// Findings counts documents by what stands in their sketch field. Each that was scanned is counted in one of the others.
type Findings struct {
	// Total is how many there are to scan as far as the engine says, else 0; Scanned were read.
	Total, Scanned int
	// Right hold the sketch of their text; Textless have no word to sketch, or can't be read, and hold none.
	Right, Textless int
	// Absent have a text and no sketch. Incomparable hold a sketch of another scheme or of other fields, or something that is no
	// sketch: these count as absent. Neither does harm: searches compute the sketch, or leave the hit alone.
	Absent, Incomparable int
	// Stale hold the sketch of another text than theirs; Emptied hold one and have no text. Both may fold where they should not.
	Stale, Emptied int
	// Examples are the ids of the first few that are stale or emptied.
	Examples []string
}

// maxExamples is how many ids are kept: enough to look at what changed them.
const maxExamples = 5

// Wrong returns how many documents hold a comparable sketch that is not of their text.
func (f Findings) Wrong() int { return f.Stale + f.Emptied }

// Verify reads the documents that are selected of one concrete index, computes their sketches and compares them with
// what is stored. It writes nothing. The findings returned are right on an error too. report, if not nil, is called from the same
// goroutine after every page.
func Verify(
	ctx context.Context, store adapters.Store, index string, rule *adapters.Rule, s adapters.Selection, report func(Findings),
) (f Findings, err error) {
	err = store.Scan(ctx, index, rule, s, func(p adapters.Page) error {
		f.Total = p.Total
		for _, document := range p.Documents {
			f.Count(rule, document)
		}
		if report != nil {
			report(f)
		}
		return ctx.Err()
	})
	if err != nil {
		return f, fmt.Errorf("verify %s: %w", index, err)
	}
	return f, nil
}

// Count counts one document.
func (f *Findings) Count(rule *adapters.Rule, document adapters.Stored) {
	f.Scanned++
	computed, stored := rule.SketchOf(document.Source)
	switch {
	case stored == nil && adapters.HasSketch(document.Source):
		f.Incomparable++
	case stored == nil && computed == nil:
		f.Textless++
	case stored == nil:
		f.Absent++
	case computed == nil:
		f.Emptied++
		f.example(document.ID)
	case stored.Text != computed.Text:
		f.Stale++
		f.example(document.ID)
	default:
		f.Right++
	}
}

func (f *Findings) example(id string) {
	if len(f.Examples) < maxExamples {
		f.Examples = append(f.Examples, id)
	}
}
