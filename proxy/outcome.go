package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// setOutcome puts what was done into the header of a reply. Where scripts of other origins may read the reply, they may read that too: without
// being named there it is kept from them (Fetch standard, CORS-safelisted response-header names).
func setOutcome(header http.Header, outcome string) {
	header.Set(adapters.OutcomeHeader, outcome)
	if header.Get("Access-Control-Allow-Origin") != "" {
		header["Access-Control-Expose-Headers"] = append(slices.Clone(header["Access-Control-Expose-Headers"]), adapters.OutcomeHeader)
	}
}

// outcomeLine sums up what was done with the searches of a request, in ASCII as header fields are (RFC 9110, section 5.5).
func outcomeLine(outcomes []adapters.Outcome, took time.Duration) string {
	sum, left := adapters.Outcome{Exact: true}, 0
	sum.DryRun, sum.Native = len(outcomes) > 0, len(outcomes) > 0
	var reasons []adapters.Reason
	for _, o := range outcomes {
		if o.Reason != "" {
			reasons, left = append(reasons, o.Reason), left+1
			continue
		}
		sum.Raw, sum.Folded = sum.Raw+o.Raw, sum.Folded+o.Folded
		sum.Rounds, sum.Window = max(sum.Rounds, o.Rounds), max(sum.Window, o.Window)
		sum.Exact, sum.DryRun, sum.Native = sum.Exact && o.Exact, sum.DryRun && o.DryRun, sum.Native && o.Native
		sum.CursorLost = sum.CursorLost || o.CursorLost
		if o.Limited {
			reasons = append(reasons, adapters.ReasonEngineLimit)
		}
		if o.Fell != "" {
			reasons = append(reasons, o.Fell)
		}
	}
	line := "collapsed"
	switch {
	case left > 0 && left == len(outcomes):
		line = "bypassed"
	case sum.DryRun:
		line = "dry-run"
	}
	slices.Sort(reasons)
	for i, reason := range slices.Compact(reasons) {
		line += []string{"; reason=", ","}[min(i, 1)] + string(reason)
	}
	if left > 0 && left == len(outcomes) {
		return line
	}
	line += fmt.Sprintf("; raw=%d; folded=%d; exact=%t; rounds=%d; window=%d", sum.Raw, sum.Folded, sum.Exact, sum.Rounds, sum.Window)
	if sum.CursorLost {
		line += "; cursor=lost"
	}
	if sum.Native {
		line += "; native"
	}
	return line + fmt.Sprintf("; took=%.1fms", float64(took)/float64(time.Millisecond))
}
