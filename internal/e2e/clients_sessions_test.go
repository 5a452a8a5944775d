package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// clientRun has a client work at a base URL, on indices of the prefix, and returns what package clients says of sessions.
type clientRun func(t *testing.T, base, prefix string, list []corpus.Document) []byte

// TestClientSessions has each official client in Python and JavaScript do as much as it can.
func TestClientSessions(t *testing.T) {
	for _, s := range []struct {
		client, engine string
		run            clientRun
	}{
		{"elasticsearch-py", engines.Elasticsearch, program("elastic_session.py")},
		{"elasticsearch8-py", engines.Elasticsearch, program("elastic_session.py", "--client", "elasticsearch8")},
		{"elasticsearch-dsl", engines.Elasticsearch, program("dsl_session.py")},
		{"elasticsearch8-dsl", engines.Elasticsearch, program("dsl_session.py", "--client", "elasticsearch8")},
		{"elasticsearch-js", engines.Elasticsearch, program("elastic_session.js")},
		{"elasticsearch8-js", engines.Elasticsearch, program("elastic_session.js", "--client", "elasticsearch8")},
		{"opensearch-py", engines.OpenSearch, program("opensearch_session.py")},
		{"typesense-py", engines.Typesense, withKey("typesense_session.py")},
		{"typesense-js", engines.Typesense, withKey("typesense_session.js")},
	} {
		t.Run(s.client, func(t *testing.T) {
			t.Parallel()
			compareSessions(t, s.client, s.engine, s.run)
		})
	}
}

// compareSessions runs a client's program at the engine and then, on indices of the same names made anew, through the sidecar, and holds
// what the client returned there against what it returned here. Most texts are there in several versions. Each hit of a collapsed page has a member more:
// the group that it is of.
func compareSessions(t *testing.T, client, engine string, run clientRun) {
	t.Helper()
	e, prefix, list := engines.Shared(t, engine), fmt.Sprintf("session-%d-%s", os.Getpid(), client), documents(t)[:150]
	if e.Name == engines.Elasticsearch8 && !strings.HasPrefix(client, "elasticsearch8") {
		t.Skip("Elasticsearch 8 refuses clients of 9")
	}
	ran := func(base string) (s session, groups int) {
		wipe(t, e, prefix)
		out := run(t, base, prefix, list)
		return readSession(t, out), len(groupMember.FindAll(out, -1))
	}
	defer wipe(t, e, prefix)
	direct, none := ran(e.URL)
	through, groups := ran(serve(t, e, setup{match: prefix + "-*", rule: "group: true"}))
	if groups < 100 || none > 0 {
		t.Errorf("the client shows %d groups, from the engine %d", groups, none)
	}
	direct.folded(t, through, newOracle(t, api{e, e.URL}, list))
	if !rule.HasSketch(api{e, e.URL}.get(t, prefix+"-main", list[0].ID)) {
		t.Error("the engine holds no sketch")
	}
}

// groupMember is the group of a hit, as each client prints it.
var groupMember = regexp.MustCompile(`"neardup": ?\{"group": ?"[0-9a-v]{13}"`)

func program(file string, more ...string) clientRun {
	return func(t *testing.T, base, prefix string, list []corpus.Document) []byte {
		return clients.Run(t, file, append([]string{"--url", base, "--index", prefix, "--corpus", corpusFile(t, list)}, more...)...)
	}
}

// withKey runs a program that is given the engine's key.
func withKey(file string) clientRun {
	return func(t *testing.T, base, prefix string, list []corpus.Document) []byte {
		key := engines.Shared(t, engines.Typesense).Key
		return clients.Run(t, file, "--url", base, "--key", key, "--index", prefix, "--corpus", corpusFile(t, list))
	}
}

