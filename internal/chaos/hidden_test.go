package chaos

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestJudgeOfHiddenFields feeds the judge documents of which the engine keeps parts beside them, right and wrong.
func TestJudgeOfHiddenFields(t *testing.T) {
	const sent = `{"mark":"m1","topic":"t1","vec":[0.0625,1.5625],"raw":"AAEC","value":"v1","kept":"kept 1","semantic":"passage 1"}`
	shown := func(text string) string { // as Elasticsearch shows a document with an embedding
		vector, _ := json.Marshal(embedding(text))
		const form = `,"_inference_fields":{"semantic":{"inference":{"chunks":{"semantic":[{"embeddings":%s}]}}}}}`
		return strings.TrimSuffix(sent, "}") + fmt.Sprintf(form, vector)
	}
	other := "passage 2"
	for n := 3; fmt.Sprint(embedding(other)) == fmt.Sprint(embedding("passage 1")); n++ {
		other = fmt.Sprint("passage ", n)
	}
	kept := map[string]string{"raw": `"AAEC"`, "value": `"v1"`, "kept": `"kept 1"`}
	for _, c := range []struct {
		name, source string
		without      string // of what is kept
		want         []string
	}{
		{"as it was sent", shown("passage 1"), "", nil},
		{"no vector", strings.Replace(shown("passage 1"), `"vec":[0.0625,1.5625],`, "", 1), "", []string{Altered}},
		{"another vector", strings.Replace(shown("passage 1"), "1.5625", "1.5", 1), "", []string{Altered}},
		{"no embedding", sent, "", []string{Altered}},
		{"the embedding of another text", shown(other), "", []string{Altered}},
		{"no bytes", shown("passage 1"), "raw", []string{Altered}},
		{"no doc values", shown("passage 1"), "value", []string{Altered}},
		{"no stored field", shown("passage 1"), "kept", []string{Altered}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, r := NewLedger(), ruleOfTests(t)
			r.Exact, r.Rewritten = false, true
			l.Finish(l.Start(Write{Index: "i", ID: "x", Kind: Put, Body: []byte(sent)}), Result{Answer: Done})
			stored := Stored{ID: "x", Source: []byte(c.source), Version: 7, Apart: map[string][]json.RawMessage{}}
			for name, value := range kept {
				if name != c.without {
					stored.Apart[name] = []json.RawMessage{json.RawMessage(value)}
				}
			}
			findings, _ := l.Judge("i", []Stored{stored}, r)
			var got []string
			for _, f := range findings {
				got = append(got, f.What)
			}
			expect.Same(t, c.want, got, "%v", findings)
		})
	}
}

// TestEmbed asks the service for embeddings.
func TestEmbed(t *testing.T) {
	w := httptest.NewRecorder()
	Embed(w, httptest.NewRequest("POST", "/", strings.NewReader(`{"input":["one","two"]}`)))
	var answer struct {
		Data []struct{ Embedding []float64 }
	}
	expect.OK(t, json.Unmarshal(w.Body.Bytes(), &answer))
	expect.Same(t, 2, len(answer.Data), "embeddings")
	expect.Same(t, embedding("two"), answer.Data[1].Embedding, "the second")
}
