package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestPresetsOnTheEmbeddedEngine has hits fold, and one of them chosen, by fields of the documents on the engine inside the sidecar.
func TestPresetsOnTheEmbeddedEngine(t *testing.T) {
	w, began := newWriter(12), time.Date(2024, 2, 27, 0, 0, 0, 0, time.UTC)
	var items []item
	for range 40 {
		words := w.words(60)
		for n := range 4 {
			items = append(items, item{Body: text(w.edited(words, 1)), text: words[0], Host: fmt.Sprintf("h%d", n%2), at: began.Add(time.Duration(n) * 30 * time.Hour)})
		}
	}
	numbered(w, items)
	same := func(a, b *item) bool { return a.text == b.text }
	for rule, f := range map[string]folds{
		"preset: mirrors, host_field: host":                  {near: func(a, b *item) bool { return same(a, b) && a.Host != b.Host }},
		"preset: soft404, host_field: host, threshold: 0.64": {near: func(a, b *item) bool { return same(a, b) && a.Host == b.Host }},
		"preset: news, date_field: at":                       {near: func(a, b *item) bool { return same(a, b) && a.at.Sub(b.at).Abs() <= 72*time.Hour }},
		"preset: versions, date_field: at":                   {near: same, better: func(a, b *item) bool { return a.at.After(b.at) }},
		"representative: {field: n, order: desc}":            {near: same, better: func(a, b *item) bool { return a.N > b.N }},
	} {
		t.Run(rule, func(t *testing.T) {
			text := "log: {format: json}\nadmin: \"\"\nengines: [{listen: \"127.0.0.1:0\", kind: embedded, indices: [{match: shelf, fields: [body], " + rule + "}]}]\n"
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			e := &engines.Engine{Kind: engines.Elasticsearch, URL: serveFile(t, file)}
			through := api{e, e.URL}
			through.shelve(t, "shelf", items)
			f.walk(t, through, "shelf", items)
			if left := len(f.list(items)); left > 120 {
				t.Errorf("%d of %d are left", left, len(items))
			}
		})
	}
}

// TestDoctorOnDecidingFields has doctor look at the fields by which hits are to fold.
func TestDoctorOnDecidingFields(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
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
