package main

import (
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
		{"none without flink", "", flinkFlags{}, nil},
		{"without flink", "news", whole, []string{"go with --engine flink alone"}},
		{"nothing", onFlink, flinkFlags{}, []string{"--gateway: is missing", "--shared: is missing"}},
		{"no directory", onFlink, with(func(f *flinkFlags) { f.shared += "/none" }), []string{"is no directory here"}},
		{"parallelism", onFlink, with(func(f *flinkFlags) { f.parallelism = -1 }), []string{"--parallelism: -1 is out of range"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.flags.check(c.engine)
			if (err == nil) != (c.want == nil) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q", err, part)
				}
			}
		})
	}
}
