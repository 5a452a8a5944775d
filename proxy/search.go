package proxy

import (
	"errors"
	"net/http"
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

	replies []*adapters.Reply // of the engine: their buffers are reused once the page is written
}

// answerSearch answers a search with its collapsed page. One that can't be collapsed is sent as the client wrote it, and the reply says why.
func (h *Handler) answerSearch(u *underway, r *http.Request) {
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
	if !h.catalog.earn(s.who(), s.w.class.Target) { // too many could not be collapsed recently
		s.giveUp(adapters.ReasonBudget)
		return
	}
	var page *adapters.Reply
	var outcomes []adapters.Outcome
	err := guarded(func() (err error) {
		page, outcomes, err = collapse.Answer(r.Context(), searches, s.exchange)
		return err
	})
	if err != nil {
		s.failed(err)
		return
	}
	s.writePage(page, outcomes)
	for _, reply := range s.replies { // the page was in them
		reuseBuffer(reply.Body)
		reply.Body = nil
	}
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
			Rules: s.h.Rules, MaxWindow: s.h.Limits.MaxWindow, Scope: s.scope, Cursors: s.h.cursors.of(s.who()), Deadline: s, // by its Late (exchange.go)
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
