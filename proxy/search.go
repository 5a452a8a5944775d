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

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/collapse"
)

var errTooLarge = errors.New("larger than the limit")

// search reads a search whole, lets the dialect take it apart, and answers with what it collapses to; or sends it as the client wrote it
// and says why.
func (h *Handler) search(w http.ResponseWriter, r *http.Request, class adapters.Class) {
	began := time.Now()
	if signed(r) { // nothing of it may change, so nothing of it is read
		_, plain, _ := adapters.TakeControls(requestOf(r))
		h.plain(w, r, searching{class: class, plain: plain, body: searchBody{reason: adapters.ReasonSigned}}, adapters.ReasonSigned)
		return
	}
	body, err := h.readSearch(class, r)
	if err != nil {
		h.unreachable(w, r, err)
		return
	}
	held, watch := holdOf(r.Context()), newWatch(h.Limits.Deadline)
	if body.reason == "" && !held.begin() {
		body.reason = adapters.ReasonBusy
	}
	request := requestOf(r)
	request.Body = body.plain
	who := senderOf(r)
	scope := func(target string) adapters.Scope {
		defer watch.lookUp()()
		return h.catalog.scope(r.Context(), who, target)
	}
	plan := adapters.Plan{Rules: h.Rules, MaxWindow: h.Limits.MaxWindow, Scope: scope, Cursors: h.cursors.of(who), Deadline: watch}
	parsed := h.parse(class, request, &body, plan)
	class.Shown = class.Shown || parsed.Shown
	s := searching{who: who, class: class, plain: parsed.Plain, body: body}
	switch {
	case parsed.Refusal != nil:
		h.Metrics.search("refused", "control")
		writeReply(w, parsed.Refusal)
		return
	case parsed.Searches == nil && !concerned(class, parsed, scope):
		h.plain(w, r, s, adapters.ReasonUnconfigured)
		return
	case body.reason != "":
		h.leave(w, r, s, body.reason)
		return
	case parsed.Reason == adapters.ReasonDeadline || parsed.Reason == adapters.ReasonTooLarge:
		h.leave(w, r, s, parsed.Reason)
		return
	case parsed.Searches == nil:
		h.plain(w, r, s, parsed.Reason)
		return
	case !h.catalog.allow(who, class.Target):
		h.leave(w, r, s, adapters.ReasonBudget)
		return
	}
	var answer *adapters.Answer
	err = guarded(func() (err error) {
		answer, err = collapse.Answer(r.Context(), parsed.Searches, (&asking{h: h, watch: watch}).ask)
		return err
	})
	refused, isRefused := errors.AsType[*collapse.Refused](err)
	switch {
	case err == nil && h.FailClosed && answer.WasLate():
		h.giveBack(r.Context(), answer.After)
		h.leave(w, r, s, adapters.ReasonDeadline)
	case err == nil:
		h.giveBack(r.Context(), answer.After)
		h.collapsed(r.Context(), w, s, answer, began)
	case isRefused:
		h.Metrics.search("refused", "engine")
		h.settled(r.Context(), int64(len(refused.Reply.Body)))
		writeReply(w, refused.Reply)
	case errors.Is(err, errUnreachable):
		h.unreachable(w, r, err)
	case errors.Is(err, adapters.ErrLate) && !watch.asked:
		h.leave(w, r, s, adapters.ReasonDeadline)
	default:
		h.fallBack(w, r, s, err)
	}
}

// searching is what is needed to send a search as the client wrote it.
type searching struct {
	who   client
	class adapters.Class
	plain *adapters.Request // less our controls
	body  searchBody
}

// searchBody is the body of a search as it was sent and decoded.
type searchBody struct {
	raw, plain []byte
	reason     adapters.Reason // why it could not be decoded; raw may then be the head of it alone
}

// readSearch reads the body of a search. The error is one of the client.
func (h *Handler) readSearch(class adapters.Class, r *http.Request) (b searchBody, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return b, nil
	}
	if r.ContentLength > h.Limits.MaxSearchBody { // not a byte of it is read: the engine may refuse it by its length
		b.reason = adapters.ReasonTooLarge
		return b, nil
	}
	whole, held := false, holdOf(r.Context())
	if b.raw, whole, err = held.readBody(r.Body, h.Limits.MaxSearchBody, r.ContentLength); errors.Is(err, errBusy) {
		b.reason = busyReason(err)
		return b, nil
	} else if err != nil {
		return b, err
	}
	encoding := strings.ToLower(r.Header.Get("Content-Encoding"))
	switch {
	case !whole:
		b.reason = adapters.ReasonTooLarge
	case class.Verbatim:
		b.plain = b.raw
	case encoded(r):
		b.plain, err = held.decode(encoding, b.raw, h.Limits.MaxSearchBody)
		switch {
		case errors.Is(err, errTooLarge):
			b.reason = adapters.ReasonTooLarge
		case errors.Is(err, errBusy):
			b.reason = busyReason(err)
		case err != nil:
			b.reason = adapters.ReasonEncoding
		}
		err = nil
	case encoding != "" && encoding != "identity":
		b.reason = adapters.ReasonEncoding
	default:
		b.plain = b.raw
	}
	return b, nil
}

