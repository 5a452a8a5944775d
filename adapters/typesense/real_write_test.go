package typesense

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
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
