// Command e2e measures what the sidecar costs from end to end, on real engines: in front of what it takes compared with a bare reverse proxy,
// how long a collapsed page takes compared with the engine's own, what writes, memory and the index grow by, and how all of that grows. It
// writes what it finds to docs/internals/performance.json, from which the documentation's tables and pictures are made. See README.md one
// folder up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
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
	ctx      context.Context
	short    bool
	folder   string // for all that is made, gone afterwards
	program  string // the sidecar
	texts    *texts
	engines  []*engine
	began    time.Time
	progress io.Writer
	report   measured.Report
}

// part is a part of the run: it adds tables or curves to the report.
type part struct {
	name string
	run  func(b *bench) error
}

var parts = []part{
	{"passed", (*bench).passed},
	{"pages", (*bench).pages},
	{"own", (*bench).own},
	{"writes", (*bench).writes},
	{"size", (*bench).size},
	{"memory", (*bench).memory},
	{"window", byWindow.run},
	{"source", bySource.run},
	{"duplicates", byDuplicates.run},
	{"concurrency", byClients.run},
	{"index", byDocuments.run},
	{"sidecars", bySidecars.run},
}

// growth is what -only calls the last parts together.
const growth = "window,source,duplicates,concurrency,index,sidecars"

func run() error {
	only := flag.String("only", "", "the parts to run, with commas between them (growth: all curves); all, unless given")
	short := flag.Bool("short", false, "a tiny form of everything, whose figures mean nothing")
	out := flag.String("out", filepath.Join("..", "docs", "internals", "performance.json"), "the file to write")
	kinds := flag.String("engines", strings.Join(engines.Kinds, ","), "the engines to run on, with commas between them")
	program := flag.String("sidecar", "", "the sidecar's program; built, unless given")
	listen := flag.String("bare", "", "be the bare reverse proxy, listening here (for the program's own use)")
	to := flag.String("to", "", "where the bare reverse proxy sends requests")
	tuned := flag.Bool("tuned", false, "whether the bare reverse proxy keeps its buffers and collects garbage as seldom as the sidecar")
	flag.Parse()
	if *listen != "" {
		return serveBare(*listen, *to, *tuned)
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
	b := &bench{ctx: ctx, short: *short, began: time.Now(), progress: os.Stderr, program: *program}
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
		if err := p.run(b); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", p.name, err), b.keep())
		}
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
		return parts, nil
	}
	names := strings.Split(only, ",")
	if i := slices.Index(names, "growth"); i >= 0 {
		names = slices.Replace(names, i, i+1, strings.Split(growth, ",")...)
	}
	var list []part
	for _, name := range names {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q", name)
		}
		list = append(list, parts[i])
	}
	return list, nil
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
		if err := e.release(); err != nil {
			b.log("%v", err)
		}
	}
	if err := os.RemoveAll(b.folder); err != nil {
		b.log("%v", err)
	}
}

// describe notes where and with what the run is made.
func (b *bench) describe(command string) {
	r := &b.report
	r.Date, r.Command = b.began.UTC().Format(time.DateOnly), command
	r.Notes = []string{
		"Everything runs on this one machine: engines, proxies and the load. So only ratios within a row say anything, and those of a " +
			"busy machine little.",
		"Contenders of a row are asked the same, in turns, each round beginning with another one; figures are medians over the rounds. " +
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
