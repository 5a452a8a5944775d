package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// environment returns a lookup of these variables alone.
func environment(pairs ...string) Lookup {
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
	got := expect.Value(Load(file, environment()))(t)
	index := DefaultIndex()
	index.Match, index.Fields = "news-*", []string{"title", "body"}
	engine := DefaultEngine()
	engine.Name, engine.Kind, engine.Listen, engine.URLs = "elasticsearch", "elasticsearch", "127.0.0.1:9201", []string{"http://127.0.0.1:9200"}
	engine.Indices = []Index{index}
	want := Default()
	want.Engines = []Engine{engine}
	expect.By{cmpopts.IgnoreFields(Config{}, "File")}.Same(t, &want, got, "")
	text := expect.Value(os.ReadFile(file))(t)
	if top, _, found := strings.Cut(string(text), "# ---- The rest of a rule"); !found || strings.Count(top, "\n") > 40 {
		t.Errorf("what most people set takes %d lines", strings.Count(top, "\n"))
	}
	// What stands behind a # is what the presets set.
	commented := regexp.MustCompile(`(?m)^( +)#(\w+: )`)
	plain := commented.ReplaceAllString(string(text), "$1$2")
	got = expect.Value(Parse([]byte(plain), environment()))(t)
	expect.By{cmpopts.IgnoreFields(Config{}, "File"), cmpopts.EquateEmpty()}.Same(t, &want, got, "")
	var behind []string
	for _, match := range commented.FindAllStringSubmatch(string(text), -1) {
		behind = append(behind, strings.TrimSuffix(match[2], ": "))
	}
	expect.By{cmpopts.SortSlices(strings.Compare)}.Same(t, presetKeys(), behind, "the keys that presets set (-), and those behind a # (+)")
	table := expect.Value(os.ReadFile("../../docs/presets.md"))(t)
	for _, name := range PresetNames() {
		own := PresetOf(name).Start(Default().Sketch)
		row := fmt.Sprintf("| `%s` | %v | %d | %d |", name, own.Threshold, own.MinShingles, own.MinWords)
		_, tuned := rerank.Presets()[name]
		figure := fmt.Sprintf("%s %v", name, own.Threshold)
		if !tuned && !strings.Contains(string(table), row) || !strings.Contains(string(text), figure) {
			t.Errorf("config.yaml or docs/presets.md has other figures of preset %s", name)
		}
	}
	for _, key := range allKeys(reflect.TypeFor[Config]()) {
		if !regexp.MustCompile(`[ \n{]` + key + ":").MatchString(plain) {
			t.Errorf("config.yaml says nothing about %s", key)
		}
	}
}

