package typesense

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
)

// Every text that the engine stores as something else in a field of another type is one that we take for such.
func TestRealCoerced(t *testing.T) {
	texts := []string{
		"", "\x00", "\x00x", " ", "\n", "12", "12\x00x", " 12", "12 ", "1e3", ".5", "0x10", "0x.8", "0xp", "0x1p3", "inf", "INFINITY", "nan", "nan(1)", "nan()", "TRUE", "false", "+5", "5.", "-",
		"e5", "1_000", "0b1", "\t5", "\v5", "1984\u200b", "1e999", "-1e-999", "99999999999999999999",
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		text := make([]byte, 1+r.IntN(4))
		for i := range text {
			text[i] = "01.eExXpP+-_ \t\x00naif()"[r.IntN(21)]
		}
		texts = append(texts, string(text))
	}
	for _, first := range []string{"7", "1.5", "true", "[7]"} {
		t.Run(first, func(t *testing.T) {
			b := newBench(t, `{"name":"NAME","fields":[{"name":".*","type":"auto"}]}`, "b")
			b.must(201)(b.direct("POST", "/collections/NAME/documents", `{"id":"first","b":`+first+`}`))
			var lines strings.Builder
			for i, text := range texts {
				value := any(text)
				if first[0] == '[' {
					value = []string{text}
				}
				line, err := json.Marshal(map[string]any{"id": fmt.Sprint("d", i), "b": value})
				if err != nil {
					t.Fatal(err)
				}
				lines.Write(append(line, '\n'))
			}
			reply := b.must(200)(b.direct("POST", "/collections/NAME/documents/import?return_doc=true", lines.String()))
			stored := 0
			for i, line := range strings.Split(reply, "\n") {
				if strings.Contains(line, `"success":true`) {
					if stored++; !coerced(texts[i]) {
						t.Errorf("%q is stored as %s", texts[i], line)
					}
				}
			}
			if stored == 0 {
				t.Error(reply)
			}
		})
	}
}

// What the engine takes for a document although it ends early or nests deep is one to us: a part of it clears the sketch, a whole one
// gets its own, nobody is shown it, and a backfill reads it.
func TestRealStrangeDocuments(t *testing.T) {
	deep := strings.Repeat(`[{"a":`, 2500) + "1" + strings.Repeat("}]", 2500)
	for _, c := range []struct{ name, members, end string }{
		{"a zero byte", "", "\x00"},
		{"a zero byte and more", "", " \x00{ // \xff"},
		{"deep", `"a":` + deep + ",", ""},
		{"deep behind our field", `"z":` + deep + ",", " "},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, articles, "title", "body")
			if _, err := b.store().Prepare(t.Context(), b.collection, false); err != nil {
				t.Fatal(err)
			}
			whole := `{"id":"d",` + c.members + `"title":"one","n":1,"body":"` + familyText(1, 0) + `"}` + c.end
			part := `{"id":"d",` + c.members + `"body":"` + familyText(2, 0) + `"}` + c.end
			for _, w := range []struct{ method, path, body, want string }{
				{"POST", documentsPath, whole, "right"},
				{"PATCH", path("d"), part, "absent"},
				{"POST", documentsPath + "?action=upsert", whole, "right"},
				{"POST", documentsPath + "?action=update", part, "absent"},
				{"POST", documentsPath + "/import?action=upsert", whole, "right"},
				{"POST", documentsPath + "/import?action=emplace", part, "absent"},
			} {
				if status, reply := b.through(w.method, w.path, w.body); status >= 300 || strings.Contains(reply, `"success":false`) ||
					strings.Contains(reply, adapters.SketchField) {
					t.Fatalf("%s %s: %d %.300s", w.method, w.path, status, reply)
				}
				_, stored := b.direct("GET", path("d"), "")
				if got := b.state([]byte(stored)); got != w.want || !strings.Contains(stored, familyText(1, 0)) == (w.want == "right") {
					t.Errorf("%s %s: the sketch is %s, not %s", w.method, w.path, got, w.want)
				}
			}
			b.must(201)(b.through("POST", documentsPath+"?action=upsert", whole))
			for _, path := range []string{path("d"), documentsPath + "/export"} {
				if _, shown := b.through("GET", path, ""); strings.Contains(shown, adapters.SketchField) {
					t.Errorf("GET %s shows %.300s", path, shown)
				}
			}
			_, before := b.direct("POST", documentsPath+"/import", whole)
			if _, after := b.through("POST", documentsPath+"/import", whole); after != before {
				t.Errorf("an error line is %s, not %s", after, before)
			}
			read := 0
			err := b.store().Scan(t.Context(), b.collection, b.rule, adapters.Selection{}, func(p adapters.Page) error {
				read += len(p.Documents)
				return nil
			})
			if read != 1 || err != nil {
				t.Errorf("a scan read %d documents (%v)", read, err)
			}
		})
	}
}
