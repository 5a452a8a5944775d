package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/collapse"
)

var errTooLarge = errors.New("larger than the limit")

// search is a client's search on its way: what was read of it, and what of it is sent on where it is left alone.
type search struct {
	h     *Handler
	w     http.ResponseWriter
	r     *http.Request
	class adapters.Class
	who   client
	began time.Time
	limit *deadline
	// raw is the body as it was sent, body the decoded one. unread says why there is none; raw may then be the head of it alone.
	raw, body []byte
	unread    adapters.Reason
	plain     *adapters.Request // less our controls
}

// search reads a search whole, lets the dialect take it apart, and answers with what it collapses to; or sends it as the client wrote it
// and says why.
func (h *Handler) search(w http.ResponseWriter, r *http.Request, class adapters.Class) {
	s := &search{h: h, w: w, r: r, class: class, who: senderOf(r), began: time.Now()}
	if signed(r) { // nothing of it may change, so nothing of it is read
		s.unread = adapters.ReasonSigned
		_, s.plain, _ = adapters.TakeControls(requestOf(r))
		s.sendAsWritten(adapters.ReasonSigned)
		return
	}
	if err := s.read(); err != nil {
		h.unreachable(w, r, err)
		return
	}
	s.limit = &deadline{h: h, at: time.Now().Add(h.Limits.Deadline)}
	if s.unread == "" && !holdOf(r.Context()).begin() {
		s.unread = adapters.ReasonBusy
	}
	parsed := s.parse()
	switch {
	case parsed.Refusal != nil:
		h.Metrics.search("refused", "control")
		writeReply(w, parsed.Refusal)
	case parsed.Left() && !s.concerned(parsed):
		s.sendAsWritten(adapters.ReasonUnconfigured)
	case s.unread != "", parsed.Reason == adapters.ReasonDeadline, parsed.Reason == adapters.ReasonTooLarge:
		s.giveUp(parsed.Reason)
	case parsed.Left():
		s.sendAsWritten(parsed.Reason)
	case !h.catalog.allow(s.who, class.Target):
		s.giveUp(adapters.ReasonBudget)
	default:
		s.collapse(parsed)
	}
}

// read reads the body of the search. The error is one of the client.
func (s *search) read() (err error) {
	r, most := s.r, s.h.Limits.MaxSearchBody
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		return nil
	case r.ContentLength > most: // not a byte of it is read: the engine may refuse it by its length
		s.unread = adapters.ReasonTooLarge
		return nil
	}
	whole, held := false, holdOf(r.Context())
	s.raw, whole, err = held.readBody(r.Body, most, r.ContentLength)
	s.body = s.raw
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); {
	case errors.Is(err, errBusy):
	case err != nil:
		return err
	case !whole:
		err = errTooLarge
	case s.class.Verbatim:
	case encoded(r):
		if s.body, err = held.decode(encoding, s.raw, most); err != nil {
			err = errors.Join(errEncoding, err)
		}
	case encoding != "" && encoding != "identity":
		err = errEncoding
	}
	if err != nil {
		s.body, s.unread = nil, reasonOf(err)
	}
	return nil
}

// parse has the dialect take the search apart. Of one whose body could not be read it takes the controls of header and query alone.
func (s *search) parse() (parsed *adapters.Searches) {
	request := requestOf(s.r)
	request.Body = s.body
	if s.unread == "" {
		plan := adapters.Plan{
			Rules: s.h.Rules, MaxWindow: s.h.Limits.MaxWindow, Scope: s.scope, Cursors: s.h.cursors.of(s.who), Deadline: s.limit,
		}
		err := guarded(func() error {
			parsed = s.h.Dialect.Search(s.class, request, plan)
			return nil
		})
		if err != nil {
			s.h.Log.Error("search could not be taken apart", "error", unquoted(err))
			s.unread = adapters.ReasonNotUnderstood
		}
	}
	if s.unread != "" {
		parsed = &adapters.Searches{Reason: s.unread}
		_, parsed.Plain, _ = adapters.TakeControls(request)
	}
	if parsed.Refusal != nil && !s.concerned(parsed) { // what looks like a control is none of ours, and the engine's to refuse
		parsed = &adapters.Searches{Plain: request, Reason: adapters.ReasonUnconfigured}
	}
	s.plain, s.class.Shown = parsed.Plain, s.class.Shown || parsed.Shown
	return parsed
}

