// Command e2e measures what the sidecar costs from end to end, on real engines: in front of what it takes compared with a bare reverse proxy,
// how long a collapsed page takes compared with the engine's own, what writes, memory and the index grow by, and how all of that grows. It
// writes what it finds to docs/internals/performance.json, from which the documentation's tables and pictures are made. See README.md one
// folder up.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/measured"
	"golang.org/x/sync/errgroup"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	ctx     context.Context
	short   bool
	folder  string // for all that is made, gone afterwards
	program string // the sidecar
	before  string // an older one that the curves of growth show beside it; empty for none
	core    string // on which contenders run that are started now; empty for any
	texts   *texts
	engines []*engine
	// documents are the sizes of the indices that are reindexed.
	documents []int
	began     time.Time
	progress  io.Writer
	report    measured.Report
}

// part is a part of the run: it adds tables or curves to the report.
type part struct {
	name string
	what string // what it measures, for -list
	run  func(b *bench) error
}

var parts = []part{
	{"passed", "requests that pass, beside other proxies", (*bench).passed},
	{"saturation", "requests per core-second of the proxy at saturation", (*bench).saturation},
	{"page1", "page 1 against the plain page, against nginx in front of the plain page, and against the engine's own collapsing by a stored key", pageOne.run},
	{"gzip", "the same with gzip", pageOneGzip.run},
	{"page50", "page 50 asked directly", pageFifty.run},
	{"sequence", "pages 2 to 50 in sequence, against the plain page of that depth", inSequence.run},
	{"long", "page 1 where hits are long (5 kB) and half fold, two cores (on a machine with more: under taskset -c 0,1)", (*bench).long},
	{"own", "our own processor time for a collapsed page", (*bench).own},
	{"writes", "bulks, documents a second against direct, cores all busy; sidecar time of the engine's, bulks", (*bench).writes},
	{"pinned", "bulks, engine on cores of its own (pinned with taskset)", (*bench).pinned},
	{"size", "bytes of a document in the engine's files", (*bench).size},
	{"memory", "memory, idle and with 1,000 connections", (*bench).memory},
	{"sizing", "sizing: the formula of docs/sizing.md, checked against a run", (*bench).sizing},
	{"window", "growth of a page: by the window", byWindow.run},
	{"source", "growth of a page: by the length of a hit", bySource.run},
	{"duplicates", "growth of a page: by how much folds", byDuplicates.run},
	{"concurrency", "growth of a page: by the number of clients", byClients.run},
	{"index", "growth of a page: by the documents in the index", byDocuments.run},
	{"sidecars", "growth of requests a second: by the number of sidecars", bySidecars.run},
	{million, "a million documents: page 1 against plain. Not part of a whole run: two minutes for each engine, Typesense longer", (*bench).million},
	{reindexing, "sketches for stored documents, by four sidecars of which two are killed, against the engine's own jobs. Not part of a whole run: -documents says how long it takes", (*bench).reindex},
}

// groups are names of several parts for -only.
var groups = map[string]string{
	"pages":  "page1,gzip,page50,sequence",
	"growth": "window,source,duplicates,concurrency,index,sidecars",
}

// million is the part that takes as long as all others.
const million = "million"

// apart are the parts that run only if they are named.
var apart = []string{million, reindexing}

