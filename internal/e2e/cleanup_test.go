package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// cleanPlan is a plan as a test reads it.
type cleanPlan struct {
	Counts struct{ Stay, Go, Others int }
	Groups []struct {
		Stays struct{ ID string }
		Why   string
		Goes  []struct{ ID string }
	}
}

func readCleanPlan(t *testing.T, file string) (p cleanPlan, goes []string) {
	t.Helper()
	check(t, json.Unmarshal(must(os.ReadFile(file))(t), &p))
	for _, g := range p.Groups {
		for _, m := range g.Goes {
			goes = append(goes, m.ID)
		}
	}
	return p, goes
}

// cleanCorpus returns documents in groups of three near-duplicates, by their ids, with odd ones among them.
func cleanCorpus(groups int) map[string]string {
	r := rand.New(rand.NewPCG(7, 7))
	all := map[string]string{}
	for g := range groups {
		words := make([]string, 90)
		for i := range words {
			words[i] = fmt.Sprintf("w%d", r.IntN(50000))
		}
		for n := range 3 {
			id := fmt.Sprintf("g%d-%d", g, n)
			all[id] = fmt.Sprintf(`{"id":%q,"title":"about %d","body":%q,"host":"h%d.example","published_at":"2024-0%d-01","price":1.50,"tags":["b","a"],"more":{"z":1,"a":null}}`,
				id, g, strings.Join(words, " ")+strings.Repeat(" again", n), n, 1+(g+n)%9)
		}
	}
	all[`odd "id" /1`] = strings.Replace(all["g0-0"], `"id":"g0-0"`, `"id":"odd \"id\" /1"`, 1)
	return all
}

// TestCleanUp makes a plan, carries it out while documents change and the run is killed, and takes it back: each document is again what it was, byte for byte.
func TestCleanUp(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		const index, groups = "clean-1", 300
		direct := api{e, e.URL}
		direct.create(t, index)
		all := cleanCorpus(groups)
		var lines strings.Builder
		for _, id := range slices.Sorted(maps.Keys(all)) {
			lines.WriteString(direct.words(t).line(index, id, []byte(all[id])))
		}
		f := &fixture{direct: direct}
		direct.loadLines(t, index, lines.String())
		if !direct.typesense() { // with a routing of its own, and in several lines
			call(t, e, "PUT", direct.base+"/"+index+"/_doc/routed?routing=elsewhere", strings.Replace(all["g1-0"], "g1-0", "routed", 1)).want(t, 201)
			f.put(t, direct, index, map[string]string{"lines": strings.ReplaceAll(strings.Replace(all["g2-0"], "g2-0", "lines", 1), `,"`, ",\n\t\"")})
		}
		file, dir := config(t, e, setup{match: "clean-*", threshold: 0.5, rule: "host_field: host\ndate_field: published_at"}), t.TempDir()
		succeed(t, "setup", "--config", file)
		succeed(t, "reindex", "--config", file)
		before := stored(t, direct, index)
		plan, undo := filepath.Join(dir, "plan.json"), filepath.Join(dir, "undo.jsonl")
		said := string(succeed(t, "cluster", "--config", file, "--index", index, "--plan", plan, "--keep", "longest"))
		p, goes := readCleanPlan(t, plan)
		if p.Counts.Stay != groups || len(goes) != len(before)-groups || p.Counts.Go != len(goes) || !strings.Contains(said, fmt.Sprintf("%d would be deleted", len(goes))) {
			t.Fatalf("%+v, %d go: %s", p.Counts, len(goes), said)
		}
		same(t, versions(before), versions(stored(t, direct, index)), "a plan wrote")
		if out, code := sidecar(t, "cluster", "--config", file, "--apply", plan, "--undo", undo); code != 1 || !strings.Contains(out, "--yes is needed") {
			t.Errorf("without --yes it ended with %d: %s", code, out)
		}

		// Others write: one that goes changes, one that stays changes, one that stays is deleted.
		touch := func(id string) {
			document := must(jsonedit.Set(before[id].source, "title", []byte(`"changed since"`)))(t)
			direct.loadLines(t, index, direct.words(t).line(index, id, document))
		}
		touch(p.Groups[10].Goes[0].ID)
		touch(p.Groups[11].Stays.ID)
		gone := p.Groups[12].Stays.ID
		call(t, e, "DELETE", direct.base+deletionOf(direct, index, gone), "").want(t, 200)
		now := stored(t, direct, index)

		args := []string{"cluster", "--config", file, "--apply", plan, "--undo", undo, "--yes", "--output", "json"}
		cmd := command(t, context.Background(), args...)
		check(t, cmd.Start())
		until(func() bool { text, _ := os.ReadFile(undo); return bytes.Count(text, []byte("\n")) > 150 })
		check(t, cmd.Process.Kill())
		_ = cmd.Wait()
		killed := stored(t, direct, index)
		t.Logf("the run was killed with %d of %d documents left", len(killed), len(now))
		out := string(succeed(t, args...))
		var done struct{ Done, Before, Changed, Stays, Orphans int }
		decode(t, []byte(out[strings.LastIndex(out, "{"):]), &done) // after notes of how far it is
		spared := 1 + len(p.Groups[11].Goes) + len(p.Groups[12].Goes)
		if done.Changed != 1 || done.Stays != spared-1 || done.Orphans != 0 || done.Done+done.Before+spared != len(goes) || done.Before < len(now)-len(killed)-1 { // one is put back first, which shows that the engine takes it
			t.Errorf("%+v, of %d, with %d left when it was killed", done, len(goes), len(killed))
		}
		after := stored(t, direct, index)
		same(t, len(now)-len(goes)+spared, len(after), "documents that are left")
		for id, h := range after {
			same(t, string(now[id].source), string(h.source), "%s, which is left", id)
		}
		if _, code := sidecar(t, "cluster", "--config", file, "--apply", plan, "--undo", filepath.Join(dir, "plan.json"), "--yes"); code != 1 {
			t.Error("another file is taken for an undo file")
		}
		checkRestored(t, f, file, undo, index, now)
		again := string(succeed(t, "cluster", "--config", file, "--restore", undo))
		if !strings.Contains(again, ": 0 put back") {
			t.Errorf("once more it put back: %s", again)
		}
		hideAndShow(t, f, file, index)
		if !direct.typesense() {
			aliases := string(call(t, e, "GET", direct.base+"/"+index+"/_alias", "").want(t, 200).body)
			if strings.Contains(aliases, "neardup-writes") {
				t.Errorf("an alias is left: %s", aliases)
			}
		}
	})
}

