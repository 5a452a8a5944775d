package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/similar"
)

const (
	// ownPrefix begins the paths that are ours. No engine has an index or an endpoint of the name.
	ownPrefix = "/_neardup/"
	// similarFor bounds how long such a request takes.
	similarFor = 10 * time.Second
	// perQuestion is about what one such request holds beside its body, in bytes: sketches of some hundred documents.
	perQuestion = 256 << 10
	// defaultAlike and maxAlike are how many near-duplicates are answered.
	defaultAlike, maxAlike = 10, 1000
	// prettyParam asks for line breaks. Consoles add it to each request.
	prettyParam = "pretty"
)

// question is a request for near-duplicates, for the comparison of two documents, or for a list without its near-duplicates.
type question struct {
	index, id                 string
	stored, compares, dedupes bool // the document is one that the engine has; two are compared; a list is deduplicated
}

// similarOf reads a method and an escaped path. ours is false for other requests.
func similarOf(method, path string) (a question, ours bool) {
	rest, ours := strings.CutPrefix(path, ownPrefix)
	if !ours {
		return a, false
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil || plain == "" {
			return a, false
		}
		parts[i] = plain
	}
	switch {
	case method == http.MethodPost && len(parts) == 1 && parts[0] == "compare":
		return question{compares: true}, true
	case method == http.MethodPost && len(parts) == 1 && parts[0] == "dedupe":
		return question{dedupes: true}, true
	case method == http.MethodPost && len(parts) == 2 && parts[1] == "similar":
		return question{index: parts[0]}, true
	case method == http.MethodGet && len(parts) == 3 && parts[1] == "similar":
		return question{index: parts[0], id: parts[2], stored: true}, true
	}
	return a, false
}

// likenessOf reads what the query says of a likeness. Any other parameter than those that are known, and those that may hold a key, is an error.
func likenessOf(rawQuery string, known ...string) (l similar.Likeness, err error) {
	l.Size = defaultAlike
	params := adapters.Params(rawQuery)
	for _, p := range params {
		if p.Raw != "" && p.Name != prettyParam && !mayHoldKey(p.Name) && !slices.Contains(known, p.Name) {
			return l, fmt.Errorf("%.60q is an unknown URL parameter: use %s", p.Name, strings.Join(known, ", "))
		}
	}
	if text, given := adapters.Last(params, "threshold"); given {
		l.Threshold, err = strconv.ParseFloat(text, 64)
		if err != nil || !(l.Threshold > 0 && l.Threshold <= 1) {
			return l, fmt.Errorf("threshold: %q is out of range: use a number above 0, at most 1", text)
		}
	}
	if text, given := adapters.Last(params, "size"); given {
		l.Size, err = strconv.Atoi(text)
		if err != nil || l.Size < 1 || l.Size > maxAlike {
			return l, fmt.Errorf("size: %q is out of range: use 1 to %d", text, maxAlike)
		}
	}
	switch text, given := adapters.Last(params, "source"); {
	case !given, text == "false":
	case text == "true", text == "":
		l.Source = true
	default:
		return l, fmt.Errorf("source: %q is unknown: use true or false", text)
	}
	return l, nil
}

// answersSimilar answers a request for near-duplicates, and reports false for any other request, and for one of an index that no rule
// matches: that goes to the engine as it came. A list to deduplicate needs no index.
func (h *Handler) answersSimilar(u *underway, r *http.Request) bool {
	asks, ours := similarOf(r.Method, rawPath(r))
	if !ours || signed(r) { // a look-up under another request's signature would be refused
		return false
	}
	within, cancel := context.WithTimeout(u, similarFor)
	defer cancel()
	s := similarity{h: h, u: u, r: r, asks: asks, who: u.sender.client()}
	kind, answer := "similar", s.answer
	switch {
	case asks.compares:
		kind, answer = "compare", s.compare
	case asks.dedupes:
		kind, answer = "dedupe", s.dedupe
	}
	if asks.compares || asks.dedupes { // the body names the index, anywhere
		err := s.readObject()
		if _, isBad := errors.AsType[badRequest](err); err != nil && (asks.dedupes || !isBad) {
			s.fail(err)
			return true
		}
		s.asks.index, _ = jsonedit.Text(jsonedit.Get(s.members, "index"))
	}
	if s.asks.index != "" {
		s.indices = s.configured(within, s.asks.index)
	}
	if len(s.indices) == 0 && !asks.dedupes {
		return false
	}
	h.countAs(u, kind)
	if err := guarded(func() error { return answer(within) }); err != nil {
		s.fail(err)
	}
	return true
}

