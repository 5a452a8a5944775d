package main

import (
	"bufio"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/jobs/cluster"
)

// clusterFile is a file of clusters that takes its name when it is whole.
type clusterFile struct {
	name string
	file *os.File
	out  *bufio.Writer
	csv  *csv.Writer // nil for JSON lines
	line []byte
}

func newClusterFile(name string) (*clusterFile, error) {
	// not os.CreateTemp, which knows nothing of who else may read files here: see umask(2)
	const readable = 0o666
	hidden := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"."+rand.Text())
	file, err := os.OpenFile(hidden, os.O_WRONLY|os.O_CREATE|os.O_EXCL, readable)
	if err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	f := &clusterFile{name: name, file: file, out: bufio.NewWriterSize(file, 1<<20)}
	if strings.HasSuffix(name, ".csv") {
		f.csv = csv.NewWriter(f.out)
		err = f.csv.Write([]string{"id", "cluster", "size", "agreement"})
	}
	return f, err
}

// add writes one document's line.
func (f *clusterFile) add(m *cluster.Member) error {
	err := f.write(m)
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("--output: %w: make room, or name another place", err)
	}
	return err
}

func (f *clusterFile) write(m *cluster.Member) error {
	if f.csv != nil {
		return f.csv.Write([]string{m.ID, m.Cluster, strconv.Itoa(m.Size), strconv.FormatFloat(m.Agreement, 'f', 4, 64)})
	}
	line := adapters.AppendString(append(f.line[:0], `{"id":`...), m.ID)
	line = adapters.AppendString(append(line, `,"cluster":`...), m.Cluster)
	line = strconv.AppendInt(append(line, `,"size":`...), int64(m.Size), 10)
	line = strconv.AppendFloat(append(line, `,"agreement":`...), m.Agreement, 'f', 4, 64)
	f.line = append(line, "}\n"...)
	_, err := f.out.Write(f.line)
	return err
}

// keep gives the file its name.
func (f *clusterFile) keep() error {
	if f.csv != nil {
		f.csv.Flush()
		if err := f.csv.Error(); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	err := errors.Join(f.out.Flush(), f.file.Sync(), f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), f.name)
	}
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

// drop removes what did not get its name.
func (f *clusterFile) drop() {
	_ = f.file.Close()
	_ = os.Remove(f.file.Name())
}

// clusterResult is what is reported in JSON.
type clusterResult struct {
	Algorithm cluster.Algorithm `json:"algorithm"`
	Threshold float64           `json:"threshold"`
	Bands     int               `json:"bands,omitempty"`
	Rows      int               `json:"rows,omitempty"`
	*cluster.Report
	Written *cluster.Written `json:"written,omitempty"`
}

// print prints the report, and what was written to the engine if anything was to be.
func (c *clustering) print(r *cluster.Report, w *cluster.Written) error {
	bands, rows := c.corpus.Shape()
	if c.algorithm != cluster.Bands {
		bands, rows = 0, 0
	}
	if c.flags.report == formJSON {
		return terminal.WriteJSON(c.out, clusterResult{c.algorithm, c.rule.Profile.Threshold, bands, rows, r, w})
	}
	p := textReport{w: c.out}
	p.title(c, r)
	p.sizes(r)
	p.hosts(r)
	p.left(r)
	if w != nil {
		p.printf("stored in the engine: %d written, %d right already, %d changed meanwhile, %d gone, %d refused\n",
			w.Written, w.Right, w.Changed, w.Gone, w.Refused)
	}
	return p.err
}

// textReport prints a report for people.
type textReport struct {
	w   io.Writer
	err error
}

func (p *textReport) printf(format string, values ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, values...)
	}
}

