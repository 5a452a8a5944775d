package main

import (
	"strings"
	"testing"
	"time"
)

func TestReindexFlags(t *testing.T) {
	good := reindexFlags{jobFlags: jobFlags{output: "text"}, slices: 2}
	for _, c := range []struct {
		name   string
		change func(*reindexFlags)
		says   string
	}{
		{"as they are", func(*reindexFlags) {}, ""},
		{"a rate below 0", func(f *reindexFlags) { f.perSecond = -1 }, "--requests-per-second"},
		{"documents below 0", func(f *reindexFlags) { f.maxDocs = -1 }, "--max-docs"},
		{"no slices", func(f *reindexFlags) { f.slices = 0 }, "--slices: 0"},
		{"too many slices", func(f *reindexFlags) { f.slices = 65 }, "--slices: 65"},
		{"a short interval", func(f *reindexFlags) { f.watch = time.Millisecond }, "--watch: 1ms"},
		{"a watch of a dry run", func(f *reindexFlags) { f.watch, f.dryRun = time.Minute, true }, "--watch has no end"},
		{"a watch of some documents", func(f *reindexFlags) { f.watch, f.maxDocs = time.Minute, 1 }, "--watch has no end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := good
			c.change(&f)
			if err := f.validate(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}
