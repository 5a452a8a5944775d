// Package try runs a set of queries with and without collapsing, and says what changes on their pages.
//
// [Reader] reads the queries of a file or a slow log. [Trial.Run] runs one: the engine's own page, and the collapsed one under one or two settings,
// all through the sidecar's own handler in this process ([Call]) and with the caller's credentials. [NewReport] sums up: sentences first, then a
// table that begins with what changes most. [Report.HTML] writes all of it as one file.
package try

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/proxy"
)

// pageSize is the page of a query of words: the engines' default.
const pageSize = 10

// Side is one setting to try: a handler of the sidecar, and a threshold.
type Side struct {
	Handler http.Handler
	// Threshold, if above 0, replaces that of the rule.
	Threshold float64
}

// control returns the value of the control header. It asks for the ids of folded hits, so that compare can find them on the engine's page.
func (s Side) control() string {
	if s.Threshold > 0 {
		return fmt.Sprintf("on; expand=ids; threshold=%v", s.Threshold)
	}
	return "on; expand=ids"
}

// Name describes a threshold for people. A threshold of 0 means the configured one.
func Name(threshold, configured float64) string {
	if threshold == 0 {
		return fmt.Sprintf("the configured threshold, %v", configured)
	}
	return fmt.Sprintf("threshold %v", threshold)
}

// Engine makes the request for a look, and reads the reply.
type Engine interface {
	LookFor(adapters.Look) (*adapters.Request, error)
	LookedAt(adapters.Look, *adapters.Reply) (adapters.Looked, error)
}

// Trial is what queries are run against.
type Trial struct {
	Engine Engine
	// Look has the index, the credentials, and the fields that words are searched in.
	Look adapters.Look
	// Sides are one or two. The engine's own page comes through the handler of the first.
	Sides []Side
	// Explain, if not nil, turns the error of a query into one for people.
	Explain func(error) error
}

// Row is the result of one query.
type Row struct {
	Query string `json:"query"`
	// Count is how often it is in the input.
	Count int `json:"count"`
	// Total is the engine's count of hits, or -1 if it sends no count. Hits is how many are on its page.
	Total int   `json:"total"`
	Hits  int   `json:"hits"`
	Plain Times `json:"engine_page"`
	// Pages are the collapsed ones, one for each side.
	Pages []Page `json:"collapsed"`
	// Changes is how many results differ: between the engine's page and the collapsed one, or between the two collapsed ones.
	Changes int `json:"changes"`
	// Error says why the query failed, in the engine's own words.
	Error string `json:"error,omitempty"`
}

// Page is a collapsed page beside the engine's own.
type Page struct {
	// Outcome is the sidecar's header. Left is the reason in it, where the search was left alone.
	Outcome string `json:"outcome"`
	Left    string `json:"left_alone,omitempty"`
	Hits    int    `json:"hits"`
	// Folded is how many hits of the engine's page are hidden behind others of that page. Each of them frees a slot.
	Folded int `json:"folded"`
	// New is how many hits are not on the engine's page. Filled is how many of them fill a free slot. Each of the others is shown in place of
	// a hit of its own group. Empty is how many slots stay free because the engine has no more hits.
	New    int `json:"new"`
	Filled int `json:"filled"`
	Empty  int `json:"empty"`
	// Groups is how many hits have others folded into them, of this page or further down.
	Groups int `json:"groups"`
	// Only are the ids of hits that the other side does not show.
	Only []string `json:"only,omitempty"`
	Times
	Error string `json:"error,omitempty"`

	shown map[adapters.Named]bool
}

// Times are in milliseconds.
type Times struct {
	Engine  float64 `json:"engine_ms"`
	Sidecar float64 `json:"sidecar_ms"`
	Total   float64 `json:"total_ms"`
}

// Run runs a query. Queries with an even number ask for the engine's own page first, the others last: the later page may profit from the
// engine's caches. An error of the engine goes into the row. The returned error is only that of the context.
func (t *Trial) Run(ctx context.Context, q *Query, number int) (Row, error) {
	row := Row{Query: q.Text(), Count: q.Count, Total: -1, Pages: make([]Page, len(t.Sides))}
	look, shown := t.look(q), make([]adapters.Looked, len(t.Sides))
	var plain adapters.Looked
	var failed error
	steps := []func(){func() { plain, _, row.Plain, failed = t.page(ctx, look, t.Sides[0].Handler, "off") }}
	for i, side := range t.Sides {
		steps = append(steps, func() {
			if failed == nil {
				row.Pages[i], shown[i] = t.collapsed(ctx, look, side)
			}
		})
	}
	if number%2 != 0 {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		step()
	}
	switch {
	case ctx.Err() != nil:
		return row, ctx.Err()
	case failed != nil:
		row.Pages, row.Error = nil, t.explained(failed)
		return row, nil
	}
	row.Total, row.Hits = plain.Total, len(plain.Hits)
	for i := range row.Pages {
		if page := &row.Pages[i]; page.Error == "" {
			page.compare(plain.Hits, shown[i].Hits)
		}
	}
	row.difference(shown)
	return row, nil
}

