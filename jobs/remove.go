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

// Removal is what became of one index, as it is reported in JSON.
type Removal struct {
	// Engine and Index are for the caller to fill in, as are DryRun, Note and Seconds.
	Engine string `json:"engine"`
	Index  string `json:"index"`
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

	DryRun  bool    `json:"dry_run"`
	Note    string  `json:"note,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Remove takes our fields out of the documents of one concrete index, so that every one is again what it was without us, byte
// for byte where the engine keeps bytes. The job has no rule: none need match the index. A document that changes meanwhile is not overwritten but
// looked at again. Writers that go on writing these fields are not stopped: what they enrich after it was read stays. The removal returned
// is right on an error too. report, if not nil, is called from the same goroutine after every page and every batch.
func Remove(ctx context.Context, job Job, o RemoveOptions, report func(Removal)) (Removal, error) {
	var r Removal
	byOthers := 0 // cleaned by whoever changed them meanwhile
	judge := func(d adapters.Stored, again bool) (adapters.Stored, bool) {
		members, err := jsonedit.Members(d.Source)
		ours := err == nil && slices.ContainsFunc(members, func(m jsonedit.Member) bool { return rule.Our(m.Key) }) // be it null
		switch {
		case again && !ours:
			byOthers++
		case !again:
			r.Scanned++
			if ours {
				r.Found++
			}
		}
		return d.With(rule.Ours{}), ours && !o.DryRun
	}
	// All are read, not those alone that are marked: the engine does not find a field that a partial update
	// cleared, and yet the document has a null there.
	err := mend(ctx, job, adapters.Selection{}, o.RequestsPerSecond, judge, func(total int, done Progress) {
		r.Total = max(r.Total, total)
		r.Cleaned, r.Gone, r.Refused, r.Left = done.Written+byOthers, done.Gone, done.Refused, done.Changed
		if report != nil {
			report(r)
		}
	})
	if err != nil {
		err = fmt.Errorf("remove from %s: %w", job.Index, err)
	}
	return r, err
}
