package collapse_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/collapse"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// shelf is an engine with one ranked list, whatever is searched for, and the wire to it: bodies are the readings themselves as JSON.
type shelf struct {
	documents []document
	requests  []string                    // all that it was asked
	rounds    int                         // in how many rounds
	takes     float64                     // how long each reply takes to come
	change    func(s *shelf)              // what happens to the list between two rounds, if set
	fail      func(round int) error       // how a round fails, if set
	decline   func(adapters.Reading) bool // which readings it declines, if set
}

type document struct {
	ID, Text string
	Stored   string
}

// ask implements collapse.Exchange.
func (s *shelf) ask(_ context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error) {
	if s.rounds++; s.fail != nil {
		if err := s.fail(s.rounds); err != nil {
			return nil, err
		}
	}
	if s.change != nil && s.rounds > 1 {
		s.change(s)
	}
	var replies []*adapters.Reply
	for _, r := range requests {
		s.requests = append(s.requests, string(r.Body))
		var readings []adapters.Reading
		if err := json.Unmarshal(r.Body, &readings); err != nil {
			return nil, err
		}
		var results []found
		for _, reading := range readings {
			results = append(results, s.answer(reading))
		}
		body, err := json.Marshal(results)
		if err != nil {
			return nil, err
		}
		replies = append(replies, &adapters.Reply{Status: 200, Body: body, Took: s.takes})
	}
	return replies, nil
}

// found is the shelf's result of a reading.
type found struct {
	Declined bool
	Total    int
	List     []document
	raw      []byte
}

func (s *shelf) answer(r adapters.Reading) found {
	if s.decline != nil && s.decline(r) {
		return found{Declined: true}
	}
	f := found{Total: len(s.documents), List: []document{}}
	ranks := r.Ranks
	for rank := r.From; ranks == nil && rank < r.To; rank++ {
		f.List = append(f.List, s.at(rank)...)
	}
	for _, rank := range ranks {
		f.List = append(f.List, s.at(rank)...)
	}
	for i := range f.List {
		if !r.Texts {
			f.List[i].Text = ""
		}
	}
	return f
}

func (s *shelf) at(rank int) []document {
	return s.documents[min(rank, len(s.documents)):min(rank+1, len(s.documents))]
}

// shown is what a reading shows of a document.
type shown struct {
	document
	texts bool
}

func (s shown) Document(*rule.Rule) []byte {
	if !s.texts {
		return nil
	}
	return fmt.Appendf(nil, `{"text":%q}`, s.Text)
}

func (shown) Values(rule.Deciding) []string { return nil }

// wire implements adapters.Wire and adapters.Envelope.
type wire struct{}

func (wire) Join(requests []*adapters.Request) ([]*adapters.Request, [][]*adapters.Request, error) {
	var bodies []string
	for _, r := range requests {
		bodies = append(bodies, string(r.Body))
	}
	r := &adapters.Request{Body: []byte("[" + strings.Join(bodies, ",") + "]")}
	return []*adapters.Request{r}, [][]*adapters.Request{requests}, nil
}

func (wire) Split(_ []*adapters.Request, reply *adapters.Reply) ([]*adapters.Reply, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(reply.Body, &raw); err != nil {
		return nil, err
	}
	var results []*adapters.Reply
	for _, one := range raw {
		f := &found{raw: one}
		if err := json.Unmarshal(one, f); err != nil {
			return nil, err
		}
		results = append(results, &adapters.Reply{Status: 200, Body: one, Parsed: f})
	}
	return results, nil
}

func (wire) Body(_ *adapters.Reply, results []adapters.Pieces) (all adapters.Pieces, _ error) {
	for i, r := range results {
		if i > 0 {
			all = append(all, []byte("\n"))
		}
		all = append(all, r...)
	}
	return all, nil
}

func (wire) Declined(_ *adapters.Reply, d *adapters.Declined) *adapters.Reply {
	return &adapters.Reply{Status: d.Status}
}

// search is one search of a shelf. It implements adapters.Search.
type search struct {
	asked  adapters.Asked
	broken bool // it panics when it is to read something
	piece  int  // how many ranks can be read at once, 0 for any number: the rest of a reading is asked for when these are there
}

func (s *search) Asked() *adapters.Asked { return &s.asked }

func (*search) Narrowed(error) adapters.Search { return nil }

func (*search) Refusal([]*adapters.Request, *adapters.Reply) error { return adapters.ErrRefused }

func (s *search) Requests(r *adapters.Reading, replies []*adapters.Reply) ([]*adapters.Request, error) {
	at, declined := len(replies)*s.piece, len(replies) > 0 && replies[len(replies)-1].Parsed.(*found).Declined
	if len(replies) > 0 && (declined || s.piece == 0 || r.Ranks != nil || at >= r.To-r.From) {
		return nil, nil
	}
	request, err := s.request(*r, at)
	return []*adapters.Request{request}, err
}

