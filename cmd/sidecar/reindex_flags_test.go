package main

import (
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/jobs"
)

func TestReindexFlags(t *testing.T) {
	good := reindexJob{Options: jobs.Options{Slices: 2}}
	for _, c := range []struct {
		name   string
		change func(*reindexJob)
		says   string
	}{
		{"as they are", func(*reindexJob) {}, ""},
		{"a short interval", func(f *reindexJob) { f.every = time.Millisecond }, "--watch: 1ms"},
		{"a watch of a dry run", func(f *reindexJob) { f.every, f.DryRun = time.Minute, true }, "--watch has no end"},
		{"a watch of some documents", func(f *reindexJob) { f.every, f.MaxDocs = time.Minute, 1 }, "--watch has no end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := good
			c.change(&f)
			if err := f.check(nil, nil); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}
