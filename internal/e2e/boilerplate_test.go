package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// mails returns 60 documents with bodies of their own under one footer, and one more, whose body stands with and without the footer.
func mails() (all map[string]string, footer string) {
	words := func(from, n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("w%d", from+i)
		}
		return strings.Join(list, " ")
	}
	footer = "This message is confidential. " + words(0, 110) + " ferry"
	all = map[string]string{"bare": words(90_000, 70) + " ferry", "under": words(90_000, 70) + " ferry " + footer}
	for i := range 60 {
		all[fmt.Sprintf("mail%d", i)] = words(1000*(i+1), 10+2*i) + " " + footer
	}
	for id, body := range all {
		all[id] = fmt.Sprintf(`{"id":%q,"title":"","body":%q,"host":"a.example","published_at":"2024-01-01"}`, id, body)
	}
	return all, footer
}

// boilerplateShown is what the page of groups shows of boilerplate.
const boilerplateShown = `(() => {
	const all = selector => [...document.querySelectorAll(selector)].map(one => one.textContent)
	return { Count: all('#passages-count')[0], Passages: all('#passages tbody td'), Contained: all('#contained-list li'), A: all('#text-a .boilerplate'), B: all('#text-b .boilerplate'), Best: all('#best')[0] }
})()`

// TestBoilerplate learns a footer from an index and reindexes without it: what it had merged is shown apart, and what it had kept apart folds. The page of
// groups shows it.
func TestBoilerplate(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		const index = "mails-1"
		direct, footers := api{e, e.URL}, filepath.Join(t.TempDir(), "footers.jsonl")
		direct.create(t, index)
		all, footer := mails()
		var lines strings.Builder
		for id, document := range all {
			lines.WriteString(direct.words(t).line(index, id, []byte(document)))
		}
		direct.loadLines(t, index, lines.String())
		shown := func(base string) []string {
			p := api{e, base}.search(t, index, "ferry", 0, 100, "")
			if !strings.HasPrefix(p.outcome, "collapsed") {
				t.Errorf("the search was not collapsed: %s", p.outcome)
			}
			return p.ids
		}
		file := config(t, e, setup{match: index})
		if before := shown(serveFile(t, file)); len(before) > 56 || !slices.Contains(before, "bare") {
			t.Errorf("with the footer %d are shown", len(before))
		}
		said := string(succeed(t, "cluster", "--config", file, "--index", index, "--boilerplate", footers))
		if !strings.Contains(said, "boilerplate: 1 passage in 61 documents") || !strings.Contains(said, "1 of these fall apart") {
			t.Errorf("cluster says %s", said)
		}

		with := config(t, e, setup{match: index, rule: "boilerplate: " + footers})
		succeed(t, "setup", "--config", with)
		succeed(t, "reindex", "--config", with)
		succeed(t, "verify", "--config", with)
		if after := shown(serveFile(t, with)); len(after) != 61 || slices.Contains(after, "bare") == slices.Contains(after, "under") {
			t.Errorf("without the footer %d are shown: %v", len(after), after)
		}

		cmd := command(t, t.Context(), "cluster", "--config", with, "--index", index, "--open")
		out := bufio.NewReader(must(cmd.StdoutPipe())(t))
		check(t, cmd.Start())
		address, key, _ := pageAddress(t, out)
		seen := visitPage(t, address, key,
			act("tell", "script", `document.querySelector('#boilerplate').open = true`), act("press", "key", "n"), act("press", "key", "Enter"),
			act("tell", "script", boilerplateShown), act("axe"))
		accessible(t, seen[len(seen)-1])
		var page struct {
			Count, Best         string
			Passages, Contained []string
			A, B                []string
		}
		check(t, json.Unmarshal(seen[len(seen)-2], &page))
		marked := slices.Concat(page.A, page.B)
		if page.Count != "Boilerplate: 1 passage" || len(page.Passages) != 2 || !strings.HasPrefix(page.Passages[1], "This message is confidential.") ||
			len(page.Contained) != 1 || !strings.Contains(page.Contained[0], "Passage 1, in ") {
			t.Errorf("the page shows %+v", page)
		}
		if len(marked) != 1 || strings.TrimPrefix(marked[0], "only here: boilerplate: ") != footer || (len(page.A) == 1) != (page.Best == "under stays") {
			t.Errorf("%s, marked are %q and %q", page.Best, page.A, page.B)
		}
		check(t, cmd.Process.Signal(syscall.SIGTERM))
		check(t, cmd.Wait())
	})
}
