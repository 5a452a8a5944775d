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

		other := config(t, e, setup{match: "tried-*", threshold: 0.3})
		var configs try.Report
		decode(t, []byte(succeed(t, "try", queries, "--config", file, "--against-config", other, "--index", index, "--output", "json")), &configs)
		same(t, []string{file, other}, configs.Sides, "the names of configurations")
		expect.Same(t, report.Figures[1].Folded, configs.Figures[1].Folded, "folded under a threshold, and under a configuration with it")

		html := string(succeed(t, "try", queries, "--config", file, "--index", index, "--output", "html"))
		if !strings.Contains(html, "Content-Security-Policy") || strings.Contains(html, "<script") || strings.Count(html, "<tbody") != len(report.Rows) {
			t.Errorf("the report: %.300s", html)
		}
	})
}

// TestQueriesPage runs queries on the playground's page: under one threshold, under two on a phone, with errors, and stopped in the middle.
func TestQueriesPage(t *testing.T) {
	w := shelfPage(t, documents(t))
	const page = "playground/queries.html#engine=shelf&index=shelf"
	rows := act("tell", "script", "[...document.querySelectorAll('.queries tbody')].map(row => row.innerText.replace(/\\s+/g, ' '))")
	verdict := act("tell", "script", "document.getElementById('verdict').textContent")
	problem := act("tell", "script", "[document.getElementById('problem').textContent, document.getElementById('results').hidden]")
	seen := visitPage(t, w.admin, page, act("axe"),
		act("type", "text", "ferry\nzzz\n{\"query\":{\"nope\":{}}}\n{\"size\":0}\nferry", "key", "Control+Enter"), rows, verdict, act("axe"),
		act("tell", "script", "[document.querySelector('.query a').hash, location.hash, document.getElementById('as-html').href.slice(0, 5)]"),
		act("type", "text", "ok\n{\"a\"", "key", "Control+Enter"), problem, act("axe"),
		act("type", "text", "", "key", "Control+Enter"), problem,
		act("tell", "script", `(async () => {
			query.value = Array.from({ length: 900 }, (_, n) => 'ferry ' + n).join('\n')
			ask.requestSubmit()
			while (!(done.value > 2)) await new Promise(requestAnimationFrame)
			document.getElementById('stop').click()
			while (downloads.hidden || main.ariaBusy === 'true') await new Promise(requestAnimationFrame)
		})()`), rows, verdict,
		act("type", "text", "ok\n{\"a\"\nok", "key", "Control+Enter"), act("tell", "script", "query.value.slice(query.selectionStart, query.selectionEnd)"),
		act("type", "text", "ferry\nzzz", "key", "Control+Enter"), act("reload"), act("tell", "script", `(async () => {
			while (results.hidden) await new Promise(requestAnimationFrame)
			index.append(new Option('other'))
			index.value = 'other'
			index.dispatchEvent(new Event('change'))
			order.value = 'nothing'
			order.dispatchEvent(new Event('change'))
			return [query.value, document.querySelectorAll('.queries tbody').length, document.querySelector('.query').textContent, document.querySelector('.query a').hash]
		})()`))
	accessible(t, seen[0], seen[3], seen[6])
	same(t, []string{"{\"a\""}, []string{seenAs[string](t, seen[10])}, "the bad line is selected")
	if got := seenAs[[]any](t, seen[11]); len(got) != 4 || got[0] != "ferry\nzzz" || got[1] != 2.0 || got[2] != "zzz" || !strings.Contains(got[3].(string), "index=shelf&") {
		t.Errorf("after coming back, and with another index chosen: %v", got)
	}
	got := seenAs[[]string](t, seen[1])
	if len(got) != 4 || !strings.HasPrefix(got[0], "ferry 2 3 results 8 1 1 of 8 3 ") || !strings.Contains(strings.Join(got, "\n"), "unknown query [nope]") ||
		!strings.Contains(strings.Join(got, "\n"), "left alone: size_zero") {
		t.Errorf("the table: %q", got)
	}
	if text := seenAs[string](t, seen[2]); !strings.Contains(text, "Of 3 searches, 2 (67 %) show the same text more than once on page 1.") {
		t.Errorf("the summary: %s", text)
	}
	if hashes := seenAs[[]string](t, seen[4]); !strings.Contains(hashes[0], "q=ferry") || !strings.Contains(hashes[1], "queries=ferry%0Azzz") || hashes[2] != "blob:" {
		t.Errorf("addresses: %q", hashes)
	}
	if got := seenAs[[]any](t, seen[5]); !strings.Contains(got[0].(string), "line 2: it is not valid JSON (column 4") || got[1] != true {
		t.Errorf("a bad line: %v", got)
	}
	if got := seenAs[[]any](t, seen[7]); !strings.Contains(got[0].(string), "Write queries, one a line.") {
		t.Errorf("no line: %v", got)
	}
	if got, text := seenAs[[]string](t, seen[8]), seenAs[string](t, seen[9]); len(got) < 3 || len(got) > 890 || !strings.Contains(text, "Not run: ") {
		t.Errorf("stopped after %d queries: %s", len(got), text)
	}

	seen = visitPage(t, w.admin, page+"&threshold=0.9&against=0.3&queries=ferry%0Athe", act("size", "width", 390, "height", 844),
		act("click", "on", "#run"), rows, verdict, act("axe"), act("tell", "script", "document.documentElement.scrollWidth"))
	if got := seenAs[[]string](t, seen[0]); len(got) != 2 || !strings.Contains(got[0], " A ") || !strings.Contains(got[0], " B ") {
		t.Errorf("two thresholds: %q", got)
	}
	if text := seenAs[string](t, seen[1]); !strings.HasPrefix(text, "A and B show different pages for ") {
		t.Errorf("the summary: %s", text)
	}
	accessible(t, seen[2])
	if width := seenAs[int](t, seen[3]); width > 390 {
		t.Errorf("the page is %d wide", width)
	}
}

// TestQueriesPageAsksForCredentials: the page sends those that the user types, and asks for them.
func TestQueriesPageAsksForCredentials(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const index = "tried-2"
	w := monitor(t, config(t, e, setup{match: index}), nil)
	api{e, w.base}.create(t, index, documents(t)...)
	seen := visitPage(t, w.admin, "playground/queries.html#index="+index,
		act("login", "key", "wrong"), act("type", "text", "ferry", "key", "Control+Enter"),
		act("tell", "script", "document.getElementById('problem').textContent"), act("login", "key", e.Key), act("type", "text", "q=ferry&query_by=title,body&per_page=5\nferry", "key", "Control+Enter"),
		act("tell", "script", "[...document.querySelectorAll('.queries .query')].map(query => query.textContent)"), act("axe"))
	if text := seenAs[string](t, seen[0]); text == "" {
		t.Error("a wrong key is taken")
	}
	got := seenAs[[]string](t, seen[1])
	slices.Sort(got)
	expect.Same(t, []string{"ferry", "per_page=5&q=ferry&query_by=title%2Cbody"}, got, "the queries")
	accessible(t, seen[2])
}
