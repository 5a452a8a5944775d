package proxy

import (
	"cmp"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// writePage writes the collapsed page, and learns from what it took.
func (s *search) writePage(page *adapters.Reply, outcomes []adapters.Outcome) {
	h, ctx := s.h, s.r.Context()
	if h.FailClosed && adapters.WasLate(outcomes) {
		s.giveUp(adapters.ReasonDeadline)
		return
	}
	if slices.ContainsFunc(outcomes, func(o adapters.Outcome) bool { return o.Again }) {
		h.catalog.spend(s.who(), s.w.class.Target) // one request more, however many searches it has
	}
	for _, o := range outcomes {
		h.catalog.learn(s.who(), o)
		h.Metrics.outcome(o)
	}
	body := page.Pieces
	page.Pieces = nil // so that the uncompressed page can be freed
	setOutcome(page.Header, outcomeLine(outcomes, clock()-underwayOf(ctx).start))
	if coding := page.Header["Content-Encoding"]; len(coding) == 1 {
		body = adapters.Pieces{coded(coding[0], body.Bytes())}
	}
	held := holdOf(ctx)
	rest := held.size()
	if worthCopying(rest, body) {
		body = adapters.Pieces{body.Bytes()}
		rest = int64(body.Len())
	}
	held.keepOnly(rest)
	writePieces(s.w, page, body)
}

// worthCopying reports whether a page is written from a copy, and not in its pieces. Pieces keep whole replies in memory: held bytes. A single piece
// is its own copy.
func worthCopying(held int64, page adapters.Pieces) bool {
	return len(page) == 1 || held > 4*int64(page.Len())
}

// writeReply writes a reply that was read whole, compressed if its header says so.
func writeReply(w http.ResponseWriter, reply *adapters.Reply) {
	body := reply.Body
	if coding := reply.Header["Content-Encoding"]; len(coding) == 1 {
		body = coded(coding[0], body)
	}
	writePieces(w, reply, adapters.Pieces{body})
}

// writePieces writes a reply with a body in pieces to the client. The writer of the request, an [underway], passes them on to net/http and adds up how
// long the client takes.
func writePieces(w http.ResponseWriter, reply *adapters.Reply, body adapters.Pieces) {
	header := http.Header(maps.Clone(reply.Header))
	dropHops(header)
	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(reply.Status)
	buffer := copyBuffers.Get() // net/http would hand the kernel 4 kB at a time: on page 1 that took a tenth of the processor time
	defer copyBuffers.Put(buffer)
	rest := net.Buffers(body)
	// A client that went away has its answer.
	_, _ = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{&rest}, buffer)
}

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
			reasons = append(reasons, cmp.Or(o.Shorter, adapters.ReasonEngineLimit))
		}
		if sum.Counts = max(sum.Counts, o.Counts); o.Counts == adapters.CountsEngine {
			reasons = append(reasons, adapters.ReasonUncountable)
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
	text := append(make([]byte, 0, 128), line...)
	number := func(name string, n int) { text = strconv.AppendInt(append(text, name...), int64(n), 10) }
	number("; raw=", sum.Raw)
	number("; folded=", sum.Folded)
	text = strconv.AppendBool(append(text, "; exact="...), sum.Exact)
	number("; rounds=", sum.Rounds)
	number("; window=", sum.Window)
	if sum.Counts != adapters.CountsUnasked {
		text = append(append(text, "; counts="...), sum.Counts.String()...)
	}
	if sum.CursorLost {
		text = append(text, "; cursor=lost"...)
	}
	if sum.Native {
		text = append(text, "; native"...)
	}
	text = strconv.AppendFloat(append(text, "; took="...), float64(took)/float64(time.Millisecond), 'f', 1, 64)
	return string(append(text, "ms"...))
}
