package main

import (
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/rule"
)

// FuzzDocumentLine has any line for a document of a file.
func FuzzDocumentLine(f *testing.F) {
	for _, s := range []string{
		`{"id":"a","text":"b"}`, `{"id":1e9,"a":{"b":["c",null,{"d":1}]}}`, `{"id":{},"text":5}`,
		`{"id":"","a.b":"c","a":{"b":"d"}}`, `{"url":"http://h:1/x","id":"x"}`, "{\"id\":\"\xff\"}", `{"url":["//h","::"]}`,
	} {
		f.Add([]byte(s), "a.b", "url")
	}
	f.Fuzz(func(t *testing.T, line []byte, field, host string) {
		if field == "" {
			return // no rule can have it
		}
		r := &rule.Rule{Fields: []string{field}}
		d, err := documents.Read(line, "id", r)
		if err != nil {
			return
		}
		_ = documents.HostIn(d.Members, host)
		if texts := r.Texts(line); utf8.Valid(line) && !slices.Equal(d.Texts, texts) {
			t.Fatalf("%q holds %q in a file, %q in an engine", line, d.Texts, texts)
		}
	})
}
