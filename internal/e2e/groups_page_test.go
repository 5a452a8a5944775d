package e2e

import (
	"bufio"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	configuration "github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/upstream"
)

// groupsShown is what the page of groups shows.
const groupsShown = `(() => {
	const text = id => document.getElementById(id).closest('[hidden]') ? '' : document.getElementById(id).textContent
	const all = selector => [...document.querySelectorAll(selector)].map(one => one.textContent)
	return {
		summary: text('summary'), listed: text('listed'), best: text('best'), why: text('why'), what: text('what'), note: text('note'), problem: text('problem'), more: text('more'), plan: text('plan'), said: text('said'),
		groups: all('#groups .name'), members: all('#members .entry'), current: all('#members [aria-current=true]'), fields: all('#fields tbody tr'),
		gone: all('#text-a mark'), fresh: all('#text-b mark'), focus: document.activeElement.id || document.activeElement.className
	}
})()`

// download returns the text of a file of the page.
func download(of string) string {
	return `fetch('/api/` + of + `', { headers: { Authorization: 'Bearer ' + sessionStorage.getItem('neardup.key') } }).then(reply => reply.text())`
}

// groupsSeen is groupsShown as a test reads it.
type groupsSeen struct {
	Summary, Listed, Best, Why, What, Note, Problem, More, Plan, Said, Focus string
	Groups, Members, Current, Fields, Gone, Fresh                            []string
}

