package typesense

import (
	"errors"
	"fmt"
	"maps"

	"github.com/neardup/sidecar/adapters"
)

// exchange is the searches of one request being answered. Each round asks for what they still lack, in a few requests side by side.
type exchange struct {
	request *adapters.Request // a multi-search, but for its body
	body    []byte            // of the request, but for its searches
	single  bool              // the client asked for the search of one collection
	entries []*entry
	most    int // how many searches a request may hold

	asks    []element // of the round, in the order of the entries
	results []*result // of the round, as far as they are in
	sent    []part    // of the asks, each in a request of its own
	reply   *adapters.Reply
	packed  bool // reply is one to a request that lets replies be compressed as the client does
}

// element is one search that a round asks for.
type element struct {
	body []byte
	hits int
	// read says that its result is read, and not only handed on.
	read bool
	// texts are the names of the fields whose members are kept of each hit.
	texts []string
	// bare says that it shows no more than what hits are judged by, ahead of any page.
	bare bool
}

// part is how many searches one request holds, and whether all of them are bare.
type part struct {
	searches int
	bare     bool
}

// mostAsks bounds the searches of one entry's reading: so many fill as many requests as a search may cost.
const mostAsks = 64 * maxSearches

// entry is one search of the request.
type entry struct {
	q        *query
	plan     adapters.Plan
	collapse *collapse // nil: asked as it is
	native   *nativeSearch
	reason   string // why it is left alone
	again    bool   // asked once more, as it is
	pending  int    // how many searches of the round are its own
	result   []byte // when it is known
}

// Next implements adapters.Exchange.
func (x *exchange) Next(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	late := reply == nil && x.asks != nil // none came in time
	switch {
	case !late && reply == nil && x.entries[0].plan.Struck():
		return nil, nil, adapters.ErrLate
	case late:
		if err := x.lately(); err != nil {
			return nil, nil, err
		}
	}
	if reply != nil {
		if err := refused(reply.Status); err != nil {
			return nil, nil, err
		}
		if err := x.receive(reply); err != nil {
			return nil, nil, adapters.NotUnderstood(err)
		}
		short := len(x.results) < len(x.asks)
		if short && !x.entries[0].plan.Struck() {
			return x.ask()
		}
		err := adapters.ErrLate
		if !short {
			err = x.take()
		}
		switch {
		case adapters.IsLate(err):
			if err := x.lately(); err != nil {
				return nil, nil, err
			}
		case err != nil:
			return x.fail(err)
		}
	}
	if err := x.gather(); err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	if len(x.asks) > 0 {
		return x.ask()
	}
	answer, err := x.answer()
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	return nil, answer, nil
}

// fail ends the exchange of a client's single search. What the engine says of the search itself is the answer, in the form in which it
// says so to such a client.
func (x *exchange) fail(err error) (*adapters.Request, *adapters.Answer, error) {
	r, ok := errors.AsType[*refusal](err)
	switch {
	case !ok:
		return nil, nil, adapters.NotUnderstood(err)
	case !r.final():
		return nil, nil, adapters.ErrWidened
	}
	answer := &adapters.Answer{Reply: adapters.Reply{Status: r.code, Header: maps.Clone(x.reply.Header)}}
	for _, name := range []string{"Content-Encoding", "Vary", "Accept-Ranges"} { // an error comes as it is
		delete(answer.Header, name)
	}
	answer.Body = []byte(`{"message": "` + r.reason + `"}`) // nothing is escaped, as the engine has it
	answer.Outcomes = []adapters.Outcome{{Target: x.entries[0].q.target, Reason: "refused"}}
	return nil, answer, nil
}

// receive adds the results of a reply, and of those beside it, to the round's.
func (x *exchange) receive(reply *adapters.Reply) error {
	replies := append([]*adapters.Reply{reply}, reply.Beside...)
	if len(replies) != len(x.sent) {
		return errors.New("not as many replies as requests")
	}
	for i, reply := range replies {
		results, err := readResults(reply.Body, x.asks[len(x.results):])
		if err != nil {
			return err
		}
		if len(results) != x.sent[i].searches {
			return errors.New("not as many results as searches")
		}
		if packed := !x.sent[i].bare; x.reply == nil || packed && !x.packed {
			x.reply, x.packed = reply, packed
		}
		x.results = append(x.results, results...)
	}
	return nil
}

// ask returns the request for the next of the round's searches, with others that go beside it. What is bare is asked for uncompressed: it
// takes longer to pack and unpack than to send.
func (x *exchange) ask() (*adapters.Request, *adapters.Answer, error) {
	rest := x.asks[len(x.results):]
	x.sent = parts(rest, x.most)
	requests := make([]*adapters.Request, len(x.sent))
	for i, p := range x.sent {
		bodies := make([][]byte, p.searches)
		for j := range bodies {
			bodies[j] = rest[j].body
		}
		rest = rest[p.searches:]
		body, err := adapters.Set(x.body, "searches", array(bodies))
		if err != nil {
			return nil, nil, adapters.NotUnderstood(err)
		}
		r := *x.request
		if r.Body = body; p.bare {
			r.Header = maps.Clone(r.Header)
			delete(r.Header, "Accept-Encoding")
		}
		requests[i] = &r
	}
	requests[0].Beside = requests[1:]
	return requests[0], nil, nil
}

