package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// file puts a text into a file of its own and returns its name.
func file(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	expect.OK(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// piped runs the program on a standard input.
func piped(t testing.TB, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr strings.Builder
	code := run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// stored returns the sketch as the sidecar stores it, for a rule over the fields.
func stored(t testing.TB, scheme sketch.Scheme, fields []string, texts ...string) string {
	t.Helper()
	rule := rule.Rule{Fields: fields, Sketcher: expect.Value(sketch.New(scheme))(t)}
	s, _ := rule.Sketch(texts)
	return s.String()
}

func TestSketchCommand(t *testing.T) {
	const docs = `{"id": "a", "title": "Ferry", "text": "The evening ferry returns", "body": "Other"}
{"id": 7, "text": ["one two", "three four"], "title": null}

{"id": "", "text": "... !"}
{"id": "größe", "other": 1}
{"id":"d","a":{"b":[{"c":"deep words"},{"c":["more words"]}]},"a.b.c":"dotted words"}
`
	plain, seeded := sketch.DefaultScheme(), sketch.Scheme{Seed: "s", Words: 3}
	both := []string{"title", "text"}
	config := write(t, `
sketch: {seed: "${UNSET_BUT_DEFAULT:-s}", words: 3}
engines: [{urls: ["${NOT_SET_AT_ALL}"], nonsense: 1, indices: [{match: "n-*", fields: [body]}, {match: "m", fields: [a.b.c]}]}]`)
	single := write(t, `engines: [{indices: [{match: "n-*", fields: [body]}]}]`)
	schemes := write(t, `
sketch: {seed: s, words: 3, keep: [case]}
engines: [{indices: [{match: n, fields: [body]}, {match: m, fields: [a.b.c], sketch: {words: 1, keep: []}}, {match: g, preset: goods, fields: [text]}]}]`)
	section := sketch.Scheme{Seed: "s", Words: 3, Keep: sketch.Keep{Case: true}}
	single1, tagged := sketch.Scheme{Seed: "s", Words: 1}, sketch.Scheme{Seed: "s", Features: sketch.Tags, Keep: sketch.Keep{Case: true}}
	row := func(scheme sketch.Scheme, id string, sketch string) string {
		return fmt.Sprintf("%s\t%08x\t%s\n", id, scheme.ID(), sketch)
	}
	rows := func(scheme sketch.Scheme, columns ...string) string {
		var b strings.Builder
		for i, id := range []string{"a", "7", "", "größe", "d"} {
			b.WriteString(row(scheme, id, columns[i]))
		}
		return b.String()
	}
	defaults := rows(plain, stored(t, plain, both, "Ferry", "The evening ferry returns"), stored(t, plain, both, "one two", "three four"), "", "", "")
	for _, c := range []struct{ name, args, want string }{
		{"defaults", "", defaults},
		{"one field", "--fields text", rows(plain, stored(t, plain, []string{"text"}, "The evening ferry returns"),
			stored(t, plain, []string{"text"}, "one two", "three four"), "", "", "")},
		{"config, its rules left alone", "-c " + config, rows(seeded, stored(t, seeded, both, "Ferry", "The evening ferry returns"),
			stored(t, seeded, both, "one two", "three four"), "", "", "")},
		{"a rule by a pattern", "-c " + config + " --index n-2024", rows(seeded, stored(t, seeded, []string{"body"}, "Other"), "", "", "", "")},
		{"a rule by its match", "-c " + config + " --index m", rows(seeded, "", "", "", "",
			stored(t, seeded, []string{"a.b.c"}, "deep words", "more words"))},
		{"the only rule", "-c " + single, rows(plain, stored(t, plain, []string{"body"}, "Other"), "", "", "", "")},
		{"a rule under the section", "-c " + schemes + " --index n", rows(section, stored(t, section, []string{"body"}, "Other"), "", "", "", "")},
		{"a rule with a scheme of its own", "-c " + schemes + " --index m", rows(single1, "", "", "", "",
			stored(t, single1, []string{"a.b.c"}, "deep words", "more words"))},
		{"a rule with its preset's scheme", "-c " + schemes + " --index g", rows(tagged,
			stored(t, tagged, []string{"text"}, "The evening ferry returns"), stored(t, tagged, []string{"text"}, "one two", "three four"),
			stored(t, tagged, []string{"text"}, "... !"), "", "")},
		{"fields win over the rule", "-c " + single + " --fields title,text", defaults},
	} {
		args := append([]string{"sketch"}, strings.Fields(c.args)...)
		for _, got := range []result{piped(t, docs, args...), piped(t, docs, append(args, "-")...), sidecar(t, append(args, file(t, docs))...)} {
			byAll.Same(t, result{stdout: c.want}, got, "%s", c.name)
		}
	}
	got := piped(t, docs, "sketch", "--output", "json")
	var want strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(defaults), "\n") {
		columns := strings.Split(line, "\t")
		id := [...]string{`"a"`, `7`, `""`, `"größe"`, `"d"`}[i]
		fmt.Fprintf(&want, `{"id":%s,"scheme":"%s","sketch":"%s"}`+"\n", id, columns[1], strings.Join(columns[2:], ""))
	}
	if got.stdout != want.String() || got.code != 0 {
		t.Errorf("%+v, want %s", got, want.String())
	}
}

func TestSketchCommandRefuses(t *testing.T) {
	const good = `{"id":"a","text":"some words"}` + "\n"
	wrong := write(t, "sketch: {words: 99, word: 1}\nengines: [{indices: [{match: a, fields: [t], preset: careful}]}]")
	rules := write(t, "engines: [{indices: [{match: a, fields: [t]}, {match: b, fields: [t]}]}]")
	unset := write(t, `sketch: {seed: "${NEARDUP_TEST_UNSET}"}`)
	for _, c := range []struct{ args, stdin, want string }{
		{"", good + "{\n", "error: standard input:2: is no JSON object: write one document in each line"},
		{"", good + "\n[1]", "error: standard input:3: is no JSON object"},
		{"", good + `{"text":"x"}`, `error: standard input:2: has no field "id": give each document one, a text or a number`},
		{"", good + `{"id":null}`, `error: standard input:2: id: null is no id: give a text or a number`},
		{"", good + `{"id":"a\tb"}`, `error: standard input:2: id: contains a tab or a line break, which a table can't show: use --output json`},
		{"", good + `{"id":1,"text":{"a":1}}`, `error: standard input:2: field text: {"a":1} is no text: write it in quotes, or leave the field out of --fields`},
		{"", good + `{"id":1,"title":["x",3]}`, `error: standard input:2: field title: 3 is no text`},
		{"", good + `{"id":1,"text":"x","text":"y"}`, `error: standard input:2: field text: "text" stands twice in one object: drop one`},
		{"nowhere.jsonl", "", "error: open nowhere.jsonl: no such file or directory: name a file, or - for standard input"},
		{"--output xml", "", `error: invalid argument "xml" for "--output" flag: use text or json`},
		{"--fields a,a.b", "", `error: --fields: "a.b" lies below "a": name one of the two`},
		{"--fields a,neardup_sketch", "", `error: --fields: "neardup_sketch" can't be sketched`},
		{"--index a", "", "error: --index names a rule of a configuration: name its file with --config"},
		{"-c nowhere.yaml", "", "error: read config: open nowhere.yaml: no such file or directory: name the file with --config"},
		{"-c " + wrong, "", "error: " + wrong + ":1: sketch.word: unknown key, did you mean words?\nerror: " + wrong +
			`:2: engines[0].indices[0].preset: "careful" is unknown: use ` + config.Either(config.PresetNames())},
		{"-c " + rules + " --index c", "", "error: --index: no rule is for c: the rules match a, b"},
		{"-c " + unset, "", "error: " + unset + ":1: sketch.seed: the environment variable NEARDUP_TEST_UNSET is not set"},
		{"a b", "", "error: sketch takes one file, and got 2"},
	} {
		got := piped(t, c.stdin, append([]string{"sketch"}, strings.Fields(c.args)...)...)
		if got.code != exitFailed || !strings.HasPrefix(got.stderr, c.want) {
			t.Errorf("sidecar sketch %s on %q: code %d, %s", c.args, c.stdin, got.code, got.stderr)
		}
		if strings.HasPrefix(c.stdin, good) && (!strings.HasPrefix(got.stdout, "a\t") || strings.Count(got.stdout, "\n") != 1 || !strings.HasSuffix(got.stdout, "\n")) {
			t.Errorf("sidecar sketch %s on %q: what was printed is not whole: %q", c.args, c.stdin, got.stdout)
		}
	}
}
