package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const canary = "hunter2canary"

// TestSecretIsNeverShown prints, formats, logs and marshals a secret in every place where one may stand.
func TestSecretIsNeverShown(t *testing.T) {
	type open struct{ S Secret }
	type closed struct{ s Secret }
	type deep struct{ in *closed }
	s := secretOf(canary)
	places := map[string]any{
		"itself": s, "pointer": &s, "exported field": open{s}, "unexported field": closed{s}, "pointer to a struct": &closed{s},
		"behind a pointer": deep{&closed{s}}, "slice": []Secret{s}, "map": map[string]Secret{"k": s}, "key": map[Secret]int{s: 1},
		"interface": []any{s, closed{s}}, "config": Config{Sketch: SketchConfig{Seed: s}, Engines: []EngineConfig{{Credentials: CredentialsConfig{APIKey: s}}}},
	}
	for name, value := range places {
		t.Run(name, func(t *testing.T) {
			var shown []string
			for _, verb := range []string{"v", "+v", "#v", "s", "q", "x", "X", "d", "T", "p", "t", "c", "U", "-20v", " x", "#x", "08d"} {
				shown = append(shown, fmt.Sprintf("%"+verb, value))
			}
			shown = append(shown, fmt.Sprint(value), fmt.Errorf("read: %v", value).Error())
			asJSON, _ := json.Marshal(value) // some of these have no form in JSON
			asYAML, _ := yaml.Marshal(map[string]any{"at": name, "value": s})
			var log bytes.Buffer
			for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
				slog.New(h).With("with", value).Info("line", "value", value, slog.Group("g", "value", value))
			}
			for _, text := range append(shown, string(asJSON), string(asYAML), log.String()) {
				for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprintf("% x", canary), fmt.Sprintf("%v", []byte(canary)[0:4])[1:14]} {
					if strings.Contains(text, form) {
						t.Errorf("shown: %s", text)
					}
				}
			}
		})
	}
	if s.reveal() != canary || s.String() != hidden || fmt.Sprintf("%q %#v", s, s) != `"…" "…"` {
		t.Errorf("%s, %s", s.reveal(), s)
	}
	var none Secret
	if none.set() || none.reveal() != "" || fmt.Sprintf("%v|%q", none, none) != `|""` {
		t.Errorf("an empty one shows as %q", none)
	}
	if !s.Equal(secretOf(canary)) || s.Equal(secretOf("other")) || !none.Equal(secretOf("")) || !reflect.DeepEqual(open{s}, open{secretOf(canary)}) {
		t.Error("not compared by their texts")
	}
}

// TestSecretKeysAreSecrets looks through the configuration for keys that sound as if their value had to be hidden.
func TestSecretKeysAreSecrets(t *testing.T) {
	sounds := regexp.MustCompile(`key|password|secret|token|seed|bearer|username|auth|header`)
	known := []string{"header_timeout", "key_file"}
	found := 0
	var look func(path string, section reflect.Type)
	look = func(path string, section reflect.Type) {
		if section.Kind() == reflect.Slice {
			section = section.Elem()
		}
		if section.Kind() != reflect.Struct || section == reflect.TypeFor[Secret]() {
			return
		}
		for key, place := range keysOf(section) {
			if place == reflect.TypeFor[Secret]() {
				found++
				if !secret(path + "." + key) {
					t.Errorf("%s.%s: errors about it may show it: see secret", path, key)
				}
			} else if sounds.MatchString(key) && !slices.Contains(known, key) {
				t.Errorf("%s.%s is a %v", path, key, place)
			}
			look(strings.TrimPrefix(path+"."+key, "."), place)
		}
	}
	look("", reflect.TypeFor[Config]())
	if found != 6 { // four credentials, a seed and a rule's own
		t.Errorf("%d secrets", found)
	}
}

// TestNoSecretInFlags: what stands on a command line everyone on the machine can read.
func TestNoSecretInFlags(t *testing.T) {
	sounds := regexp.MustCompile(`pass|secret|token|credential|bearer|(^|-)(api-)?key$|user`)
	n := 0
	eachCommand(newRoot(), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			n++
			if sounds.MatchString(f.Name) {
				t.Errorf("%s --%s: take it from the configuration", c.CommandPath(), f.Name)
			}
		})
	})
	if n < 50 {
		t.Errorf("only %d flags found", n)
	}
}

func TestSecretFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file("target", canary+"\n", 0o400), link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want, wrong string }{
		{"without a line end", file("a", canary, 0o600), canary, ""},
		{"with one", file("b", canary+"\n", 0o600), canary, ""},
		{"several lines, spaces, a variable", file("e", " a\n${HOME} $$\n", 0o600), " a\n${HOME} $$", ""},
		{"empty", file("f", "", 0o600), "", ""},
		{"too long", file("h", canary+strings.Repeat("x", maxSecretFile), 0o600), "", "is larger than 64KB: name another file"},
		{"not there", filepath.Join(dir, "none"), "", "can't be read: no such file or directory: name one that is there"},
		{"a device", "/dev/zero", "", "is no regular file: name a file"},
		{"binary", file("i", canary+"\x00", 0o600), "", "is no text: it holds a zero byte"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := expand("${file:"+c.path+"}", environment(), secretFile)
			switch {
			case c.wrong == "" && (err != nil || got != c.want):
				t.Errorf("%.40q, want %.40q: %v", got, c.want, err)
			case c.wrong != "" && (err == nil || !strings.HasSuffix(err.Error(), c.wrong) || !strings.Contains(err.Error(), c.path)):
				t.Errorf("%v, want … %s", err, c.wrong)
			case err != nil && strings.Contains(err.Error(), canary):
				t.Errorf("shown: %v", err)
			}
		})
	}
	if err := unreadable(&fs.PathError{Err: fs.ErrPermission}); !strings.Contains(err.Error(), "uid") || !strings.Contains(err.Error(), "leave to read it") {
		t.Errorf("no hint: %v", err)
	}
}

// TestSecretsFromFiles reads a configuration whose secrets stand in files, and which names them.
func TestSecretsFromFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"user": "admin\n", "word": canary + "\n", "seed": "s\n", "window": "70\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.ReplaceAll(`
sketch: {seed: "${file:DIR/seed}"}
engines:
  - listen: ":1"
    kind: opensearch
    urls: ["http://h:1"]
    credentials: {username: "${file:DIR/user}", password: "x${file:DIR/word}"}
    indices: [{match: a, fields: [t], window: "${file:DIR/window}"}]
`, "DIR", dir)
	c, err := parse([]byte(text), environment())
	if err != nil {
		t.Fatal(err)
	}
	got := c.Engines[0]
	if got.Credentials.Username.reveal() != "admin" || got.Credentials.Password.reveal() != "x"+canary || c.Sketch.Seed.reveal() != "s" || got.Indices[0].Window != 70 {
		t.Errorf("%+v", got)
	}
	want := []string{dir + "/seed", dir + "/user", dir + "/window", dir + "/word"}
	if diff := cmp.Diff(want, c.files, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(filepath.Join(dir, "word")); err != nil {
		t.Fatal(err)
	}
	_, err = parse([]byte(text), environment())
	if err == nil || !strings.HasPrefix(err.Error(), "engines[0].credentials.password: ${file:"+dir+"/word} can't be read: ") || len(flat(err)) != 1 {
		t.Errorf("%v", err)
	}
}

func TestShownURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://h:1/p":                        "http://h:1/p",
		"http://user:hunter2canary@h:1/p":     "http://…@h:1/p",
		"http://user:hun@ter2/canary@h:1/p":   "http://…@h:1/p",
		"http://h/?key=hunter2canary":         "http://h/?…",
		"http://h/#hunter2canary":             "http://h/?…",
		"http://h/#hunter2canary?hunter2":     "http://h/?…",
		"ftp://hunter2canary@h":               "ftp://…@h",
		"user:hunter2canary@h:1":              "…@h:1",
		"h:1?x=hunter2canary":                 "h:1?…",
		"hunter2canary":                       "…",
		"hunter2:canary":                      "…",
		"localhost:9200":                      "localhost:9200",
		"https://a:%zz%hunter2canary@[::1]:1": "https://…@[::1]:1",
	} {
		if got := shownURL(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

// FuzzShownURL puts a secret where a URL may hide one.
func FuzzShownURL(f *testing.F) {
	f.Add("http://", "user", "h:1/p", "x=")
	f.Add("", "a/b@", "h", "#")
	f.Fuzz(func(t *testing.T, scheme, user, host, query string) {
		for _, text := range []string{scheme + user + ":" + canary + "@" + host, scheme + host + "?" + query + canary, scheme + host + "#" + query + canary} {
			if shown := shownURL(text); strings.Contains(shown, canary) {
				t.Errorf("%q is shown as %q", text, shown)
			}
		}
	})
}

// TestConfigPrint reads what was printed: but for the secrets it is the same configuration, whatever that is.
func TestConfigPrint(t *testing.T) {
	texts := map[string]string{"manual": ""}
	for _, p := range presets {
		texts[p.name] = fmt.Sprintf(`
