package main

import (
	"net/url"
	"strings"
	"testing"
)

func TestFlinkFlags(t *testing.T) {
	dir := t.TempDir()
	whole := flinkFlags{gateway: "http://flink:8083", shared: dir}
	with := func(change func(*flinkFlags)) flinkFlags {
		f := whole
		change(&f)
		return f
	}
	for _, c := range []struct {
		name, engine string
		flags        flinkFlags
		want         []string // parts of the error; none is no error
	}{
		{"all", onFlink, with(func(f *flinkFlags) { f.parallelism, f.sharedURI = 4, "file:///x" }), nil},
		{"without flink", "news", whole, []string{"go with --engine flink alone"}},
		{"nothing", onFlink, flinkFlags{}, []string{"--gateway: is missing", "--shared: is missing"}},
		{"a password", onFlink, with(func(f *flinkFlags) { f.gateway = "https://me:hunter2@flink:8083" }), []string{"--gateway: holds a password"}},
		{"a password that is not there", onFlink, with(func(f *flinkFlags) { f.gateway = "https://me:${NEARDUP_NOT_SET}@flink" }), []string{"NEARDUP_NOT_SET is not set"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.flags.check(c.engine)
			if (err == nil) != (c.want == nil) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("got %v, want %q", err, part)
				}
			}
		})
	}
}

// TestFlinkAddress puts into an address what came from elsewhere, whatever signs are in it.
func TestFlinkAddress(t *testing.T) {
	env := func(name string) (string, bool) {
		text := map[string]string{"FLINK_PASSWORD": "p@ss/w:%?"}[name]
		return text, text != ""
	}
	for _, c := range []struct{ text, password string }{
		{"http://flink:8083", ""},
		{"http://flink:8083/$x", ""},
		{"https://me:${FLINK_PASSWORD}@flink:8083/sql", "p@ss/w:%?"},
		{"https://me:${file:" + write(t, "p@ss/w:%?\n") + "}@flink:8083/sql", "p@ss/w:%?"},
		{"https://me:${NONE:-a}@flink:8083/sql", "a"},
	} {
		address, err := (&flinkFlags{gateway: c.text}).address(env)
		if err != nil {
			t.Fatal(c.text, err)
		}
		u, err := url.Parse(address)
		if err != nil || u.Host != "flink:8083" {
			t.Fatal(address, err)
		}
		if password, _ := u.User.Password(); password != c.password || c.password != "" && (u.User.Username() != "me" || u.Path != "/sql") {
			t.Errorf("%s became %s", c.text, address)
		}
	}
}
