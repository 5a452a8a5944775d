package main

import (
	"testing"

	"github.com/neardup/sidecar/internal/documents"
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
		s := fileSource{id: "id", hostField: host, fields: []string{field}}
		one, _, err := s.read(line)
		other, err2 := documents.Read(line, []string{field})
		if err == nil && err2 == nil && (one.ID != other.ID || len(one.Texts) != len(other.Texts)) {
			t.Fatalf("%q reads %+v and %+v", line, one, other)
		}
	})
}
