package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// Findings counts documents by what is in their fields of ours. Each that was scanned is counted once by its sketch, and also once
// by its bands and once by its cluster where these are not right.
type Findings struct {
	// Total is how many there are to scan as far as the engine says, else 0; Scanned were read.
	Total   int `json:"-"`
	Scanned int `json:"scanned"`
	// Right hold the sketch of their text; Textless have no word to sketch, or no vector that the rule has beside the words, or can't be read, and hold none.
	Right int `json:"right"`
	// Absent have a text and no sketch. Incomparable hold a sketch of another scheme or of other fields, or something that is no
	// sketch: these count as absent. Neither does harm: searches compute the sketch, or leave the hit alone.
	Absent       int `json:"absent"`
	Incomparable int `json:"incomparable"`
	// Stale hold the sketch of another text than theirs; Emptied hold one and have no text. Both may fold where they should not.
	Stale    int `json:"stale"`
	Emptied  int `json:"textless_with_sketch"`
	Textless int `json:"textless"`
	// Bands and Cluster are where the rule stores them.
	Bands   FieldFindings `json:"-"`
	Cluster FieldFindings `json:"-"`
	// Leftover hold bands or a cluster, which the rule does not store.
	Leftover int `json:"left_over,omitempty"`
	// Examples are the ids of the first few that hold something that is not of their text.
	Examples []string `json:"examples"`
	Repair   Repair   `json:"-"`
}

// FieldFindings counts documents by a field beside the sketch that the rule stores.
type FieldFindings struct {
	// Absent lack it: no look-up finds them.
	Absent int `json:"absent"`
	// Foreign clusters were made under another threshold or scheme: searches of such an index are not left to the engine.
	Foreign int `json:"foreign"`
	// Stale bands are of another text or of another setting of bands beside the right sketch: look-ups miss them. A stale cluster is
	// one under this rule without the sketch that it was made from.
	Stale int `json:"stale"`
}

// Repair counts what became of the documents that were to be mended: mended, changed by their writers again and again, deleted,
// not taken by the engine.
type Repair struct {
	Mended  int `json:"mended"`
	Changed int `json:"changed_meanwhile"`
	Gone    int `json:"gone"`
	Refused int `json:"refused"`
}

// maxExamples is how many ids are kept: enough to look at what changed them.
const maxExamples = 5

// Wrong returns how many documents hold a comparable sketch that is not of their text, or the right one and bands or a cluster
// that are not.
func (f Findings) Wrong() int { return f.Stale + f.Emptied + f.Bands.Stale + f.Cluster.Stale }

// VerifyOptions say what a verification does beside looking.
type VerifyOptions struct {
	// Repair gives every document what its fields of ours should hold.
	Repair bool
	// RequestsPerSecond bounds the documents written in a second; 0 is no bound.
	RequestsPerSecond float64
}

// Verify reads the documents that are selected of one concrete index, computes what our fields should hold and compares it with
// what is stored. It writes nothing unless it repairs. The findings returned are right on an error too. report, if not nil, is
// called from the same goroutine after every page.
func Verify(ctx context.Context, job Job, s adapters.Selection, o VerifyOptions, report func(Findings)) (Findings, error) {
	var f Findings
	judge := func(d adapters.Stored, again bool) (adapters.Stored, bool) {
		count := &f
		if again { // it was counted before
			count = &Findings{}
		}
		want, right := count.Count(job.Rule, d)
		return d.With(want), o.Repair && !right
	}
	err := mend(ctx, job, s, o.RequestsPerSecond, judge, func(total int, done Progress) {
		f.Total, f.Repair = max(f.Total, total), Repair{done.Written, done.Changed, done.Gone, done.Refused}
		if report != nil {
			report(f)
		}
	})
	if err != nil {
		err = fmt.Errorf("verify %s: %w", job.Index, err)
	}
	return f, err
}

// Count counts one document, and returns what its fields of ours should hold, and whether they do.
func (f *Findings) Count(r *rule.Rule, document adapters.Stored) (want rule.Ours, right bool) {
	f.Scanned++
	computed, stored := r.Wanted(document.Source)
	fits := false
	switch {
	case stored == nil && rule.HasSketch(document.Source):
		f.Incomparable++
	case stored == nil && computed == nil:
		fits = true
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
		fits = true
		f.Right++
	}
	want, right = r.OursFor(document.Source, document.ID)
	if !right {
		f.beside(r, document, want, fits, stored != nil && !fits)
	}
	return want, right
}

// beside counts the bands and the cluster. fits says that the sketch is right, counted that the document was counted among those
// that do harm: each is so once.
func (f *Findings) beside(r *rule.Rule, document adapters.Stored, want rule.Ours, fits, counted bool) {
	have := rule.OursOf(document.Source)
	if r.Bands == 0 && len(have.Bands) > 0 || !r.Clusters && have.Cluster != "" {
		f.Leftover++
	}
	switch {
	case r.Bands == 0 || slices.Equal(have.Bands, want.Bands):
	case len(have.Bands) == 0:
		f.Bands.Absent++
	case fits && !counted:
		f.Bands.Stale++
		counted = true
		f.example(document.ID)
	}
	switch {
	case !r.Clusters || have.Cluster == want.Cluster:
	case have.Cluster == "":
		f.Cluster.Absent++
	case !strings.HasPrefix(have.Cluster, r.ClusterMark()):
		f.Cluster.Foreign++
	case !counted:
		f.Cluster.Stale++
		f.example(document.ID)
	}
}

func (f *Findings) example(id string) {
	if len(f.Examples) < maxExamples {
		f.Examples = append(f.Examples, id)
	}
}