// wipe drops all indices of the prefix.
func wipe(t *testing.T, e *engines.Engine, prefix string) {
	t.Helper()
	if e.Kind == engines.Typesense {
		wipeTypesense(t, e, prefix)
		return
	}
	list := call(t, e, "GET", e.URL+"/_cat/indices/"+prefix+"-*?h=index", "").want(t, 200)
	for index := range strings.FieldsSeq(string(list.body)) {
		call(t, e, "DELETE", e.URL+"/"+index, "").want(t, 200)
	}
}

// wipeTypesense drops all collections and aliases of the prefix. Presets and keys a session drops itself.
func wipeTypesense(t *testing.T, e *engines.Engine, prefix string) {
	t.Helper()
	var aliases struct{ Aliases []struct{ Name string } }
	var collections []struct{ Name string }
	for path, into := range map[string]any{"/aliases": &aliases, "/collections": &collections} {
		decode(t, call(t, e, "GET", e.URL+path, "").want(t, 200).body, into)
	}
	for path, list := range map[string][]struct{ Name string }{"/aliases/": aliases.Aliases, "/collections/": collections} {
		for _, item := range list {
			if strings.HasPrefix(item.Name, prefix+"-") {
				call(t, e, "DELETE", e.URL+path+item.Name, "").want(t, 200)
			}
		}
	}
}

// session is what a client returned, by step, in the form that package clients describes.
type session struct {
	Same     map[string]any   `json:"same"`
	Searches map[string][]any `json:"searches"`
	Cursors  map[string][]any `json:"cursors"`
}

// volatile are the keys, in small letters, whose values differ from one run to the next: times, random names, what a task took,
// and headers of one connection. Neardup is the header that the sidecar adds by its contract, and the name of a cluster may hold
// that word.
var volatile = []string{
	"took", "_scroll_id", "pit_id", "creation_date", "creation_time", "uuid", "index_uuid", "task_resource_usage",
	"content-length", "transfer-encoding", "connection", "neardup", "cluster_name",
	"search_time_ms", "created_at",
}

// volatileText are such values within texts: the unique id of an index, as errors quote it, and where in its segment an explained
// document stands.
var volatileText = regexp.MustCompile(`(session-[\w-]+[ /]|index_uuid': ')[\w-]{22}| in \d+\) \[PerFieldSimilarity\]`)

func readSession(t *testing.T, out []byte) (s session) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(volatileText.ReplaceAll(out, nil)))
	d.UseNumber()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("%v: %.500s", err, out)
	}
	if len(s.Same) < 30 || len(s.Searches) < 4 {
		t.Fatalf("%d and %d steps: the session is not whole", len(s.Same), len(s.Searches))
	}
	for _, pages := range []map[string][]any{s.Searches, s.Cursors} {
		for step := range pages {
			settle(pages[step])
		}
	}
	settle(s.Same)
	return s
}

// alternatives are what stands between the alternatives of a query that is explained. Which comes first depends on how many fields the
// mapping has, and on the run of the engine.
var alternatives = regexp.MustCompile(` \| |[()]`)

// settle takes what is volatile out of a value.
func settle(value any) {
	switch value := value.(type) {
	case map[string]any:
		if text, ok := value["explanation"].(string); ok {
			list := alternatives.Split(text, -1)
			slices.Sort(list)
			value["explanation"] = strings.Join(list, "\n")
		}
		maps.DeleteFunc(value, func(key string, _ any) bool { return slices.Contains(volatile, strings.ToLower(key)) })
		for _, member := range value {
			settle(member)
		}
	case []any:
		for _, element := range value {
			settle(element)
		}
	}
}

// hidden looks for anything of ours.
func (s session) hidden(t *testing.T) {
	t.Helper()
	text := must(json.Marshal(s))(t)
	if i := bytes.Index(bytes.ToLower(text), []byte("neardup")); i >= 0 {
		t.Errorf("the client gets to see …%s…", text[max(0, i-200):min(len(text), i+100)])
	}
}

func compare[V any](t *testing.T, kind string, direct, through map[string]V) {
	t.Helper()
	expect.Must(t, slices.Sorted(maps.Keys(direct)), slices.Sorted(maps.Keys(through)), "steps of %s", kind)
	for _, step := range slices.Sorted(maps.Keys(direct)) {
		expect.Same(t, direct[step], through[step], "%s, %q", kind, step)
	}
}

