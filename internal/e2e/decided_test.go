package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	configuration "github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/upstream"
)

// TestDecided decides about pairs: two sidecars obey on all pages. A decision is not obeyed once somebody writes another text under an id of the pair,
// nor once it was taken back. Without the key of the configuration nothing is obeyed.
func TestDecided(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		list, index := documents(t), "decided-1"
		file := config(t, e, setup{match: "decided-*", engine: "decided: {refresh: 1s}"})
		first := monitor(t, file, nil)
		through := []api{{e, first.base}, {e, serveFile(t, file)}}
		without, direct := api{e, serve(t, e, setup{match: "decided-*"})}, api{e, e.URL}
		forgetAll(t, file)
		through[0].create(t, index, list...)
		o := newOracle(t, direct, list)
		raw, shown := o.raw(t, index, "*"), o.list(t, index, "*")

		apart := foldedIn(o, raw)
		same(t, "1 pair decided\n", string(succeed(t, "decide", "--config", file, "--index", index, apart[0], apart[1], "different")), "")
		pairs := filepath.Join(t.TempDir(), "pairs.txt")
		check(t, os.WriteFile(pairs, []byte("# by hand\n"+shown[70]+" "+shown[2]+" same\n"+shown[9]+" "+shown[40]+" same\n"), 0o600))
		same(t, "2 pairs decided\n", string(succeed(t, "decide", "--config", file, "--index", "decided-*", "--file", pairs, "--by", "anna")), "")
		plain := o.list(t, index, "*")
		o.decided = map[[2]string]bool{apart: false, ordered(shown[70], shown[2]): true, ordered(shown[9], shown[40]): true}
		obeyed := func(what string) {
			t.Helper()
			want := o.list(t, index, "*")
			for _, by := range through {
				if !until(func() bool { return slices.Equal(want, slices.Concat(by.whole(t, index, "*", 100, "")...)) }) {
					t.Fatalf("%s: not obeyed", what)
				}
				o.checkPages(t, by, index, "")
			}
		}
		obeyed("decided")
		playgroundObeys(t, first, e, index, shown[9], shown[40])
		same(t, plain, slices.Concat(without.whole(t, index, "*", 100, "")...), "without the key")

		if out := string(succeed(t, "similar", "--config", file, "--index", index, "--scan", shown[2])); !decidedLine(shown[70]).MatchString(out) {
			t.Errorf("similar says: %s", out)
		}
		if out := string(succeed(t, "similar", "--config", file, "--index", index, "--scan", "--size", "1000", apart[0])); strings.Contains(out, apart[1]+" ") {
			t.Errorf("similar says: %s", out)
		}
		clusters := filepath.Join(t.TempDir(), "clusters.jsonl")
		succeed(t, "cluster", "--config", file, "--index", index, "--output", clusters)
		of := map[string]string{}
		for line := range bytes.Lines(must(os.ReadFile(clusters))(t)) {
			var l struct{ ID, Cluster string }
			decode(t, line, &l)
			of[l.ID] = l.Cluster
		}
		if of[apart[0]] == of[apart[1]] || of[shown[70]] != of[shown[2]] || of[shown[9]] != of[shown[40]] {
			t.Error("cluster does not obey")
		}

		// A stranger writes a document under an id of a pair: the decision says nothing of it.
		at := slices.IndexFunc(list, func(d corpus.Document) bool { return d.ID == shown[70] })
		list[at].Body = "Nobody has decided anything about this text. " + list[(at+1)%len(list)].Body
		through[0].load(t, index, list[at:at+1])
		direct.refresh(t, index)
		decided := o.decided
		o = newOracle(t, direct, list)
		o.decided = decided
		delete(o.decided, ordered(shown[70], shown[2]))
		same(t, o.list(t, index, "*"), slices.Concat(through[1].whole(t, index, "*", 100, "")...), "after the text has changed")
		obeyed("the text has changed")
		listed := string(succeed(t, "decide", "--config", file, "--index", index, "--list"))
		if strings.Count(listed, "\n") != 3 || strings.Count(listed, ", by anna") != 2 || !strings.Contains(listed, "ask again: the text of "+shown[70]+" has changed") || strings.Count(listed, "ask again") != 1 {
			t.Errorf("listed: %s", listed)
		}

		succeed(t, "decide", "--config", file, "--index", index, "--forget", apart[1], apart[0])
		delete(o.decided, apart)
		obeyed("taken back")
	})
}

// playgroundObeys checks that the playground shows two documents as one group because that was decided.
func playgroundObeys(t *testing.T, w *monitored, e *engines.Engine, index, a, b string) {
	t.Helper()
	query := fmt.Sprintf(`{"query": {"ids": {"values": [%q, %q]}}}`, a, b)
	if e.Kind == engines.Typesense {
		query = fmt.Sprintf(`{"q": "*", "query_by": "title", "filter_by": "id:[%s,%s]"}`, a, b)
	}
	ask := map[string]any{"engine": e.Kind, "index": index, "query": query, "credentials": map[string]string{"key": e.Key}}
	body := string(must(json.Marshal(ask))(t))
	r := call(t, e, "POST", w.admin+"/playground/api/search", body).want(t, 200)
	var got struct {
		Pairs   [][]float64
		Sidecar struct{ IDs []string }
	}
	decode(t, r.body, &got)
	if want := [][]float64{{0, 1, 1, 2}}; !reflect.DeepEqual(want, got.Pairs) || len(got.Sidecar.IDs) != 1 {
		t.Errorf("%+v: %s", got, r.body)
	}
}

