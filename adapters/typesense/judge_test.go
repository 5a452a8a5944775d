package typesense

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// author makes up documents whose texts an engine may write otherwise than it was sent them.
type author struct{ *rand.Rand }

func (a author) of(options ...string) string { return options[a.IntN(len(options))] }

// text is a JSON string.
func (a author) text() string {
	var b strings.Builder
	for range a.IntN(12) {
		b.WriteString(a.of("Ferry", "the", "straße", "ÜBER", "e\u0301", "日本語", "カタカナ", "한국어", "😀", "C++", "<p>a</p>", "&amp;", "don't", "ﬁn", "\u200b", "\u00a0", "\u2028", "\n", "\t", "\\", "\"", "/", "1e3", "a.b", "\x7f", "\u0001"))
		b.WriteString(a.of(" ", " ", "", "  "))
	}
	data, _ := json.Marshal(b.String()) // a string always can be
	text := string(data)
	return a.of(text, text, strings.ReplaceAll(text, "e", `\u0065`), strings.ReplaceAll(text, "/", `\/`), `"\ud83d\ude00 `+text[1:], `"\u0000 x"`)
}

// value is what can be sent for a field of texts.
func (a author) value() string {
	text := a.text()
	return a.of(text, text, text, text, text, "null", `[`+text+`,`+a.text()+`]`, `[]`, `["",null,`+text+`]`, "7", "1.50", "true", `[1,`+text+`]`, `{"x":`+text+`}`, `""`)
}

// document is one with an id and some of the fields.
func (a author) document(id int) string {
	members := []string{fmt.Sprintf(`"id":"%d"`, id)}
	add := func(name, value string) {
		if a.IntN(5) > 0 {
			members = append(members, a.of(" ", "")+`"`+name+`"`+a.of(":", " : ")+value)
		}
	}
	add("title", a.value())
	add("body", a.value())
	switch a.IntN(5) {
	case 0:
		add("meta", `{"text":`+a.value()+`,"x":1}`)
	case 1:
		add("meta.text", a.value())
	case 2:
		add("meta", `[{"text":`+a.value()+`},{"text":`+a.value()+`,"y":null}]`)
	case 3:
		add("meta", `{"deep":{"er":`+a.value()+`},"text":`+a.value()+`}`)
	}
	add("n", a.of("1", "1e3", "null", `"x"`))
	if a.IntN(10) == 0 {
		add("title", a.value())
	}
	a.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

// first are documents of texts alone, and of lists of texts: every collection takes one of them.
const first = `{"id":"first","title":"a title","body":"a body","meta":{"text":"one deep text"},"n":1}
	{"id":"listed","title":["a title"],"body":["a body"],"n":1}`

// TestRealFingerprints writes random documents through the sidecar in every way, into collections of all kinds: where one is
// stored with a sketch, its text as a search shows it has the sketch's fingerprint. Else a sound sketch would be taken for
// another text's.
func TestRealFingerprints(t *testing.T) {
	for name, schema := range map[string]string{
		"strings": `"fields":[{"name":"title","type":"string","optional":true},{"name":"body","type":"string","optional":true}]`,
		"lists":   `"fields":[{"name":"title","type":"string[]","optional":true},{"name":"body","type":"string[]","optional":true}]`,
		"auto":    `"fields":[{"name":".*","type":"auto"}]`,
		"any":     `"fields":[{"name":".*","type":"string*"}]`,
		"nested":  `"enable_nested_fields":true,"fields":[{"name":"title","type":"string","optional":true},{"name":"meta","type":"object","optional":true}]`,
		"nested lists": `"enable_nested_fields":true,"fields":[{"name":"title","type":"string","optional":true},{"name":"meta","type":"object[]",` +
			`"optional":true}]`,
		"nested auto": `"enable_nested_fields":true,"fields":[{"name":".*","type":"auto"}]`,
		"undeclared":  `"fields":[{"name":"n","type":"int32","optional":true}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, `{"name":"NAME",`+schema+`}`, "title", "body", "meta.text")
			b.must(200)(b.direct("POST", documentsPath+"/import", first)) // its types are those that a schema finds
			a := author{rand.New(rand.NewPCG(effort.Seed(t), 3))}
			for round := range max(effort.Rounds(9), 3) {
				var lines strings.Builder
				for range 40 {
					lines.WriteString(a.document(a.IntN(200)) + "\n")
				}
				action, dirty := "upsert", "" // first of all there are documents with sketches
				if round > 0 {
					action = a.of("upsert", "upsert", "emplace", "update")
					dirty = a.of("", "", "&dirty_values=coerce_or_drop", "&dirty_values=coerce_or_reject", "&dirty_values=drop")
				}
				b.must(200)(b.through("POST", documentsPath+"/import?action="+action+dirty, lines.String()))
				if round%3 == 0 {
					b.through("POST", documentsPath+"?action=upsert"+dirty, a.document(a.IntN(200)))
					b.through("PATCH", path("7"), a.document(7))
				}
			}
			sketched := b.fits(t, "")
			expect.Value(b.store().Patch(t.Context(), b.collection, b.rule, b.patches()))(t)
			filled := b.fits(t, "")
			for _, shown := range []string{"&include_fields=title,body,meta", "&exclude_fields=n", "&include_fields=title", "&exclude_fields=meta"} {
				b.fits(t, shown)
			}
			if filled < sketched || filled == 0 {
				t.Errorf("%d documents had a sketch, %d after a backfill", sketched, filled)
			}
		})
	}
}

// fits searches through the sidecar for all documents, and fails the test if a sketch that is stored was not believed. It returns
// how many are stored.
func (b *bench) fits(t *testing.T, shown string) int {
	t.Helper()
	sketched, textless := 0, 0
	for id, d := range b.scan() {
		computed, stored := b.rule.SketchOf(d.Source)
		switch {
		case stored != nil && !b.rule.Current(&stored.Sketch, d.Source):
			t.Errorf("%s: a sketch that is not of %s", id, d.Source)
		case stored != nil:
			sketched++
		default:
			textless++
		}
		if stored != nil && (computed == nil || computed.Text != stored.Text) {
			t.Errorf("%s: stale: %s", id, d.Source)
		}
	}
	search := documentsPath + "/search?per_page=250&q=*" + shown
	body := b.must(200)(b.through("GET", search, ""))
	if o := b.outcome; o.Reason != "" || o.Without != textless {
		t.Errorf("%s: %d have no sketch, %+v: %.300s", shown, textless, o, body)
	}
	return sketched
}
