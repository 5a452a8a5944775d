package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
)

const nestedSchema = `{"name":"NAME","enable_nested_fields":true,"fields":[{"name":"title","type":"string"},{"name":"body",` +
	`"type":"string","optional":true},` +
	`{"name":"n","type":"int32","facet":true},{"name":"k","type":"string","facet":true},{"name":"meta","type":"object",` +
	`"optional":true}]}`

// nestedDocuments are documents with objects in them, of which no two texts are alike.
func nestedDocuments(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"id":"%d","title":"alpha t%d","body":"%s","n":%d,"k":"k%d","meta":{"author":{"name":"a%d",`+
			`"age":%d},"tags":["x","y%d"],`+
			`"neardup_sketch":"the client's own"},"undeclared":[{"title":"inner %d"},null,1.5]}`, i, i%5,
			strings.Repeat(fmt.Sprintf("own%d w%d ", i, i*i), 6), i, i%3, i, i, i, i))
	}
	return list
}

// pieces are what lists of fields are made of.
var pieces = []string{
	"title", "body", "id", "n", "k", "meta", "meta.author", "meta.author.name", "meta.tags", "meta.neardup_sketch", "undeclared",
	"undeclared.title", "nope", "", " ", " title ", "body ", "TITLE",
	"neardup", "neardup_sketc", "neardup_sketch2", "document", "hits", "t", "titl", "meta.", ".meta", "\"title\"", "a b",
}

func randomFields(r *rand.Rand) string {
	var list []string
	for range r.IntN(5) {
		list = append(list, pieces[r.IntN(len(pieces))])
	}
	return strings.Join(list, ",")
}

// TestTypesenseFieldsAtRandom asks for random lists of fields: the documents are, byte for byte, those of a collection without
// sketches.
func TestTypesenseFieldsAtRandom(t *testing.T) {
	p := newDuo(t, nestedSchema, nestedDocuments(20)...)
	one := seeded(t)
	r := rand.New(rand.NewPCG(one, 2))
	for range effort.Rounds(150) {
		params := url.Values{}
		for _, name := range []string{"include_fields", "exclude_fields"} {
			for range r.IntN(3) {
				params.Add(name, randomFields(r))
			}
		}
		if r.IntN(3) == 0 {
			params.Set("highlight_full_fields", randomFields(r))
		}
		query := params.Encode()
		p.both(t, "GET /collections/NAME/documents/export?"+query, "")
		params.Set("per_page", fmt.Sprint(1+r.IntN(25)))
		params.Set("page", fmt.Sprint(1+r.IntN(2)))
		query = params.Encode()
		p.both(t, searched+"?q=alpha&query_by=title&"+query, "")
		fields := fmt.Sprintf(`,"include_fields":%q,"exclude_fields":%q`, randomFields(r), randomFields(r))
		body := `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"` + fields +
			`},{"q":"t3","query_by":"title","collection":"NAME"}]}`
		p.both(t, multi, body)
		if r.IntN(2) == 0 {
			p.both(t, multi+"?"+query, body)
		}
		if t.Failed() {
			return
		}
	}
}
