package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestDoctorOnDecidingFields has doctor look at the fields by which hits are to fold.
func TestDoctorOnDecidingFields(t *testing.T) {
	atOnce(t, []string{engines.OpenSearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		const index = "preset-doctor"
		direct := api{e, e.URL}
		items := []item{{Body: "some words of a text that is there", Host: "a.example", at: time.Unix(1e9, 0)}}
		direct.shelve(t, index, items)
		rule := func(keys string) string { return fmt.Sprintf("match: %q, fields: [body], %s", index, keys) }
		type finding struct{ keys, says string }
		list := []finding{
			{"same: [host], within: {field: at, span: 3d}, representative: {field: n}", ""},
			{"preset: mirrors, host_field: site", "warn  " + e.Kind + ": preset-doctor: the field site, by which hits fold or are chosen, is not declared"},
			{"preset: news, date_field: host", "fail  " + e.Kind + ": preset-doctor: the field host, by which hits fold or are chosen, is of type "},
		}
		if !direct.typesense() {
			list = append(list, finding{"same: [body]", "fail  " + e.Kind + ": preset-doctor: the field body, by which hits fold or are chosen, is a text: name a keyword, such as body.keyword"},
				finding{"representative: newest, date_field: n", "fail  " + e.Kind + ": preset-doctor: the field n, by which hits fold or are chosen, is of type integer, not a date"})
		}
		for _, f := range list {
			out, code := sidecar(t, "doctor", "-c", ruled(t, e, rule(f.keys)))
			found := strings.Contains(out, "by which hits fold or are chosen")
			if f.says == "" && found || f.says != "" && !strings.Contains(out, f.says) || strings.HasPrefix(f.says, "fail") && code != 1 {
				t.Errorf("%s: code %d: %s", f.keys, code, out)
			}
		}
	})
}
