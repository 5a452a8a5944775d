package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/neardup/sidecar/sketch"
)

// What a [Finding] can be.
const (
	Lost     = "lost"     // a write that was acknowledged is not stored
	Altered  = "altered"  // what is stored was never sent
	Doubled  = "doubled"  // a write was done twice
	Invented = "invented" // a document is stored that was deleted, or never written
	Stale    = "stale"    // our fields are not those of the text that is stored
	BadPage  = "bad page" // a page that was answered can't be
)

// Finding is one thing that must not be.
type Finding struct {
	What, Index, ID, Text string
}

// String returns the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s of %s: %.900s", f.What, f.ID, f.Index, f.Text)
}

// Stored is a document as the engine holds it.
type Stored struct {
	ID      string
	Source  []byte
	Version int // 0 where the engine has none
	// Apart are values that the engine keeps beside the document, by the names of their fields, as far as they were asked for.
	Apart map[string][]json.RawMessage
}

// Rule is what the documents of an index are judged by.
type Rule struct {
	Sketcher *sketch.Sketcher
	Fields   []string // the sketched fields
	// Exact says that the engine stores a document in the bytes that it was sent.
	Exact bool
	// Inside says that a document's id stands among its members, also one that the engine made up.
	Inside bool
	// Plain says that no field of ours may stand there: the index was written past the sidecar.
	Plain bool
	// Rewritten says that a job writes documents of the index again, so that their versions say nothing.
	Rewritten bool
}

// Figures count what was judged.
type Figures struct {
	Stored, Sketched int
}

// Judge holds what is stored in an index against what the answers say.
func (l *Ledger) Judge(index string, stored []Stored, rule Rule) (findings []Finding, figures Figures) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := &verdict{ledger: l, index: index, rule: rule, byID: map[string]*Stored{}, byMark: map[string][]*Stored{}}
	for i := range stored {
		s := &stored[i]
		if v.byID[s.ID] != nil {
			v.find(Doubled, s.ID, "the id is stored twice")
		}
		v.byID[s.ID] = s
		if m := mark(object(s.Source)); m != "" {
			v.byMark[m] = append(v.byMark[m], s)
		}
	}
	v.figures.Stored = len(stored)
	named := map[string]bool{}
	for at, writes := range l.places {
		if at.index == index {
			named[at.id] = true
			v.document(at.id, writes)
		}
	}
	for _, w := range l.autos[index] {
		for _, id := range v.auto(w) {
			named[id] = true
		}
	}
	for i := range stored {
		if !named[stored[i].ID] {
			v.find(Invented, stored[i].ID, fmt.Sprintf("nobody wrote it: %.300s", stored[i].Source))
		}
		v.ours(&stored[i])
		v.apart(&stored[i])
	}
	v.groups(stored)
	return v.findings, v.figures
}

type verdict struct {
	ledger   *Ledger
	index    string
	rule     Rule
	byID     map[string]*Stored
	byMark   map[string][]*Stored
	findings []Finding
	figures  Figures
}

func (v *verdict) find(what, id, text string) {
	v.findings = append(v.findings, Finding{What: what, Index: v.index, ID: id, Text: text})
}

// document judges a document whose id its writer gave.
func (v *verdict) document(id string, writes []*Write) {
	h := follow(v.index, id, writes)
	v.findings = append(v.findings, h.findings...)
	for _, w := range writes {
		if w.Answer == Left {
			v.left(w)
		}
	}
	s := v.byID[id]
	switch {
	case s == nil && len(there(h.states, false)) == 0:
		v.find(Lost, id, "it is not there, and should be "+show(h.states))
		return
	case s == nil:
		return
	case len(there(h.states, true)) == 0:
		v.find(Invented, id, fmt.Sprintf("it should not be there: %.300s", s.Source))
		return
	}
	if !v.isOne(s.Source, h.states) {
		what := Altered
		if v.isOne(s.Source, h.former) {
			what = Lost
		}
		v.find(what, id, fmt.Sprintf("it is %s, and should be %s", s.Source, show(h.states)))
	}
	if h.versioned && !v.rule.Rewritten && s.Version > 0 {
		if s.Version > h.most {
			v.find(Doubled, id, fmt.Sprintf("it has version %d after %d to %d writes", s.Version, h.least, h.most))
		}
		if s.Version < h.least {
			v.find(Lost, id, fmt.Sprintf("it has version %d after %d to %d writes", s.Version, h.least, h.most))
		}
	}
}