func (p *textReport) title(c *clustering, r *cluster.Report) {
	by := string(c.algorithm)
	if bands, rows := c.corpus.Shape(); c.algorithm == cluster.Bands {
		by += fmt.Sprintf(" (%d of %d rows)", bands, rows)
	}
	p.printf("%s, %s: by %s at %v, in %s\n", terminal.Count(r.Documents, "document"), terminal.Count(r.Texts, "different text"), by,
		c.rule.Profile.Threshold, time.Since(c.began).Round(10*time.Millisecond))
	are := "are near-duplicates"
	if r.Clustered-r.Clusters == 1 {
		are = "is a near-duplicate"
	}
	p.printf("%s of %s, %s alone: %s %s of another one\n", terminal.Count(r.Clusters, "cluster"), terminal.Count(r.Clustered, "document"),
		terminal.Count(r.Alone, "document"), terminal.Count(r.Clustered-r.Clusters, "document"), are)
}

// shown is how many entries of a list are printed; JSON has all.
const shown = 5

func (p *textReport) sizes(r *cluster.Report) {
	for _, class := range r.Sizes {
		of := fmt.Sprintf("%d to %d", class.From, class.To)
		if class.From == class.To {
			of = strconv.Itoa(class.To)
		}
		p.printf("  of %s: %s, %s\n", of, terminal.Count(class.Clusters, "cluster"), terminal.Count(class.Documents, "document"))
	}
	for i, s := range r.Largest[:min(shown, len(r.Largest))] {
		if i == 0 {
			p.printf("largest clusters:\n")
		}
		p.printf("  %s: %s, %s%s: %s\n", s.Cluster, terminal.Count(s.Size, "document"), terminal.Count(s.Texts, "text"), onHosts(s.Hosts), someOf(s.IDs, s.Size))
	}
}

func onHosts(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + terminal.Count(n, "host")
}

// someOf returns ids, and that they are not all of so many.
func someOf(ids []string, all int) string {
	text := strings.Join(ids, " ")
	if len(ids) < all {
		text += " …"
	}
	return text
}

func (p *textReport) hosts(r *cluster.Report) {
	for i, m := range r.Mirrors[:min(shown, len(r.Mirrors))] {
		if i == 0 {
			p.printf("hosts that mirror each other:\n")
		}
		p.printf("  %s (%d of %d pages) and %s (%d of %d): %.0f %%\n", m.A, m.CommonA, m.PagesA, m.B, m.CommonB, m.PagesB, 100*m.Share)
	}
	for i, s := range r.Soft404[:min(shown, len(r.Soft404))] {
		if i == 0 {
			p.printf("one short text under many ids (\"not found\" that says 200?):\n")
		}
		p.printf("  %s: %s, %.0f %% of the host's, %s: %s\n", s.Host, terminal.Count(s.Pages, "page"), 100*s.Share, terminal.Count(s.Shingles, "shingle"),
			someOf(s.IDs, s.Pages))
	}
	for i, f := range r.Farms[:min(shown, len(r.Farms))] {
		if i == 0 {
			p.printf("sets shared beyond chance (link farms?):\n")
		}
		p.printf("  %s: %s share %s, %.1g expected%s: %s\n", f.Cluster, terminal.Count(f.Size, "document"), terminal.Count(f.Elements, "element"),
			f.Expected, onHosts(f.Hosts), someOf(f.IDs, f.Size))
	}
}

// left prints what was not compared.
func (p *textReport) left(r *cluster.Report) {
	l := r.Left
	if l.Textless > 0 {
		p.printf("left out: %s without text, each alone\n", terminal.Count(l.Textless, "document"))
	}
	if l.CommonShingles > 0 {
		p.printf("left out: %d shingles that are in too many texts (up to %d): pairs that share these alone were not found\n",
			l.CommonShingles, l.CommonTexts)
	}
	if l.CutBuckets > 0 {
		p.printf("left out: pairs in %d buckets of more than %d texts (%d in all)\n", l.CutBuckets, cluster.MostPaired, l.CutTexts)
	}
	if r.WideClusters > 0 {
		p.printf("left out: %d clusters on more than %d hosts were not counted for mirrors\n", r.WideClusters, cluster.MostHosts)
	}
}