func run() error {
	only := flag.String("only", "", "the parts to run, with commas between them (pages: all of pages, growth: all curves); all but "+strings.Join(apart, " and ")+", unless given")
	documents := flag.String("documents", "100000", "the sizes of the indices for "+reindexing+", with commas between them")
	list := flag.Bool("list", false, "say which parts there are, and end")
	short := flag.Bool("short", false, "a tiny form of everything, whose figures mean nothing")
	out := flag.String("out", filepath.Join("..", "docs", "internals", "performance.json"), "the file to write")
	kinds := flag.String("engines", strings.Join(engines.Kinds, ","), "the engines to run on, with commas between them")
	program := flag.String("sidecar", "", "the sidecar's program; built, unless given")
	before := flag.String("before", "", "the program of an older sidecar: curves of a page show it, too, each with its own sketches")
	listen := flag.String("bare", "", "be the bare reverse proxy, listening here (for the program's own use)")
	recorded := flag.String("stub", "", "be the stub of an engine, listening here (for the program's own use)")
	to := flag.String("to", "", "where the bare reverse proxy, or the stub, sends requests")
	tuned := flag.Bool("tuned", false, "whether the bare reverse proxy keeps its buffers and collects garbage as seldom as the sidecar")
	flag.Parse()
	if *list {
		return listParts(os.Stdout)
	}
	if *listen != "" {
		return serveBare(*listen, *to, *tuned)
	}
	if *recorded != "" {
		return serveStub(*recorded, *to)
	}
	if _, err := os.Stat(filepath.Join("..", "cmd", "sidecar")); err != nil {
		return fmt.Errorf("run it in bench (cd bench && go run ./e2e): %w", err)
	}
	elsewhere := false
	flag.Visit(func(f *flag.Flag) { elsewhere = elsewhere || f.Name == "out" })
	if (*only != "" || *short) && !elsewhere {
		return errors.New("say by -out where the results of parts go: docs/internals/performance.json is of whole runs")
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	debug.SetGCPercent(400) // the load must not wait for its own collections
	b := &bench{ctx: ctx, short: *short, began: time.Now(), progress: os.Stderr, program: *program, before: *before}
	for size := range strings.SplitSeq(*documents, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return fmt.Errorf("-documents %s: want numbers of documents, with commas between them", *documents)
		}
		b.documents = append(b.documents, n)
	}
	defer b.close()
	if err := b.open(strings.Split(*kinds, ",")); err != nil {
		return err
	}
	command := "make bench-e2e"
	if len(os.Args) > 1 {
		command = strings.Join(append([]string{"cd bench && go run ./e2e"}, os.Args[1:]...), " ")
	}
	b.describe(command)
	for _, p := range chosen {
		b.log("part %s", p.name)
		began := time.Now()
		if err := p.run(b); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", p.name, err), b.keep())
		}
		b.log("part %s took %.0f s", p.name, time.Since(began).Seconds())
	}
	b.report.Minutes = math.Round(time.Since(b.began).Minutes()*10) / 10
	if err := b.report.Check(); err != nil {
		return err
	}
	return b.report.Write(*out)
}

// keep writes what a run has measured until something failed, but not to where the results of whole runs are.
func (b *bench) keep() error {
	if len(b.report.Tables)+len(b.report.Curves) == 0 {
		return nil
	}
	path := filepath.Join(os.TempDir(), "neardup-bench-e2e-unfinished.json")
	b.log("what was measured before is in %s", path)
	return b.report.Write(path)
}

// choose returns the parts of these names.
func choose(only string) ([]part, error) {
	if only == "" {
		return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return slices.Contains(apart, p.name) }), nil
	}
	var list []part
	for name := range strings.SplitSeq(only, ",") {
		for name := range strings.SplitSeq(cmp.Or(groups[name], name), ",") {
			i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
			if i < 0 {
				return nil, fmt.Errorf("there is no part %q: -list names them", name)
			}
			list = append(list, parts[i])
		}
	}
	return list, nil
}

// listParts writes the parts and the groups of them, a line each.
func listParts(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, p := range parts {
		fmt.Fprintf(w, "%s\t%s\n", p.name, p.what)
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(w, "%s\t%s together\n", name, groups[name])
	}
	return w.Flush()
}

// open makes what all parts share.
func (b *bench) open(kinds []string) (err error) {
	if b.folder, err = os.MkdirTemp("", "neardup-bench-"); err != nil {
		return err
	}
	if b.program == "" {
		if b.program, err = build(b.ctx, b.folder); err != nil {
			return err
		}
	}
	if b.texts, err = loadTexts(b.short); err != nil {
		return err
	}
	b.engines = make([]*engine, len(kinds))
	var group errgroup.Group
	for i, kind := range kinds {
		group.Go(func() (err error) {
			b.engines[i], err = openEngine(b.ctx, kind, engines.Acquire)
			return err
		})
	}
	return group.Wait()
}