// scope tells what is known of a target. The time for the first name that is looked up does not count: the engine answers to that as to the
// search itself, and it is remembered.
func (s *search) scope(target string) adapters.Scope {
	if !s.limit.lookedUp {
		s.limit.lookedUp = true
		defer s.limit.extend(time.Now())
	}
	return s.h.catalog.scope(s.r.Context(), s.who, target)
}

// concerned reports whether a search that is left alone or refused may show documents of a configured index.
func (s *search) concerned(parsed *adapters.Searches) bool {
	switch {
	case parsed.Reason == adapters.ReasonUnconfigured:
		return false
	case parsed.Refusal == nil && s.class.Elsewhere:
		return s.scope("").Configured
	case parsed.Refusal == nil:
		return s.scope(s.class.Target).Configured
	}
	request, seen := requestOf(s.r), map[string]bool{}
	request.Body = s.body
	for target := range s.h.Dialect.Targets(s.class, request) {
		if len(seen) > 0 && s.limit.Late() || !seen[target] && s.scope(target).Configured {
			return true
		}
		seen[target] = true
	}
	return false
}

// collapse answers with the collapsed page.
func (s *search) collapse(searches *adapters.Searches) {
	h, ctx := s.h, s.r.Context()
	var answer *adapters.Answer
	err := guarded(func() (err error) {
		answer, err = collapse.Answer(ctx, searches, s.limit.ask)
		return err
	})
	if err != nil {
		s.failed(err)
		return
	}
	h.giveBack(ctx, answer.After)
	if h.FailClosed && answer.WasLate() {
		s.giveUp(adapters.ReasonDeadline)
		return
	}
	if slices.ContainsFunc(answer.Outcomes, func(o adapters.Outcome) bool { return o.Again }) {
		h.catalog.spend(s.who, s.class.Target) // one request more, however many searches it held
	}
	for _, o := range answer.Outcomes {
		h.catalog.learn(s.who, o)
		h.Metrics.outcome(o)
	}
	reply, body := answer.Reply, answer.Pieces
	answer.Pieces = nil // once it is compressed it is no longer held
	reply.Header = maps.Clone(reply.Header)
	say(reply.Header, outcomeLine(answer.Outcomes, time.Since(s.began)))
	if coding := reply.Header["Content-Encoding"]; len(coding) == 1 {
		body = adapters.Pieces{coded(coding[0], body.Bytes())}
	}
	held := holdOf(ctx)
	rest := held.size()
	if len(body) == 1 || rest > mostBehindPieces*int64(body.Len()) {
		body = adapters.Pieces{body.Bytes()}
		rest = int64(body.Len())
	}
	held.keep(rest)
	writeBody(s.w, &reply, body)
}

// mostBehindPieces is how many times as long as a page all that was read for it may be for the page to be written in pieces: these keep the
// replies that they are parts of in memory. A page that is a smaller part of them is copied.
const mostBehindPieces = 4

// failed answers a search for which there is no collapsed page: with the engine's own refusal, or with what it answers to the client's search.
func (s *search) failed(err error) {
	refused, isRefused := errors.AsType[*collapse.Refused](err)
	alone, isAlone := errors.AsType[adapters.Alone](err)
	switch {
	case isRefused:
		s.h.Metrics.search("refused", "engine")
		holdOf(s.r.Context()).keep(int64(len(refused.Reply.Body)))
		writeReply(s.w, refused.Reply)
	case errors.Is(err, errUnreachable):
		s.h.unreachable(s.w, s.r, err)
	case isAlone: // for what it is, not for a failure
		if alone.Searched {
			s.h.catalog.spend(s.who, s.class.Target)
		}
		s.sendAsWritten(alone.Reason)
	default:
		reason := reasonOf(err)
		if reason == adapters.ReasonNotUnderstood {
			s.h.Log.Warn("search could not be collapsed", "error", unquoted(err))
		}
		s.giveUp(reason)
	}
}

// reasonOf returns the reason for which an error leaves a search alone.
func reasonOf(err error) adapters.Reason {
	for _, each := range []struct {
		err    error
		reason adapters.Reason
	}{
		{errSlow, adapters.ReasonSlow}, {errShare, adapters.ReasonShare}, {errBusy, adapters.ReasonBusy}, {errTooLarge, adapters.ReasonTooLarge},
		{errEncoding, adapters.ReasonEncoding}, {adapters.ErrWidened, adapters.ReasonEngineStatus},
	} {
		if errors.Is(err, each.err) {
			return each.reason
		}
	}
	return adapters.ReasonOf(err)
}

