package typesense

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// ids returns the ids of an answer's hits.
func ids(t *testing.T, answer []byte) (list []string) {
	t.Helper()
	var reply struct {
		Hits []struct{ Document struct{ ID string } }
	}
	expect.JSON(t, answer, &reply)
	for _, h := range reply.Hits {
		list = append(list, h.Document.ID)
	}
	return list
}

// What is folded into a hit is shown beside its document, of what the client itself sees; and on request why.
func TestFoldedHitsAreShown(t *testing.T) {
	r := newRule(t, "news", "body")
	r.Choice = rule.Choice{By: rule.ByField, Field: "n"}
	text := func(last string) string {
		return strings.Repeat("one two three four five six seven eight nine ten ", 2) + last
	}
	f := &fake{documents: []map[string]any{
		{"id": "a", "body": text("end"), "n": 1}, {"id": "b", "body": "something else", "n": 5}, {"id": "c", "body": text("End"), "n": 3}, {"id": "d", "n": 9},
	}}
	const highlight = `,"highlight":{},"highlights":[]`
	for _, c := range []struct{ query, want string }{
		{"neardup_expand=ids&include_fields=n",
			`{"document":{"n":3}` + highlight + `,"neardup":{"found":1,"exact":true,"hits":[{"id":"a","agreement":1.0000}]}},` +
				`{"document":{"n":5}` + highlight + `,"neardup":{"found":0,"exact":true,"hits":[]}},` +
				`{"document":{"n":9}` + highlight + `,"neardup":{"found":0,"exact":true,"hits":[]}}`},
		{"neardup_expand=source&include_fields=n&per_page=1",
			`{"document":{"n":3}` + highlight + `,"neardup":{"found":1,"exact":true,"hits":[{"id":"a","agreement":1.0000,"document":{"n":1}}]}}`},
		{"neardup_explain&exclude_fields=n,id&per_page=2",
			`{"document":{"body":"` + text("End") + `"}` + highlight + `,"neardup":{"found":1,"exact":true,"hits":[{"id":"a","agreement":1.0000,"explain":` +
				`{"agreement":1.0000,"error":0.0073,"by":"fingerprint","shingles":[11,11],"shared":["one two","two three","three four","four five",` +
				`"five six","six seven","seven eight","eight nine","nine ten","ten one"]}}],` +
				`"explain":{"representative":"field","leader":{"id":"a"},"folded":1,"threshold":0.7,"measure":"resemblance","window":40}}},` +
				`{"document":{"body":"something else"}` + highlight + `,"neardup":{"found":0,"exact":true,"hits":[],` +
				`"explain":{"representative":"field","folded":0,"threshold":0.7,"measure":"resemblance","window":40}}}`},
	} {
		s := search(get("/collections/news/documents/search?q=x&"+c.query), planFor(adapters.Scope{Window: 40, Lacking: true}, r))
		root, _ := jsonedit.Members(expect.Value(f.run(s))(t).Body)
		expect.Same(t, "["+c.want+"]", string(jsonedit.Get(root, "hits")), "%s", c.query)
		expect.Same(t, 1, f.asked, "%s: how often it asked", c.query)
		f.asked = 0
	}
}
