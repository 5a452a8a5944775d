package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/offline"
	"github.com/neardup/sidecar/jobs/cluster"
)

// keepEvery is the least time between two saves of --work, 0 for the default. Tests change it.
var keepEvery time.Duration

// progressOfInput is how far --input was read. --work keeps it.
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
	}
	return nil
}

// resume has the corpus keep its work in the directory that --work names, if any, and goes on with what is there. It returns how far the input was read.
func (c *clusterJob) resume(ctx context.Context, fields []string, hostField string) (done progressOfInput, err error) {
	if c.work == "" {
		return done, nil
	}
	path, err := filepath.Abs(c.input)
	if err != nil {
		return done, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return done, fmt.Errorf("%w: name a file", err)
	}
	if !info.Mode().IsRegular() {
		return done, fmt.Errorf("--work: %s is no regular file, so it can't be read again from the middle", c.input)
	}
	c.next = time.Now().Add(meterEvery)
	note, err := c.corpus.Keep(ctx, c.work, map[string]string{
		"input": path, "size of the input": fmt.Sprint(info.Size()), "last change of the input": info.ModTime().UTC().Format(time.RFC3339Nano),
		"engine": c.engine, "id": c.id, "fields": strings.Join(fields, ", "), "host field": hostField,
	})
	if err == nil && note != nil {
		err = json.Unmarshal(note, &done)
	}
	if err != nil {
		return done, fmt.Errorf("--work: %w", err)
	}
	return done, nil
}
