package e2e

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/similar"
)

// likes is an answer about near-duplicates.
type likes struct {
	similar.Similar
	Took *int
}

// ids returns what was found, with the agreement of each.
func (a likes) ids(t *testing.T, index string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for i, one := range a.Alike {
		if _, twice := found[one.ID]; twice || one.Index != index {
			t.Errorf("%+v: twice %v", one, twice)
		}
		if before := a.Alike[max(i-1, 0)]; before.Agreement < one.Agreement && !before.SameText {
			t.Errorf("%+v comes before %+v", before, one)
		}
		found[one.ID] = one.Agreement
	}
	return found
}

// banded starts a sidecar whose rule stores bands, and fills an index of the name through it.
func banded(t *testing.T, e *engines.Engine, index string, list []corpus.Document, key string) (file string, through api) {
	t.Helper()
	file = config(t, e, setup{match: index, key: key, rule: "bands: auto"})
	through = api{e, serveFile(t, file)}
	through.create(t, index, list...)
	return file, through
}

// want returns the near-duplicates of a document by the definition.
func (o *oracle) similar(id string, list []corpus.Document) map[string]float64 {
	found := map[string]float64{}
	a := o.sketches[id]
	for _, d := range list {
		if b := o.sketches[d.ID]; d.ID != id && o.near(a, b) {
			found[d.ID], _ = a.Agreement(&b)
		}
	}
	return found
}

// sparse returns some of the documents.
func sparse(list []corpus.Document, step int) (some []corpus.Document) {
	for i := 0; i < len(list); i += step {
		some = append(some, list[i])
	}
	return some
}

// TestSimilar asks for the near-duplicates of stored documents, of texts and of others, over the data port and by the command, and holds
// what is found to the comparison of every pair.
func TestSimilar(t *testing.T) {
	onEach(t, true, []string{engines.Elasticsearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		const index = "like-1"
		list := documents(t)
		file, through := banded(t, e, index, list, "")
		o := newOracle(t, api{e, e.URL}, list)
		there, found := 0, 0
		for _, d := range sparse(list, 10) {
			var got likes
			decode(t, call(t, e, "GET", through.base+"/_neardup/"+index+"/similar/"+d.ID+"?size=1000", "").want(t, 200).body, &got)
			want, ids := o.similar(d.ID, list), got.ids(t, index)
			for id, agreement := range ids {
				if math.Abs(want[id]-agreement) > 1e-9 {
					t.Errorf("%s: finds %s with %v, not %v", d.ID, id, agreement, want[id])
				}
			}
			there, found = there+len(want), found+len(ids)
			document, _ := json.Marshal(d)
			var posted likes
			decode(t, call(t, e, "POST", through.base+"/_neardup/"+index+"/similar?size=1000", string(document)).want(t, 200).body, &posted)
			all := posted.ids(t, index)
			if all[d.ID] != 1 || !posted.Alike[0].SameText || len(all) != len(ids)+1 || posted.Took == nil {
				t.Errorf("%s: posted, it finds %v, stored %v", d.ID, all, ids)
			}
		}
		if found < there*99/100 || there < 20 {
			t.Errorf("%d of %d near-duplicates found", found, there)
		}
		checkSimilarCommand(t, o, file, index, list)
	})
}

// checkSimilarCommand holds the command to the comparison of every pair.
func checkSimilarCommand(t *testing.T, o *oracle, file, index string, list []corpus.Document) {
	t.Helper()
	run := func(stdin string, args ...string) likes {
		t.Helper()
		cmd := command(t, t.Context(), append([]string{"similar", "--config", file, "--index", index, "--output", "json", "--size", "1000"}, args...)...)
		var out, complaint bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &complaint
		expect.Must(t, 0, exitCode(t, cmd.Run()), "the exit code of similar %v: %s", args, &complaint)
		var got likes
		decode(t, out.Bytes(), &got)
		return got
	}
	of := func(m map[string]float64) []string { return slices.Sorted(maps.Keys(m)) }
	for _, d := range sparse(list, 120) {
		want := of(o.similar(d.ID, list))
		if got := of(run("", "--scan", d.ID).ids(t, index)); !slices.Equal(got, want) {
			t.Errorf("%s: --scan finds %v, not %v", d.ID, got, want)
		}
		document, _ := json.Marshal(d)
		with := slices.Sorted(slices.Values(append(slices.Clone(want), d.ID)))
		if got := of(run(string(document), "--scan", "-").ids(t, index)); !slices.Equal(got, with) {
			t.Errorf("%s on standard input: finds %v, not %v", d.ID, got, with)
		}
	}
	if out, code := sidecar(t, "similar", "--config", file, "--index", index, "no-such-id"); code != 1 || !strings.Contains(out, "no such document") {
		t.Errorf("an id that is not there: %d %s", code, out)
	}
}