func decidedLine(id string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\S+ +` + regexp.QuoteMeta(id) + ` +\S+ +\S+ +decided *$`)
}

func ordered(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// foldedIn returns a hit of a list and the leader that it folds into.
func foldedIn(o *oracle, raw []string) [2]string {
	for i, id := range raw[20:] {
		for _, leader := range raw[:20+i] {
			if o.near(o.sketches[id], o.sketches[leader]) && len(o.collapsed([]string{leader, id})) == 1 {
				return ordered(id, leader)
			}
		}
	}
	return [2]string{}
}

// forgetAll drops all decisions of an engine when the test ends: others look into the journal, too.
func forgetAll(t *testing.T, file string) {
	c := must(configuration.Load(file, os.LookupEnv))(t)
	e := must(upstream.OpenAll(c, ""))(t)
	t.Cleanup(func() { check(t, e[0].Store.Journal().Drop(context.Background(), "decided", -1, 0)) })
}

// TestDecidedClusters: the clusters that are stored for native mode obey decided pairs, and those that were stored before are mended.
func TestDecidedClusters(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		list, index := documents(t), "decidedn-1"
		file := config(t, e, setup{match: "decidedn-*", rule: "native: true"})
		forgetAll(t, file)
		through, direct := api{e, serveFile(t, file)}, api{e, e.URL}
		through.create(t, index, list...)
		stored := func() map[string]string {
			succeed(t, "cluster", "--config", file, "--index", index, "--write")
			of := map[string]string{}
			for _, d := range list[:40] {
				if found := storedCluster.FindSubmatch(direct.get(t, index, d.ID)); found != nil {
					of[d.ID] = string(found[1])
				}
			}
			return of
		}
		before := stored()
		var apart, together [2]string
		for a, in := range before {
			for b, other := range before {
				if in == other && a < b {
					apart = [2]string{a, b}
				}
			}
		}
		for a, in := range before {
			for b, other := range before {
				if in != before[apart[0]] && other != before[apart[0]] && in != other {
					together = [2]string{a, b}
				}
			}
		}
		pairs := filepath.Join(t.TempDir(), "pairs.txt")
		check(t, os.WriteFile(pairs, []byte(apart[0]+" "+apart[1]+" different\n"+together[0]+" "+together[1]+" same\n"), 0o600))
		succeed(t, "decide", "--config", file, "--index", index, "--file", pairs)
		after := stored()
		if after[apart[0]] == after[apart[1]] || after[together[0]] != after[together[1]] {
			t.Errorf("%v are in %s and %s, %v in %s and %s", apart, after[apart[0]], after[apart[1]], together, after[together[0]], after[together[1]])
		}

		// The index gets another name: the pairs can be listed, copied, and removed.
		direct.drop(t, index)
		decide := func(args ...string) string {
			return string(succeed(t, append([]string{"decide", "--config", file, "--index"}, args...)...))
		}
		check(t, os.WriteFile(pairs, []byte(decide(index, "--list")), 0o600))
		through.create(t, "decidedn-2", list...)
		same(t, "2 pairs decided\n", decide("decidedn-2", "--file", pairs), "")
		same(t, "1 pair forgotten\n", decide(index, "--forget", apart[0], apart[1]), "")
		same(t, 1, strings.Count(decide(index, "--list"), "\n"), "pairs of the index that is gone")
		succeed(t, "remove", "--config", file, "--index", "decidedn-*", "--yes", "--jobs")
		same(t, "# nothing is decided\n", decide("decidedn-*", "--list"), "")
	})
}

var storedCluster = regexp.MustCompile(`"neardup_cluster": ?"([^"]+)"`)

// TestDecidedOutOfReach: with a key for one collection alone, a report says that decided pairs are not obeyed, and a plan needs --ignore-decided.
func TestDecidedOutOfReach(t *testing.T) {
	e, index := engines.Shared(t, engines.Typesense), "decidedk-1"
	list := documents(t)[:20]
	all := config(t, e, setup{match: index})
	forgetAll(t, all)
	api{e, serveFile(t, all)}.create(t, index, list...)
	succeed(t, "decide", "--config", all, "--index", index, list[0].ID, list[1].ID, "different")
	file := config(t, e, setup{match: index, key: newKey(t, e, `"*"`, `"`+index+`"`)})
	for _, args := range [][]string{{"cluster", "--index", index}, {"similar", "--index", index, "--scan", list[0].ID}} {
		if out := string(succeed(t, append(args, "--config", file)...)); !strings.Contains(out, "decided pairs are not obeyed") {
			t.Errorf("%s says: %s", args[0], out)
		}
	}
	plan := []string{"cluster", "--config", file, "--index", index, "--plan", filepath.Join(t.TempDir(), "plan.jsonl")}
	if out, code := sidecar(t, plan...); code != 1 || !strings.Contains(out, "--ignore-decided") {
		t.Errorf("the plan ends with %d: %s", code, out)
	}
	succeed(t, append(plan, "--ignore-decided")...)
}