func deletionOf(a api, index, id string) string {
	if a.typesense() {
		return "/collections/" + index + "/documents/" + url.PathEscape(id)
	}
	return "/" + index + "/_doc/" + url.PathEscape(id) + "?refresh=true"
}

// checkRestored takes back what an undo file holds: all documents are as they were, where they are, and with their routing.
func checkRestored(t *testing.T, f *fixture, file, undo, index string, want map[string]hit) {
	t.Helper()
	succeed(t, "cluster", "--config", file, "--restore", undo)
	got := stored(t, f.direct, index)
	same(t, len(want), len(got), "documents that are there again")
	for id, h := range want {
		same(t, string(h.source), string(got[id].source), "%s, which was put back", id)
	}
	if !f.direct.typesense() && want["routed"].source != nil {
		call(t, f.direct.e, "GET", f.direct.base+"/"+index+"/_source/routed?routing=elsewhere", "").want(t, 200)
	}
}

// hideAndShow hides documents, makes a plan again, which leaves them out, and shows them again but for one that was written since.
func hideAndShow(t *testing.T, f *fixture, file, index string) {
	t.Helper()
	dir := t.TempDir()
	plan, undo := filepath.Join(dir, "plan.json"), filepath.Join(dir, "undo.jsonl")
	if out, code := sidecar(t, "cluster", "--config", file, "--index", index, "--plan", plan, "--hide", "aside"); code != 1 || !strings.Contains(out, "does not declare this field") {
		t.Errorf("a field that no filter finds: %d: %s", code, out)
	}
	if f.direct.typesense() {
		call(t, f.direct.e, "PATCH", f.direct.base+"/collections/"+index, `{"fields":[{"name":"aside","type":"bool","optional":true}]}`).want(t, 200)
	} else {
		call(t, f.direct.e, "PUT", f.direct.base+"/"+index+"/_mapping", `{"properties":{"aside":{"type":"boolean"}}}`).want(t, 200)
	}
	before := stored(t, f.direct, index)
	succeed(t, "cluster", "--config", file, "--index", index, "--plan", plan, "--hide", "aside")
	p, goes := readCleanPlan(t, plan)
	if !strings.HasPrefix(p.Groups[0].Why, "newest (published_at 2024-") {
		t.Errorf("it stays because: %s", p.Groups[0].Why)
	}
	succeed(t, "cluster", "--config", file, "--apply", plan, "--undo", undo, "--yes")
	hidden := stored(t, f.direct, index)
	for id, h := range hidden {
		members := must(jsonedit.Members(h.source))(t)
		same(t, slices.Contains(goes, id), string(jsonedit.Get(members, "aside")) == "true", "that %s is hidden", id)
	}
	var seen struct{ Count, Found int }
	if f.direct.typesense() {
		decode(t, call(t, f.direct.e, "GET", f.direct.base+"/collections/"+index+"/documents/search?q=*&per_page=1&filter_by=aside:!=true", "").want(t, 200).body, &seen)
	} else {
		call(t, f.direct.e, "POST", f.direct.base+"/"+index+"/_refresh", "").want(t, 200)
		decode(t, call(t, f.direct.e, "POST", f.direct.base+"/"+index+"/_count", `{"query":{"bool":{"must_not":{"term":{"aside":true}}}}}`).want(t, 200).body, &seen)
	}
	same(t, len(before)-len(goes), seen.Count+seen.Found, "documents that the filter lets through")
	again := filepath.Join(dir, "again.json")
	succeed(t, "cluster", "--config", file, "--index", index, "--plan", again, "--hide", "aside")
	if _, more := readCleanPlan(t, again); len(more) > 0 {
		t.Errorf("a second plan hides %q", more)
	}
	id := goes[0]
	written := must(jsonedit.Set(hidden[id].source, "title", []byte(`"written since"`)))(t)
	f.direct.loadLines(t, index, f.direct.words(t).line(index, id, written))
	h := before[id]
	h.source = must(jsonedit.Cut(stored(t, f.direct, index)[id].source, func(key string) bool { return key == "aside" }))(t)
	before[id] = h
	checkRestored(t, f, file, undo, index, before)
}
