package typesense

import (
	"errors"
	"fmt"
	"maps"

	"github.com/neardup/sidecar/adapters"
)

// exchange is the searches of one request being answered. Each round asks for what they still lack, in as few requests as the engine's
// limit on a multi-search allows.
type exchange struct {
	request *adapters.Request // a multi-search, but for its body
	body    []byte            // of the request, but for its searches
	single  bool              // the client asked for the search of one collection
	entries []*entry
	most    int // how many searches a request may hold

	bodies  [][]byte // of the round, in the order of the entries
	results [][]byte // of the round, as far as they are in
	sent    int      // how many of the bodies the last request holds
	reply   *adapters.Reply
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
	late := reply == nil && x.bodies != nil // none came in time
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
		short := len(x.results) < len(x.bodies)
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
	if len(x.bodies) > 0 {
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

// receive adds the results of a reply to the round's.
func (x *exchange) receive(reply *adapters.Reply) error {
	root, err := adapters.Members(reply.Body)
	if err != nil {
		return err
	}
	results, err := adapters.Elements(adapters.Get(root, "results"))
	if err != nil {
		return err
	}
	if len(results) != x.sent {
		return errors.New("not as many results as searches")
	}
	if x.reply == nil {
		x.reply = reply
	}
	x.results = append(x.results, results...)
	return nil
}

// ask returns the request for the next of the round's searches.
func (x *exchange) ask() (*adapters.Request, *adapters.Answer, error) {
	bodies := x.bodies[len(x.results):]
	bodies = bodies[:min(len(bodies), x.most)]
	body, err := adapters.Set(x.body, "searches", array(bodies))
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	x.sent = len(bodies)
	r := *x.request
	r.Body = body
	return &r, nil, nil
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
			e.result = own[0]
			e.again = e.again && !refusing(own[0]) // else it was the client's own search that the engine refuses
			continue
		case e.native.open():
			e.result = e.native.take(own)
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
			e.result, e.again = own[0], false
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
	x.bodies, x.results = nil, nil
	for _, e := range x.entries {
		bodies, err := e.next()
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
			bodies = [][]byte{e.q.base}
		}
		e.pending = len(bodies)
		x.bodies = append(x.bodies, bodies...)
	}
	return nil
}

// next returns the searches that the entry asks next, none when its result is known.
func (e *entry) next() ([][]byte, error) {
	switch {
	case e.result != nil:
		return nil, nil
	case e.collapse == nil:
		return [][]byte{e.q.base}, nil
	}
	if e.native.open() {
		if bodies := e.native.next(); bodies != nil {
			return bodies, nil
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
	needed := e.collapse.fields()
	bodies := make([][]byte, len(asks))
	for i, a := range asks {
		if bodies[i], err = e.q.ask(a, needed); err != nil {
			return nil, err
		}
	}
	return bodies, nil
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
