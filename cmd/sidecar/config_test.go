package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// environment returns a lookup of these variables alone.
func environment(pairs ...string) lookup {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// TestConfigYAMLIsTheManual holds config.yaml to what it says of itself: each key stands in it with its default.
func TestConfigYAMLIsTheManual(t *testing.T) {
	const file = "../../config.yaml"
	got, err := Load(file, environment())
	if err != nil {
		t.Fatal(err)
	}
	index := DefaultIndex()
	index.Match, index.Fields = "news-*", []string{"title", "body"}
	engine := DefaultEngine()
	engine.Name, engine.Kind, engine.Listen, engine.URLs = "elasticsearch", "elasticsearch", "127.0.0.1:9201", []string{"http://127.0.0.1:9200"}
	engine.Indices = []IndexConfig{index}
	want := DefaultConfig()
	want.Engines = []EngineConfig{engine}
	if diff := cmp.Diff(&want, got, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Error(diff)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range allKeys(reflect.TypeFor[Config]()) {
		if !strings.Contains(string(text), " "+key+":") && !strings.Contains(string(text), "\n"+key+":") {
			t.Errorf("config.yaml says nothing about %s", key)
		}
	}
}

func TestParse(t *testing.T) {
	const engine = `
engines:
  - {listen: ":9201", kind: typesense, urls: ["http://h:1"], indices: [{match: Books, fields: [a.b]}]}
  - listen: 127.0.0.1:0
    kind: opensearch
    urls: ["https://${HOST}:9200/search"]
    on_failure: error
    credentials: {username: "${NOBODY:-admin}", password: "a$$b$c${SECRET}"}
    limits: {max_reply: "${REPLY}", max_search_body: 3kb, engine_max_body: 12, max_window: "${WINDOW}"}
    tls: {insecure_skip_verify: "${TRUST}"}
    indices:
      - {match: "*", fields: [t], threshold: 1, window: 7, missing: alone, min_shingles: 0}
`
	got, err := parse([]byte(engine), environment("HOST", "search", "SECRET", "}{$", "REPLY", "2GB", "WINDOW", "7", "TRUST", "true", "NOBODY", ""))
	if err != nil {
		t.Fatal(err)
	}
	first, second := DefaultEngine(), DefaultEngine()
	first.Name, first.Listen, first.Kind, first.URLs = "typesense", ":9201", "typesense", []string{"http://h:1"}
	first.Indices = []IndexConfig{{"Books", []string{"a.b"}, 0.8, 1000, "compute", 10}}
	second.Name, second.Listen, second.Kind, second.URLs = "opensearch", "127.0.0.1:0", "opensearch", []string{"https://search:9200/search"}
	second.OnFailure = "error"
	second.Credentials = CredentialsConfig{Username: "admin", Password: "a$b$c}{$"}
	second.Limits = LimitsConfig{2 << 30, 3 << 10, 12, 7, 0.05}
	second.TLS.InsecureSkipVerify = true
	second.Indices = []IndexConfig{{"*", []string{"t"}, 1, 7, "alone", 0}}
	if diff := cmp.Diff([]EngineConfig{first, second}, got.Engines); diff != "" {
		t.Error(diff)
	}
}

// TestBadConfig reads the files of testdata/bad. The lines that begin with "#: " are the errors expected of each, all of them.
func TestBadConfig(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for line := range strings.Lines(string(text)) {
				if message, ok := strings.CutPrefix(line, "#: "); ok {
					want = append(want, strings.TrimSpace(message))
				}
			}
			_, err = parse(text, environment("EMPTY", "", "WORD", "loud"))
			for _, e := range flat(err) {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
				t.Error(diff)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml"), environment()); err == nil || !strings.Contains(err.Error(), "--config") {
		t.Errorf("no hint: %v", err)
	}
	_, err := Load("testdata/bad/empty.yaml", environment())
	if err == nil || !strings.HasPrefix(err.Error(), "testdata/bad/empty.yaml: engines: ") {
		t.Errorf("no name: %v", err)
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		text  string
		bytes int64
		back  string
	}{{"0", 0, "0B"}, {"12", 12, "12B"}, {"1024", 1024, "1KB"}, {"64MB", 64 << 20, "64MB"}, {" 3 kb ", 3 << 10, "3KB"}, {"1536MB", 1536 << 20, "1536MB"}, {"2gb", 2 << 30, "2GB"}} {
		var s Size
		if err := s.UnmarshalText([]byte(c.text)); err != nil || int64(s) != c.bytes || s.String() != c.back {
			t.Errorf("%q: %d %s %v", c.text, int64(s), s, err)
		}
	}
	for _, text := range []string{"", "MB", "1.5MB", "-1", "9999999999GB", "1TB", "64 M B"} {
		s := Size(7)
		if err := s.UnmarshalText([]byte(text)); err == nil || s != 7 {
			t.Errorf("%q was taken as %d", text, int64(s))
		}
	}
}

// allKeys returns the name of every key at or below a section.
func allKeys(section reflect.Type) []string {
	var keys []string
	for key, value := range keysOf(section) {
		keys = append(keys, key)
		if value.Kind() == reflect.Slice {
			value = value.Elem()
		}
		if value.Kind() == reflect.Struct {
			keys = append(keys, allKeys(value)...)
		}
	}
	return keys
}
