package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// FuzzConfig has any text for a configuration: it is read or refused by an error that shows no secret of the environment.
func FuzzConfig(f *testing.F) {
	if text, err := os.ReadFile("../../config.yaml"); err == nil {
		f.Add(text)
	}
	for _, s := range []string{
		"", "engines: []",
		"engines:\n  - kind: typesense\n    urls: [http://127.0.0.1:1]\n    credentials: {api_key: \"${SECRET}\"}\n    indices: [{match: a, fields: [b]}]\n",
		"sketch: {seed: ${SECRET}}\nengines: 5", "a: &a [*a]", "sketch: {shingle: ${SECRET:-x}}",
		"engines:\n- {kind: elasticsearch, urls: ['${SECRET}'], threshold: 1}\n", "? [a]\n: b", "admin: $${SECRET}",
	} {
		f.Add([]byte(s))
	}
	const hidden = "hunter-two-forever"
	env := func(name string) (string, bool) { return hidden, strings.HasPrefix(name, "SECRET") }
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Contains(text, []byte(hidden)) {
			return
		}
		for _, read := range []func([]byte, lookup) (*Config, error){parse, parseOffline} {
			c, err := read(text, env)
			if (c == nil) == (err == nil) {
				t.Fatalf("%q gives %v and %v", text, c, err)
			}
			if err == nil {
				continue
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if key, _, _ := strings.Cut(line, ": "); strings.Contains(line, hidden) && secret(key) {
					t.Fatalf("%q is refused with a secret: %v", text, err)
				}
			}
		}
	})
}

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
		other, err2 := readDocument(line, []string{field})
		if err == nil && err2 == nil && (one.id != other.id || len(one.texts) != len(other.texts)) {
			t.Fatalf("%q reads %+v and %+v", line, one, other)
		}
	})
}
