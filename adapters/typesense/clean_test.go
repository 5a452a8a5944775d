package typesense

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
)

// refusedLine returns the reply to a line that the engine refuses, which holds the line as it came.
func refusedLine(line string) []byte {
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(line)
	return fmt.Appendf(nil, `{"code":400,"document":%s,"error":"bad","success":false}`, strings.TrimSpace(quoted.String()))
}

// TestRefusedLines: a refused line of an import comes back as the client sent it, whatever our fields were spliced in and whichever of
// them the client names itself.
func TestRefusedLines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	members := []string{
		`"title":"one two three four five"`, `"title":""`, `"title":5`, `"body":"b"`, `"neardup_sketch":"own"`, `"neardup_bands":[1, 2]`,
		`"neardup_bands":[1,2]`, `"neardup_cluster":"own"`, `"neardup_cluster":null`, `"n":1`, `"neardup_sketch" : null`, `"x":{"neardup_cluster":"in"}`,
	}
	cut := 0
	rounds := effort.Rounds(5000)
	for i := range rounds {
		rule := newRule(t, "articles", "title")
		if r.IntN(2) == 0 {
			rule.Bands, rule.Rows = 4, 4
		}
		rule.Clusters = r.IntN(2) == 0
		var chosen []string
		seen := map[string]bool{}
		for range r.IntN(6) {
			m := members[r.IntN(len(members))]
			if key, _, _ := strings.Cut(strings.ReplaceAll(m, " ", ""), ":"); !seen[key] {
				seen[key] = true
				chosen = append(chosen, m)
			}
		}
		sent := "{" + strings.Join(chosen, ",") + []string{"", " "}[r.IntN(2)] + "}"
		action := []string{"create", "update", "emplace"}[r.IntN(3)]
		d, e := Dialect{}, newEnricher(rule, nil)
		e.Rule = func(string, bool) (*adapters.Rule, bool) { return rule, i%5 > 0 }
		e.Count = nil
		c := d.Classify(&adapters.Request{Method: "POST", Path: "/collections/articles/documents/import", RawQuery: "action=" + action})
		var stored, shown bytes.Buffer
		if err := d.EnrichWrite(c, &stored, strings.NewReader(sent), e); err != nil {
			t.Fatal(err)
		}
		if stored.String() == sent {
			continue
		}
		cut++
		if err := d.CleanReply(c, &shown, bytes.NewReader(refusedLine(stored.String()))); err != nil {
			t.Fatal(err)
		}
		if want := refusedLine(sent); !bytes.Equal(shown.Bytes(), want) {
			t.Errorf("%s of %s was stored as %s, and is shown as %s", action, sent, stored.String(), shown.String())
		}
	}
	if cut < rounds/3 {
		t.Errorf("only %d were enriched", cut)
	}
}

// TestAllOursAreCut: what is cut of the sketch is cut of all three fields.
func TestAllOursAreCut(t *testing.T) {
	const ours = `"neardup_bands":[1,2],"neardup_cluster":"c","neardup_sketch":"s"`
	for _, c := range []struct{ method, path, reply, want string }{
		{"GET", "/collections/a/documents/1", `{"id":"1",` + ours + `}`, `{"id":"1"}`},
		{"GET", "/collections/a/documents/1", `{"id":"1","neardup_cluster":"c"}`, `{"id":"1"}`},
		{"GET", "/collections/a/documents/export", `{"id":"1","neardup_cluster":"c"}` + "\n" + `{` + ours + `,"x":1}`, `{"id":"1"}` + "\n" + `{"x":1}`},
		{"POST", "/collections/a/documents/import", `{"document":{"id":"1","neardup_bands":[1]},"success":true}`, `{"document":{"id":"1"},"success":true}`},
		{"GET", "/collections/a", `{"fields":[{"name":"neardup_cluster"},{"name":"t"},{"name":"neardup_bands"}]}`, `{"fields":[{"name":"t"}]}`},
		{"GET", "/collections", `[{"fields":[{"name":"neardup_bands"}]}]`, `[{"fields":null}]`},
		{"PATCH", "/collections/a", `{"fields":[{"name":"neardup_bands","type":"int64[]"}]}`, `{"fields":null}`},
		{"DELETE", "/collections/a/documents/1", `{` + ours + `}`, `{}`},
		{"GET", "/collections/a/documents/search", `{"hits":[{"document":{` + ours + `}}]}`, `{"hits":[{"document":{}}]}`},
		{"POST", "/multi_search", `{"results":[{"grouped_hits":[{"hits":[{"document":{"neardup_cluster":"c"}}]}]}]}`, `{"results":[{"grouped_hits":[{"hits":[{"document":{}}]}]}]}`},
	} {
		var out bytes.Buffer
		class := Dialect{}.Classify(&adapters.Request{Method: c.method, Path: c.path})
		if err := (Dialect{}).CleanReply(class, &out, strings.NewReader(c.reply)); err != nil || out.String() != c.want {
			t.Errorf("%s %s: %s is shown as %s, %v", c.method, c.path, c.reply, out.String(), err)
		}
	}
	for _, field := range []string{adapters.SketchField, adapters.BandsField, adapters.ClusterField} {
		class := Dialect{}.Classify(&adapters.Request{Method: "GET", Path: "/collections/a/documents/1", RawQuery: "include_fields=id," + field})
		if !class.Shown {
			t.Errorf("%s is not shown where it is named", field)
		}
	}
}
