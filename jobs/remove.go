package jobs

import (
	"context"
	"fmt"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// RemoveOptions say how a removal goes about it.
type RemoveOptions struct {
	// RequestsPerSecond bounds the documents written in a second; 0 is no bound.
	RequestsPerSecond float64
	// DryRun writes nothing. Found then counts what would have been written.
	DryRun bool
}

// Removal counts documents.
type Removal struct {
	// Total is how many there are as far as the engine says, else 0; Scanned were read.
	Total   int `json:"-"`
	Scanned int `json:"scanned"`
	// Found hold something in a field of ours, be it null. Of these Cleaned hold nothing any more, Gone were deleted meanwhile,
	// Refused the engine would not take, and Left changed again and again whenever they were to be written.
	Found   int `json:"found"`
	Cleaned int `json:"cleaned"`
	Gone    int `json:"gone"`
	Refused int `json:"refused"`
	Left    int `json:"left"`
}

// Remove takes our fields out of the documents of one concrete index, so that every one is again what it was without us, byte
// for byte where the engine keeps bytes. The job has no rule: none need match the index. A document that changes meanwhile is not overwritten but
// looked at again. Whoever goes on writing these fields goes on: what is enriched behind the scan stays. The removal returned
// is right on an error too. report, if not nil, is called from the same goroutine after every page and every batch.
func Remove(ctx context.Context, job Job, o RemoveOptions, report func(Removal)) (Removal, error) {
	r := removal{dry: o.DryRun}
	read := func(total int) {
		r.counts.Total = max(r.counts.Total, total)
		if report != nil {
			report(r.counts)
		}
	}
	// All are read, not those alone that are marked: of a field that a partial update cleared the engine knows nothing, and yet
	// there stands a null.
	changed, err := mend(ctx, job, adapters.Selection{}, o.RequestsPerSecond, &r, read)
	r.counts.Left = len(changed)
	read(0)
	if err != nil {
		err = fmt.Errorf("remove from %s: %w", job.Index, err)
	}
	return r.counts, err
}

// removal is one under way.
type removal struct {
	dry    bool
	counts Removal
}

// judge implements mender. It looks for a member of ours, be it null.
func (r *removal) judge(d adapters.Stored, again bool) (adapters.Patch, bool) {
	members, err := jsonedit.Members(d.Source)
	ours := err == nil && slices.ContainsFunc(members, func(m jsonedit.Member) bool { return rule.Our(m.Key) })
	switch {
	case again && !ours:
		r.counts.Cleaned++ // by whoever changed it
	case !again:
		r.counts.Scanned++
		if ours {
			r.counts.Found++
		}
	}
	return adapters.Patch{Stored: d}, ours && !r.dry
}

// mended implements mender.
func (r *removal) mended(_ string, result adapters.Result) {
	switch result {
	case adapters.Changed:
	case adapters.Patched:
		r.counts.Cleaned++
	case adapters.Gone:
		r.counts.Gone++
	default:
		r.counts.Refused++
	}
}
