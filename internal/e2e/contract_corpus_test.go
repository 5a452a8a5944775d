package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/neardup/sidecar/internal/engines"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// paper is a document of the contract's corpus.
type paper struct {
	id, title, body string
	host            string // "" is none
	tags            []string
	at              time.Time // zero is none
	votes           float64   // negative is none
	n               int
	vector          [2]float64
	writer          int // through which of the sidecar's listeners it was written, or past
}

// Writers that are no listener.
const past = -1

// press makes up papers from the sentences of the corpus.
type press struct {
	*rand.Rand
	sentences []string
	made      []paper
	even      bool // near-duplicates stand near by, so that every part of every list folds alike
}

func newPress(t *testing.T, r *rand.Rand) *press {
	t.Helper()
	p := &press{Rand: r}
	for _, d := range documents(t) {
		for paragraph := range strings.SplitSeq(d.Body, "\n") {
			for sentence := range strings.SplitSeq(paragraph, ". ") {
				sentence = strings.Trim(sentence, ". ")
				if len(sentence) > 30 && len(sentence) < 220 && !slices.Contains(p.sentences, sentence) {
					p.sentences = append(p.sentences, sentence)
				}
			}
		}
	}
	if len(p.sentences) < 500 {
		t.Fatalf("the corpus has %d sentences", len(p.sentences))
	}
	return p
}

var (
	paperHosts = []string{"anvil.example", "brook.example", "cairn.example", "dune.example", "eddy.example"}
	paperTags  = []string{"sea", "town", "rail", "bread", "owls", "snow"}
)

// next makes up one more paper, which with the probability share is near to one before.
func (p *press) next(share float64) paper {
	i := len(p.made)
	d := paper{id: fmt.Sprintf("p%04d", i), title: p.sentence(), votes: -1, n: p.IntN(17), writer: past,
		vector: [2]float64{float64(p.IntN(4000)) / 100, 1 + float64(p.IntN(100))/100}}
	if i > 0 && p.Float64() < share {
		from := p.made[p.IntN(i)]
		if p.even || p.IntN(2) == 0 {
			from = p.made[i-1-p.IntN(min(i, 6))]
		}
		d.title, d.body, d.vector = from.title, p.mutated(from.body), from.vector
		d.vector[1] += float64(p.IntN(10)) / 1000
		if p.IntN(2) == 0 {
			d.n = from.n
		}
	} else {
		d.body = p.text(3 + p.IntN(9))
	}
	if p.even {
		d.n = i
	}
	if !p.even && p.IntN(12) == 0 {
		d.title, d.body = []string{"?", "Gale", "Gale warning"}[p.IntN(3)], []string{"!", "", "too short to tell"}[p.IntN(3)]
	}
	if p.IntN(8) > 0 {
		d.host = paperHosts[p.IntN(len(paperHosts))]
	}
	for range p.IntN(3) {
		if tag := paperTags[p.IntN(len(paperTags))]; !slices.Contains(d.tags, tag) {
			d.tags = append(d.tags, tag)
		}
	}
	if p.IntN(9) > 0 {
		d.at = time.Date(2025, 3, 1, 12*p.IntN(16), 0, 0, 0, time.UTC)
	}
	if p.IntN(6) > 0 {
		d.votes = float64(p.IntN(11)) / 2
	}
	p.made = append(p.made, d)
	return d
}

func (p *press) sentence() string { return p.sentences[p.IntN(len(p.sentences))] }

func (p *press) text(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = p.sentence()
	}
	return strings.Join(list, ". ")
}

// mutated returns a text near to another, from the same one to what is no longer near enough.
func (p *press) mutated(body string) string {
	list := strings.Split(body, ". ")
	at := p.IntN(len(list))
	switch p.IntN(9) {
	case 0, 1:
		return body
	case 2: // the same by its fingerprint
		return strings.ToUpper(strings.ReplaceAll(body, " ", "  "))
	case 3:
		words := strings.Fields(body)
		if len(words) > 0 {
			words[p.IntN(len(words))] = "elsewhere"
		}
		return strings.Join(words, " ")
	case 4:
		list = slices.Delete(list, at, at+1)
	case 5:
		list = slices.Insert(list, at, p.sentence())
	case 6, 7:
		for range 1 + p.IntN(3) {
			list[p.IntN(len(list))] = p.sentence()
		}
	default: // an excerpt
		list = list[:max(1, len(list)/3)]
	}
	return strings.Join(list, ". ")
}

// json returns the paper as an engine is given it.
func (d *paper) json(t *testing.T, typesense bool) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteByte('{')
	add := func(name string, value any) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		text := must(json.Marshal(value))(t)
		fmt.Fprintf(&b, "%q:%s", name, text)
	}
	add("id", d.id)
	add("title", d.title)
	add("body", d.body)
	if d.host != "" {
		add("host", d.host)
	}
	if len(d.tags) > 0 {
		add("tags", d.tags)
	}
	switch {
	case d.at.IsZero():
	case typesense:
		add("at", d.at.Unix())
	default:
		add("at", d.at.In(time.FixedZone("", 3600*(d.n%3))).Format(time.RFC3339))
	}
	if d.votes >= 0 {
		add("votes", d.votes)
	}
	add("n", d.n)
	add("v", d.vector)
	if !typesense {
		add("c", []any{map[string]any{"x": "p"}, map[string]any{"x": d.id}})
		add("f", json.RawMessage("1.50"))
		add("o", map[string]any{"title": "x", "y": []any{1, nil}})
	}
	return b.String() + "}"
}

// contractSchema are the declarations of an index of papers on an engine.
func contractSchema(e *engines.Engine, shards int, date string) string {
	vector, settings := `{"type":"dense_vector","dims":2,"index":true,"similarity":"l2_norm","index_options":{"type":"hnsw"}}`, ""
	switch {
	case !e.Vectors():
		vector = `{"type":"float"}`
	case e.Kind == engines.OpenSearch:
		vector = `{"type":"knn_vector","dimension":2,"method":{"name":"hnsw","engine":"lucene","space_type":"l2"}}`
		settings = `"index.knn":true,`
	}
	return fmt.Sprintf(`{"settings":{%s"number_of_shards":%d,"number_of_replicas":0,"refresh_interval":"-1"},`+
		`"mappings":{"properties":{"id":{"type":"keyword"},"title":{"type":"text"},"body":{"type":"text"},`+
		`"host":{"type":"keyword"},"tags":{"type":"keyword"},`+
		`"at":{"type":%q},"votes":{"type":"double"},"n":{"type":"integer"},"v":%s,`+
		`"c":{"type":"nested","properties":{"x":{"type":"keyword"}}}}}}`, settings, shards, date, vector)
}

const contractCollection = `{"name":"NAME","fields":[{"name":"title","type":"string"},{"name":"body","type":"string"},` +
	`{"name":"host","type":"string","facet":true,"optional":true},{"name":"tags","type":"string[]","facet":true,"optional":true},` +
	`{"name":"at","type":"int64","optional":true},{"name":"votes","type":"float","optional":true},` +
	`{"name":"n","type":"int32","facet":true},{"name":"v","type":"float[]","num_dim":2,"optional":true}]}`