// presetKeys returns the keys of an entry of indices that presets set.
func presetKeys() (keys []string) {
	usual := reflect.ValueOf(DefaultIndex())
	for field := range usual.Type().Fields() {
		for _, p := range Presets() {
			own := reflect.ValueOf(p.Start(Default().Sketch)).FieldByIndex(field.Index).Interface()
			if key := keyOf(field); key != "preset" && !reflect.DeepEqual(own, usual.FieldByIndex(field.Index).Interface()) {
				keys = append(keys, key)
				break
			}
		}
	}
	return keys
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
    limits: {max_reply: "${REPLY}", engine_max_body: 12, max_window: "${WINDOW}", cursor_memory: 1KB, cursor_ttl: "${TTL}", deadline: 1ns, max_searches: 3,
      max_held: 2MB, advanced: {max_search_body: 3kb, header_timeout: 1s, idle_timeout: 1d}}
    tls: {insecure_skip_verify: "${TRUST}"}
    indices:
      - {match: "*", fields: [t], threshold: 1, window: 7, missing: alone, min_shingles: 0}
`
	got := expect.Value(Parse([]byte(engine), environment("HOST", "search", "SECRET", "}{$", "REPLY", "2GB", "WINDOW", "7", "TRUST", "true", "NOBODY", "", "TTL", "1d1s")))(t)
	first, second := DefaultEngine(), DefaultEngine()
	first.Name, first.Listen, first.Kind, first.URLs = "typesense", ":9201", "typesense", []string{"http://h:1"}
	first.Limits.EngineMaxBody = 10 << 30
	first.Indices = []Index{DefaultIndex()}
	first.Indices[0].Match, first.Indices[0].Fields = "Books", []string{"a.b"}
	second.Name, second.Listen, second.Kind, second.URLs = "opensearch", "127.0.0.1:0", "opensearch", []string{"https://search:9200/search"}
	second.OnFailure = "error"
	second.Credentials = Credentials{Username: SecretOf("admin"), Password: SecretOf("a$b$c}{$")}
	second.Limits = Limits{
		2 << 30, 12, 7, 1, 1 << 10, day + Span(time.Second), 3, 2 << 20, AdvancedLimits{3 << 10, 0.05, Span(time.Second), day},
	}
	second.TLS.InsecureSkipVerify = true
	index := DefaultIndex()
	index.Match, index.Fields, index.Threshold, index.Window, index.Missing, index.MinShingles = "*", []string{"t"}, 1, 7, "alone", 0
	second.Indices = []Index{index}
	expect.Same(t, []Engine{first, second}, got.Engines, "")
}

// TestMergedSections: a section can take its keys from an anchor.
func TestMergedSections(t *testing.T) {
	const text = `
engines:
  - &first {kind: embedded, listen: ":1", name: a, indices: [{match: a, fields: [t]}]}
  - {<<: *first, listen: ":2", name: b}
<<: {log: {level: warn}}
`
	got := expect.Value(Parse([]byte(text), environment()))(t)
	if got.Log.Level != "warn" || len(got.Engines) != 2 || got.Engines[1].Listen != ":2" || got.Engines[1].Indices[0].Match != "a" {
		t.Errorf("%+v", got)
	}
	_, err := Parse([]byte(text+"log: {level: loud}\n"), environment())
	if wrong, _ := errors.AsType[*KeyError](err); wrong == nil || wrong.Line != 6 {
		t.Errorf("%v", err)
	}
}

// TestSketchSection reads every key of the section and holds it to the scheme.
func TestSketchSection(t *testing.T) {
	const text = `
sketch:
  {family: zero_mod_m, features: characters, words: 5, characters: 7, positions: 64, advanced: {bits: 2, modulus: 9, repeats: 3}, content: useful,
   keep: [punctuation, case], seed: "${S}"}
engines: [{listen: ":1", kind: embedded, indices: [{match: a, fields: [t]}]}]
`
	got := expect.Value(Parse([]byte(text), environment("S", "hunter2")))(t)
	want := sketch.Scheme{
		Family: sketch.ZeroModM, Features: sketch.CharacterShingles, Words: 5, Characters: 7, Positions: 64, Bits: 2, Modulus: 9, Repeats: 3,
		Content: sketch.ContentUseful, Keep: sketch.Keep{Punctuation: true, Case: true}, Seed: "hunter2",
	}
	expect.Same(t, want, got.Sketch.Scheme(), "")
	const described = "zero_mod_m, features characters, 7 characters, 64 positions, modulus 9, 3 repeats, content useful, punctuation and case kept, with a seed"
	expect.Same(t, described, got.Sketch.Describe(), "")
	defaults := Default()
	expect.Same(t, sketch.DefaultScheme(), defaults.Sketch.Scheme(), "")
}

// TestBadConfig reads the files of testdata/bad. The lines that begin with "#: " are the errors expected of each, all of them, with their lines.
func TestBadConfig(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	names := strings.NewReplacer("KINDS", Either(kind.Names()), "PRESETS", Either(PresetNames()))
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text := expect.Value(os.ReadFile(file))(t)
			var want, got []string
			for line := range strings.Lines(string(text)) {
				if message, ok := strings.CutPrefix(line, "#: "); ok {
					want = append(want, names.Replace(strings.TrimSpace(message)))
				}
			}
			_, err = Parse(text, environment("EMPTY", "", "WORD", "loud"))
			for _, e := range Flatten(err) {
				wrong, _ := errors.AsType[*KeyError](e)
				got = append(got, fmt.Sprintf("line %d: %v", wrong.Line, e))
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
	for field := range section.Fields() {
		if keyOf(field) == "" {
			continue
		}
		keys = append(keys, keyOf(field))
		value := field.Type
		if value.Kind() == reflect.Slice {
			value = value.Elem()
		}
		if value.Kind() == reflect.Struct {
			keys = append(keys, allKeys(value)...)
		}
	}
	return keys
}
