package chaos

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// state is what may be stored of one document.
type state struct {
	body  []byte // nil: there is none
	exact bool   // stored as it was sent, where the engine does so
}

// history is what the answers say of one document.
type history struct {
	states      []state
	least, most int       // how often it was written; what the engine's versions are held against
	versioned   bool      // whether they can be
	former      []state   // all that it was, acknowledged or not
	findings    []Finding // answers that contradict one another
}

// follow returns what follows from the answers to the writes of one document, which was not there at first.
func follow(index, id string, writes []*Write) history {
	h := history{states: []state{{}}, versioned: true}
	for _, w := range writes {
		before := h.states
		h.versioned = h.versioned && w.Kind != Delete // the engines count on where there is nothing to delete, too
		h.apply(w)
		h.former = append(h.former, h.states...)
		if len(h.states) == 0 { // the answer can't be: what it denies is named, and it is believed
			what := Lost
			switch {
			case w.Answer == Conflict:
				what = Doubled
			case w.Kind == Delete && w.Answer == Done:
				what = Invented
			}
			text := fmt.Sprintf("%s was answered as %s (%s), and what may be stored is %s", w.Kind, w.Answer, w.Why, show(before))
			h.find(what, index, id, text)
			h.states = before
		}
	}
	return h
}

func (h *history) find(what, index, id, text string) {
	h.findings = append(h.findings, Finding{What: what, Index: index, ID: id, Text: text})
}

// apply turns the states before a write into those after it.
func (h *history) apply(w *Write) {
	var after []state
	switch w.Answer {
	case Refused, Left:
		return
	case Conflict: // there is one, and it stays
		h.states = there(h.states, true)
		return
	case Missing:
		h.states = there(h.states, false)
		return
	case Unknown:
		after = slices.Clone(h.states)
		h.most++
	case Done:
		h.least, h.most = h.least+1, h.most+1
	}
	switch w.Kind {
	case Put, Create, Auto:
		if w.Kind == Create && w.Answer == Done { // it says that there was none; a former one without an answer may have come since
			if len(there(h.states, false)) == 0 {
				h.states = nil
				return
			}
		}
		after = append(after, state{w.Body, true})
	case Part:
		for _, s := range there(h.states, true) {
			after = append(after, state{merged(s.body, w.Body), false})
		}
	case Delete:
		if len(there(h.states, true)) > 0 {
			after = append(after, state{})
		}
	}
	h.states = distinct(after)
}

// there returns those states in which there is a document, or those in which there is none.
func there(states []state, is bool) (list []state) {
	for _, s := range states {
		if (s.body != nil) == is {
			list = append(list, s)
		}
	}
	return list
}

func distinct(states []state) (list []state) {
	for _, s := range states {
		if !slices.ContainsFunc(list, func(o state) bool {
			return o.exact == s.exact && string(o.body) == string(s.body) && (o.body == nil) == (s.body == nil)
		}) {
			list = append(list, s)
		}
	}
	return list
}

// merged returns a document with some of its members set.
func merged(body, part []byte) []byte {
	members := object(body)
	for name, value := range object(part) {
		members[name] = value
	}
	out, _ := json.Marshal(members) // what was decoded can be encoded
	return out
}

func show(states []state) string {
	var list []string
	for _, s := range states {
		if s.body == nil {
			list = append(list, "nothing")
			continue
		}
		list = append(list, fmt.Sprintf("%.300s", s.body))
	}
	return strings.Join(list, " or ")
}