func (s *search) Listing(r *adapters.Reading, replies []*adapters.Reply) (*adapters.Listing, error) {
	if s.broken {
		panic("broken")
	}
	l := &adapters.Listing{Framed: r.Sources, Total: -1}
	for i, reply := range replies {
		f := reply.Parsed.(*found)
		if f.Declined {
			return nil, &adapters.Declined{Status: 422, Reason: "no", Raw: f.raw}
		}
		for _, d := range f.List {
			l.Hits = append(l.Hits, rule.Seen{Index: "shelf", ID: d.ID, Stored: []byte(d.Stored), Shown: shown{d, r.Texts}})
		}
		if i == 0 && (r.Frame || r.Own) {
			l.Total = f.Total
		}
	}
	return l, nil
}

func (*search) Name(hit *rule.Seen) []byte { return fmt.Appendf(nil, "%q", hit.ID) }

// request asks for a reading, or for a piece of it.
func (s *search) request(r adapters.Reading, at int) (*adapters.Request, error) {
	r.From += at
	if r.Own {
		r.From, r.To = s.asked.From, s.asked.From+s.asked.Size
	}
	r.Known = nil // the shelf does not look
	if s.piece > 0 && r.Ranks == nil && r.To-r.From > s.piece {
		r.To = r.From + s.piece
	}
	body, err := json.Marshal(r)
	return &adapters.Request{Body: body, JudgingOnly: !r.Sources, Own: r.AsWritten}, err
}

// Render shows the ids, with those folded in brackets.
func (s *search) Render(_ *adapters.Listing, page []*rule.Seen, groups []*adapters.Group, _ int) (adapters.Pieces, error) {
	var ids []string
	for i, h := range page {
		id := h.ID
		if groups != nil {
			var folded []string
			for _, f := range groups[i].Folded {
				folded = append(folded, f.Judged.ID)
			}
			id += fmt.Sprint(folded)
		}
		ids = append(ids, id)
	}
	return adapters.Pieces{[]byte(strings.Join(ids, " "))}, nil
}

// Clean shows the ids too.
func (s *search) Clean(raw []byte) []byte {
	var f found
	if err := json.Unmarshal(raw, &f); err != nil {
		return raw
	}
	if f.Declined {
		return []byte("declined")
	}
	var ids []string
	for _, d := range f.List {
		ids = append(ids, d.ID)
	}
	return []byte(strings.Join(ids, " "))
}

func newRule(t testing.TB, window int) *rule.Rule {
	t.Helper()
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	rule := &rule.Rule{
		Match: "shelf", Fields: []string{"text"}, Profile: rerank.Profile{Threshold: 0.7}, Window: window, Compute: true, Sketcher: sketcher,
	}
	expect.OK(t, rule.Validate())
	return rule
}

// newShelf returns a shelf of n documents, of which some repeat others and some have no sketch.
func newShelf(r *rand.Rand, rule *rule.Rule, n int, missing float64) *shelf {
	s := &shelf{}
	for i := range n {
		d := document{ID: fmt.Sprint("d", i), Text: text(r.IntN(1+n/2), r.IntN(3))}
		if r.Float64() >= missing {
			sketch, _ := rule.Sketch([]string{d.Text})
			d.Stored = sketch.String()
		}
		s.documents = append(s.documents, d)
	}
	return s
}

// text returns a version of one of many texts.
func text(which, version int) string {
	r := rand.New(rand.NewPCG(uint64(which), 7))
	words := make([]string, 60)
	for i := range words {
		words[i] = fmt.Sprint("w", r.IntN(5000))
	}
	words[version] = "other"
	return strings.Join(words, " ")
}

// page returns a page of the collapsed list by its definition.
func (s *shelf) page(rule *rule.Rule, from, size int) string {
	hits := make([]rerank.Hit, len(s.documents))
	for i, d := range s.documents {
		sketch, _ := rule.Sketch([]string{d.Text})
		hits[i] = rerank.Hit{ID: d.ID, Sketch: &sketch, Profile: &rule.Profile}
	}
	shown := rerank.Collapse(hits, rule.Window).Shown
	for rank := rule.Window; rank < len(hits); rank++ {
		shown = append(shown, rank)
	}
	var ids []string
	for _, rank := range shown[min(from, len(shown)):min(from+size, len(shown))] {
		ids = append(ids, s.documents[rank].ID)
	}
	return strings.Join(ids, " ")
}

// ranks returns the documents of ranks of the list that is not collapsed.
func (s *shelf) ranks(from, size int) string {
	var ids []string
	for _, d := range s.documents[min(from, len(s.documents)):min(from+size, len(s.documents))] {
		ids = append(ids, d.ID)
	}
	return strings.Join(ids, " ")
}

// searches returns searches of pages [from, size), under a rule.
func searches(r *rule.Rule, single bool, pages ...[2]int) *adapters.Searches {
	all := &adapters.Searches{Single: single, Wire: wire{}, Envelope: wire{}, Plan: adapters.Plan{Rules: rule.Rules{r}, MaxWindow: 1000}}
	scope := adapters.Scope{}
	scope.Add(r)
	for _, p := range pages {
		all.List = append(all.List, &search{asked: adapters.Asked{Target: "shelf", Scope: scope, From: p[0], Size: p[1], Limit: 1 << 20}})
	}
	return all
}

var _ collapse.Exchange = (&shelf{}).ask
