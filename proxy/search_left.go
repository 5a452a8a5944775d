package proxy

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/collapse"
)

// sendSigned sends a search that is signed as it came: nothing of it may change, so nothing of it is read.
func (s *search) sendSigned() {
	s.unread = adapters.ReasonSigned
	_, s.plain, _ = adapters.TakeControls(requestOf(s.r))
	s.sendAsWritten(adapters.ReasonSigned)
}

// answerLeftAlone answers a search that is not to be collapsed, and reports whether it was one. It does nothing else.
func (s *search) answerLeftAlone(searches *adapters.Searches) bool {
	switch {
	case searches.Refusal != nil:
		s.h.Metrics.search("refused", "control")
		writeReply(s.w, searches.Refusal)
	case searches.Left() && !s.concerned(searches):
		s.sendAsWritten(adapters.ReasonUnconfigured)
	case s.unread != "", searches.Reason == adapters.ReasonDeadline, searches.Reason == adapters.ReasonTooLarge:
		s.giveUp(searches.Reason)
	case searches.Left():
		s.sendAsWritten(searches.Reason)
	default:
		return false
	}
	return true
}

// concerned reports whether a search that is left alone or refused may show documents of a configured index.
func (s *search) concerned(searches *adapters.Searches) bool {
	switch {
	case searches.Reason == adapters.ReasonUnconfigured:
		return false
	case searches.Refusal == nil && s.w.class.Elsewhere:
		return s.scope("").Configured
	case searches.Refusal == nil:
		return s.scope(s.w.class.Target).Configured
	}
	request, seen := requestOf(s.r), map[string]bool{}
	request.Body = s.body
	for target := range s.h.Dialect.Targets(s.w.class, request) {
		if len(seen) > 0 && s.Late() || !seen[target] && s.scope(target).Configured {
			return true
		}
		seen[target] = true
	}
	return false
}

// failed answers a search for which there is no collapsed page: with the engine's own refusal, or with what it answers to the client's search.
func (s *search) failed(err error) {
	refused, isRefused := errors.AsType[*collapse.Refused](err)
	alone, isAlone := errors.AsType[adapters.Alone](err)
	switch {
	case isRefused:
		s.h.Metrics.search("refused", "engine")
		holdOf(s.r.Context()).keepOnly(int64(len(refused.Reply.Body)))
		writeReply(s.w, refused.Reply)
	case errors.Is(err, errUnreachable):
		s.h.answerError(s.w, s.r, err)
	case isAlone: // for what it is, not for a failure
		if alone.Searched {
			s.h.catalog.spend(s.who(), s.w.class.Target)
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
	if s.begun {
		s.h.catalog.spend(s.who(), s.w.class.Target)
	}
	s.sendAsWritten(reason)
}

// sendAsWritten sends the search as the client wrote it, less our controls. The reply of an index that no rule matches stays as it is.
func (s *search) sendAsWritten(reason adapters.Reason) {
	h, ctx := s.h, s.r.Context()
	holdOf(ctx).keepOnly(int64(len(s.raw) + len(s.body)))
	h.Metrics.search("bypassed", reason)
	out := s.asWritten()
	s.raw, s.body = nil, nil // what streams is no longer counted
	configured := reason != adapters.ReasonUnconfigured
	s.w.unconfigured = !configured && !h.catalog.unknown(ctx, s.who(), s.w.class.Target)
	h.send(s.w, out, func(resp *http.Response) {
		if configured {
			setOutcome(resp.Header, "bypassed; reason="+string(reason))
		}
		if reason == adapters.ReasonEngineStatus && resp.StatusCode >= 400 && resp.StatusCode < 500 {
			h.catalog.refund(s.who(), s.w.class.Target) // it was the client's own search that the engine refuses
		}
	})
}

// asWritten returns the request for a search as the client wrote it, less our controls.
func (s *search) asWritten() *http.Request {
	out := s.r.WithContext(s.r.Context())
	query := *s.r.URL
	query.RawQuery = s.plain.RawQuery
	out.URL, out.Header = &query, http.Header(maps.Clone(s.plain.Header))
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
