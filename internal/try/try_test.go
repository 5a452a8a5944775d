package try

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/adapters/typesense"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// made is an engine whose replies are hits, each "id" or "id<folded,folded", with blanks between.
type made struct{}

func (made) LookFor(l adapters.Look) (*adapters.Request, error) {
	if l.Words == "bad" {
		return nil, errors.New("no such words")
	}
	return &adapters.Request{Method: "POST", Path: "/" + l.Index, Body: []byte(l.Words)}, nil
}

func (made) LookedAt(l adapters.Look, reply *adapters.Reply) (found adapters.Looked, err error) {
	switch text := string(reply.Body); {
	case reply.Status != 200:
		return found, errors.New(text)
	case text == "groups":
		return found, adapters.NotUnderstood(errors.New("no hits"))
	}
	for hit := range strings.FieldsSeq(string(reply.Body)) {
		id, folded, _ := strings.Cut(hit, "<")
		h := adapters.LookedHit{Seen: rule.Seen{ID: id}, Name: l.Index}
		for _, other := range strings.FieldsFunc(folded, func(r rune) bool { return r == ',' }) {
			h.Folded = append(h.Folded, adapters.Named{Index: l.Index, ID: other})
		}
		found.Hits = append(found.Hits, h)
	}
	found.Total = len(found.Hits)
	return found, nil
}

// sidecar answers with the lines of replies: the engine's own page, then one for each threshold.
func sidecar(replies ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		control, at := r.Header.Get(adapters.ControlHeader), 0
		for i, threshold := range []string{"0.5", "0.9"} {
			if strings.Contains(control, "expand=ids; threshold="+threshold) {
				at = i + 1
			}
		}
		switch outcome, reply, has := strings.Cut(replies[at], "|"); {
		case !has:
			_, _ = io.WriteString(w, outcome)
		case outcome == "refused":
			w.WriteHeader(400)
			_, _ = io.WriteString(w, reply)
		default:
			w.Header().Set(adapters.OutcomeHeader, outcome)
			_, _ = io.WriteString(w, reply)
		}
	}
}

// row runs one query against replies.
func row(t *testing.T, number int, replies ...string) Row {
	t.Helper()
	trial := Trial{Engine: made{}, Look: adapters.Look{Index: "news"}}
	for i := range replies[1:] {
		trial.Sides = append(trial.Sides, Side{Handler: sidecar(replies...), Threshold: []float64{0.5, 0.9}[i]})
	}
	return expect.Value(trial.Run(t.Context(), &Query{adapters.Query{Words: "x"}, 1}, number))(t)
}

// TestPage: what is counted of a page.
func TestPage(t *testing.T) {
	for name, c := range map[string]struct{ plain, page, want string }{
		"nothing folds":                    {"a b c", "collapsed; raw=3|a b c", "folded 0 new 0 filled 0 empty 0 groups 0 changes 0"},
		"a slot is filled":                 {"a b c", "collapsed|a<b c d", "folded 1 new 1 filled 1 empty 0 groups 1 changes 1"},
		"the list ends":                    {"a b c", "collapsed|a<b,c", "folded 2 new 0 filled 0 empty 2 groups 1 changes 2"},
		"it folds further down":            {"a b", "collapsed|a<y b<z", "folded 0 new 0 filled 0 empty 0 groups 2 changes 0"},
		"the newest is shown":              {"a b c", "collapsed|z<a,b c d", "folded 1 new 2 filled 1 empty 0 groups 1 changes 2"},
		"the newest is shown, none folded": {"a b", "collapsed|z<a b", "folded 0 new 1 filled 0 empty 0 groups 1 changes 1"},
		"left alone":                       {"a b", "bypassed; reason=vector|a c", "folded 0 new 0 filled 0 empty 0 groups 0 changes 0"},
		"left alone, in groups":            {"groups", "bypassed; reason=grouped|groups", "folded 0 new 0 filled 0 empty 0 groups 0 changes 0"},
	} {
		for number := range 2 { // whichever page is asked for first
			plain := c.plain
			if plain == "groups" {
				plain = "bypassed; reason=off|groups"
			}
			r := row(t, number, plain, c.page)
			p := r.Pages[0]
			got := fmt.Sprintf("folded %d new %d filled %d empty %d groups %d changes %d", p.Folded, p.New, p.Filled, p.Empty, p.Groups, r.Changes)
			if got != c.want || (p.Left != "") != strings.HasPrefix(name, "left") || p.Error+r.Error != "" {
				t.Errorf("%s: %s (%+v)", name, got, r)
			}
		}
	}
}

