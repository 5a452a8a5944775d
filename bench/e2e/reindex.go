package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/neardup/sidecar/internal/measured"
)

// reindexing is a part that takes hours for many documents.
const reindexing = "reindex"

// The contenders of a reindex.
const (
	oneWorker   = "one sidecar"
	fourWorkers = "four sidecars, two killed"
	constantJob = "the engine, a constant"
	hashingJob  = "the engine, a script that hashes"
)

var reindexColumns = []measured.Column{
	{Name: "documents a second", Unit: "/s"}, {Name: "time", Unit: "s"},
	{Name: "engine's processor time", Unit: "s"}, {Name: "sidecars' processor time", Unit: "s"},
	{Name: "refreshes", Unit: "times"}, {Name: "in refreshes", Unit: "s"}, {Name: "merges", Unit: "times"}, {Name: "merged", Unit: "MB"}, {Name: "in merges", Unit: "s"},
	{Name: "segments", Unit: "left"}, {Name: "disk at most", Unit: "MB"},
}

// reindex measures how fast sidecars give sketches to documents that are stored already, beside the engine's own jobs, as the number of documents
// grows. After each run of sidecars every sketch and every document is checked.
func (b *bench) reindex() error {
	t := measured.Table{
		Name: reindexing, Title: "Reindexing", Columns: reindexColumns,
		Notes: []string{
			"Documents of 1 kB in one shard that is refreshed every second. On Elasticsearch and OpenSearch each contender gets a clone of the same index; on Typesense, which has no such thing, the same collection, and a new seed each time.",
			"The contenders take turns, three rounds for up to 10,000 documents, and one for more: figures are medians. The engine's own job is `_update_by_query` with a script: one sets a field to a constant of 192 bytes, the other to a min-hash of 128 " +
				"positions over runs of three words (one hash a run, the least of each of 128 buckets). On Typesense it is an import that updates the same field.",
			"Of four sidecars one is killed (`kill -9`) when a third of the documents is written, and one at two thirds. Their time includes 10 seconds after which another sidecar takes over the part of a killed one.",
			"Processor time is counted until the engine has merged what it wants to merge. `sidecar verify` then finds each sketch right, and no document is lost or altered: a sum of hashes over all documents without our field is that of the texts.",
		},
	}
	speed := measured.Curve{Name: "reindex", Title: "Reindexing, documents a second", Across: "documents in the index", Up: "documents a second"}
	cost := measured.Curve{Name: "reindex-cpu", Title: "Reindexing, processor time", Across: "documents in the index", Up: "processor time of engine and sidecars, µs a document"}
	for _, e := range b.engines {
		var of, by measured.Panel
		of.Name, by.Name = e.name, e.name
		for _, documents := range b.documents {
			row, err := b.reindexAt(e, documents)
			if err != nil {
				return fmt.Errorf("%s, %d documents: %w", e.name, documents, err)
			}
			b.add(t, row)
			for _, c := range row.Contenders {
				if c.Absent != "" {
					continue
				}
				f := c.Figures
				addPoint(&of, c.Name, documents, f["documents a second"])
				addPoint(&by, c.Name, documents, 1e6*(f["engine's processor time"]+f["sidecars' processor time"])/float64(documents))
			}
		}
		speed.Panels, cost.Panels = append(speed.Panels, of), append(cost.Panels, by)
	}
	b.report.Curves = append(b.report.Curves, speed, cost)
	return nil
}

// addPoint adds a point to the line of this name.
func addPoint(p *measured.Panel, name string, documents int, y float64) {
	i := slices.IndexFunc(p.Lines, func(l measured.Line) bool { return l.Name == name })
	if i < 0 {
		i, p.Lines = len(p.Lines), append(p.Lines, measured.Line{Name: name})
	}
	p.Lines[i].Points = append(p.Lines[i].Points, measured.Point{X: float64(documents), Y: y})
}

