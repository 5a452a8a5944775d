// Package measured is the form of docs/internals/performance.json: what one run of `make bench-e2e` has found. The program of bench/e2e writes
// it; internal/pictures renders it into docs/internals/performance.md and docs/images, and holds both to it.
package measured

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
)

// Report is all that one run has measured.
type Report struct {
	Date     string    `json:"date"` // the day in UTC: 2026-01-31
	Machine  string    `json:"machine"`
	Command  string    `json:"command"` // what made this, from the project's root
	Minutes  float64   `json:"minutes"` // how long it took
	Versions []Version `json:"versions"`
	Notes    []string  `json:"notes"` // sentences on how it was measured, for all tables
	Tables   []Table   `json:"tables"`
	Curves   []Curve   `json:"curves"`
}

// Version is that of a program which took part. Where it could not be had, Version is "not installed" or says why.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Table is one part of the run.
type Table struct {
	Name    string   `json:"name"`    // one word, by which -only chooses it: passed, pages, writes, size, memory
	Title   string   `json:"title"`   // of its section
	Notes   []string `json:"notes"`   // sentences below the title: corpus, rates, what was asked
	Columns []Column `json:"columns"` // those of its contenders' figures, in order
	Rows    []Row    `json:"rows"`
}

// Column names a figure and its unit: p50 and ms.
type Column struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
}

// Row is one comparison: contenders that were asked the same, in turns, and what is judged of it.
type Row struct {
	What       string      `json:"what"`
	Engine     string      `json:"engine,omitempty"` // Elasticsearch, OpenSearch, Typesense
	Contenders []Contender `json:"contenders"`
	Verdicts   []Verdict   `json:"verdicts,omitempty"`
}

// Contender is one side of a comparison.
type Contender struct {
	Name    string             `json:"name"`
	Figures map[string]float64 `json:"figures,omitempty"` // by the name of the column; what is not there was not measured
	Absent  string             `json:"absent,omitempty"`  // why it did not take part
}

// Verdict is one figure of a comparison beside what was wanted of it.
type Verdict struct {
	Of      string  `json:"of"`      // what is judged: p50, requests per core-second
	Against string  `json:"against"` // the contender that ours is divided by; empty for an absolute figure
	Value   float64 `json:"value"`   // the median over the rounds
	Low     float64 `json:"low,omitempty"`
	High    float64 `json:"high,omitempty"`  // the least and the greatest of the rounds, where there were several
	Unit    string  `json:"unit"`            // × for ratios, %, µs, MB, bytes a document
	AtLeast bool    `json:"atLeast"`         // whether it has to reach the target; else it must not exceed it
	Target  float64 `json:"target"`          // 0 where none was set and the figure is only told
	Limit   string  `json:"limit,omitempty"` // where it is missed: what takes the time, in figures of this run
	Absent  string  `json:"absent,omitempty"`
}

// Reached reports whether the target is met.
func (v Verdict) Reached() bool {
	if v.AtLeast {
		return v.Value >= v.Target
	}
	return v.Value <= v.Target
}

// Curve shows how a cost grows. It becomes the picture growth-<name>.svg: one panel for each of its panels, side by side, on the same axes.
type Curve struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`  // of the picture
	Notes  []string `json:"notes"`  // sentences below it: what was asked of what
	Across string   `json:"across"` // what grows, and its unit
	Up     string   `json:"up"`     // the cost, and its unit
	Panels []Panel  `json:"panels"`
}

// Panel is the lines of one engine.
type Panel struct {
	Name   string `json:"name"`
	Lines  []Line `json:"lines"`
	Absent string `json:"absent,omitempty"`
}

// Line is one line of a panel. Lines of one name have one colour in all panels; Tail says that it is the p99 beside a median, Before that it is
// of an older sidecar.
type Line struct {
	Name   string  `json:"name"`
	Tail   bool    `json:"tail,omitempty"`
	Before bool    `json:"before,omitempty"`
	Points []Point `json:"points"`
}

// Point is one measurement. All lines of a curve have the same X, but for those that end early.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Read returns the report in a file, checked.
func Read(path string) (Report, error) {
	var r Report
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", path, err)
	}
	return r, r.Check()
}

// Write puts the report into a file.
func (r Report) Write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Check reports what no run can have found: parts without a name or without a figure, and figures that are zero, negative or none.
func (r Report) Check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	good := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	for _, t := range r.Tables {
		if t.Name == "" || t.Title == "" || len(t.Columns) == 0 || len(t.Rows) == 0 {
			wrong("table %q has no name, title, column or row", t.Name)
		}
		for _, row := range t.Rows {
			for _, c := range row.Contenders {
				if len(c.Figures) == 0 && c.Absent == "" {
					wrong("table %s, %s, %s: nothing was measured and no reason is given", t.Name, row.What, c.Name)
				}
				for name, v := range c.Figures {
					if !good(v) {
						wrong("table %s, %s, %s: %s is %v", t.Name, row.What, c.Name, name, v)
					}
				}
			}
			for _, v := range row.Verdicts {
				if v.Absent == "" && !good(v.Value) {
					wrong("table %s, %s: the verdict of %s is on %v", t.Name, row.What, v.Of, v.Value)
				}
			}
		}
	}
	for _, c := range r.Curves {
		if c.Name == "" || c.Title == "" || c.Across == "" || c.Up == "" || len(c.Panels) == 0 {
			wrong("curve %q has no name, title, axis or panel", c.Name)
		}
		for _, p := range c.Panels {
			if len(p.Lines) == 0 && p.Absent == "" {
				wrong("curve %s, %s: nothing was measured and no reason is given", c.Name, p.Name)
			}
			for _, l := range p.Lines {
				if len(l.Points) == 0 {
					wrong("curve %s, %s: the line %s has no point", c.Name, p.Name, l.Name)
				}
				for _, at := range l.Points {
					if !good(at.Y) || at.X < 0 {
						wrong("curve %s, %s, %s: a point at %v is %v", c.Name, p.Name, l.Name, at.X, at.Y)
					}
				}
			}
		}
	}
	return errors.Join(errs...)
}