// giveUp sends a search that we could not collapse as the client wrote it, or answers an error where the operator wants that.
func (s *search) giveUp(reason adapters.Reason) {
	if s.h.FailClosed && reason != adapters.ReasonEngineStatus {
		s.h.Metrics.search("failed", reason)
		s.h.refuse(s.w, s.r, http.StatusServiceUnavailable, "the search could not be collapsed (reason="+string(reason)+"); on_failure is error")
		return
	}
	if s.limit.asked {
		s.h.catalog.spend(s.who, s.class.Target)
	}
	s.sendAsWritten(reason)
}

// sendAsWritten sends the search as the client wrote it, less our controls. The reply of an index that no rule matches stays as it is.
func (s *search) sendAsWritten(reason adapters.Reason) {
	h, ctx := s.h, s.r.Context()
	holdOf(ctx).keep(int64(len(s.raw) + len(s.body)))
	h.Metrics.search("bypassed", reason)
	out := s.asWritten(reason)
	s.raw, s.body = nil, nil // what goes on while it comes is no longer held
	configured := reason != adapters.ReasonUnconfigured
	clean := !s.class.Shown && (configured || h.catalog.unknown(ctx, s.who, s.class.Target))
	h.send(s.w, out, func(resp *http.Response) {
		if configured {
			say(resp.Header, "bypassed; reason="+string(reason))
		}
		if clean {
			h.clean(s.class, resp)
		}
		if reason == adapters.ReasonEngineStatus && resp.StatusCode >= 400 && resp.StatusCode < 500 {
			h.catalog.refund(s.who, s.class.Target) // it was the client's own search that the engine refuses
		}
	})
}

// asWritten returns the request for a search as the client wrote it, less our controls.
func (s *search) asWritten(reason adapters.Reason) *http.Request {
	out := s.r.WithContext(s.r.Context())
	query := *s.r.URL
	query.RawQuery = s.plain.RawQuery
	out.URL, out.Header = &query, http.Header(maps.Clone(s.plain.Header))
	if accepted := acceptable(out.Header["Accept-Encoding"]); accepted != nil && !s.class.Shown && reason != adapters.ReasonUnconfigured && !signed(s.r) {
		out.Header["Accept-Encoding"] = accepted
	}
	switch {
	case s.r.Body == nil || s.r.Body == http.NoBody:
	case s.unread != "":
		out.Body = holdOf(s.r.Context()).onwardsFrom(s.raw, s.r.Body)
	case bytes.Equal(s.plain.Body, s.body):
		setBody(out, s.raw)
	default:
		out.Header.Del("Content-Encoding")
		setBody(out, s.plain.Body)
		out.ContentLength = int64(len(s.plain.Body))
	}
	return out
}

// setBody gives a request a body that can be read again: net/http then repeats a search where an idle connection turns out to be closed.
func setBody(r *http.Request, body []byte) {
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody() // which has no error
}

// say puts what was done into the header of a reply. Where scripts of other origins may read the reply, they may read that too: without
// being named there it is kept from them (Fetch standard, CORS-safelisted response-header names).
func say(header http.Header, outcome string) {
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

// givingBack bounds how long it may take to give back what a search held in the engine.
const givingBack = 5 * time.Second

// giveBack sends the last request for a search, whose reply no one waits for: what it is to give back ends by itself after a
// while.
func (h *Handler) giveBack(ctx context.Context, last *adapters.Request) {
	if last == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBack)
	go func() {
		defer cancel()
		_, _ = h.exchange(ctx, nil, last)
	}()
}

// writeReply writes a reply that was read whole, compressed if its header says so.
func writeReply(w http.ResponseWriter, reply *adapters.Reply) {
	body := reply.Body
	if coding := reply.Header["Content-Encoding"]; len(coding) == 1 {
		body = coded(coding[0], body)
	}
	writeBody(w, reply, adapters.Pieces{body})
}

func writeBody(w http.ResponseWriter, reply *adapters.Reply, body adapters.Pieces) {
	header := http.Header(maps.Clone(reply.Header))
	dropHops(header)
	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(reply.Status)
	for _, piece := range body {
		if _, err := w.Write(piece); err != nil {
			return // a client that went away has its answer
		}
	}
}