// reindexAt measures one number of documents on one engine.
func (b *bench) reindexAt(e *engine, documents int) (measured.Row, error) {
	row := measured.Row{What: fmt.Sprintf("%d documents", documents), Engine: e.name}
	s, err := b.newStored(e, documents)
	if err != nil {
		return row, err
	}
	defer s.drop()
	rounds := 1
	if documents <= 10_000 {
		rounds = b.few(3, 1)
	}
	names := []string{fourWorkers, oneWorker, constantJob, hashingJob} // sidecars first: they declare the field
	if e.typesense() {
		names = names[:3]
	}
	found := map[string][]turn{}
	for round := range rounds {
		for _, name := range names {
			took, err := s.take(name, round)
			if err != nil {
				return row, fmt.Errorf("%s: %w", name, err)
			}
			b.log("%s, %d documents, %s: %v", e.name, documents, name, took)
			found[name] = append(found[name], took)
		}
	}
	for _, name := range names {
		row.Contenders = append(row.Contenders, measured.Contender{Name: name, Figures: figuresOf(found[name], documents)})
	}
	if e.typesense() {
		row.Contenders = append(row.Contenders, measured.Contender{Name: hashingJob, Absent: "it has no scripts"})
	}
	for _, against := range names[2:] {
		row.Verdicts = append(row.Verdicts,
			ratioOf("documents a second", found[oneWorker], found[against], against, func(t turn) float64 { return 1 / t.wall.Seconds() }),
			ratioOf("processor time", found[oneWorker], found[against], against, func(t turn) float64 { return (t.engine + t.sidecars).Seconds() }))
		if last := &row.Verdicts[len(row.Verdicts)-2]; against == constantJob && !e.typesense() {
			last.AtLeast, last.Target = true, .8
			if !last.Reached() {
				last.Limit = "the time of one run beside other work of the machine: see the processor time"
			}
		}
	}
	return row, nil
}

// ratioOf compares two contenders within each round.
func ratioOf(of string, ours, theirs []turn, against string, figure func(turn) float64) measured.Verdict {
	list := make([]float64, len(ours))
	for i := range ours {
		list[i] = figure(ours[i]) / figure(theirs[i])
	}
	return measured.Verdict{Of: of, Against: against, Value: median(list), Low: slices.Min(list), High: slices.Max(list), Unit: "×"}
}

// turn is what one run of one contender has taken.
type turn struct {
	wall, engine, sidecars time.Duration
	load                   upkeep
}

func (t turn) String() string {
	return fmt.Sprintf("%.1f s; processor time of the engine %.1f s, of sidecars %.1f s; %+v", t.wall.Seconds(), t.engine.Seconds(), t.sidecars.Seconds(), t.load)
}

// figuresOf are the medians of several turns. Those that are nothing are left out.
func figuresOf(turns []turn, documents int) map[string]float64 {
	figures := map[string]float64{}
	for name, figure := range map[string]func(turn) float64{
		"documents a second":       func(t turn) float64 { return float64(documents) / t.wall.Seconds() },
		"time":                     func(t turn) float64 { return t.wall.Seconds() },
		"engine's processor time":  func(t turn) float64 { return t.engine.Seconds() },
		"sidecars' processor time": func(t turn) float64 { return t.sidecars.Seconds() },
		"refreshes":                func(t turn) float64 { return float64(t.load.Refreshes) },
		"in refreshes":             func(t turn) float64 { return t.load.Refreshing.Seconds() },
		"merges":                   func(t turn) float64 { return float64(t.load.Merges) },
		"merged":                   func(t turn) float64 { return float64(t.load.Merged) / 1e6 },
		"in merges":                func(t turn) float64 { return t.load.Merging.Seconds() },
		"segments":                 func(t turn) float64 { return float64(t.load.Segments) },
		"disk at most":             func(t turn) float64 { return float64(t.load.Disk) / 1e6 },
	} {
		if v := medianOf(turns, figure); v > 0 {
			figures[name] = v
		}
	}
	return figures
}

// take has one contender write all documents, and checks what sidecars have written.
func (s *stored) take(name string, round int) (t turn, err error) {
	if err := s.renew(); err != nil {
		return t, err
	}
	before, err := s.engine.process.cpu()
	if err != nil {
		return t, err
	}
	peak := s.watchDisk()
	began := time.Now()
	config := ""
	switch name {
	case oneWorker, fourWorkers:
		count, kills := 1, 0
		if name == fourWorkers {
			count, kills = 4, 2
		}
		if config, err = s.config(fmt.Sprintf("%s %d", name, round)); err == nil {
			t.sidecars, err = s.work(config, count, kills)
		}
	case constantJob:
		err = s.updateAll(`ctx._source.constant = params.value`)
	case hashingJob:
		err = s.updateAll(hashingScript)
	}
	t.wall = time.Since(began)
	if err == nil {
		t.load, err = s.settled()
	}
	t.load.Disk = max(t.load.Disk, peak())
	if err != nil {
		return t, err
	}
	after, err := s.engine.process.cpu()
	t.engine = after - before
	if config != "" {
		err = errors.Join(err, s.verify(config), s.balance())
	}
	return t, err
}