// similarity is one such request.
type similarity struct {
	h       *Handler
	u       *underway
	r       *http.Request
	asks    question
	who     client
	indices []adapters.Index
	body    []byte // an object, where it was read, and its members
	members []jsonedit.Member
	// unknown says that the indices of the name could not be looked up.
	unknown bool
}

// configured returns the indices of a name that a rule matches. For a client that may not look the name up, but may search, it is the name itself.
func (s *similarity) configured(ctx context.Context, name string) (list []adapters.Index) {
	e := s.h.catalog.lookup(ctx, s.who, name)
	if e.err != nil {
		if s.h.Rules.For(name) == nil || strings.ContainsAny(name, "*,") {
			return nil
		}
		s.unknown = true
		return []adapters.Index{{Name: name}}
	}
	for _, index := range e.indices {
		if !index.Absent && index.Rule(s.h.Rules) != nil {
			list = append(list, index)
		}
	}
	return list
}

// badRequest is what a client asked for wrongly, with the status of the answer.
type badRequest struct {
	status int
	reason string
}

func (b badRequest) Error() string { return b.reason }

// bad returns the error of a request that asks for the wrong thing.
func bad(err error) error { return badRequest{http.StatusBadRequest, err.Error()} }

// errAnswered: the engine's own answer went to the client already.
var errAnswered = errors.New("answered")

func (s *similarity) answer(ctx context.Context) error {
	began := time.Now()
	likeness, err := likenessOf(s.r.URL.RawQuery, "threshold", "size", "source")
	if err != nil {
		return bad(err)
	}
	store := s.counted()
	likeness.Room, likeness.Decided = min(s.h.Limits.MaxReply, s.h.Limits.MaxHeld/heldShare/2), s.h.decidedPairs()
	likeness.Hold = func(n int64) error { return s.u.hold.reserve(2 * n) } // they are copied into the answer
	var document []byte
	if s.asks.stored {
		if document, likeness.Except, err = s.stored(ctx, store); err == nil {
			err = s.u.hold.reserve(int64(len(document)))
		}
	} else {
		err = s.readObject()
		document = s.body
	}
	if err != nil {
		return err
	}
	if !s.u.hold.takePlace() || !s.u.hold.take(perQuestion) {
		return errBusy
	}
	found, err := similar.Find(ctx, s.h.Rules, store, s.indices, document, likeness)
	if err != nil {
		return err
	}
	return s.reply(struct {
		Took int64 `json:"took"`
		similar.Similar
	}{time.Since(began).Milliseconds(), found})
}

// counted returns the store of the client, whose replies count in what the request holds.
func (s *similarity) counted() counted {
	return counted{s.h.Open(s.who.header, s.who.query), &s.u.hold, min(s.h.Limits.MaxReply, s.h.Limits.MaxHeld/heldShare)}
}

// stored returns the document that is asked about. One that the client does not find goes its own way: the engine says why.
func (s *similarity) stored(ctx context.Context, store adapters.Store) ([]byte, similar.Alike, error) {
	source, as, failed := similar.Document(ctx, s.h.Rules, store, s.indices, s.asks.id)
	if source != nil {
		return source, as, nil
	}
	if errors.Is(failed, similar.ErrRoom) || errors.Is(failed, errBusy) {
		return nil, as, failed
	}
	if ctx.Err() != nil || s.h.Document == nil {
		if failed == nil {
			failed = badRequest{http.StatusNotFound, fmt.Sprintf("no document %s in %s", s.asks.id, s.asks.index)}
		}
		return nil, as, failed
	}
	request := s.h.Document(s.indices[0].Name, s.asks.id)
	request.RawQuery, request.Header = s.who.query, s.who.header
	reply, err := s.h.roundTrip(ctx, &s.u.hold, request)
	switch {
	case err != nil:
		return nil, as, err
	case reply.Status < 300 && failed != nil && (adapters.StatusOf(failed) == 0 || adapters.StatusOf(failed) >= 500):
		return nil, as, failed // it may well be there
	case reply.Status < 300: // it has come just now, or a search does not show it
		return nil, as, errors.Join(failed, badRequest{
			http.StatusNotFound, fmt.Sprintf("document %s in %s is not to be searched, or not yet", s.asks.id, s.asks.index),
		})
	}
	writeReply(s.u, reply)
	return nil, as, errAnswered
}

