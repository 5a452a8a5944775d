package elastic

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

// oddDocuments are JSON, and what is taken for it, of which bytes are easily lost.
var oddDocuments = []string{
	`{"title":"a","n":1e400,"z":-0,"f":1E+2,"d":1.50}`, `{"title":"a","title":"b","n":1,"n":2}`,
	`{"title":"x\ud800y\udc00","\u0074itle":1}`,
	"\uFEFF{\"title\":\"a\"}", "/* { */{\"title\":/*,*/\"a\"/*}*/}// \"\n", "{\r\n \"title\" : \"a\"\r\n}\r\n",
	"{\"title\":\"a\xc0\x80\xed\xa0\x80\"}", "{\"title\":\"\x00\"}",
	`{"title":"a","deep":` + strings.Repeat(`[{"a":`, 400) + "null" + strings.Repeat("}]", 400) + "}", strings.Repeat("[", 2000),
	`{"title":"a"} x`, `{"title":"a"}{"title":"b"}`, `{"title":"a"`,
	`{"":{"":""},"title":[]}`, "{}", " { } ", "null", `"title"`, "", "\n", `{"title":{"title":"a"}}`, `{"title":NaN}`,
}

// oursAdded is what enrichment may put into a document.
var oursAdded = regexp.MustCompile(`,?"neardup_sketch":("[A-Za-z0-9+/=]*"|null)`)

// FuzzWritesOnlyAdd enriches a body in every form: without a rule each byte stays, and with one our field is added and nothing
// else.
func FuzzWritesOnlyAdd(f *testing.F) {
	for _, d := range oddDocuments {
		f.Add([]byte(d))
		f.Add([]byte(`{"doc":` + d + `,"upsert":` + d + `,"scripted_upsert":"false"}`))
		f.Add([]byte(`{"upsert":` + d + `,"scripted_upsert":true} ` + d))
		line := strings.NewReplacer("\r\n", " ", "\n", " ").Replace(d)
		f.Add([]byte("{\"index\":{\"_id\":1}} x\r\n" + line + "\r\n{\"update\":{}\n{\"doc\":" + line + "}}\n" + line + "\n"))
	}
	rules := adaptertest.Rules(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, form := range []string{formDoc, formUpdate, formBulk} {
			class := adapters.Class{Kind: adapters.Write, Target: "shop-1", Form: form}
			through := func(rule *adapters.Rule) []byte {
				var out bytes.Buffer
				e := &adapters.Enricher{Rule: func(string, bool) (*adapters.Rule, bool) { return rule, true }, Room: 1 << 30}
				if err := (Dialect{}).EnrichWrite(class, &out, bytes.NewReader(data), e); err != nil {
					t.Fatal(err)
				}
				return out.Bytes()
			}
			if got := through(nil); !bytes.Equal(got, data) {
				t.Fatalf("%s without a rule: %q became %q", form, data, got)
			}
			if bytes.Contains(data, []byte("neardup")) || bytes.Contains(data, []byte(`\`)) {
				continue // a client's own value is taken out, however it is spelt
			}
			if got := through(rules[1]); !bytes.Equal(oursAdded.ReplaceAll(got, nil), data) {
				t.Fatalf("%s: %q became %q", form, data, got)
			}
		}
	})
}
