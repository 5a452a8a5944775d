package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/offline"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/jobs/cluster"
)

// saveEvery is the least time between two saves of --work, 0 for the default. Tests change it.
var saveEvery time.Duration

// progressOfInput is how far --input was read. --work saves it.
type progressOfInput struct {
	offline.Place
	// Whole says that it was read to its end.
	Whole bool `json:"whole"`
	// Fields are the names of fields that it has.
	Fields []string `json:"fields"`
}

// with returns the progress with the names of the fields that were seen. Some may be of documents behind the place.
func (p progressOfInput) with(f *fieldNames) progressOfInput {
	p.Fields = f.list()
	return p
}

// checkWork returns what is wrong with --work beside the other flags.
func (c *clusterJob) checkWork() error {
	switch {
	case c.work == "":
		return nil
	case c.input == "":
		return errors.New("--work goes with --input: the reading of an index can't be picked up later, but the sketches that are stored there need not be made again: run sidecar reindex first, which goes on after an interruption")
	case c.input == "-":
		return errors.New("--work: standard input can't be read again from the middle: name a file with --input")
	case c.Algorithm == cluster.Broder:
		return errors.New("--work: a run of broder can't be picked up later: use bands or exact")
	case c.boilerplate != "":
		return errors.New("--work: the readings of --boilerplate can't be picked up later: leave out one of them")
	case !isFolder(filepath.Dir(filepath.Clean(c.work))):
		return fmt.Errorf("--work: there is no directory %s: name a directory in one that you may write to", filepath.Dir(filepath.Clean(c.work)))
	case !terminal.CanLock:
		return errors.New("--work: this system has no suitable file lock: leave it out, or run the command on Linux, macOS or another Unix")
	}
	return c.workWithInput()
}

// workWithInput returns what is wrong with --work for the input.
func (c *clusterJob) workWithInput() error {
	info, err := os.Stat(c.input)
	if err != nil {
		return nil //nolint:nilerr // the opening says it
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("--work: %s is no regular file, so it can't be read again from the middle", c.input)
	}
	path, err := filepath.EvalSymlinks(c.input)
	if err != nil {
		return err
	}
	work, noWork := os.Stat(c.work)
	folder, err := os.Stat(filepath.Dir(path))
	if noWork == nil && err == nil && os.SameFile(work, folder) {
		return fmt.Errorf("--work: %s is in this directory: name another one", c.input)
	}
	return err
}

// resume has the corpus save its work in the directory that --work names, if any, and goes on with what is there. src is the open input. It returns
// how far the input was read. unchanged is to be called when all is read: it returns an error if the input changed since.
func (c *clusterJob) resume(
	ctx context.Context, src io.Reader, fields []string, hostField string,
) (done progressOfInput, unchanged func() error, err error) {
	if c.work == "" {
		return done, func() error { return nil }, nil
	}
	path, err := filepath.Abs(c.input)
	if err != nil {
		return done, nil, err
	}
	input := src.(fs.File) // see checkWork
	before, err := input.Stat()
	if err != nil {
		return done, nil, err
	}
	c.next = time.Now().Add(meterEvery)
	note, err := c.corpus.Resume(ctx, c.work, map[string]string{
		"input": path, "size of the input": fmt.Sprint(before.Size()), "last change of the input": before.ModTime().UTC().Format(time.RFC3339Nano),
		"engine": c.engine, "id": c.id, "fields": strings.Join(fields, ", "), "host field": hostField,
	})
	if err == nil && note != nil {
		err = json.Unmarshal(note, &done)
	}
	if err != nil {
		return done, nil, fmt.Errorf("--work: %w", err)
	}
	return done, func() error {
		after, err := input.Stat()
		if err == nil && (after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime())) {
			err = fmt.Errorf("%s: the input changed while it was read: remove the files neardup-* in %s to start over", c.input, c.work)
		}
		return err
	}, nil
}
