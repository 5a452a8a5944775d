// The Go client of Elasticsearch takes minutes to compile: make test-all has this tag, make test does without it.

//go:build goclient

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/google/go-cmp/cmp"
	opensearch "github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"

	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
)

// way is how a search came back: the hits, and whether the header said collapsed or bypassed, as far as the client shows it.
type way struct {
	hits int
	said string
}

// What comes of a search for "ferry" among the articles.
var (
	foldedUnseen, leftUnseen = way{3, ""}, way{7, ""}
	foldedSaid, leftSaid     = way{3, "collapsed"}, way{7, "bypassed"}
)

// TestControlsOfClients holds the last table of examples/README.md: which client lets which control through, and shows the header.
func TestControlsOfClients(t *testing.T) {
	file := filepath.Join("..", "..", "examples", "articles.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		a := api{e, serve(t, e, setup{match: "articles-controls*", threshold: 0.64})}
		index := fmt.Sprintf("articles-controls-%d", os.Getpid())
		a.drop(t, index)
		a.create(t, index)
		var lines strings.Builder
		for line := range strings.Lines(string(text)) {
			if !a.typesense() {
				var d struct{ ID string }
				if err := json.Unmarshal([]byte(line), &d); err != nil {
					t.Fatal(err)
				}
				lines.WriteString(`{"index":{"_index":"` + index + `","_id":"` + d.ID + "\"}}\n")
			}
			lines.WriteString(line)
		}
		a.loadLines(t, index, lines.String())
		run := func(t *testing.T, program string, want map[string]any) {
			var got map[string]any
			args := []string{e.Kind, "--url", a.base, "--key", e.Key, "--index", index}
			if err := json.Unmarshal(clients.Run(t, program, args...), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, waysOf(got), cmp.AllowUnexported(way{})); diff != "" {
				t.Error(diff)
			}
		}
		switch e.Kind {
		case engines.Elasticsearch:
			t.Run("Python", func(t *testing.T) {
				run(t, "controls.py", map[string]any{"none": foldedSaid, "header": leftSaid, "parameter": "TypeError"})
			})
			t.Run("JavaScript", func(t *testing.T) {
				run(t, "controls.js", map[string]any{"none": foldedSaid, "header": leftSaid, "parameter": leftSaid, "bare": "collapsed"})
			})
			t.Run("Go", func(t *testing.T) { goElasticControls(t, a.base, index) })
		case engines.OpenSearch:
			t.Run("Python", func(t *testing.T) {
				run(t, "controls.py",
					map[string]any{"none": foldedUnseen, "header": leftUnseen, "parameter": leftUnseen, "body": leftUnseen})
			})
			t.Run("Go", func(t *testing.T) { goOpenControls(t, a.base, index) })
		case engines.Typesense:
			t.Run("Python", func(t *testing.T) {
				run(t, "controls.py", map[string]any{
					"none": foldedUnseen, "parameter": leftUnseen, "text": way{6, ""}, "fraction": "InvalidParameter"})
			})
			t.Run("JavaScript", func(t *testing.T) {
				run(t, "controls.js", map[string]any{"none": foldedUnseen, "parameter": leftUnseen, "fraction": way{6, ""}})
			})
		}
	})
}

// waysOf reads what the programs print.
func waysOf(got map[string]any) map[string]any {
	ways := map[string]any{}
	for name, value := range got {
		pair, isPair := value.([]any)
		text, isText := value.(string)
		switch {
		case isPair && len(pair) == 2:
			hits, _ := pair[0].(float64)
			said, _ := pair[1].(string)
			ways[name] = way{int(hits), verb(said)}
		case isText:
			ways[name] = verb(text)
		}
	}
	return ways
}

// verb is the first word of the header.
func verb(header string) string {
	word, _, _ := strings.Cut(header, ";")
	return word
}

// goElasticControls asks with the typed client, and with keys of the body.
func goElasticControls(t *testing.T, base, index string) {
	client, err := elasticsearch.NewTypedClient(elasticsearch.Config{Addresses: []string{base}})
	if err != nil {
		t.Fatal(err)
	}
	query := `{"query":{"multi_match":{"query":"ferry","fields":["title","body"]}}`
	reply, err := client.Search().Index(index).Raw(strings.NewReader(query+"}")).Header("Neardup-Control", "off").Perform(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if said := verb(reply.Header.Get("Neardup")); said != "bypassed" {
		t.Errorf("asked by a header it is %q", said)
	}
	for body, want := range map[string]int{query + "}": 3, query + `,"neardup":"off"}`: 7} {
		reply, err := client.Search().Index(index).Raw(strings.NewReader(body)).Do(t.Context())
		if err != nil || len(reply.Hits.Hits) != want {
			t.Errorf("%s: %v %v, want %d hits", body, err, reply, want)
		}
	}
	found, err := client.Search().Index(index).Raw(strings.NewReader(query+"}")).
		Header("Neardup-Control", "expand=source; explain=true").Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	folded := 0
	for _, hit := range found.Hits.Hits {
		for _, version := range hit.InnerHits["neardup"].Hits.Hits {
			if len(version.Source_) > 0 && len(version.Fields["neardup_agreement"]) > 0 && len(version.Fields["neardup_explain"]) > 0 {
				folded++
			}
		}
	}
	if folded != 4 {
		t.Errorf("the typed client reads %d folded hits, not 4", folded)
	}
}

// goOpenControls asks by a header, and with keys of the body.
func goOpenControls(t *testing.T, base, index string) {
	client, err := opensearchapi.NewClient(opensearchapi.Config{Client: opensearch.Config{Addresses: []string{base}}})
	if err != nil {
		t.Fatal(err)
	}
	query := `{"query":{"multi_match":{"query":"ferry","fields":["title","body"]}}`
	for _, c := range []struct {
		body, control string
		want          way
	}{
		{query + "}", "", foldedSaid},
		{query + "}", "off", leftSaid},
		{query + `,"neardup":"off"}`, "", leftSaid},
	} {
		request := opensearchapi.SearchReq{Indices: []string{index}, Body: strings.NewReader(c.body), Header: http.Header{}}
		if c.control != "" {
			request.Header.Set("Neardup-Control", c.control)
		}
		reply, err := client.Search(t.Context(), &request)
		if err != nil {
			t.Fatal(err)
		}
		said := verb(reply.Inspect().Response.Header.Get("Neardup"))
		if got := (way{len(reply.Hits.Hits), said}); got != c.want {
			t.Errorf("%s %s: %v, want %v", c.body, c.control, got, c.want)
		}
	}
}
