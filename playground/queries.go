package playground

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/try"
)

const (
	// MaxQueries is how many different queries the page runs.
	MaxQueries = 1000
	// maxQueries is the size limit, in bytes, of a request with all queries or with what they have shown.
	maxQueries = 8 << 20
)

// trying are the parts of a request about a set of queries.
type trying struct {
	// Text are lines with queries.
	Text string `json:"text"`
	// Count is how often a query was asked, Number how many were run before it.
	Count  int `json:"count"`
	Number int `json:"number"`
	// Against, if not 0, is the threshold to compare with.
	Against float64 `json:"against"`
	// Rows are the replies of api/try, Elsewhere and Left those of api/queries.
	Rows      []try.Row `json:"rows"`
	Elsewhere int       `json:"elsewhere"`
	Left      int       `json:"left"`
}

// queryList is the reply to api/queries: those that are in some lines, each as a line by which api/try knows it.
type queryList struct {
	Queries   []countedQuery `json:"queries"`
	Elsewhere int            `json:"elsewhere"`
	Left      int            `json:"left"`
}

type countedQuery struct {
	Query string `json:"query"`
	Count int    `json:"count"`
}

// queries answers with the queries in lines of text.
func (h *Handler) queries(_ context.Context, e *Engine, a *request) (any, error) {
	if _, err := a.search(e); err != nil {
		return nil, err
	}
	reader := try.Reader{Line: e.ReadQuery, Here: func(index string) bool { return index == a.Index }, Most: MaxQueries}
	in, err := reader.Read(strings.NewReader(a.Text))
	if err != nil {
		return nil, Wrong(short(err.Error()), try.Hint)
	}
	list := queryList{Queries: []countedQuery{}, Elsewhere: in.Elsewhere, Left: in.Left}
	for _, q := range in.Queries {
		list.Queries = append(list.Queries, countedQuery{q.Text(), q.Count})
	}
	return list, nil
}

// try answers with what one query shows.
func (h *Handler) try(ctx context.Context, e *Engine, a *request) (any, error) {
	query := a.Query
	a.Query = ""
	s, err := a.search(e)
	if err != nil {
		return nil, err
	}
	q, err := e.ReadQuery(query)
	if err != nil {
		return nil, Wrong("query: "+err.Error(), "Correct it.")
	}
	var refused error // the credentials: the page asks for others
	t := try.Trial{
		Engine: e, Sides: []try.Side{{Handler: s.view.Handler, Threshold: a.Threshold}},
		Look: adapters.Look{Index: a.Index, Header: s.look.Header, Fields: s.view.Rule.TextFields()},
		Explain: func(err error) error {
			f := failureOf(ctx, err, a.Credentials)
			if f.status == http.StatusUnauthorized || f.status == http.StatusForbidden {
				refused = f
			}
			return f
		},
	}
	if a.Against != 0 {
		if !(a.Against >= minThreshold && a.Against <= 1) {
			return nil, Wrong(fmt.Sprintf("against: %v is out of range", a.Against), fmt.Sprintf("Use a number from %v to 1.", minThreshold))
		}
		t.Sides = append(t.Sides, try.Side{Handler: s.view.Handler, Threshold: a.Against})
	}
	row, err := t.Run(ctx, &try.Query{Query: q, Count: max(a.Count, 1)}, a.Number)
	return row, errors.Join(err, refused)
}

// report is the reply to api/report.
type report struct {
	*try.Report
	HTML string `json:"html"`
}

// report answers with the report on rows that api/try has returned.
func (h *Handler) report(_ context.Context, e *Engine, a *request) (any, error) {
	s, err := a.search(e)
	if err != nil {
		return nil, err
	}
	names := []string{try.Name(a.Threshold, s.view.Rule.Profile.Threshold)}
	if a.Against != 0 {
		names = append(names, try.Name(a.Against, s.view.Rule.Profile.Threshold))
	}
	for i := range a.Rows {
		if row := &a.Rows[i]; len(row.Pages) > len(names) {
			return nil, Wrong("rows: they are of other thresholds", "Run the queries again.")
		}
	}
	r := report{Report: try.NewReport(a.Index, names, a.Rows, &try.Input{Elsewhere: a.Elsewhere, Left: a.Left})}
	var page bytes.Buffer
	err = r.Report.HTML(&page, Files)
	r.HTML = page.String()
	return r, err
}
