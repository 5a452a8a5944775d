// Package demo is a walk-through: the same searches as an embedded engine answers them, and as a sidecar in front of it does.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
)

// The settings of the walk-through.
const (
	demoIndex   = "news"
	demoSize    = 10
	columnWidth = 62
)

// walk is one walk-through.
type walk struct {
	out             io.Writer
	log             io.Writer
	engine, sidecar string // base URLs

	rule config.Index
	// queries are the searches that are printed side by side, shown the fields that are printed of each hit.
	queries, shown []string
	// load writes the documents through the sidecar.
	load func(context.Context) error
}

// Options say where the walk-through listens, and whether it ends after printing.
type Options struct {
	Listen, Page string
	Once         bool
	// Documents is a file of documents in place of the corpus, - for In; empty for none.
	Documents string
	In        io.Reader
}

// Run shows the walk-through until ctx ends.
func Run(ctx context.Context, o Options, out, errOut io.Writer) error {
	d := walk{out: out, log: errOut}
	if o.Documents == "" {
		d.rule = config.DefaultIndex()
		d.rule.Match, d.rule.Fields = demoIndex, []string{"title", "body"}
		d.rule.DateField, d.rule.HostField = "published_at", "host.keyword" // for presets that use them
		d.queries, d.shown, d.load = []string{"ferry crossing", "library open midnight"}, []string{"title", "host"}, d.loadCorpus
		return d.run(ctx, o)
	}
	f, err := openDocuments(ctx, o)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := d.takeUp(f); err != nil {
		return err
	}
	return d.run(ctx, o)
}

func (d *walk) run(ctx context.Context, o Options) error {
	s, err := server.ServeDemo(d.rule, o.Listen, o.Page, d.log)
	if err != nil {
		return err
	}
	defer s.Close()
	d.engine, d.sidecar = s.Engine, s.Sidecar
	if err := d.load(ctx); err != nil {
		return err
	}
	for _, q := range d.queries {
		if err := d.compare(ctx, q); err != nil {
			return fmt.Errorf("search %q: %w", q, err)
		}
	}
	if o.Once {
		return nil
	}
	d.invite(s.Page)
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.Failed():
		return err
	}
}

// loadCorpus writes the corpus through the sidecar in one bulk.
func (d *walk) loadCorpus(ctx context.Context) error {
	list, err := corpus.Load()
	if err != nil {
		return err
	}
	var body bytes.Buffer
	for _, document := range list {
		line, err := json.Marshal(document)
		if err != nil {
			return err
		}
		fmt.Fprintf(&body, "{\"index\":{\"_id\":%q}}\n%s\n", document.ID, line)
	}
	began := time.Now()
	reply, err := d.post(ctx, d.sidecar+"/"+demoIndex+"/_bulk?refresh=true", "application/x-ndjson", &body)
	if err != nil {
		return fmt.Errorf("load the corpus: %w", err)
	}
	var result struct{ Errors bool }
	if err := json.Unmarshal(reply.body, &result); err != nil || result.Errors {
		return fmt.Errorf("load the corpus: the engine refused documents: %.200s", reply.body)
	}
	texts := map[string]bool{}
	for _, document := range list {
		texts[document.Group] = true
	}
	_, err = fmt.Fprintf(d.out, "%d documents, which are versions of %d texts, written through the sidecar in %v.\n",
		len(list), len(texts), time.Since(began).Round(time.Millisecond))
	return err
}

// posted is a reply to the walk-through's own requests.
type posted struct {
	body    []byte
	outcome string
}

func (d *walk) post(ctx context.Context, to, contentType string, body io.Reader) (posted, error) {
	return d.send(ctx, http.MethodPost, to, contentType, body)
}

func (d *walk) send(ctx context.Context, method, to, contentType string, body io.Reader) (posted, error) {
	r, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return posted{}, err
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return posted{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, text)
	}
	return posted{text, resp.Header.Get("Neardup")}, err
}

// compare prints one search as the engine answers it and as the sidecar does.
func (d *walk) compare(ctx context.Context, q string) error {
	var columns [2][]string
	var outcome string
	for i, base := range []string{d.engine, d.sidecar} {
		fields, err := json.Marshal(d.rule.Fields)
		if err != nil {
			return err
		}
		shown, err := json.Marshal(d.shown)
		if err != nil {
			return err
		}
		body := fmt.Sprintf(`{"size":%d,"query":{"multi_match":{"query":%q,"fields":%s}},"_source":%s}`, demoSize, q, fields, shown)
		reply, err := d.post(ctx, base+"/"+d.rule.Match+"/_search", "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		var result struct {
			Hits struct {
				Hits []struct {
					Source json.RawMessage `json:"_source"`
				}
			}
		}
		if err := json.Unmarshal(reply.body, &result); err != nil {
			return err
		}
		for n, h := range result.Hits.Hits {
			members, _ := jsonedit.Members(h.Source) // the engine sent it
			for m, field := range d.shown {
				number := "    "
				if m == 0 {
					number = fmt.Sprintf("%2d. ", n+1)
				}
				texts, _, _ := rule.TextsIn(members, field) // what is no text is not shown
				columns[i] = append(columns[i], number+strings.Join(strings.Fields(terminal.Harmless(strings.Join(texts, " "))), " "))
			}
		}
		outcome = reply.outcome
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\nsearch: %s\n\n%s%s\n", q, column("the engine alone"), "through neardup")
	for i := range max(len(columns[0]), len(columns[1])) {
		fmt.Fprintln(&text, strings.TrimRight(column(at(columns[0], i))+terminal.Cut(at(columns[1], i), columnWidth-2), " "))
	}
	fmt.Fprintf(&text, "\n  Neardup: %s\n", outcome)
	_, err := io.WriteString(d.out, text.String())
	return err
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// column cuts or pads a text to the width of a column.
func column(text string) string {
	text = terminal.Cut(text, columnWidth-2)
	return text + strings.Repeat(" ", columnWidth-utf8.RuneCountInString(text))
}

// invite prints what to try.
func (d *walk) invite(page string) {
	search := func(base, params string) string {
		word := "*"
		if len(d.queries) > 0 {
			word, _, _ = strings.Cut(d.queries[0], " ")
		}
		return fmt.Sprintf("  curl '%s/%s/_search?q=%s:%s&_source=%s&pretty%s'",
			base, d.rule.Match, url.QueryEscape(d.rule.Fields[len(d.rule.Fields)-1]), word, strings.ReplaceAll(url.QueryEscape(strings.Join(d.shown, ",")), "%2C", ","), params)
	}
	_, _ = fmt.Fprintf(d.out, `
A page to look at:   %s

The engine itself, the same through the sidecar, with another threshold, and left alone:
%s
%s
%s
%s

Ctrl-C ends it; nothing is kept.
`, d.pageOf(page), search(d.engine, ""), search(d.sidecar, ""), search(d.sidecar, "&neardup_threshold=0.95"), search(d.sidecar, "&neardup=off"))
}
