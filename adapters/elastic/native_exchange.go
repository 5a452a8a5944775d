package elastic

import (
	"bytes"
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
)

// attempt is the engine being asked to collapse one search. A nil one is of a search for query time alone.
type attempt struct {
	list  *nativeList // nil if the engine is not asked
	asked bool
	fell  adapters.Reason // why the search goes on at query time
	unfit bool            // that it does for what is stored
}

// newAttempt returns nil for a search that is none for the engine.
func (d Dialect) newAttempt(q *query, scope adapters.Scope) *attempt {
	list, fell := d.newNative(q, scope)
	if list == nil && fell == "" {
		return nil
	}
	return &attempt{list: list, fell: fell}
}

// asks returns what to ask the engine, and the names of URL parameters that it makes void; no body if it is not to be asked.
func (a *attempt) asks() (body []byte, void []string) {
	if !a.open() {
		return nil, nil
	}
	body, void, err := a.list.ask()
	if a.asked = err == nil; err != nil {
		a.fall(err)
		return nil, nil
	}
	return body, void
}

// open reports whether the engine has the search.
func (a *attempt) open() bool { return a != nil && a.fell == "" }

// takes returns the answer from the engine's reply, nothing if the search goes on at query time.
func (a *attempt) takes(reply []byte) []byte {
	answer, err := a.list.take(reply)
	if err != nil {
		a.fall(err)
		return nil
	}
	return answer
}

// fall has the search go on at query time.
func (a *attempt) fall(err error) {
	switch a.fell = "not_understood"; {
	case errors.Is(err, errUnclustered):
		a.fell, a.unfit = adapters.ReasonUnclustered, true
	case errors.Is(err, adapters.ErrWidened):
		a.fell, a.unfit = adapters.ReasonNativeRefused, true
	}
}

// told puts into the outcome of a search that went on at query time why it did.
func (a *attempt) told(o *adapters.Outcome) {
	if o.Fell, o.Tried, o.Unfit = a.fell, a.asked, a.unfit; a.asked {
		o.Rounds++
	}
}

// native is a search with a request of its own that the engine is asked to collapse.
type native struct {
	*attempt
	single *single           // asks
	then   adapters.Exchange // at query time
}

// natively returns what collapses a search: the exchange at hand, or one that has the engine do so first.
func (d Dialect) natively(asked *adapters.Request, q *query, p adapters.Plan, scope adapters.Scope, then adapters.Exchange) adapters.Exchange {
	if then == nil {
		return nil
	}
	a := d.newAttempt(q, scope)
	if a == nil {
		return then
	}
	return &native{attempt: a, single: &single{request: asked, collapse: &collapse{d: d, q: q, late: p.Late}}, then: then}
}

// Next implements adapters.Exchange.
func (n *native) Next(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	if n.open() && reply == nil {
		if n.asked { // none came in time
			return nil, nil, adapters.ErrLate
		}
		if body, void := n.asks(); body != nil {
			return n.single.ask(body, void), nil, nil
		}
	}
	if !n.open() {
		ask, answer, err := n.then.Next(reply)
		if answer != nil {
			n.told(&answer.Outcomes[0])
		}
		return ask, answer, err
	}
	if err := refused(reply.Status); errors.Is(err, adapters.ErrRefused) && !blamesCollapse(reply) {
		return nil, nil, err
	} else if err != nil {
		n.fall(adapters.ErrWidened)
		return n.Next(nil)
	}
	body := n.takes(reply.Body)
	if body == nil {
		return n.Next(nil)
	}
	body, err := n.single.d.filtered(n.single.q.params, body, n.single.late)
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	answer := &adapters.Answer{Reply: *reply, Outcomes: []adapters.Outcome{n.list.outcome()}}
	answer.Body = body
	return nil, answer, nil
}

// blamesCollapse reports whether the engine's failure can be for what we asked.
func blamesCollapse(reply *adapters.Reply) bool {
	return reply.Status >= 500 && slices.ContainsFunc([]string{"collapse", adapters.FieldPrefix}, func(word string) bool {
		return bytes.Contains(reply.Body, []byte(word))
	})
}

// takeNative takes the engine's element of a multi-search. Where it is an error, query time shows whose fault that is.
func (e *entry) takeNative(element []byte) {
	members, err := adapters.Members(element)
	if err == nil && adapters.Get(members, "error") != nil {
		e.native.fall(adapters.ErrWidened)
		return
	}
	e.result = e.native.takes(element)
}

// collapsedOutcome returns what was done with a search that was collapsed.
func (e *entry) collapsedOutcome() adapters.Outcome {
	if e.native.open() {
		return e.native.list.outcome()
	}
	o := e.outcome()
	if e.native != nil {
		e.native.told(&o)
	}
	return o
}