// readObject reads the request's body, which is an object and stays to be read.
func (s *similarity) readObject() error {
	rest, read := s.r.Body, search{h: s.h, w: s.u, r: s.r}
	err := read.read()
	s.r.Body, s.body = s.u.hold.onwardsFrom(read.raw, rest), read.body
	switch {
	case err != nil:
		return err
	case read.unread == adapters.ReasonBusy, read.unread == adapters.ReasonShare:
		return errBusy
	case read.unread == adapters.ReasonSlow:
		return errSlow
	case read.unread == adapters.ReasonTooLarge:
		return badRequest{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", s.h.Limits.MaxSearchBody)}
	case read.unread != "":
		return bad(fmt.Errorf("the body can't be read: %s", read.unread))
	}
	if s.members, err = jsonedit.Members(read.body); err != nil {
		return bad(errors.New(`the body is no JSON object: send one, such as {"text": "…"}, or {"texts": ["…"]} to dedupe`))
	}
	return nil
}

// nobody is the id of no document. To look for it takes no more than the right to search.
const nobody = rule.FieldPrefix + "nobody"

// known returns an error if the index could not be looked up, and the engine does not let the client search it either.
func (s *similarity) known(ctx context.Context) error {
	if !s.unknown {
		return nil
	}
	index, one := s.indices[0], adapters.Selection{IDs: []string{nobody}, Brief: true}
	return s.h.Open(s.who.header, s.who.query).Scan(ctx, index.Name, index.Rule(s.h.Rules), one, func(adapters.Page) error { return nil })
}

// compare compares the two documents in the body by the rule of the index that it names.
func (s *similarity) compare(ctx context.Context) error {
	likeness, err := likenessOf(s.r.URL.RawQuery, "threshold")
	if err != nil {
		return bad(err)
	}
	a, b := jsonedit.Get(s.members, "a"), jsonedit.Get(s.members, "b")
	for _, document := range [][]byte{a, b} {
		if len(document) == 0 || document[0] != '{' {
			return bad(errors.New(`a, b: both have to be objects: send two documents, or {"text": "…"}`))
		}
	}
	index := s.indices[0]
	if err := s.known(ctx); err != nil {
		return err
	}
	return s.reply(struct {
		Index string `json:"index"`
		similar.Comparison
	}{index.Name, similar.Compare(index.Rule(s.h.Rules), a, b, likeness.Threshold)})
}

// reply answers a value as JSON, with the headers of the engine's answers.
func (s *similarity) reply(value any) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	reply := s.h.Dialect.ErrorReply(requestOf(s.r), http.StatusOK, "")
	reply.Header["Content-Type"] = []string{"application/json"}
	reply.Body = body.Bytes()
	s.u.hold.keepOnly(s.u.hold.size()) // the client may take its time: the place among the searches is for others
	writeReply(s.u, reply)
	return nil
}

// fail answers an error in the engine's shape, with the engine's own status where it refused.
func (s *similarity) fail(err error) {
	wrong, isBad := errors.AsType[badRequest](err)
	status, reason := adapters.StatusOf(err), err.Error()
	switch {
	case errors.Is(err, errAnswered):
		return
	case s.u.Err() != nil, errors.Is(err, errBrokenOff):
		s.h.answerError(s.u, s.r, err)
	case errors.Is(err, errSlow):
		s.h.Metrics.search("failed", adapters.ReasonSlow)
		status, reason = http.StatusRequestTimeout, "the body comes too slowly (reason=slow)"
	case errors.Is(err, errBusy):
		s.h.Metrics.search("failed", adapters.ReasonBusy)
		status, reason = http.StatusServiceUnavailable, "too many searches, or too many bytes, are held just now (reason=busy): ask again later"
	case errors.Is(err, context.DeadlineExceeded):
		status, reason = http.StatusGatewayTimeout, "looking for near-duplicates took longer than "+similarFor.String()
	case errors.Is(err, similar.ErrNoBands):
		status = http.StatusBadRequest
	case errors.Is(err, similar.ErrRoom):
		status = http.StatusRequestEntityTooLarge
	case status >= http.StatusBadRequest:
	case isBad:
		status, reason = wrong.status, wrong.reason
	case errors.Is(err, errPanicked):
		s.h.Log.Error("near-duplicates could not be looked for", "error", unquoted(err))
		status, reason = http.StatusInternalServerError, "near-duplicates could not be looked for"
	default:
		s.h.answerError(s.u, s.r, err)
		return
	}
	s.h.refuse(s.u, s.r, status, reason)
}
