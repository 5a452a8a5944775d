package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/neardup/sidecar/bench/internal/corpora"
	"github.com/neardup/sidecar/sketch"
)

// learn prints the statistics of Debian's texts and of the labelled sets in folders.
func learn(ctx context.Context, folders []string) error {
	r, err := theRule()
	if err != nil {
		return err
	}
	l := newCollector(r)
	add := func(name string, texts []string) error {
		var list []sketch.Sketch
		for _, t := range texts {
			if k, ok := r.Sketch([]string{t}); ok {
				list = append(list, k)
			}
		}
		return l.add(ctx, name, list)
	}
	cache, err := corpora.Cache()
	if err != nil {
		return err
	}
	real, err := corpora.Real(cache, 200000)
	if err == nil {
		err = add("Debian", real.Documents)
	}
	for _, folder := range folders {
		texts, failed := textsOf(folder)
		if failed == nil {
			failed = add(filepath.Base(folder), texts)
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	return out.Encode(l.done())
}

// textsOf returns the texts of a labelled set.
func textsOf(folder string) (texts []string, err error) {
	f, err := os.Open(filepath.Join(folder, "docs.jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var d struct{ Title, Text string }
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			return nil, err
		}
		texts = append(texts, d.Title+" "+d.Text)
	}
	return texts, lines.Err()
}