// steered are the steps whose searches take what we steer from elsewhere (a preset, a scoped key) or limit it, and so may be left
// alone, as the README says: their pages are the engine's own, or collapsed, and nothing else.
var steered = []string{
	"preset", "limited", "key: of a size", "key: of a size, in a browser", "key: without body", "key: without body, in a browser",
}

// folded holds searches against their definition, and all else against what the client returned from the engine.
func (s session) folded(t *testing.T, through session, o *oracle) {
	t.Helper()
	compare(t, "same", s.Same, through.Same)
	through.hidden(t)
	fold := 0
	for step, pages := range s.Searches {
		raw := slices.Concat(pageIDs(pages)...)
		want := o.collapsed(raw)
		if slices.Contains(steered, step) && cmp.Equal(pageIDs(pages), pageIDs(through.Searches[step])) {
			want = raw
		}
		fold += len(raw) - len(want)
		size := max(1, len(hitsOf(pages[0])))
		same(t, slices.Collect(slices.Chunk(want, size)), pageIDs(through.Searches[step]), "%q", step)
		sameHits(t, step, pages, through.Searches[step])
	}
	for step, pages := range s.Cursors {
		raw, got := slices.Concat(pageIDs(pages)...), slices.Concat(pageIDs(through.Cursors[step])...)
		want := o.collapsed(raw)
		kept := slices.DeleteFunc(slices.Clone(raw), func(id string) bool { return !slices.Contains(got, id) })
		missing := slices.DeleteFunc(want, func(id string) bool { return slices.Contains(got, id) })
		if diff := cmp.Diff(kept, got); diff != "" || len(missing) > 0 {
			t.Errorf("%q: leaders %q are missing; %s", step, missing, diff)
		}
		sameHits(t, step, pages, through.Cursors[step])
	}
	if fold < 40 {
		t.Errorf("only %d hits fold over all searches", fold)
	}
}

// hitsOf returns the hits of a page: the member hits, or that of Elasticsearch within it.
func hitsOf(page any) []any {
	reply, _ := page.(map[string]any)
	switch outer := reply["hits"].(type) {
	case []any:
		return outer
	case map[string]any:
		list, _ := outer["hits"].([]any)
		return list
	}
	return nil
}

func hitID(hit any) string {
	members := hit.(map[string]any)
	if document, ok := members["document"].(map[string]any); ok && members["_id"] == nil {
		members = map[string]any{"_id": document["id"]}
	}
	id, _ := members["_id"].(string)
	return id
}

// pageIDs returns the ids on each page that is not empty.
func pageIDs(pages []any) (list [][]string) {
	for _, page := range pages {
		var ids []string
		for _, hit := range hitsOf(page) {
			ids = append(ids, hitID(hit))
		}
		if len(ids) > 0 {
			list = append(list, ids)
		}
	}
	return list
}

// sameHits checks that hits are as the engine gave them, and so is what stands around those of the first page.
func sameHits(t *testing.T, step string, direct, through []any) {
	t.Helper()
	byID := map[string]any{}
	for _, page := range direct {
		for _, hit := range hitsOf(page) {
			byID[hitID(hit)] = hit
		}
	}
	for _, page := range through {
		for _, hit := range hitsOf(page) {
			expect.Same(t, byID[hitID(hit)], hit, "%q, %s", step, hitID(hit))
		}
	}
	expect.Same(t, around(direct[0]), around(through[0]), "%q, around the hits", step)
}

// around returns a reply without its hits.
func around(page any) any {
	reply, _ := page.(map[string]any)
	outer, _ := reply["hits"].(map[string]any)
	reply, outer = maps.Clone(reply), maps.Clone(outer)
	if outer != nil {
		delete(outer, "hits")
		reply["hits"] = outer
	} else {
		delete(reply, "hits")
	}
	return reply
}
