package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// These tests are of the runner itself, without an engine: it must see what goes wrong.

func TestAssertions(t *testing.T) {
	reply := `{"a": {"b.c": [1, 2.0, {"d": "text", "e": null}]},
		"zero": 0, "no": false, "empty": "", "big": 9007199254740993, "list": []}`
	body, err := decodeReply("application/json", []byte(reply))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		step string
		want bool
	}{
		{`match: {a.b\.c.0: 1.0}`, true},
		{`match: {a.b\.c.0: "1"}`, false},
		{`match: {a.b\.c.1: 2}`, true},
		{`match: {a.b\.c.2.d: text}`, true},
		{`match: {a.b\.c.2.d: /^ t.xt $/}`, true},
		{`match: {a.b\.c.2: {d: text}}`, false},
		{`match: {a.b\.c.2: {d: text, e: null}}`, true},
		{`match: {big: 9007199254740993}`, true},
		{`match: {a.b\.c.$i: 1}`, true},
		{`match: {a.b\.c.2.d: $text}`, true},
		{`length: {a.b\.c: 3}`, true},
		{`is_true: a`, true},
		{`is_true: zero`, false},
		{`is_false: missing`, true},
		{`gt: {a.b\.c.1: 1}`, true},
		{`gt: {a.b\.c.1: 2}`, false},
		{`lte: {a.b\.c.1: 1}`, false},
		{`contains: {a.b\.c: {d: text}}`, true},
		{`contains: {a.b\.c.2.d: ex}`, true},
		{`close_to: {a.b\.c.1: {value: 2.1, error: 0.2}}`, true},
		{`close_to: {a.b\.c.1: {value: 2.1, error: 0.01}}`, false},
		{`exists: missing`, false},
		{`unheard_of: {a: 1}`, false},
	} {
		t.Run(c.step, func(t *testing.T) {
			list := parse(t, "setup:\n  - "+c.step+"\n---\ntest: []\n")
			s := list[0].setup[0]
			err := holds(s.verb, s.arg, body, stash{"i": json.Number("0"), "text": "text"})
			if (err == nil) != c.want {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func parse(t *testing.T, text string) []*section {
	t.Helper()
	list, err := parseFile(strings.NewReader(text), "file")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// engineReply is the only reply of the engine in the tests below.
const engineReply = `{"took":1,"hits":{"total":2,"hits":[` +
	`{"_index":"i","_id":"1","_source":{"title":"one","n":1}}` + second + `]}}`

// second is the second of its hits.
const second = `,{"_index":"i","_id":"2","_source":{"title":"one","n":2}}`

// faults are ways in which a sidecar could go wrong, and what is to come of it.
var faults = []struct {
	name     string
	status   int
	old, new string // in the reply
	header   string // set to a value, or with none taken out
	want     string // of the findings
}{
	{"none", 200, "", "", "", ""},
	{"status", 202, "", "", "", "status of search"},
	{"error", 500, "", "", "", "fails"},
	{"header", 200, "", "", "X-Product", "header of search"},
	{"leak", 200, `"n":1`, `"n":1,"neardup_sketch":"x"`, "", "leak of search"},
	{"value", 200, `"n":2`, `"n":3.5`, "", "value of search"},
	{"field", 200, `"n":2`, `"m":2`, "", "fields of search"},
	{"white space", 200, `"n":2`, `"n": 2`, "", "layout of search"},
	{"lost hit", 200, second, "", "", "fails"},
	{"right fold", 200, second, "", "Neardup: collapsed; folded=1", "folds"},
	{"wrong fold", 200, `{"_index":"i","_id":"1","_source":{"title":"one","n":1}},`, "", "Neardup: collapsed; folded=1", "fails"},
}

func TestFaultsAreFound(t *testing.T) {
	s := fakeSuite(t)
	for i, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			engine := func(fault int) *runner { return fakeEngine(t, fault) }
			l := &lab{direct: engine(0), bare: engine(0), ruled: engine(i), late: engine(0)}
			l.wipe = func(context.Context, []exchange) error { return nil }
			v, err := l.judge(t.Context(), s, s.sections[0])
			if err != nil {
				t.Fatal(err)
			}
			none, err := readAllowed("")
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(none.findings(s.sections[0], v), "\n")
			if (got == "") != (f.want == "") || !strings.Contains(got, f.want) {
				t.Errorf("%v\nwant %q", got, f.want)
			}
		})
	}
}

// fakeSuite is a suite of one search.
func fakeSuite(t *testing.T) *suite {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"api/search.json": `{"search": {"url": {"paths": [{"path": "/{index}/_search", "methods": ["POST"]}]}, "body": {}}}`,
		"test/search.yml": "all:\n  - do: {search: {index: i, body: {size: 2}}}\n  - length: {hits.hits: 2}\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := readSuite(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fakeEngine answers every request with the reply, with a fault unless the request has a control.
func fakeEngine(t *testing.T, fault int) *runner {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Product", "fake")
		f := faults[fault]
		if r.Header.Get("Neardup-Control") != "" {
			f = faults[0]
		}
		if key, value, ok := strings.Cut(f.header, ": "); ok {
			w.Header().Set(key, value)
		} else {
			w.Header().Del(key)
		}
		w.WriteHeader(f.status)
		fmt.Fprint(w, strings.Replace(engineReply, f.old, f.new, 1))
	}))
	t.Cleanup(server.Close)
	return &runner{base: server.URL, client: newClient()}
}

func TestAllowList(t *testing.T) {
	list, err := readAllowed("# comment\nfolds | a/b | same text\nknown | a/c | told\ndiffer | leak of cluster.state | told\n")
	if err != nil {
		t.Fatal(err)
	}
	at := func(title string) *section { return &section{file: "a", title: title} }
	for _, c := range []struct {
		se   *section
		v    verdict
		want int
	}{
		{at("b"), verdict{outcome: folds, bare: true}, 0},
		{at("b"), verdict{outcome: fails, bare: true}, 1}, // for another reason than is allowed
		{at("c"), verdict{outcome: fails, bare: true}, 0},
		{at("c"), verdict{outcome: fails}, 1}, // without a rule nothing is allowed
		{at("c"), verdict{outcome: passes, bare: true}, 1},
		{at("d"), verdict{outcome: folds, bare: true}, 1},
		{at("d"), verdict{outcome: passes, bare: true, differences: []difference{{what: "leak", api: "cluster.state"}}}, 0},
		{at("d"), verdict{outcome: passes, bare: true, differences: []difference{{what: "leak", api: "get"}}}, 1},
	} {
		if got := list.findings(c.se, c.v); len(got) != c.want {
			t.Errorf("%s %+v: %q, want %d", c.se.name(), c.v, got, c.want)
		}
	}
	for _, bad := range []string{"folds | a/b", "folds | a/b | ", "mended | a | b"} {
		if _, err := readAllowed(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
