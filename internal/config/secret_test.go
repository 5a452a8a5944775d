package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/internal/expect"
)

const secretText = "hunter2canary"

// TestSecretIsNeverShown prints, formats, logs and marshals a secret in every place where one may stand.
func TestSecretIsNeverShown(t *testing.T) {
	type open struct{ S Secret }
	type closed struct{ s Secret }
	type deep struct{ in *closed }
	s := SecretOf(secretText)
	places := map[string]any{
		"itself": s, "pointer": &s, "exported field": open{s}, "unexported field": closed{s}, "pointer to a struct": &closed{s},
		"behind a pointer": deep{&closed{s}}, "slice": []Secret{s}, "map": map[string]Secret{"k": s}, "key": map[Secret]int{s: 1},
		"interface": []any{s, closed{s}}, "config": Config{Sketch: Sketch{Seed: s}, Engines: []Engine{{Credentials: Credentials{APIKey: s}}}},
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
				for _, form := range []string{secretText, fmt.Sprintf("%x", secretText), fmt.Sprintf("%X", secretText), fmt.Sprintf("% x", secretText), fmt.Sprintf("%v", []byte(secretText)[0:4])[1:14]} {
					if strings.Contains(text, form) {
						t.Errorf("shown: %s", text)
					}
				}
			}
		})
	}
	if s.Reveal() != secretText || s.String() != Hidden || fmt.Sprintf("%q %#v", s, s) != `"…" "…"` {
		t.Errorf("%s, %s", s.Reveal(), s)
	}
	var none Secret
	if none.IsSet() || none.Reveal() != "" || fmt.Sprintf("%v|%q", none, none) != `|""` {
		t.Errorf("an empty one shows as %q", none)
	}
	if !s.Equal(SecretOf(secretText)) || s.Equal(SecretOf("other")) || !none.Equal(SecretOf("")) || !reflect.DeepEqual(open{s}, open{SecretOf(secretText)}) {
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
		for field := range section.Fields() {
			key, place := keyOf(field), field.Type
			if key == "" {
				continue
			}
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
	expect.Same(t, 6, found, "secrets: four credentials, a seed and a rule's own")
}

func TestSecretFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		expect.OK(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	link := filepath.Join(dir, "link")
	expect.OK(t, os.Symlink(file("target", secretText+"\n", 0o400), link))
	for _, c := range []struct{ name, path, want, wrong string }{
		{"without a line end", file("a", secretText, 0o600), secretText, ""},
		{"with one", file("b", secretText+"\n", 0o600), secretText, ""},
		{"several lines, spaces, a variable", file("e", " a\n${HOME} $$\n", 0o600), " a\n${HOME} $$", ""},
		{"empty", file("f", "", 0o600), "", ""},
		{"too long", file("h", secretText+strings.Repeat("x", maxSecretFile), 0o600), "", "is larger than 64KB: name another file"},
		{"not there", filepath.Join(dir, "none"), "", "can't be read: no such file or directory: name a file that exists"},
		{"a device", "/dev/zero", "", "is not a regular file: name a file"},
		{"binary", file("i", secretText+"\x00", 0o600), "", "is not text: it contains a zero byte"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Expand("${file:"+c.path+"}", environment())
			switch {
			case c.wrong == "" && (err != nil || got != c.want):
				t.Errorf("%.40q, want %.40q: %v", got, c.want, err)
			case c.wrong != "" && (err == nil || !strings.HasSuffix(err.Error(), c.wrong) || !strings.Contains(err.Error(), c.path)):
				t.Errorf("%v, want … %s", err, c.wrong)
			case err != nil && strings.Contains(err.Error(), secretText):
				t.Errorf("shown: %v", err)
			}
		})
	}
}

// TestSecretsFromFiles reads a configuration whose secrets stand in files, and which names them.
func TestSecretsFromFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"user": "admin\n", "word": secretText + "\n", "seed": "s\n", "window": "70\n"} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
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
	c := expect.Value(Parse([]byte(text), environment()))(t)
	got := c.Engines[0]
	if got.Credentials.Username.Reveal() != "admin" || got.Credentials.Password.Reveal() != "x"+secretText || c.Sketch.Seed.Reveal() != "s" || got.Indices[0].Window != 70 {
		t.Errorf("%+v", got)
	}
	expect.OK(t, os.Remove(filepath.Join(dir, "word")))
	_, err := Parse([]byte(text), environment())
	if err == nil || !strings.HasPrefix(err.Error(), "engines[0].credentials.password: ${file:"+dir+"/word} can't be read: ") || len(Flatten(err)) != 1 {
		t.Errorf("%v", err)
	}
}

func TestShownURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://h:1/p":                          "http://h:1/p",
		"http://user:hunter2canary@h:1/p":       "http://…@h:1/p",
		"http://user:hun@ter2/secretText@h:1/p": "http://…@h:1/p",
		"http://h/?key=hunter2canary":           "http://h/?…",
		"http://h/#hunter2canary":               "http://h/?…",
		"http://h/#hunter2canary?hunter2":       "http://h/?…",
		"ftp://hunter2canary@h":                 "ftp://…@h",
		"user:hunter2canary@h:1":                "…@h:1",
		"h:1?x=hunter2canary":                   "h:1?…",
		"hunter2canary":                         "…",
		"hunter2:secretText":                    "…",
		"localhost:9200":                        "localhost:9200",
		"http:/user:hunter2canary@h://p":        "…@h://p",
		"https://a:%zz%hunter2canary@[::1]:1":   "https://…@[::1]:1",
	} {
		expect.Same(t, want, shownURL(text), "%s shown", text)
	}
}

// FuzzShownURL puts a secret where a URL may hide one.
func FuzzShownURL(f *testing.F) {
	f.Add("http://", "user", "h:1/p", "x=")
	f.Add("", "a/b@", "h", "#")
	f.Fuzz(func(t *testing.T, scheme, user, host, query string) {
		for _, text := range []string{scheme + user + ":" + secretText + "@" + host, scheme + host + "?" + query + secretText, scheme + host + "#" + query + secretText} {
			if shown := shownURL(text); strings.Contains(shown, secretText) {
				t.Errorf("%q is shown as %q", text, shown)
			}
		}
	})
}
