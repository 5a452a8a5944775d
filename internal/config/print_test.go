package config

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/internal/expect"
)

// TestConfigPrint reads what was printed: but for the secrets it is the same configuration, whatever that is.
func TestConfigPrint(t *testing.T) {
	texts := map[string]string{"manual": ""}
	for _, p := range Presets() {
		fields := `"no", "on", "a$$b", "1", "é\"\\"`
		if p.Name == "vectors" { // of one field
			fields = `"a$$b"`
		}
		texts[p.Name] = fmt.Sprintf(`
log: {level: debug}
admin: ""
sketch: {words: 3, keep: [case, accents], seed: "%s"}
engines:
  - {name: "a: #1", listen: ":1", kind: embedded, indices: [{match: "*", fields: [t]}]}
  - listen: 127.0.0.1:0
    kind: opensearch
    urls: ["https://h:9200/a%%20b", "https://[::1]"]
    credentials: {username: "%s", password: "%s"}
    limits: {max_reply: 3KB, cursor_ttl: 1d, advanced: {fallback_share: 0.125}}
    indices:
      - {match: "x-*", fields: [%s], preset: %s, date_field: d, host_field: h, sketch: {seed: "%s"},
         representative: {prefer: "h", values: ["a b", "true"]}, within: {span: 36h}}
      - {match: y, fields: [t], representative: {field: votes, order: asc}, threshold: 1, bands: 8x4, on_duplicate: tag,
         cases: [{same: ["a $$b\n: c", {id: "7"}]}, {different: [{id: x, index: y}, "true"]}]}
`, secretText, secretText, secretText, fields, p.Name, secretText)
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			if text == "" {
				manual := expect.Value(os.ReadFile("../../config.yaml"))(t)
				text = string(manual)
			}
			want := expect.Value(Parse([]byte(text), environment()))(t)
			printed := want.YAML()
			if strings.Contains(printed, secretText) {
				t.Fatal(printed)
			}
			for _, key := range allKeys(reflect.TypeFor[Config]()) {
				if !strings.Contains(printed, key+":") && name != "manual" {
					t.Errorf("nothing about %s", key)
				}
			}
			again := expect.Value(Parse([]byte(printed), environment()))(t)
			same := cmp.Comparer(func(a, b Secret) bool { return a.IsSet() == b.IsSet() })
			expect.By{cmpopts.IgnoreFields(Config{}, "File"), cmpopts.IgnoreFields(Case{}, "Line"), same, cmpopts.EquateEmpty()}.Same(t, want, again, "")
			// JSON is YAML too. Only a dollar sign stands there as it is.
			inJSON, err := json.Marshal(want.Tree())
			if err != nil || strings.Contains(string(inJSON), secretText) {
				t.Fatalf("%v: %s", err, inJSON)
			}
			if again, err = Parse([]byte(strings.ReplaceAll(string(inJSON), "$", "$$")), environment()); err != nil {
				t.Fatalf("%v: %s", err, inJSON)
			}
			expect.By{cmpopts.IgnoreFields(Config{}, "File"), cmpopts.IgnoreFields(Case{}, "Line"), same, cmpopts.EquateEmpty()}.Same(t, want, again, "in JSON")
		})
	}
}
