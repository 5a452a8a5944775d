package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
)

var errTooLarge = errors.New("larger than the limit")

// engineStatus is the reason where the engine refused what we asked and might grant what the client asked.
const engineStatus = "engine_status"

// maxRounds bounds how often one search may ask the engine, whatever its exchange says.
const maxRounds = 64

// search reads a search whole, lets the dialect turn it into an exchange, and answers with its end; or sends it as the client
// wrote it and says why.
func (h *Handler) search(w http.ResponseWriter, r *http.Request, class adapters.Class) {
	began := time.Now()
	body, r, ok := h.searchBody(w, r)
	if !ok {
		return
	}
	request := &adapters.Request{Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Header: adapters.Header(r.Header), Body: body}
	who := clientOf(request.Header, request.RawQuery)
	parsed := h.Dialect.Search(class, request, adapters.Plan{
		Rules:     h.Rules,
		MaxWindow: h.Limits.MaxWindow,
		Scope:     func(target string) adapters.Scope { return h.catalog.scope(r.Context(), who, target) },
	})
	class.Shown = class.Shown || parsed.Shown
	switch {
	case parsed.Refusal != nil:
		h.counts.add("refused", "")
		writeReply(w, parsed.Refusal)
		return
	case parsed.Exchange == nil:
		h.plain(w, r, class, parsed, parsed.Reason)
		return
	case !h.budget.allow():
		h.plain(w, r, class, parsed, "budget")
		return
	}
	answer, refusal, err := h.converse(r.Context(), parsed.Exchange)
	switch {
	case err == nil:
		h.collapsed(w, r, who, answer, began)
	case errors.Is(err, adapters.ErrRefused):
		h.counts.add("passed", "refused")
		writeReply(w, refusal)
	case errors.Is(err, errUnreachable):
		h.unreachable(w, r, err)
	default:
		h.fallBack(w, r, class, parsed, err)
	}
}

// searchBody reads the body of a search. Where it is too large or not what it says it is, the request goes through as it came and
// ok is false.
func (h *Handler) searchBody(w http.ResponseWriter, r *http.Request) (body []byte, out *http.Request, ok bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, r, true
	}
	raw, whole, err := readUpTo(r.Body, h.Limits.MaxSearchBody)
	if err != nil {
		h.unreachable(w, r, errors.Join(errBrokenOff, err))
		return nil, nil, false
	}
	encoding := strings.ToLower(r.Header.Get("Content-Encoding"))
	body = raw
	reason := ""
	switch {
	case !whole:
		reason = "too_large"
	case encoding == "gzip":
		if body, err = gunzip(raw, h.Limits.MaxSearchBody); err != nil {
			reason = "encoding"
		}
	case encoding != "" && encoding != "identity":
		reason = "encoding"
	}
	if reason != "" {
		h.counts.add("passed", reason)
		as := r.Clone(r.Context())
		as.Body = readCloser{io.MultiReader(bytes.NewReader(raw), r.Body), r.Body}
		h.forward.ServeHTTP(w, as)
		return nil, nil, false
	}
	out = r.Clone(r.Context())
	out.Header.Del("Content-Encoding")
	return body, out, true
}

// plain sends the search as the client wrote it, less our controls. The reply of an index that is none of our business stays as it
// is.
func (h *Handler) plain(w http.ResponseWriter, r *http.Request, class adapters.Class, parsed adapters.ParsedSearch, reason string) {
	h.counts.add("passed", reason)
	out := r.Clone(r.Context())
	out.URL.RawQuery = parsed.Plain.RawQuery
	out.Header = http.Header(maps.Clone(parsed.Plain.Header))
	if r.Body != nil && r.Body != http.NoBody {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(parsed.Plain.Body)), int64(len(parsed.Plain.Body))
		if r.ContentLength >= 0 {
			out.Header.Set("Content-Length", strconv.Itoa(len(parsed.Plain.Body)))
		}
	}
	if reason == "unconfigured" {
		h.forward.ServeHTTP(w, out)
		return
	}
	clean := h.cleaner(class)
	h.forward.ServeHTTP(w, changing(out, func(resp *http.Response) {
		resp.Header.Set(adapters.OutcomeHeader, "bypassed; reason="+reason)
		if !class.Shown {
			clean(resp)
		}
		if reason == engineStatus && resp.StatusCode >= 400 && resp.StatusCode < 500 {
			h.budget.refund() // it was the client's own search that the engine refuses
		}
	}))
}

// fallBack answers a search that could not be collapsed.
func (h *Handler) fallBack(w http.ResponseWriter, r *http.Request, class adapters.Class, parsed adapters.ParsedSearch, err error) {
	reason := "not_understood"
	switch {
	case errors.Is(err, adapters.ErrWidened):
		reason = engineStatus
	case errors.Is(err, errTooLarge):
		reason = "too_large"
	default:
		h.Log.Warn("search could not be collapsed", "error", err.Error())
	}
	if h.FailClosed && reason != engineStatus {
		h.counts.add("failed", reason)
		h.refuse(w, http.StatusServiceUnavailable, "the search could not be collapsed (reason="+reason+"); on_failure is error")
		return
	}
	h.budget.spend()
	h.plain(w, r, class, parsed, reason)
}

