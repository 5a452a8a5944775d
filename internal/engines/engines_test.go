package engines_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

func TestMain(m *testing.M) {
	os.Exit(engines.Main(m))
}

// known is, for each engine, a path that answers with the server's version, and how.
var known = map[string]struct{ path, version string }{
	engines.Elasticsearch:  {"/", `"number" : "9.`},
	engines.Elasticsearch8: {"/", `"number" : "8.`},
	engines.OpenSearch:     {"/", `"number" : "3.`},
	engines.OpenSearch2:    {"/", `"number" : "2.`},
	engines.Typesense:      {"/debug", `"version":"`},
}

// programs are those in internal/clients that load and page with the Python client of a kind.
var programs = map[string]string{
	engines.Elasticsearch: "elastic_client.py", engines.OpenSearch: "opensearch_client.py", engines.Typesense: "typesense_client.py",
}

func TestEngineAnswers(t *testing.T) {
	for _, kind := range engines.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := engines.Shared(t, kind)
			if again := engines.Shared(t, kind); again != e {
				t.Errorf("Shared gave a second engine at %s, the first is at %s", again.URL, e.URL)
			}
			path, want := known[e.Name].path, known[e.Name].version
			if got := get(t, e, path); !strings.Contains(got, want) {
				t.Errorf("GET %s: got %s, want it to hold %s", path, got, want)
			}
		})
	}
}

// With NEARDUP_OLDER=1 the names of the current majors mean those before them.
func TestOlderEngines(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for _, name := range []string{engines.Elasticsearch, engines.OpenSearch, engines.Elasticsearch8, engines.OpenSearch2} {
		t.Setenv(engines.Variable(name, "URL"), server.URL)
	}
	for older, want := range map[string][]string{
		"":  {"elasticsearch elasticsearch", "opensearch opensearch"},
		"1": {"elasticsearch8 elasticsearch", "opensearch2 opensearch"},
	} {
		t.Setenv("NEARDUP_OLDER", older)
		var got []string
		for _, name := range []string{engines.Elasticsearch, engines.OpenSearch} {
			e := engines.Start(t, name)
			got = append(got, e.Name+" "+e.Kind)
		}
		expect.Same(t, want, got, "NEARDUP_OLDER=%s: -want +got", older)
	}
}

func TestStartedEngineStops(t *testing.T) {
	for _, kind := range engines.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var e *engines.Engine
			t.Run("use", func(t *testing.T) {
				e = engines.Start(t, kind)
				if e.PID != 0 && !alive(e.PID) {
					t.Errorf("no process %d", e.PID)
				}
			})
			if e == nil || e.PID == 0 {
				t.Skip("no engine of our own")
			}
			if alive(e.PID) {
				t.Errorf("process %d lives after the test that started it", e.PID)
			}
			if resp, err := http.Get(e.URL); err == nil {
				resp.Body.Close()
				t.Errorf("%s still answers", e.URL)
			}
		})
	}
}

func TestPythonClients(t *testing.T) {
	const documents, size = 20, 6
	corpus, wantIDs := writeCorpus(t, documents)
	for _, kind := range engines.Kinds {
		for _, auto := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/auto=%t", kind, auto), func(t *testing.T) {
				t.Parallel()
				e := engines.Shared(t, kind)
				index := fmt.Sprintf("smoke-%t-%x", auto, rand.Uint32()) // new, should the engine have been used before
				run := func(verb string, args ...string) []byte {
					t.Helper()
					if auto {
						args = append(args, "--auto")
					}
					return clients.Run(t, programs[kind],
						append([]string{verb, "--url", e.URL, "--key", e.Key, "--index", index}, append(args, clients.For(e)...)...)...)
				}
				checkJSON(t, run("load", "--corpus", corpus), map[string]any{"loaded": float64(documents), "errors": []any{}})
				for _, query := range []string{"fox", "*"} {
					checkWalk(t, run("walk", "--query", query, "--size", fmt.Sprint(size)), wantIDs, size)
				}
				checkJSON(t, run("get", "--id", "doc-07"), document(7))
			})
		}
	}
}

// document is one line of the corpus.
func document(i int) map[string]any {
	return map[string]any{
		"id":           fmt.Sprintf("doc-%02d", i),
		"title":        fmt.Sprintf("Story %d", i),
		"body":         "The quick brown fox jumps over the lazy dog.",
		"url":          fmt.Sprintf("http://example.org/%d", i),
		"published_at": "2024-05-06T07:08:09Z",
	}
}

func writeCorpus(t *testing.T, n int) (path string, ids []string) {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		line := expect.Value(json.Marshal(document(i)))(t)
		fmt.Fprintf(&lines, "%s\n", line)
		ids = append(ids, fmt.Sprintf("doc-%02d", i))
	}
	path = filepath.Join(t.TempDir(), "corpus.jsonl")
	expect.OK(t, os.WriteFile(path, []byte(lines.String()), 0o600))
	return path, ids
}

func checkJSON(t *testing.T, got []byte, want any) {
	t.Helper()
	var value any
	expect.JSON(t, got, &value)
	expect.Same(t, want, value, "-want +got")
}

// checkWalk checks that pages of this size give every id once, and the right total each time.
func checkWalk(t *testing.T, got []byte, wantIDs []string, size int) {
	t.Helper()
	var walk struct {
		Pages  [][]string
		Totals []int
	}
	expect.JSON(t, got, &walk)
	seen := map[string]int{}
	for i, page := range walk.Pages {
		if i < len(walk.Pages)-1 && len(page) != size {
			t.Errorf("page %d has %d ids, want %d", i+1, len(page), size)
		}
		for _, id := range page {
			seen[id]++
		}
	}
	want := map[string]int{}
	for _, id := range wantIDs {
		want[id] = 1
	}
	expect.Same(t, want, seen, "ids on all pages: -want +got")
	// One more request than pages: the walk ends with an empty one.
	expect.Same(t, len(walk.Pages)+1, len(walk.Totals), "totals")
	for _, total := range walk.Totals {
		expect.Same(t, len(wantIDs), total, "total")
	}
}

func get(t *testing.T, e *engines.Engine, path string) string {
	t.Helper()
	req := expect.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL+path, nil))(t)
	if e.Key != "" {
		req.Header.Set("X-Typesense-Api-Key", e.Key)
	}
	resp := expect.Value(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v: %s", path, resp.Status, err, body)
	}
	return string(body)
}

// alive reports whether a process runs. One that has ended but that nobody has waited for yet has no command line.
func alive(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && len(line) > 0
}
