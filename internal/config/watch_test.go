package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestWatch changes files in the ways in which they are changed, and looks as often as it takes.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		t.Helper()
		expect.OK(t, os.MkdirAll(filepath.Dir(at(name)), 0o700))
		expect.OK(t, os.WriteFile(at(name), []byte(text), 0o600))
	}
	do := func(err error) {
		t.Helper()
		expect.OK(t, err)
	}
	t.Setenv("NEARDUP_TEST_DIR", dir)
	// As Kubernetes mounts a ConfigMap: the file is a link through ..data, which is turned round.
	put("..1/config.yaml", "admin: ${file:"+at("secret")+"}\nengines: [{tls: {ca_file: \"${NEARDUP_TEST_DIR}/ca.pem\"}, indices: [{boilerplate: footers.jsonl}]}]\n")
	do(os.Symlink("..1", at("..data")))
	do(os.Symlink("..data/config.yaml", at("config.yaml")))
	put("secret", "one")
	put("ca.pem", "one")
	w := NewWatch(at("config.yaml"))
	text := func() string {
		text, err := os.ReadFile(at("config.yaml"))
		do(err)
		return string(text)
	}()
	steps := []struct {
		name   string
		change func()
		want   bool
	}{
		{"nothing", func() {}, false},
		{"a secret", func() { put("secret", "two") }, true},
		{"a certificate", func() { put("ca.pem", "two") }, true},
		{"passages", func() { put("footers.jsonl", "one") }, true},
		{"other passages", func() { put("footers.jsonl", "two") }, true},
		{"a file that goes", func() { do(os.Remove(at("ca.pem"))) }, true},
		{"and comes", func() { put("ca.pem", "three") }, true},
		{"the same again", func() { put("ca.pem", "three") }, false},
		{"links turned round", func() {
			put("..2/config.yaml", text+"# changed\n")
			do(os.Symlink("..2", at("..data_tmp")))
			do(os.Rename(at("..data_tmp"), at("..data")))
		}, true},
		{"an editor that renames", func() {
			put("config.yaml.new", text+"# edited\n")
			do(os.Rename(at("config.yaml.new"), at("config.yaml")))
		}, true},
		{"no YAML any more", func() { put("config.yaml", "a: [") }, true},
		{"well again", func() { put("config.yaml", text) }, true},
		{"a secret after all that", func() { put("secret", "three") }, true},
		{"a file that nothing names", func() { put("other", "x") }, false},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			step.change()
			expect.Same(t, []bool{false, step.want, false}, []bool{w.Changed(), w.Changed(), w.Changed()}, "at first sight, at the second and once more")
		})
	}
	t.Run("still being written", func(t *testing.T) {
		for i := range 5 {
			put("config.yaml", text[:len(text)-10+i])
			if w.Changed() {
				t.Error("taken half written")
			}
		}
		put("config.yaml", text)
		for range 2 {
			if w.Changed() {
				t.Error("it says what it said before")
			}
		}
	})
}
