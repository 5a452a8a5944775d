package conversation

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"sync"

	"github.com/neardup/sidecar/internal/localpage"
	"github.com/neardup/sidecar/jobs/ask"
	"github.com/neardup/sidecar/jobs/calibrate"
)

//go:embed assets
var assets embed.FS

// page is a conversation in a browser.
type page struct {
	*Conversation
	mu sync.Mutex
}

// view is what the page shows.
type view struct {
	Index   string  `json:"index"`
	Match   string  `json:"match"`
	Config  string  `json:"config"`
	Answers string  `json:"answers"`
	Earlier int     `json:"earlier"`
	Present float64 `json:"present"`
	// Written reports whether this run wrote the present threshold.
	Written bool `json:"written"`

	Question *viewed     `json:"question"`
	Finding  ask.Finding `json:"finding"`
	Expected string      `json:"expected"`
	Progress string      `json:"progress"`
	// Change says how many pairs fold more or less, Contradictions how many answers contradict the others.
	Change         string       `json:"change"`
	Contradictions string       `json:"contradictions"`
	Advice         []ask.Advice `json:"advice"`
	YAML           string       `json:"yaml"`
	// Refusal says why the threshold is not written yet; empty if it can be.
	Refusal string `json:"refusal"`
}

// viewed is a question as the page shows it.
type viewed struct {
	Title  string       `json:"title"`
	A      document     `json:"a"`
	B      document     `json:"b"`
	Fields []difference `json:"fields"`
}

type document struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Cut  bool   `json:"cut"`
}

// difference is a field that both documents have, with different values.
type difference struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// action is the body of a request that changes something. A and B are the pair that the page shows.
type action struct {
	A       string      `json:"a"`
	B       string      `json:"b"`
	Verdict ask.Verdict `json:"verdict"`
	// Remember also stores a decision about the pair.
	Remember bool `json:"remember"`
}

var errOtherPair = errors.New("this is not the current pair: the page may be open twice")

// Page returns the page of a conversation. It calls end when the person ends it.
func Page(c *Conversation, end func()) localpage.Page {
	p := &page{Conversation: c}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/state", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.show(w, r)
	})
	for name, act := range map[string]func(context.Context, action) error{
		"answer": p.answer,
		"undo": func(ctx context.Context, _ action) error {
			_, err := p.TakeBack(ctx)
			return err
		},
		"write": func(ctx context.Context, _ action) error { return p.Write(ctx) },
		"end": func(context.Context, action) error {
			end()
			return nil
		},
	} {
		mux.HandleFunc("/api/"+name, func(w http.ResponseWriter, r *http.Request) {
			var a action
			if !localpage.Read(w, r, &a) {
				return
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if err := act(r.Context(), a); err != nil {
				localpage.Refuse(w, http.StatusConflict, err)
				return
			}
			p.show(w, r)
		})
	}
	files, _ := fs.Sub(assets, "assets") // never fails: the name is valid
	return localpage.Page{Files: files, API: mux}
}

func (p *page) answer(ctx context.Context, a action) error {
	if p.question == nil || p.question.A != a.A || p.question.B != a.B {
		return errOtherPair
	}
	return p.Answer(ctx, a.Verdict, a.Remember)
}

// show sends the view.
func (p *page) show(w http.ResponseWriter, r *http.Request) {
	question, err := p.Next(r.Context())
	var advice []ask.Advice
	if err == nil {
		advice, err = p.Advice(r.Context())
	}
	if err != nil {
		localpage.Refuse(w, http.StatusBadGateway, err)
		return
	}
	f := p.Finding()
	v := view{
		Index: p.Index.Name, Match: p.Match(), Config: p.File, Answers: p.Answers, Earlier: p.Earlier, Present: p.Present(), Written: p.written > 0,
		Finding: f, Expected: f.Expected(), Progress: f.Progress(), Change: f.Change(), Contradictions: f.Contradictions(), Advice: advice, YAML: p.YAML(advice),
	}
	switch {
	case question != nil:
		v.Question = viewOf(question)
	case !f.Settled:
		v.Progress = "" // it would say to go on
	}
	if err := p.Refusal(); err != nil {
		v.Refusal = err.Error()
	}
	localpage.Answer(w, v)
}

func viewOf(q *Question) *viewed {
	v := &viewed{Title: ask.Place(q.Number), A: documentOf(q.A, q.X), B: documentOf(q.B, q.Y)}
	for _, name := range ask.Differing(q.X.Values, q.Y.Values) {
		v.Fields = append(v.Fields, difference{name, q.X.Values[name], q.Y.Values[name]})
	}
	return v
}

func documentOf(id string, shown calibrate.Shown) document {
	text, cut := localpage.Cut(shown.Text)
	return document{ID: id, Text: text, Cut: cut}
}