// parse has the dialect take the search apart. Of one whose body could not be read it takes the controls of header and query alone.
func (h *Handler) parse(class adapters.Class, request *adapters.Request, body *searchBody, plan adapters.Plan) (parsed adapters.ParsedSearch) {
	err := guarded(func() error {
		if body.reason == "" {
			parsed = h.Dialect.Search(class, request, plan)
		}
		return nil
	})
	if err != nil {
		h.Log.Error("search could not be taken apart", "error", unquoted(err))
		body.reason = adapters.ReasonNotUnderstood
	}
	if body.reason != "" {
		parsed = adapters.ParsedSearch{Reason: adapters.ReasonNotUnderstood}
		_, parsed.Plain, _ = adapters.TakeControls(request)
	}
	return parsed
}

// concerned reports whether a search that the dialect leaves alone may show documents of a configured index.
func concerned(class adapters.Class, parsed adapters.ParsedSearch, scope func(string) adapters.Scope) bool {
	switch {
	case parsed.Reason == adapters.ReasonUnconfigured:
		return false
	case parsed.Reason == adapters.ReasonSigned: // a look-up under another request's signature would be refused
		return true
	case class.Elsewhere:
		return scope("").Configured
	}
	return scope(class.Target).Configured
}

// plain sends the search as the client wrote it, less our controls. The reply of an index that is none of our business stays as it
// is.
func (h *Handler) plain(w http.ResponseWriter, r *http.Request, s searching, reason adapters.Reason) {
	h.settled(r.Context(), int64(len(s.body.raw)+len(s.body.plain)))
	h.Metrics.search("bypassed", reason)
	out := h.outgoing(r, s, reason)
	s.body = searchBody{} // what goes on while it comes is no longer held
	clean := h.cleanerOf(s)
	if reason == adapters.ReasonUnconfigured {
		if !h.catalog.unknown(r.Context(), s.who, s.class.Target) {
			clean = nil
		}
		h.send(w, out, clean)
		return
	}
	h.send(w, out, func(resp *http.Response) {
		say(resp.Header, "bypassed; reason="+string(reason))
		clean(resp)
		if reason == adapters.ReasonEngineStatus && resp.StatusCode >= 400 && resp.StatusCode < 500 {
			h.catalog.refund(s.who, s.class.Target) // it was the client's own search that the engine refuses
		}
	})
}

// cleanerOf returns what cuts our fields out of the reply to a search, unless the client names them.
func (h *Handler) cleanerOf(s searching) func(*http.Response) {
	if s.class.Shown {
		return func(*http.Response) {}
	}
	return h.cleaner(s.class)
}