// collapsed returns the page of a side, not yet compared, and its hits.
func (t *Trial) collapsed(ctx context.Context, look adapters.Look, side Side) (p Page, shown adapters.Looked) {
	var err error
	shown, p.Outcome, p.Times, err = t.page(ctx, look, side.Handler, side.control())
	rest, left := strings.CutPrefix(p.Outcome, "bypassed; reason=")
	switch {
	case err != nil:
		p.Error = t.explained(err)
	case left:
		p.Left, _, _ = strings.Cut(rest, ";")
	case p.Outcome == "":
		p.Left = string(adapters.ReasonUnconfigured)
	}
	return p, shown
}

func (t *Trial) explained(err error) string {
	if t.Explain != nil {
		err = t.Explain(err)
	}
	return err.Error()
}

// look returns the look for a query: the page that its client asks for.
func (t *Trial) look(q *Query) adapters.Look {
	look := t.Look
	look.Words, look.Search = q.Words, q.Search
	if q.Search == nil {
		look.Size = pageSize
	}
	return look
}

// page returns the hits of a page, the sidecar's header and the times. A page that the sidecar leaves alone may have no hits that can be read.
func (t *Trial) page(ctx context.Context, look adapters.Look, h http.Handler, control string) (list adapters.Looked, outcome string, took Times, err error) {
	ask, err := t.Engine.LookFor(look)
	if err != nil {
		return list, "", took, err
	}
	var times proxy.Times
	reply, err := Call(proxy.WithTimes(ctx, &times), h, ask, control)
	if err != nil {
		return list, "", took, err
	}
	if lines := reply.Header[http.CanonicalHeaderKey(adapters.OutcomeHeader)]; len(lines) > 0 {
		outcome = lines[0]
	}
	took = Times{Milliseconds(times.Engine), Milliseconds(times.Own), Milliseconds(times.Total)}
	list, err = t.Engine.LookedAt(look, reply)
	if errors.Is(err, adapters.ErrNotUnderstood) && strings.HasPrefix(outcome, "bypassed") {
		return adapters.Looked{Total: -1}, outcome, took, nil // such as hits that the client itself groups
	}
	return list, outcome, took, err
}

// Milliseconds returns a duration in milliseconds, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// nameOf returns the name of a hit's document.
func nameOf(h *adapters.LookedHit) adapters.Named { return adapters.Named{Index: h.Name, ID: h.ID} }

// compare counts what the collapsed page changes.
func (p *Page) compare(plain, shown []adapters.LookedHit) {
	before := map[adapters.Named]bool{}
	for i := range plain {
		before[nameOf(&plain[i])] = true
	}
	p.Hits, p.shown = len(shown), map[adapters.Named]bool{}
	for i := range shown {
		h := &shown[i]
		name := nameOf(h)
		p.shown[name] = true
		if p.Left != "" {
			continue
		}
		members := 0 // of the group, on the engine's page
		for _, member := range append([]adapters.Named{name}, h.Folded...) {
			if before[member] {
				members++
			}
		}
		if !before[name] {
			p.New++
		}
		if members == 0 {
			p.Filled++
		} else {
			p.Folded += members - 1
		}
		if len(h.Folded) > 0 {
			p.Groups++
		}
	}
	if p.Left == "" {
		p.Empty = max(len(plain)-len(shown), 0)
	}
}

// difference finds what differs between the engine's page and the collapsed one, or between the two collapsed ones.
func (r *Row) difference(shown []adapters.Looked) {
	if len(r.Pages) == 1 {
		r.Changes = r.Pages[0].New + r.Pages[0].Empty
		return
	}
	for i := range r.Pages {
		page, other := &r.Pages[i], &r.Pages[1-i]
		for j := range shown[i].Hits {
			if h := &shown[i].Hits[j]; page.Error == "" && other.Error == "" && !other.shown[nameOf(h)] {
				page.Only = append(page.Only, h.ID)
			}
		}
		r.Changes += len(page.Only)
	}
}