// collapsed writes the answer of an exchange.
func (h *Handler) collapsed(w http.ResponseWriter, r *http.Request, who client, answer *adapters.Answer, began time.Time) {
	for _, o := range answer.Outcomes {
		h.catalog.learn(who, o)
		if o.Reason != "" {
			h.counts.add("passed", o.Reason)
			continue
		}
		h.counts.add("collapsed", "")
		h.counts.addN("folded", "", int64(o.Folded))
	}
	reply := answer.Reply
	reply.Header = maps.Clone(reply.Header)
	reply.Header[adapters.OutcomeHeader] = []string{outcomeLine(answer.Outcomes, time.Since(began))}
	writeReply(w, &reply)
}

// outcomeLine sums up what was done with the searches of a request.
func outcomeLine(outcomes []adapters.Outcome, took time.Duration) string {
	sum := adapters.Outcome{Exact: true}
	reasons := []string{}
	for _, o := range outcomes {
		if o.Reason != "" {
			reasons = append(reasons, o.Reason)
			continue
		}
		sum.Raw, sum.Folded = sum.Raw+o.Raw, sum.Folded+o.Folded
		sum.Rounds, sum.Window = max(sum.Rounds, o.Rounds), max(sum.Window, o.Window)
		sum.Exact = sum.Exact && o.Exact
		if o.Limited {
			reasons = append(reasons, "engine_limit")
		}
	}
	line := "collapsed"
	if len(reasons) > 0 {
		line += "; reason=" + strings.Join(slices.Compact(slices.Sorted(slices.Values(reasons))), ",")
	}
	return fmt.Sprintf("%s; raw=%d; folded=%d; exact=%t; rounds=%d; window=%d; took=%s",
		line, sum.Raw, sum.Folded, sum.Exact, sum.Rounds, sum.Window, took.Round(100*time.Microsecond))
}

// errUnreachable: the engine gave no answer at all.
var errUnreachable = errors.New("no answer")

// converse asks the engine until the exchange ends. With adapters.ErrRefused comes the reply that is the answer.
func (h *Handler) converse(ctx context.Context, exchange adapters.Exchange) (*adapters.Answer, *adapters.Reply, error) {
	var reply *adapters.Reply
	for range maxRounds {
		ask, answer, err := exchange.Next(reply)
		if err != nil || answer != nil {
			return answer, reply, err
		}
		if reply, err = h.ask(ctx, ask); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, adapters.NotUnderstood(errors.New("the exchange does not end"))
}

// ask sends one request of an exchange and reads its reply, decoded. The header of a compressed reply goes on saying so.
func (h *Handler) ask(ctx context.Context, ask *adapters.Request) (*adapters.Reply, error) {
	path, err := url.PathUnescape(ask.Path)
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	r, err := http.NewRequestWithContext(ctx, ask.Method, "http://engine/", bytes.NewReader(ask.Body))
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = path, ask.Path, ask.RawQuery
	r.Header = askHeader(ask.Header)
	resp, err := h.nodes.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	defer resp.Body.Close()
	body, whole, err := readUpTo(resp.Body, h.Limits.MaxReply)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	if !whole {
		return nil, errTooLarge
	}
	reply := &adapters.Reply{Status: resp.StatusCode, Header: adapters.Header(resp.Header), Body: body}
	switch encoding := resp.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		if reply.Body, err = gunzip(body, h.Limits.MaxReply); err != nil {
			return nil, adapters.NotUnderstood(err)
		}
	default:
		return nil, adapters.NotUnderstood(fmt.Errorf("content encoding %q", encoding))
	}
	return reply, nil
}

// askHeader returns the client's headers for a request of an exchange: its own less those of its body and its connection.
func askHeader(header adapters.Header) http.Header {
	out := http.Header{}
	for key, values := range header {
		switch key {
		case "Accept", "Content-Type":
		default:
			if slices.Contains(bodyHeaders, key) {
				continue
			}
		}
		out[key] = values
	}
	if strings.Contains(strings.Join(header["Accept-Encoding"], ","), "gzip") {
		out["Accept-Encoding"] = []string{"gzip"}
	}
	if len(out["User-Agent"]) == 0 {
		out["User-Agent"] = []string{""} // or else Go puts in its own
	}
	for _, name := range header["Connection"] {
		for hop := range strings.SplitSeq(name, ",") {
			delete(out, http.CanonicalHeaderKey(strings.TrimSpace(hop)))
		}
	}
	return out
}

// hopHeaders concern one connection and are not passed on.
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length"}

// writeReply writes a reply that was read whole, compressed if its header says so.
func writeReply(w http.ResponseWriter, reply *adapters.Reply) {
	body := reply.Body
	if slices.Equal(reply.Header["Content-Encoding"], []string{"gzip"}) {
		body = gzipped(body)
	}
	for key, values := range reply.Header {
		if !slices.Contains(hopHeaders, key) {
			w.Header()[key] = values
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(reply.Status)
	_, _ = w.Write(body) // a client that went away has its answer
}