// TestGroupsPage walks through the groups of an index by keys, tells two documents apart, filters, and takes a plan from the page that then is carried out.
func TestGroupsPage(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		const index, groups = "grouped-1", 60
		direct := api{e, e.URL}
		direct.create(t, index)
		all := cleanCorpus(groups)
		all["g7-2"] = strings.Replace(all["g7-2"], " again again", " once more", 1)
		var lines strings.Builder
		for _, id := range slices.Sorted(maps.Keys(all)) {
			lines.WriteString(direct.words(t).line(index, id, []byte(all[id])))
		}
		direct.loadLines(t, index, lines.String())
		file := config(t, e, setup{match: index, threshold: 0.5, rule: "host_field: host\ndate_field: published_at"})
		cmd := command(t, t.Context(), "cluster", "--config", file, "--index", index, "--open", "--keep", "first")
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		out := bufio.NewReader(must(cmd.StdoutPipe())(t))
		check(t, cmd.Start())
		address, key, _ := pageAddress(t, out)
		look, settle := act("tell", "script", groupsShown), act("tell", "script", `new Promise(done => setTimeout(done, 300))`)
		seen := visitPage(t, address, key,
			look, act("axe"), // 0, 1: the list
			act("press", "key", "n"), act("press", "key", "n"), act("press", "key", "p"), act("press", "key", "Enter"), look, act("axe"), // 2, 3: the largest group
			act("press", "key", "n"), look, act("press", "key", "Escape"), look, // 4, 5
			act("tell", "script", `document.querySelector('#value').value = 'about 7', document.querySelector('#filter').dispatchEvent(new Event('change')), undefined`),
			act("tell", "script", `new Promise(done => setTimeout(done, 500))`), look, // 6: filtered
			act("press", "key", "n"), act("press", "key", "Enter"), act("press", "key", "n"), look, // 7
			act("press", "key", "p"), act("press", "key", "d"), settle, act("press", "key", "u"), settle, look, act("press", "key", "n"), // 8: taken back
			act("press", "key", "d"), settle, look, act("axe"), // 9, 10: different
			act("tell", "script", download("export?form=csv&field=title&value=about+7")), act("tell", "script", download("export?form=json&field=title&value=about+7")),
			act("tell", "script", download("export?form=yaml&field=title&value=about+7")), act("tell", "script", download("plan?field=title&value=about+7")), act("tell", "script", download("plan")), // 11 to 15
			act("size", "width", 390, "height", 844), act("axe"), look, // 16, 17
			act("tell", "script", `location.href`)) // 18
		var looks []groupsSeen
		accessible(t, seen[1], seen[3], seen[10], seen[16])
		for _, i := range []int{0, 2, 4, 5, 6, 7, 8, 9} {
			looks = append(looks, seenAs[groupsSeen](t, seen[i]))
		}
		first, opened, next, closed, filtered, pair, back, apart := looks[0], looks[1], looks[2], looks[3], looks[4], looks[5], looks[6], looks[7]
		if !strings.HasPrefix(first.Summary, "67\u202f% of the documents are copies: 121 of 181.") || first.Listed != "60 groups" || len(first.Groups) != 50 || first.Problem != "" {
			t.Errorf("at first: %+v", first)
		}
		if opened.Best != "g0-0 stays" || opened.Why != "Why: first by id. 3 copies go." || !slices.Equal(opened.Current, opened.Members[:1]) || opened.What != "What differs in g0-1" {
			t.Errorf("opened: %+v", opened)
		}
		if !slices.Equal(next.Current, next.Members[1:2]) || closed.Best != "" || closed.Focus != "entry" {
			t.Errorf("the next document: %+v\nclosed: %+v", next, closed)
		}
		if filtered.Listed != "1 group" || pair.Best != "g7-0 stays" || pair.What != "What differs in g7-2" || !slices.Contains(pair.Fields, "hosth0.exampleh2.example") ||
			len(pair.Gone) != 0 || !slices.Equal(pair.Fresh, []string{"only here: once more"}) {
			t.Errorf("filtered: %+v\nthe pair: %+v", filtered, pair)
		}
		if back.Said != "Taken back. g7-1: no decision." || back.What != "What differs in g7-1" || strings.Contains(back.More, "different") || back.Problem != "" {
			t.Errorf("taken back: %+v", back)
		}
		if !strings.Contains(apart.More, "You decided that 1 document is different") || apart.Problem != "" || apart.Said != "g7-2: different." ||
			apart.Why != "Why: first by id. 1 copy goes." || apart.Plan != "Clean-up plan for 1 group, 1 document" {
			t.Errorf("different: %+v", apart)
		}
		csv := seenAs[string](t, seen[11])
		same(t, "id,group,stays,agreement,host,why\ng7-0,", csv[:strings.Index(csv, "g7-0")+5], "the beginning of the CSV")
		for i, text := range []string{csv, seenAs[string](t, seen[12]), seenAs[string](t, seen[13]), seenAs[string](t, seen[14])} {
			if !strings.Contains(text, "g7-1") || strings.Contains(text, "g7-2") || strings.Contains(text, "g8-") {
				t.Errorf("export %d: %s", i, text)
			}
		}
		if href := seenAs[string](t, seen[18]); strings.Contains(href, "key") {
			t.Errorf("the address still holds the key: %s", href)
		}
		check(t, cmd.Process.Signal(syscall.SIGTERM))
		check(t, cmd.Wait())

		plan, undo := filepath.Join(t.TempDir(), "plan.json"), filepath.Join(t.TempDir(), "undo.jsonl")
		check(t, os.WriteFile(plan, []byte(seenAs[string](t, seen[15])), 0o600))
		if p, goes := readCleanPlan(t, plan); p.Counts.Go != 120 || len(goes) != 120 || slices.Contains(goes, "g7-2") {
			t.Errorf("the plan: %+v, %d go", p.Counts, len(goes))
		}
		succeed(t, "cluster", "--config", file, "--apply", plan, "--undo", undo, "--yes")
		same(t, 61, len(stored(t, direct, index)), "documents that are left")
		from := must(configuration.Load(file, os.LookupEnv))(t)
		log := decided.Open(must(upstream.Open(&from.Engines[0]))(t).Store.Journal())
		check(t, log.Read(t.Context()))
		if p, known := log.Pair(index, "g7-0", "g7-2"); !known || p.Verdict != decided.Different || p.By == "" {
			t.Errorf("decided is %+v, %v", p, known)
		}
		_, _ = log.Add(t.Context(), "", decided.Pair{Index: index, A: "g7-0", B: "g7-2", Verdict: decided.Forgotten})
	})
}
