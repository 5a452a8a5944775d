package e2e

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/neardup/sidecar/internal/engines"
)

// TestAttackUnread writes forged sketches by what SECURITY.md says passes unread, or is done inside the engine: they are stored, as it says,
// and verify finds each of them and repairs it, but for the document in UTF-16.
func TestAttackUnread(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, value := "satk-unread", stolen(t)
		direct := api{e, e.URL}
		direct.drop(t, index)
		file := walking(t, e, walkRule{match: index, window: 100})
		through := api{e, serveFile(t, file)}
		through.create(t, index)
		document := func(id string) string {
			return fmt.Sprintf(`{"id":%q,"title":"news","body":%q,"neardup_sketch":%q}`, id, craftedText, value)
		}
		var ids []string
		send := func(id, method, path, body string, header ...string) {
			t.Helper()
			if r := call(t, e, method, through.base+path, body, header...); r.status >= 300 {
				t.Fatalf("%s: %d %.300s", id, r.status, r.body)
			}
			ids = append(ids, id)
		}
		if direct.typesense() {
			send("signed", "POST", "/collections/"+index+"/documents", document("signed"), "Authorization", "AWS4-HMAC-SHA256 x")
		} else {
			base := "/" + index + "/_doc/"
			var wide strings.Builder
			for _, unit := range utf16.Encode([]rune(document("utf16"))) {
				wide.Write([]byte{byte(unit), byte(unit >> 8)})
			}
			send("signed", "PUT", base+"signed", document("signed"), "Authorization", "AWS4-HMAC-SHA256 x")
			send("yaml", "PUT", base+"yaml", "---\ntitle: news\nbody: "+craftedText+"\nneardup_sketch: "+value+"\n", "Content-Type",
				"application/yaml")
			send("utf16", "PUT", base+"utf16", wide.String())
			send("scripted", "PUT", base+"scripted", `{"title":"news","body":"`+craftedText+`"}`)
			call(t, e, "POST", through.base+"/"+index+"/_update/scripted",
				`{"script":"ctx._source.neardup_sketch='`+value+`'"}`).want(t, 200)
		}
		direct.refresh(t, index)
		held := func() (n int) {
			for _, id := range ids {
				if values, _ := oursStored(t, direct, index, id); strings.Contains(values, value) {
					n++
				}
			}
			return n
		}
		if n := held(); n != len(ids) {
			t.Errorf("%d of %d forged values are stored: what SECURITY.md says of them is out of date", n, len(ids))
		}
		if out, code := sidecar(t, "verify", "--config", file, "--index", index); code == 0 {
			t.Errorf("verify finds nothing: %s", out)
		}
		out, _ := sidecar(t, "verify", "--config", file, "--index", index, "--repair")
		direct.refresh(t, index)
		if n, hidden := held(), strings.Count(strings.Join(ids, " "),
			"utf16"); n != hidden { // of that one the engine gives out no text
			t.Errorf("%d forged values stay after a repair: %s", n, out)
		}
	})
}