// TestSides: two pages are compared with each other, and errors stay in the row.
func TestSides(t *testing.T) {
	r := row(t, 0, "a b c", "collapsed|a<b,c d", "collapsed|a<b c d e")
	if fmt.Sprint(r.Pages[0].Only, r.Pages[1].Only, r.Changes) != "[] [c e] 2" {
		t.Errorf("%+v", r)
	}
	r = row(t, 1, "a b c", "refused|nope", "collapsed|a<b c d e")
	if r.Pages[0].Error != "nope" || len(r.Pages[1].Only) > 0 || r.Pages[1].Folded != 1 {
		t.Errorf("%+v", r)
	}
	if r = row(t, 1, "refused|nope", "refused|nope"); r.Error != "nope" || r.Pages != nil || r.Hits != 0 {
		t.Errorf("%+v", r)
	}
	trial := Trial{Engine: made{}, Sides: []Side{{Handler: sidecar("a", "a")}}}
	if r := expect.Value(trial.Run(t.Context(), &Query{adapters.Query{Words: "bad"}, 1}, 0))(t); r.Error != "no such words" {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trial.Run(ctx, &Query{adapters.Query{Words: "x"}, 1}, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestReport: the summary says what the table holds, which begins with what changes most.
func TestReport(t *testing.T) {
	rows := []Row{
		row(t, 0, "a b c", "collapsed|a b c"), row(t, 0, "a b c d e f g h i j", "collapsed|a<b,c d e f g h i j k l"),
		row(t, 0, "a b", "collapsed|a<b"), row(t, 0, "refused|nope", "refused|nope"), row(t, 0, "a", "bypassed; reason=vector|a"), row(t, 0, "", "collapsed|"),
	}
	rows[1].Count = 3
	r := NewReport("news", []string{"threshold 0.5"}, rows, &Input{Elsewhere: 1, Left: 2})
	got := strings.Join(r.Summary, "\n")
	const want = `Of 6 searches, 4 (67 %) show the same text more than once on page 1.
On these pages, on average 1.9 of 10 results are new. Hiding copies freed 7 places: 6 were filled with other results; 1 stays empty, as the engine found no more.
Left alone, by reason: vector (1).
1 search finds nothing.
1 search failed: the table says why.
8 searches, 6 different queries. Each ran once and counts as often as it was asked.
Left out: 1 line of other indices.
Not run: 2 queries.`
	expect.Same(t, want, got, "the summary")
	left := NewReport("news", []string{"threshold 0.5"}, []Row{row(t, 0, "a", "bypassed; reason=vector|a"), row(t, 0, "refused|nope", "refused|nope")}, &Input{})
	expect.Same(t, "Left alone, by reason: vector (1).\n1 query failed: the table says why.", strings.Join(left.Summary, "\n"), "if no page was collapsed")
	if rows[0].Count != 3 || rows[1].Changes != 1 {
		t.Errorf("the order: %+v", rows)
	}
	if text := r.Text(); !strings.Contains(text, "failed: nope: x\n") || !strings.Contains(text, "left alone, vector: x\n") {
		t.Error(text)
	}
	rows[0].Query = `<script>alert("x")</script>`
	var page bytes.Buffer
	expect.OK(t, r.HTML(&page, fstest.MapFS{"style.css": {Data: []byte("a{color:red}")}, "queries.css": {Data: []byte("b>c{}")}}))
	sum := sha256.Sum256([]byte("a{color:red}b>c{}"))
	for _, part := range []string{
		"style-src &#39;sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "&#39;", "<style>a{color:red}b>c{}</style>", "&lt;script&gt;alert(&#34;x&#34;)",
	} {
		if !strings.Contains(html.UnescapeString(page.String()), html.UnescapeString(part)) {
			t.Errorf("without %s: %s", part, page.String())
		}
	}
	if strings.Contains(page.String(), "<script") {
		t.Error(page.String())
	}
}

// FuzzText: what stands for a query is read as that query again, on each engine, and a request can be made of it or it is refused.
func FuzzText(f *testing.F) {
	for _, line := range []string{
		"ferry", `"q=1"`, `"a\n b "`, `{"query":{"match_all":{}}}`, "q=a&query_by=b", `{"q":"x","per_page":3}`,
		`[2026-01-02][WARN ][q] [n] [news-2][0] took[5ms], source[{"size":1}], id[]`, `{"type":"index_search_slowlog","source":"{\\\"size\\\":5}"}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if !utf8.ValidString(line) {
			return
		}
		for _, engine := range []interface {
			Engine
			ReadQuery(string) (adapters.Query, error)
		}{elastic.Dialect{}, typesense.Dialect{}} {
			reader := Reader{Line: engine.ReadQuery, Here: func(string) bool { return true }, Most: 1}
			in, err := reader.Read(strings.NewReader(line))
			if err != nil || len(in.Queries) == 0 {
				continue
			}
			again, err := reader.Read(strings.NewReader(in.Queries[0].Text()))
			if err != nil || len(again.Queries) != 1 || again.Queries[0].Text() != in.Queries[0].Text() || again.Queries[0].Words != in.Queries[0].Words {
				t.Fatalf("%T: %q is %+v, and then %+v %v", engine, line, in.Queries[0], again, err)
			}
			look := (&Trial{Look: adapters.Look{Index: "news", Fields: []string{"body"}}}).look(in.Queries[0])
			if r, err := engine.LookFor(look); err == nil && len(r.Body) > 0 && !json.Valid(r.Body) && json.Valid(look.Search) {
				t.Errorf("%T: %q becomes %s", engine, line, r.Body)
			}
		}
	})
}

// TestRead: queries are counted, and bad lines are named, with what to do.
func TestRead(t *testing.T) {
	line := func(text string) (q adapters.Query, err error) {
		index, words, sent := strings.Cut(text, ":")
		switch {
		case sent && words == "":
			return q, errors.New("it is empty")
		case sent && strings.HasPrefix(words, "{"):
			return adapters.Query{Search: []byte(words), Index: index}, nil
		case sent:
			return adapters.Query{Words: words, Index: index}, nil
		}
		return adapters.Query{Words: text}, nil
	}
	reader := Reader{Name: "f", Line: line, Here: func(index string) bool { return index == "news" }, Most: 3}
	in := expect.Value(reader.Read(strings.NewReader("\ufeffferry\n\n  storm \r\nnews:ferry\nother:x\nnews:{\"a\": 1}\nnews:{ \"a\":1}\nfour\nfive\n ferry")))(t)
	var got []string
	for _, q := range in.Queries {
		got = append(got, fmt.Sprint(q.Count, " ", q.Text()))
	}
	expect.Same(t, []string{"3 ferry", "1 storm", `2 {"a":1}`}, got, "the queries")
	if in.Elsewhere != 1 || in.Left != 2 {
		t.Errorf("%+v", in)
	}
	for text, want := range map[string]string{
		"a\nnews:\n\nnews:":                    "f:2: it is empty\nf:4: it is empty",
		"\x1f\x8b\x08":                         "gunzip",
		"caf\xe9":                              "UTF-8",
		"a\n" + strings.Repeat("x", maxLine+1): "f:2: it is longer",
	} {
		if _, err := reader.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	for text, want := range map[string]string{"": "no query", "other:x": "of other indices"} {
		if err := expect.Value(reader.Read(strings.NewReader(text)))(t).Check("f"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if n := strings.Count(func() string {
		_, err := reader.Read(strings.NewReader(strings.Repeat("news:\n", 99)))
		return err.Error()
	}(), "\n"); n != maxProblems-1 {
		t.Errorf("%d problems", n+1)
	}
}