// auto judges a document whose id the engine made up, and returns the ids under which it is stored.
func (v *verdict) auto(w *Write) (ids []string) {
	found := v.byMark[w.mark]
	for _, s := range found {
		ids = append(ids, s.ID)
		body := w.Body
		if v.rule.Inside {
			body = withID(w.Body, s.ID)
		}
		if !v.isOne(s.Source, []state{{body, v.rule.Exact}}) {
			v.find(Altered, s.ID, fmt.Sprintf("it is %s, and was sent as %s", s.Source, w.Body))
		}
	}
	switch {
	case len(found) > 1:
		v.find(Doubled, w.ID, fmt.Sprintf("%s is stored as %s", w.Body, strings.Join(ids, " and ")))
	case w.Answer == Done && len(found) == 0:
		v.find(Lost, w.ID, fmt.Sprintf("it is not there: %s", w.Body))
	case w.Answer == Done && w.ID != "" && !slices.Contains(ids, w.ID):
		v.find(Lost, w.ID, "the answer gave an id that it does not have: it is "+ids[0])
	case w.Answer == Refused && len(found) > 0:
		v.find(Invented, ids[0], fmt.Sprintf("it was refused (%s)", w.Why))
	}
	return ids
}

// withID returns the document with the id that the engine gave it, for one that keeps it among the members.
func withID(body []byte, id string) []byte {
	quoted, _ := json.Marshal(id) // a string always can be
	return merged(body, []byte(`{"id":`+string(quoted)+`}`))
}

// left judges a document for which another one stands: that one is there, and of the same subject.
func (v *verdict) left(w *Write) {
	other := v.byID[w.Other]
	if other == nil {
		v.find(Lost, w.ID, fmt.Sprintf("%s was said to stand for it, and is not there", w.Other))
		return
	}
	if one, two := topic(w.Body), topic(other.Source); one != two {
		text := fmt.Sprintf("%s was said to stand for it, of another text: %.300s, %.300s", w.Other, w.Body, other.Source)
		v.find(Lost, w.ID, text)
	}
}

// topic returns what a document of the workload is about: texts of two topics have nothing in common.
func topic(document []byte) string { return textOf(object(document), "topic") }

// isOne reports whether a stored document is one of the states, less our fields.
func (v *verdict) isOne(source []byte, states []state) bool {
	plain := ""
	for _, s := range states {
		switch {
		case s.body == nil:
		case s.exact && v.rule.Exact:
			if spliced(s.body, source) {
				return true
			}
		default:
			if plain == "" {
				plain = canonical(without(source))
			}
			if plain == canonical(s.body) {
				return true
			}
		}
	}
	return false
}

// prefix is how the names of our fields begin.
const prefix = "neardup_"

// spliced reports whether stored holds the bytes of a document as it was sent, with nothing but fields of ours behind its last
// member.
func spliced(sent, stored []byte) bool {
	const space = " \t\r\n"
	end := bytes.LastIndexByte(sent, '}')
	if end < 0 {
		return false
	}
	head := bytes.TrimRight(sent[:end], space)
	rest, ok := bytes.CutPrefix(stored, head)
	if !ok {
		return false
	}
	rest, ok = bytes.CutSuffix(rest, bytes.TrimRight(sent[len(head):], space))
	if !ok {
		return false
	}
	if len(rest) == 0 {
		return true
	}
	if rest[0] != ',' {
		return false
	}
	members := object(append(append([]byte{'{'}, rest[1:]...), '}'))
	for name := range members {
		if !strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return members != nil
}

// without returns a document less our fields.
func without(source []byte) []byte {
	members := object(source)
	if members == nil {
		return source
	}
	for name := range members {
		if strings.HasPrefix(name, prefix) || name == embeddings {
			delete(members, name)
		}
	}
	out, _ := json.Marshal(members) // what was decoded can be encoded
	return out
}