// worthARequest is how many hits make a request of their own worth while: the engine does the searches of one request one after the other.
// (Measured: 250 sketches take it 12 ms beside the 5 ms of searching.)
const worthARequest = 100

// weight is how much a search counts where a round is parted: a page in the client's content is to cost one request.
func (e *element) weight() int {
	if !e.bare {
		return 0
	}
	return e.hits
}

// parts parts searches, or the first of them, among requests that go side by side and hold at most so many each. In the order of the
// searches each request gets about as many bare hits.
func parts(list []element, most int) (sent []part) {
	all, before := 0, 0
	for _, a := range list {
		all += a.weight()
	}
	requests, share := min(max(all/worthARequest, 1), adapters.MaxAtOnce), -1
	for _, a := range list {
		own := min(before*requests/max(all, 1), requests-1) // whose share it begins in
		if len(sent) == 0 || own > share || sent[len(sent)-1].searches == most {
			if len(sent) == adapters.MaxAtOnce {
				return sent
			}
			sent, share = append(sent, part{bare: true}), own
		}
		p := &sent[len(sent)-1]
		p.searches, p.bare = p.searches+1, p.bare && a.bare
		before += a.weight()
	}
	return sent
}

// take hands every entry its results. An error ends the exchange; in a client's multi-search it ends no more than collapsing that entry,
// which is asked as it is in the next round.
func (x *exchange) take() error {
	results := x.results
	for _, e := range x.entries {
		own := results[:e.pending]
		results = results[e.pending:]
		switch {
		case e.pending == 0:
			continue
		case e.collapse == nil:
			e.result = own[0].raw
			e.again = e.again && !refusing(own[0].raw) // else it was the client's own search that the engine refuses
			continue
		case e.native.open():
			e.result = e.native.take([][]byte{own[0].raw, own[1].raw})
			continue
		}
		err := e.collapse.take(own)
		if err == nil {
			continue
		}
		if own, ok := errors.AsType[*settled](err); ok {
			e.collapse, e.reason, e.result = nil, own.reason, own.raw
			continue
		}
		if adapters.IsLate(err) && !x.single {
			e.lately()
			continue
		}
		if x.single {
			return err
		}
		if e.leave(err); len(own) == 1 && final(err) {
			e.result, e.again = own[0].raw, false
		}
	}
	return nil
}

// refusing reports whether a result is the engine's refusal.
func refusing(result []byte) bool {
	members, err := adapters.Members(result)
	return err == nil && adapters.Get(members, "error") != nil
}

// final reports whether an error is a refusal that the client's own search would get too.
func final(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.final()
}

// leave gives up collapsing the entry.
func (e *entry) leave(err error) {
	e.collapse, e.reason, e.again = nil, adapters.ReasonOf(err), true
	if _, ok := errors.AsType[*refusal](err); ok {
		e.reason = "refused"
	}
}

// gather starts a round with what the entries ask next; those that are settled get their result.
func (x *exchange) gather() error {
	x.asks, x.results = nil, nil
	for _, e := range x.entries {
		asks, err := e.next()
		if adapters.IsLate(err) { // for all of them: those before it would ask in this round for what they can't take in the next
			if err := x.lately(); err != nil {
				return err
			}
			return x.gather()
		}
		if err != nil && x.single {
			return err
		}
		if err != nil {
			e.leave(err)
			asks = e.asIs()
		}
		e.pending = len(asks)
		x.asks = append(x.asks, asks...)
	}
	return nil
}

// asIs returns the client's own search.
func (e *entry) asIs() []element { return []element{{body: e.q.base, hits: e.q.perPage}} }

// next returns the searches that the entry asks next, none when its result is known.
func (e *entry) next() ([]element, error) {
	switch {
	case e.result != nil:
		return nil, nil
	case e.collapse == nil:
		return e.asIs(), nil
	}
	if e.native.open() {
		if bodies := e.native.next(); bodies != nil {
			return []element{{body: bodies[0]}, {body: bodies[1]}}, nil
		}
	}
	asks, err := e.collapse.next()
	if err != nil {
		return nil, err
	}
	if len(asks) == 0 {
		e.result, err = e.collapse.result()
		return nil, err
	}
	if len(asks) > mostAsks {
		return nil, fmt.Errorf("%d searches for one reading: too many pages of too few hits", len(asks))
	}
	needed, read := e.collapse.fields(), sketched(e.plan.Rules)
	list := make([]element, len(asks))
	for i, a := range asks {
		body, err := e.q.ask(a, needed)
		if err != nil {
			return nil, err
		}
		list[i] = element{body: body, hits: a.perPage, read: true, texts: read, bare: e.collapse.span.SketchOnly && (a.content == sketches || a.content == texts)}
	}
	return list, nil
}

// answer returns the reply to the client.
func (x *exchange) answer() (*adapters.Answer, error) {
	answer := &adapters.Answer{Reply: *x.reply}
	results := make([][]byte, len(x.entries))
	for i, e := range x.entries {
		results[i] = e.result
		outcome := adapters.Outcome{Target: e.q.target, Reason: e.reason, Again: e.again}
		if e.collapse != nil {
			outcome = e.native.outcome(e.collapse)
		} else {
			results[i] = e.q.clean(e.result)
		}
		answer.Outcomes = append(answer.Outcomes, outcome)
	}
	if x.single {
		answer.Body = results[0]
		return answer, nil
	}
	var err error
	answer.Body, err = adapters.Set(x.reply.Body, "results", array(results))
	return answer, err
}