func (b *bench) close() {
	for _, e := range b.engines {
		if e == nil { // it could not be had
			continue
		}
		e.dropStock(e.stock)
		if err := e.release(); err != nil {
			b.log("%v", err)
		}
	}
	if err := os.RemoveAll(b.folder); err != nil {
		b.log("%v", err)
	}
}

// add puts rows into the table of this name, which is added where it is not there yet.
func (b *bench) add(t measured.Table, rows ...measured.Row) {
	i := slices.IndexFunc(b.report.Tables, func(known measured.Table) bool { return known.Name == t.Name })
	if i < 0 {
		i, b.report.Tables = len(b.report.Tables), append(b.report.Tables, t)
	}
	b.report.Tables[i].Rows = append(b.report.Tables[i].Rows, rows...)
}

// few returns a smaller number in the short form.
func (b *bench) few(count, short int) int {
	if b.short {
		return short
	}
	return count
}

// describe notes where and with what the run is made.
func (b *bench) describe(command string) {
	r := &b.report
	r.Date, r.Command = b.began.UTC().Format(time.DateOnly), command
	r.Notes = []string{
		"Everything runs on this one machine: engines, proxies and the load. So only ratios within a row say anything, and those of a " +
			"busy machine little.",
		"Contenders of a row are asked the same, in turns, each round beginning with another one; figures are medians over the rounds. " +
			fmt.Sprintf("There are %d rounds or more, until the ratio that the row is about is known to %.0f %%: so narrow is the interval that holds its median with nine tenths of certainty; after %d it ends anyway, and after the first %d the two of that ratio are asked alone. ",
				leastRounds, 100*narrow, mostRounds, leastRounds) +
			"Requests that pass and pages are asked for at the same constant rate, whether earlier requests are answered or not (open loop, by " +
			"vegeta), of contenders that are warm: each has answered every request once and then as many as it could. All else is asked by " +
			"clients that wait for each answer.",
		"Every reply's status is looked at, and whether the sidecar says that it is collapsed; how many hits there are, once for each " +
			"request and contender. A reply that is not as it should be ends the run.",
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.Notes = append(r.Notes, "Load average of the machine when the run began: "+strings.Fields(string(text))[0]+".")
	}
	r.Machine = fmt.Sprintf("%s, %d cores, %s/%s", processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	r.Versions = append(r.Versions, measured.Version{Name: "Go", Version: strings.TrimPrefix(runtime.Version(), "go")})
	for _, e := range b.engines {
		r.Versions = append(r.Versions, measured.Version{Name: e.name, Version: e.version})
	}
	for _, p := range []struct{ name, program, flag string }{{"nginx", "nginx", "-v"}, {"HAProxy", "haproxy", "-v"}} {
		r.Versions = append(r.Versions, measured.Version{Name: p.name, Version: version(p.program, p.flag)})
	}
}

// version returns the first number that a program says of itself.
func version(program, flag string) string {
	out, err := exec.Command(program, flag).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		out, err = exec.Command("/usr/sbin/"+program, flag).CombinedOutput()
	}
	if err != nil {
		return "not installed"
	}
	for word := range strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == ' ' || r == '/' || r == '\n' || r == '-' }) {
		if strings.Trim(word, "0123456789.") == "" && word != "" {
			return word
		}
	}
	return "of an unknown version"
}

// processor returns the processor's name, or the architecture where the kernel tells none.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// pool keeps buffers for httputil.ReverseProxy.
type pool struct{ buffers sync.Pool }

// Get implements httputil.BufferPool.
func (p *pool) Get() []byte {
	if b, ok := p.buffers.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

// Put implements httputil.BufferPool.
func (p *pool) Put(b []byte) { p.buffers.Put(&b) }