// outgoing returns the request for a search as the client wrote it, less our controls.
func (h *Handler) outgoing(r *http.Request, s searching, reason adapters.Reason) *http.Request {
	out := r.WithContext(r.Context())
	query := *r.URL
	query.RawQuery = s.plain.RawQuery
	out.URL, out.Header = &query, http.Header(maps.Clone(s.plain.Header))
	if accepted := readable(out.Header["Accept-Encoding"]); accepted != nil && !s.class.Shown && reason != adapters.ReasonUnconfigured && !signed(r) {
		out.Header["Accept-Encoding"] = accepted
	}
	switch {
	case r.Body == nil || r.Body == http.NoBody:
	case s.body.reason != "":
		out.Body = holdOf(r.Context()).onwardsFrom(s.body.raw, r.Body)
	case bytes.Equal(s.plain.Body, s.body.plain):
		setBody(out, s.body.raw)
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

// leave sends a search that is to be collapsed and that we could not collapse, or answers an error where the operator wants that.
func (h *Handler) leave(w http.ResponseWriter, r *http.Request, s searching, reason adapters.Reason) {
	if h.FailClosed && reason != adapters.ReasonEngineStatus {
		h.Metrics.search("failed", reason)
		h.refuse(w, r, http.StatusServiceUnavailable, "the search could not be collapsed (reason="+string(reason)+"); on_failure is error")
		return
	}
	h.plain(w, r, s, reason)
}

// fallBack answers a search that could not be collapsed.
func (h *Handler) fallBack(w http.ResponseWriter, r *http.Request, s searching, err error) {
	reason := adapters.ReasonOf(err)
	if alone, ok := errors.AsType[adapters.Alone](err); ok { // for what it is, not for a failure
		if alone.Searched {
			h.catalog.spend(s.who, s.class.Target)
		}
		h.plain(w, r, s, reason)
		return
	}
	switch {
	case errors.Is(err, adapters.ErrWidened):
		reason = adapters.ReasonEngineStatus
	case errors.Is(err, errTooLarge):
		reason = adapters.ReasonTooLarge
	case errors.Is(err, errBusy):
		reason = busyReason(err)
	case errors.Is(err, adapters.ErrLate):
	default:
		h.Log.Warn("search could not be collapsed", "error", unquoted(err))
	}
	if !h.FailClosed || reason == adapters.ReasonEngineStatus {
		h.catalog.spend(s.who, s.class.Target)
	}
	h.leave(w, r, s, reason)
}

// collapsed writes the answer to a search that was collapsed.
func (h *Handler) collapsed(ctx context.Context, w http.ResponseWriter, s searching, answer *adapters.Answer, began time.Time) {
	if slices.ContainsFunc(answer.Outcomes, func(o adapters.Outcome) bool { return o.Again }) {
		h.catalog.spend(s.who, s.class.Target) // one request more, however many searches it held
	}
	h.account(s, answer)
	reply := answer.Reply
	reply.Header = maps.Clone(reply.Header)
	say(reply.Header, outcomeLine(answer.Outcomes, time.Since(began)))
	body := encodedBody(&reply)
	answer.Reply.Body, reply.Body = nil, nil
	h.settled(ctx, int64(len(body)))
	writeBody(w, &reply, body)
}

// settled gives back what a search took, whose answer is known, but for so many bytes: the client may take its time.
func (h *Handler) settled(ctx context.Context, held int64) {
	t := holdOf(ctx)
	t.end()
	t.only(held)
}

// account counts what was done and learns from it.
func (h *Handler) account(s searching, answer *adapters.Answer) {
	for _, o := range answer.Outcomes {
		h.catalog.learn(s.who, o)
		h.Metrics.outcome(o)
	}
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
	some := len(outcomes) > 0
	sum, left := adapters.Outcome{Exact: true, DryRun: some, Native: some}, 0
	reasons := []string{}
	for _, o := range outcomes {
		if o.Reason != "" {
			reasons, left = append(reasons, string(o.Reason)), left+1
			continue
		}
		sum.Raw, sum.Folded = sum.Raw+o.Raw, sum.Folded+o.Folded
		sum.Rounds, sum.Window = max(sum.Rounds, o.Rounds), max(sum.Window, o.Window)
		sum.Exact, sum.DryRun, sum.CursorLost = sum.Exact && o.Exact, sum.DryRun && o.DryRun, sum.CursorLost || o.CursorLost
		sum.Native = sum.Native && o.Native
		if o.Limited {
			reasons = append(reasons, string(adapters.ReasonEngineLimit))
		}
		if o.Fell != "" {
			reasons = append(reasons, string(o.Fell))
		}
	}
	reason := ""
	if len(reasons) > 0 {
		reason = "; reason=" + strings.Join(slices.Compact(slices.Sorted(slices.Values(reasons))), ",")
	}
	if left > 0 && left == len(outcomes) {
		return "bypassed" + reason
	}
	verb, cursor, native := "collapsed", "", ""
	if sum.DryRun {
		verb = "dry-run"
	}
	if sum.CursorLost {
		cursor = "; cursor=lost"
	}
	if sum.Native {
		native = "; native"
	}
	return fmt.Sprintf("%s%s; raw=%d; folded=%d; exact=%t; rounds=%d; window=%d%s%s; took=%.1fms",
		verb, reason, sum.Raw, sum.Folded, sum.Exact, sum.Rounds, sum.Window, cursor, native, float64(took)/float64(time.Millisecond))
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
		if resp, err := h.roundTrip(ctx, last); err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, heldBody)) // so that the connection is used again
			_ = resp.Body.Close()
		}
	}()
}

// errUnreachable: the engine gave no answer at all.
var errUnreachable = errors.New("no answer")

// writeReply writes a reply that was read whole, compressed if its header says so.
func writeReply(w http.ResponseWriter, reply *adapters.Reply) {
	writeBody(w, reply, encodedBody(reply))
}

// encodedBody returns the body of a reply in the coding that its header tells.
func encodedBody(reply *adapters.Reply) []byte {
	if coding := reply.Header["Content-Encoding"]; len(coding) == 1 {
		return coded(coding[0], reply.Body)
	}
	return reply.Body
}

func writeBody(w http.ResponseWriter, reply *adapters.Reply, body []byte) {
	header := http.Header(maps.Clone(reply.Header))
	dropHops(header)
	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(reply.Status)
	_, _ = w.Write(body) // a client that went away has its answer
}
