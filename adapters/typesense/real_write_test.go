package typesense

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
)

// Every text that the engine stores as something else in a field of another type is one that we take for such.
func TestRealCoerced(t *testing.T) {
	texts := []string{"TRUE", "false", "nan(1)", "0x1p3", "1e999", "1984"}
	r := rand.New(rand.NewPCG(effort.Seed(t), 1))
	for range 400 {
		text := make([]byte, 1+r.IntN(4))
		for i := range text {
			text[i] = "01.eExXpP+-_ \t\x00naif()"[r.IntN(21)]
		}
		texts = append(texts, string(text))
	}
	for _, first := range []string{"7", "1.5", "true"} {
		t.Run(first, func(t *testing.T) {
			b := newBench(t, `{"name":"NAME","fields":[{"name":".*","type":"auto"}]}`, "b")
			b.must(201)(b.direct("POST", "/collections/NAME/documents", `{"id":"first","b":`+first+`}`))
			var lines strings.Builder
			for i, text := range texts {
				quoted, _ := json.Marshal(text) // a string always can be
				fmt.Fprintf(&lines, `{"id":"d%d","b":%s}`+"\n", i, quoted)
			}
			reply := b.must(200)(b.direct("POST", "/collections/NAME/documents/import?return_doc=true", lines.String()))
			stored := 0
			for i, line := range strings.Split(reply, "\n") {
				if strings.Contains(line, `"success":true`) {
					if stored++; !coerced([]byte(texts[i])) {
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