log: {level: debug}
admin: ""
sketch: {words: 3, keep: [case, accents], seed: "%s"}
engines:
  - {name: "a: #1", listen: ":1", kind: embedded, indices: [{match: "*", fields: [t]}]}
  - listen: 127.0.0.1:0
    kind: opensearch
    urls: ["https://h:9200/a%%20b", "https://[::1]"]
    credentials: {username: "%s", password: "%s"}
    limits: {max_reply: 3KB, cursor_ttl: 1d, fallback_share: 0.125}
    indices:
      - {match: "x-*", fields: ["no", "on", "a$$b", "1", "é\"\\"], preset: %s, date_field: d, host_field: h, sketch: {seed: "%s"},
         representative: {prefer: "h", values: ["a b", "true"]}, within: {span: 36h}}
      - {match: y, fields: [t], representative: {field: votes, order: asc}, threshold: 1, bands: 8x4, on_duplicate: tag}
`, canary, canary, canary, p.name, canary)
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			file := "../../config.yaml"
			if text != "" {
				file = write(t, text)
			}
			want, err := Load(file, environment())
			if err != nil {
				t.Fatal(err)
			}
			got := sidecar(t, "config", "print", "-c", file)
			if got.code != 0 || strings.Contains(got.stdout+got.stderr, canary) {
				t.Fatalf("%+v", got)
			}
			for _, key := range allKeys(reflect.TypeFor[Config]()) {
				if !strings.Contains(got.stdout, key+":") && text != "" {
					t.Errorf("nothing about %s", key)
				}
			}
			again, err := parse([]byte(got.stdout), environment())
			if err != nil {
				t.Fatalf("%v: %s", err, got.stdout)
			}
			same := cmp.Comparer(func(a, b Secret) bool { return a.set() == b.set() })
			if diff := cmp.Diff(want, again, cmpopts.IgnoreUnexported(Config{}), same, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			// JSON is YAML too. Only a dollar sign stands there as it is.
			inJSON := sidecar(t, "config", "print", "-c", file, "--output", "json")
			if !json.Valid([]byte(inJSON.stdout)) || strings.Contains(inJSON.stdout+inJSON.stderr, canary) {
				t.Fatalf("%+v", inJSON)
			}
			if again, err = parse([]byte(strings.ReplaceAll(inJSON.stdout, "$", "$$")), environment()); err != nil {
				t.Fatalf("%v: %s", err, inJSON.stdout)
			}
			if diff := cmp.Diff(want, again, cmpopts.IgnoreUnexported(Config{}), same, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("in JSON: %s", diff)
			}
		})
	}
}

// TestGuarded panics in a handler, with a secret in hand.
func TestGuarded(t *testing.T) {
	for name, c := range map[string]struct {
		raise func(r *http.Request)
		want  string
	}{
		"with a text":      {func(r *http.Request) { panic("key " + r.Header.Get("Authorization")) }, "error=string"},
		"with an error":    {func(r *http.Request) { panic(errors.New(r.Header.Get("Authorization"))) }, "error=*errors.errorString"},
		"with the request": {func(r *http.Request) { panic(r) }, "error=*http.Request"},
		"of the runtime":   {func(r *http.Request) { _ = []int{}[len(r.Method)] }, "index out of range"},
		"on purpose":       {func(*http.Request) { panic(http.ErrAbortHandler) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			server := httptest.NewUnstartedServer(guarded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { c.raise(r) }), slog.New(slog.NewTextHandler(&log, nil))))
			server.Config.ErrorLog = serverErrors(slog.New(slog.NewTextHandler(&log, nil)))
			server.Start()
			defer server.Close()
			request, err := http.NewRequest(http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "ApiKey "+canary)
			if resp, err := http.DefaultTransport.RoundTrip(request); err == nil {
				t.Errorf("status %d, where the connection is to be cut", resp.StatusCode)
			}
			server.Close()
			if text := log.String(); strings.Contains(text, canary) || !strings.Contains(text, c.want) || c.want == "" && text != "" {
				t.Errorf("logged %s", text)
			}
		})
	}
}
