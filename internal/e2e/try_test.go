package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/try"
)

// without returns how many of the ids are not among others.
func without(ids, others []string) (n int) {
	for _, id := range ids {
		if !slices.Contains(others, id) {
			n++
		}
	}
	return n
}

// TestTry runs a set of queries by the command, and holds what it counts to the ids that clients get.
func TestTry(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		const index = "tried-1"
		file := config(t, e, setup{match: "tried-*"})
		through := api{e, serveFile(t, file)}
		through.create(t, index, documents(t)...)
		line := func(q, params string) (line, path, body string, method string) {
			method, path, body = through.words(t).search(index, q, 0, 10, params, "")
			if line = body; body == "" {
				_, query, _ := strings.Cut(path, "?")
				line = must(url.ParseQuery(query))(t).Encode() // as it is shown
			}
			return line, path, body, method
		}
		page := func(q, params string) []string {
			_, path, body, method := line(q, params)
			ids, _ := through.words(t).found(t, call(t, e, method, through.base+path, body).want(t, 200))
			return ids
		}
		words := []string{"*", "ferry", "council budget", "storm", "school", "the", "zzz"}
		wrong := map[bool]string{true: `{"q":"x","query_by":"nope"}`, false: `{"query":{"nope":{}}}`}[through.typesense()]
		lines := []string{wrong, "", "storm over the island"}
		for _, q := range words {
			text, _, _, _ := line(q, "")
			lines = append(lines, text)
		}
		lines = append(lines, lines[len(lines)-len(words):]...) // each twice
		if !through.typesense() {
			for _, name := range []string{index, "other-1"} {
				quoted := must(json.Marshal(lines[3]))(t)
				lines = append(lines, fmt.Sprintf(`{"type":"index_search_slowlog","message":"[%s][0]","took":"1ms","source":%s}`, name, quoted))
			}
		}
		queries := filepath.Join(t.TempDir(), "queries.txt")
		check(t, os.WriteFile(queries, []byte(strings.Join(lines, "\n")), 0o600))

		var report try.Report
		decode(t, []byte(succeed(t, "try", queries, "--config", file, "--index", index, "--output", "json")), &report)
		expect.Must(t, len(words)+2, len(report.Rows), "rows in %+v", report)
		rows := map[string]try.Row{}
		for i, row := range report.Rows {
			rows[row.Query] = row
			if i > 0 && row.Changes > report.Rows[i-1].Changes {
				t.Errorf("%s changes more than the row above", row.Query)
			}
		}
		if row := rows[wrong]; row.Error == "" || len(row.Pages) > 0 {
			t.Errorf("what the engine refuses: %+v", row)
		}
		if row := rows["storm over the island"]; row.Count != 1 || row.Hits == 0 || row.Pages[0].Left != "" {
			t.Errorf("words: %+v", row)
		}
		changed := 0
		for i, q := range words {
			text, _, _, _ := line(q, "")
			row := rows[text]
			engine, collapsed := page(q, "&neardup=off"), page(q, "")
			count := map[bool]int{true: 3, false: 2}[i == 0 && !through.typesense()]
			got := fmt.Sprint(row.Count, row.Hits, row.Pages[0].Hits, row.Pages[0].Folded, row.Pages[0].New, row.Changes)
			want := fmt.Sprint(count, len(engine), len(collapsed), without(engine, collapsed), without(collapsed, engine), without(collapsed, engine)+len(engine)-len(collapsed))
			expect.Same(t, want, got, "of %s: count, hits, collapsed hits, folded, new, changes", q)
			if p := row.Pages[0]; p.Filled+p.Empty != p.Folded || p.Total <= 0 || p.Engine <= 0 || row.Plain.Engine <= 0 {
				t.Errorf("%s: %+v", q, row)
			}
			changed += row.Changes
		}
		if changed == 0 || !strings.Contains(strings.Join(report.Summary, " "), "the same text more than once on page 1") {
			t.Errorf("nothing changes: %q", report.Summary)
		}
		if left := strings.Contains(strings.Join(report.Summary, " "), "Left out: 1 line of other indices."); left == through.typesense() {
			t.Errorf("%q", report.Summary)
		}

		decode(t, []byte(succeed(t, "try", queries, "--config", file, "--index", index, "--output", "json", "--threshold", "0.9", "--against", "0.3")), &report)
		differ := 0
		for _, row := range report.Rows {
			if at := slices.IndexFunc(words, func(q string) bool { text, _, _, _ := line(q, ""); return text == row.Query }); at >= 0 {
				a, b := page(words[at], "&neardup_threshold=0.9"), page(words[at], "&neardup_threshold=0.3")
				expect.Same(t, fmt.Sprint(without(a, b), without(b, a)), fmt.Sprint(len(row.Pages[0].Only), len(row.Pages[1].Only)), "what only one side shows of %s", words[at])
				differ += row.Changes
			}
		}
		if differ == 0 {
			t.Error("0.9 and 0.3 fold the same")
		}

		html := string(succeed(t, "try", queries, "--config", file, "--index", index, "--output", "html"))
		if !strings.Contains(html, "Content-Security-Policy") || strings.Contains(html, "<script") || strings.Count(html, "<tbody") != len(report.Rows) {
			t.Errorf("the report: %.300s", html)
		}
		if keep := os.Getenv("TRY_REPORTS"); keep != "" {
			two := string(succeed(t, "try", queries, "--config", file, "--index", index, "--output", "html", "--threshold", "0.9", "--against", "0.3"))
			check(t, os.WriteFile(filepath.Join(keep, e.Kind+"-2.html"), []byte(two), 0o600))
			check(t, os.WriteFile(filepath.Join(keep, e.Kind+".html"), []byte(html), 0o600))
			text := string(succeed(t, "try", queries, "--config", file, "--index", index)) + string(succeed(t, "try", queries, "--config", file, "--index", index, "--threshold", "0.9", "--against", "0.3"))
			check(t, os.WriteFile(filepath.Join(keep, e.Kind+".txt"), []byte(text), 0o600))
		}
	})
}
