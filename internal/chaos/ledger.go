// Package chaos judges what a search engine holds after a time of faults. Writers and searchers work on an index, through the
// sidecar and beside it, and enter every operation with the answer that they got into a [Ledger]. Afterwards the stored documents
// are read from the engine itself and held against it: no write that was acknowledged is lost, none is altered, none was done
// twice, no sketch is that of another text; every page that was answered is one that could be; and every error has a fault that a
// client of the engine's own would have met as well.
//
// A document is written by one writer, one write after the other, so that what may be stored follows from the answers alone: a
// write that was acknowledged was done, one that was refused was not, and one that got no answer may have been. Such a document
// is not written again, but by the same write, since the write without an answer may come late.
package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Kind is what a write does.
type Kind string

// The kinds of write.
const (
	Put    Kind = "put"    // stores a whole document, whatever is there
	Create Kind = "create" // stores a whole document where there is none
	Part   Kind = "part"   // sets some members of a document that is there
	Delete Kind = "delete"
	Auto   Kind = "auto" // stores a whole document under an id that the engine makes up
)

// Answer is what a client was told of a write.
type Answer string

// The answers.
const (
	Unknown  Answer = "unknown"  // none, or one that does not say: it was done or it was not
	Done     Answer = "done"     // it is done
	Conflict Answer = "conflict" // it is not: there is a document
	Missing  Answer = "missing"  // it is not: there is no document
	Refused  Answer = "refused"  // it is not, for another reason
	Left     Answer = "left"     // it changes nothing: another document stands for this one
)

// Write is one write of one document.
type Write struct {
	Index, ID  string // ID is empty for Auto until the answer tells it
	Kind       Kind
	Body       []byte // a JSON object: the document or the part of one
	Answer     Answer
	Other      string // of Left: the id of the document that stands for it
	Why        string // of an answer other than Done, in the words of whoever said so
	Begin, End time.Time
	mark       string
}

// Ledger holds all operations of a run. It is safe for concurrent use, as long as no document is written by two at a time.
type Ledger struct {
	mu     sync.Mutex
	places map[place][]*Write
	autos  map[string][]*Write        // by index
	values map[place]map[string]bool  // every value that was sent for a document, by its name
	marked map[string]map[string]bool // the same for documents of Auto, by their mark
}

type place struct{ index, id string }

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{
		places: map[place][]*Write{}, autos: map[string][]*Write{},
		values: map[place]map[string]bool{}, marked: map[string]map[string]bool{},
	}
}

// Start enters a write that is about to be sent. The body of an Auto has a member "mark" whose value no other document has.
func (l *Ledger) Start(w Write) *Write {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := &w
	entry.Begin, entry.Answer = time.Now(), Unknown
	at := place{w.Index, w.ID}
	members := object(w.Body)
	if w.Kind == Auto {
		entry.mark = mark(members)
		l.autos[w.Index] = append(l.autos[w.Index], entry)
		l.marked[entry.mark] = map[string]bool{}
		remember(l.marked[entry.mark], members)
		return entry
	}
	if list := l.places[at]; len(list) > 0 && list[len(list)-1].End.IsZero() {
		panic(fmt.Sprintf("chaos: %s of %s is written by two at once", w.ID, w.Index))
	}
	l.places[at] = append(l.places[at], entry)
	if l.values[at] == nil {
		l.values[at] = map[string]bool{}
	}
	remember(l.values[at], members)
	return entry
}

// Finish enters the answer.
func (l *Ledger) Finish(w *Write, r Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.End, w.Answer, w.Other, w.Why = time.Now(), r.Answer, r.Other, r.Why
	if w.Kind == Auto && r.Answer == Done {
		w.ID = r.ID
	}
}

// sent returns what is wrong with a document that a client was shown: it is made of nothing but values that were sent for it.
func (l *Ledger) sent(index, id string, source []byte) string {
	members := object(source)
	if members == nil {
		return "it is no object"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	values := l.values[place{index, id}]
	if values == nil {
		values = l.marked[mark(members)]
		delete(members, "id") // the engine's
	}
	if values == nil {
		return "it was never sent"
	}
	for name, value := range members {
		if !values[name+"="+canonical(value)] {
			return fmt.Sprintf("%s was never sent as %.200s", name, value)
		}
	}
	return ""
}

func remember(values map[string]bool, members map[string]json.RawMessage) {
	for name, value := range members {
		values[name+"="+canonical(value)] = true
	}
}

// object returns the members of a JSON object, nil if it is none.
func object(body []byte) (members map[string]json.RawMessage) {
	if json.Unmarshal(body, &members) != nil {
		return nil
	}
	return members
}

func mark(members map[string]json.RawMessage) string { return textOf(members, "mark") }

func textOf(members map[string]json.RawMessage, name string) (text string) {
	_ = json.Unmarshal(members[name], &text) // no text: none
	return text
}

// canonical returns a JSON value in one form: members in the order of their names, no white space, strings as they read, numbers
// as they stand.
func canonical(value []byte) string {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return "malformed: " + string(value)
	}
	out, _ := json.Marshal(v) // what was decoded can be encoded
	return string(out)
}