// TestSimilarCredentials: nothing is looked up but with the client's own credentials, and what these don't show is not shown.
func TestSimilarCredentials(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const index = "like-keys"
	list := documents(t)[:120]
	const header = "X-Typesense-Api-Key"
	_, through := banded(t, e, index, list, "of-nobody")
	search := newKey(t, e, `"documents:search"`, `"`+index+`"`)
	keys := map[string]string{"all": e.Key, "search": search, "none": "bad"}
	o := newOracle(t, api{e, e.URL}, list)
	at := slices.IndexFunc(list, func(d corpus.Document) bool { return len(o.similar(d.ID, list)) > 1 })
	d := list[at]
	want := slices.Sorted(maps.Keys(o.similar(d.ID, list)))
	dated := func(id string) string {
		return list[slices.IndexFunc(list, func(d corpus.Document) bool { return d.ID == id })].PublishedAt
	}
	if d.PublishedAt == dated(want[0]) || dated(want[0]) == dated(want[1]) {
		t.Fatal("the corpus has changed: choose another document")
	}
	// A key that hides one of them, and one that hides the document itself.
	keys["scoped"] = scopedOf(search, "{\"filter_by\":\"published_at:!=`"+dated(want[0])+"`\"}")
	keys["scoped out"] = scopedOf(search, "{\"filter_by\":\"published_at:!=`"+d.PublishedAt+"`\"}")
	document, _ := json.Marshal(d)
	pair := `{"index":"` + index + `","a":` + string(document) + `,"b":{"text":"other"}}`
	for range 2 { // once more with what the sidecar knows by now
		for name, key := range keys {
			byID := call(t, e, "GET", through.base+"/_neardup/"+index+"/similar/"+d.ID, "", header, key)
			posted := call(t, e, "POST", through.base+"/_neardup/"+index+"/similar", string(document), header, key)
			compared := call(t, e, "POST", through.base+"/_neardup/compare", pair, header, key)
			if good := name != "none"; (compared.status == 200) != good || !good && compared.status != posted.status {
				t.Errorf("%s: compared %d %s", name, compared.status, compared.body)
			}
			switch name {
			case "all", "search", "scoped":
				if byID.status != 200 || posted.status != 200 {
					t.Errorf("%s: %d %s, posted %d %s", name, byID.status, byID.body, posted.status, posted.body)
					continue
				}
				var got, gotPosted likes
				decode(t, byID.want(t, 200).body, &got)
				decode(t, posted.want(t, 200).body, &gotPosted)
				expected := want
				if name == "scoped" {
					expected = want[1:]
				}
				if ids := slices.Sorted(maps.Keys(got.ids(t, index))); !slices.Equal(ids, expected) || len(gotPosted.Alike) != len(expected)+1 {
					t.Errorf("%s: finds %v and %d, not %v", name, ids, len(gotPosted.Alike), expected)
				}
			case "scoped out":
				if byID.status < 400 || strings.Contains(string(byID.body), want[0]) {
					t.Errorf("%s: %d %s", name, byID.status, byID.body)
				}
			default:
				if byID.status != posted.status || posted.status != 401 && posted.status != 403 || strings.Contains(string(posted.body), want[0]) {
					t.Errorf("%s: %d %s, posted %d %s", name, byID.status, byID.body, posted.status, posted.body)
				}
			}
		}
	}
}
