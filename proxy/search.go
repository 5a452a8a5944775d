package proxy

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/collapse"
)

var errTooLarge = errors.New("larger than the limit")

// search is a client's search that is being answered. It is for one goroutine.
type search struct {
	h *Handler
	w *underway
	r *http.Request
	// raw is the body as it was sent, body the decoded one. unread says why there is none; raw may then be the head of it alone.
	raw, body []byte
	unread    adapters.Reason
	plain     *adapters.Request // less our controls

	deadline  time.Time // when the time for collapsing is over
	late      bool      // it is
	lookedUp  bool      // a name was
	begun     bool      // the engine was asked
	firstDone bool      // the first request was sent that is for the search itself
	ownAsked  bool      // for the client's own searches, after the time was over
}

// search answers a search with its collapsed page. One that can't be collapsed is sent as the client wrote it, and the reply says why.
func (h *Handler) search(u *underway, r *http.Request) {
	s := &search{h: h, w: u, r: r}
	if signed(r) {
		s.sendSigned()
		return
	}
	if err := s.read(); err != nil {
		h.answerError(u, r, err)
		return
	}
	searches := s.parse()
	if s.answerLeftAlone(searches) {
		return
	}
	var answer *adapters.Answer
	err := guarded(func() (err error) {
		answer, err = collapse.Answer(r.Context(), searches, s.ask)
		return err
	})
	if err != nil {
		s.failed(err)
		return
	}
	s.write(answer)
}

// who returns who sent the search.
func (s *search) who() client { return senderOf(s.r) }

// read reads the body of the search and decodes it. The error is one of the client.
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
	case s.w.class.Verbatim:
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

// parse has the dialect parse the search, with what is known of its indices. Of one whose body could not be read it takes the controls of
// header and query alone.
func (s *search) parse() (searches *adapters.Searches) {
	s.deadline = time.Now().Add(s.h.Limits.Deadline)
	if s.unread == "" && !holdOf(s.r.Context()).takePlace() {
		s.unread = adapters.ReasonBusy
	}
	request := requestOf(s.r)
	request.Body = s.body
	if s.unread == "" {
		plan := adapters.Plan{
			Rules: s.h.Rules, MaxWindow: s.h.Limits.MaxWindow, Scope: s.scope, Cursors: s.h.cursors.of(s.who()), Deadline: s, // s.Late
		}
		err := guarded(func() error {
			searches = s.h.Dialect.ParseSearch(s.w.class, request, plan)
			return nil
		})
		if err != nil {
			s.h.Log.Error("search could not be parsed", "error", unquoted(err))
			s.unread = adapters.ReasonNotUnderstood
		}
	}
	if s.unread != "" {
		searches = &adapters.Searches{Reason: s.unread}
		_, searches.Plain, _ = adapters.TakeControls(request)
	}
	if searches.Refusal != nil && !s.concerned(searches) { // what looks like a control is not ours, and the engine's to refuse
		searches = &adapters.Searches{Plain: request, Reason: adapters.ReasonUnconfigured}
	}
	s.plain, s.w.class.NamesOurs = searches.Plain, s.w.class.NamesOurs || searches.NamesOurs
	return searches
}

// scope returns what is known of a target. The time for the first name that is looked up does not count: the engine answers to that as to the
// search itself, and it is remembered.
func (s *search) scope(target string) adapters.Scope {
	if !s.lookedUp {
		s.lookedUp = true
		defer s.extend(time.Now())
	}
	return s.h.catalog.scope(s.r.Context(), s.who(), target)
}

// write writes the collapsed page, and learns from what it took.
func (s *search) write(answer *adapters.Answer) {
	h, ctx := s.h, s.r.Context()
	h.giveBack(ctx, answer.After)
	if h.FailClosed && answer.WasLate() {
		s.giveUp(adapters.ReasonDeadline)
		return
	}
	if slices.ContainsFunc(answer.Outcomes, func(o adapters.Outcome) bool { return o.Again }) {
		h.catalog.spend(s.who(), s.w.class.Target) // one request more, however many searches it has
	}
	for _, o := range answer.Outcomes {
		h.catalog.learn(s.who(), o)
		h.Metrics.outcome(o)
	}
	reply, body := answer.Reply, answer.Pieces
	answer.Pieces = nil // once it is compressed it is free
	reply.Header = maps.Clone(reply.Header)
	setOutcome(reply.Header, outcomeLine(answer.Outcomes, clock()-underwayOf(ctx).start))
	if coding := reply.Header["Content-Encoding"]; len(coding) == 1 {
		body = adapters.Pieces{coded(coding[0], body.Bytes())}
	}
	held := holdOf(ctx)
	rest := held.size()
	if worthCopying(rest, body) {
		body = adapters.Pieces{body.Bytes()}
		rest = int64(body.Len())
	}
	held.keepOnly(rest)
	writePieces(s.w, &reply, body)
}

// worthCopying reports whether a page is written from a copy, and not in its pieces: these keep the replies that they are parts of in memory, held
// bytes in all. A single piece is its own copy.
func worthCopying(held int64, page adapters.Pieces) bool {
	return len(page) == 1 || held > 4*int64(page.Len())
}
