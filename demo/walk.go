// Package demo is a walk-through: the same searches as an embedded engine answers them, and as a sidecar in front of it does.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/server"
)

// The settings of the walk-through.
const (
	demoIndex   = "news"
	demoSize    = 10
	columnWidth = 62
)

// demoQueries are the searches that are printed side by side.
var demoQueries = []string{"ferry crossing", "library open midnight"}

// walk is one walk-through.
type walk struct {
	out             io.Writer
	log             io.Writer
	engine, sidecar string // base URLs
}

// Options say where the walk-through listens, and whether it ends after printing.
type Options struct {
	Listen, Page string
	Once         bool
}

// Run shows the walk-through until ctx ends.
func Run(ctx context.Context, o Options, out, errOut io.Writer) error {
	d := walk{out: out, log: errOut}
	return d.run(ctx, o)
}

func (d *walk) run(ctx context.Context, o Options) error {
	i := config.DefaultIndex()
	i.Match, i.Fields = demoIndex, []string{"title", "body"}
	i.DateField, i.HostField = "published_at", "host.keyword" // for presets that use them
	s, err := server.ServeDemo(i, o.Listen, o.Page, d.log)
	if err != nil {
		return err
	}
	defer s.Close()
	d.engine, d.sidecar = s.Engine, s.Sidecar
	if err := d.load(ctx); err != nil {
		return fmt.Errorf("load the corpus: %w", err)
	}
	for _, q := range demoQueries {
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

// load writes the corpus through the sidecar in one bulk.
func (d *walk) load(ctx context.Context) error {
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
		return err
	}
	var result struct{ Errors bool }
	if err := json.Unmarshal(reply.body, &result); err != nil || result.Errors {
		return fmt.Errorf("the engine refused documents: %.200s", reply.body)
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

func (d *walk) post(ctx context.Context, url, contentType string, body io.Reader) (posted, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
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
		body := fmt.Sprintf(`{"size":%d,"query":{"multi_match":{"query":%q,"fields":["title","body"]}},"_source":["title","host"]}`, demoSize, q)
		reply, err := d.post(ctx, base+"/"+demoIndex+"/_search", "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		var result struct {
			Hits struct {
				Hits []struct {
					Source struct{ Title, Host string } `json:"_source"`
				}
			}
		}
		if err := json.Unmarshal(reply.body, &result); err != nil {
			return err
		}
		for n, h := range result.Hits.Hits {
			columns[i] = append(columns[i], fmt.Sprintf("%2d. %s", n+1, h.Source.Title), "    "+h.Source.Host)
		}
		outcome = reply.outcome
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\nsearch: %s\n\n%s%s\n", q, column("the engine alone"), "through neardup")
	for i := range max(len(columns[0]), len(columns[1])) {
		fmt.Fprintln(&text, strings.TrimRight(column(at(columns[0], i))+shorten(at(columns[1], i)), " "))
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
	text = shorten(text)
	return text + strings.Repeat(" ", columnWidth-utf8.RuneCountInString(text))
}

func shorten(text string) string {
	if runes := []rune(text); len(runes) > columnWidth-2 {
		return string(runes[:columnWidth-3]) + "…"
	}
	return text
}

// invite prints what to try.
func (d *walk) invite(page string) {
	search := func(base, params string) string {
		return fmt.Sprintf("  curl '%s/%s/_search?q=body:ferry&_source=title,host&pretty%s'", base, demoIndex, params)
	}
	_, _ = fmt.Fprintf(d.out, `
A page to look at:   %s

The engine itself, the same through the sidecar, with another threshold, and left alone:
%s
%s
%s
%s

Ctrl-C ends it; nothing is kept.
`, page, search(d.engine, ""), search(d.sidecar, ""), search(d.sidecar, "&neardup_threshold=0.95"), search(d.sidecar, "&neardup=off"))
}