// deadline is when the time for collapsing one search is over. It sends the search's requests until then. It is for one goroutine.
type deadline struct {
	h        *Handler
	at       time.Time
	over     bool
	lookedUp bool // a name was
	asked    bool // the engine was, for the search
	searched bool // and for the search itself, not only for what it follows from
	ownAsked bool // and for the client's own searches, after the time was over
}

// Late implements rerank.Deadline.
func (d *deadline) Late() bool {
	d.over = d.over || time.Now().After(d.at)
	return d.over
}

// extend adds the time since start, which does not count.
func (d *deadline) extend(start time.Time) { d.at = d.at.Add(time.Since(start)) }

// ask implements [collapse.Ask]. The engine may take all the time for what it is asked first, and for the client's own search.
func (d *deadline) ask(ctx context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error) {
	d.asked = true
	switch {
	case !d.searched:
		d.searched = !requests[0].Ahead
		defer d.extend(time.Now())
		return d.h.exchangeAll(ctx, requests)
	case d.over && d.ownAsked:
		return nil, adapters.ErrLate
	case d.over: // what is asked is the client's own, where no reply at hand holds it
		d.ownAsked = true
		return d.h.exchangeAll(ctx, requests)
	}
	within, cancel := context.WithDeadline(ctx, d.at)
	defer cancel()
	replies, err := d.h.exchangeAll(within, requests)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		d.over = true
		return nil, adapters.ErrLate
	}
	return replies, err
}

// exchangeAll sends requests side by side and returns their replies, or the first that is no success alone.
func (h *Handler) exchangeAll(ctx context.Context, requests []*adapters.Request) ([]*adapters.Reply, error) {
	if len(requests) == 1 {
		reply, err := h.exchange(ctx, holdOf(ctx), requests[0])
		return []*adapters.Reply{reply}, err
	}
	if len(requests) > adapters.MaxAtOnce {
		return nil, adapters.NotUnderstood(errors.New("too many requests at once"))
	}
	if u := underwayOf(ctx); u != nil { // each counts the time for itself
		before, start := u.engine.Load(), clock()
		defer func() { u.engine.Store(before + int64(clock()-start)) }()
	}
	replies := make([]*adapters.Reply, len(requests))
	group, ctx := errgroup.WithContext(ctx)
	for i, request := range requests {
		group.Go(func() error {
			return guarded(func() (err error) {
				if replies[i], err = h.exchange(ctx, holdOf(ctx), request); err == nil && replies[i].Status/100 != 2 {
					err = errUnsuccessful
				}
				return err
			})
		})
	}
	err := group.Wait()
	if errors.Is(err, errUnsuccessful) {
		i := slices.IndexFunc(replies, func(r *adapters.Reply) bool { return r != nil && r.Status/100 != 2 })
		return replies[i : i+1], nil
	}
	return replies, err
}

// errUnsuccessful: one of several requests that go together was refused, and the others are of no use.
var errUnsuccessful = errors.New("no success")

// errUnreachable: the engine gave no answer at all.
var errUnreachable = errors.New("no answer")

// exchange sends one request of ours to the engine and returns the reply, read whole and decoded. What is read counts as held, unless held is nil.
func (h *Handler) exchange(ctx context.Context, held *hold, request *adapters.Request) (*adapters.Reply, error) {
	r, err := http.NewRequestWithContext(ctx, request.Method, "http://engine/", bytes.NewReader(request.Body))
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	r.RequestURI, r.URL.RawQuery = request.Path, request.RawQuery // as in a client's request, whose path goes on as it stands
	r.Header = askHeader(request.Header)
	resp, err := h.engine.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	defer resp.Body.Close()
	return held.readReply(resp, h.Limits.MaxReply)
}

// askHeader returns the client's headers for a request of ours: its own less those of its body and its connection.
func askHeader(header adapters.Header) http.Header {
	out := http.Header{}
	for key, values := range header {
		if key == "Accept" || key == "Content-Type" || !own(key) {
			out[key] = values
		}
	}
	if accepted := header["Accept-Encoding"]; len(accepted) > 0 {
		out["Accept-Encoding"] = accepted
		if kept := acceptable(accepted); kept != nil {
			out["Accept-Encoding"] = kept
		}
	}
	if len(out["User-Agent"]) == 0 {
		out["User-Agent"] = noAgent
	}
	return out
}
