package docs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How is what the marker of a run block says.
type How struct {
	Engines    []string // elasticsearch, opensearch, typesense; none for none of them
	Background bool
	Exit       int // the code of its last command
	InTree     bool
	Needs      []string // programs
	Indices    []string // hold the sample corpus before the page begins
	Makes      []string // indices that the page makes itself
	Prepared   bool     // the indices have their sketches
	Served     bool     // a sidecar stands in front of the engine
}

// fronts are what a block may be run in front of.
var fronts = []string{"elasticsearch", "opensearch", "typesense", "none"}

// ParseRun reads the marker of a run block.
func ParseRun(value string) (how How, err error) {
	parts := strings.Split(value, ",")
	for _, engine := range strings.Split(parts[0], " and ") {
		engine = strings.TrimSpace(engine)
		if !slices.Contains(fronts, engine) {
			return how, fmt.Errorf("the marker runs the block in front of %q: elasticsearch, opensearch, typesense or none", engine)
		}
		how.Engines = append(how.Engines, engine)
	}
	for _, part := range parts[1:] {
		switch option := strings.Fields(part); {
		case len(option) == 1 && option[0] == "background":
			how.Background = true
		case len(option) == 2 && option[0] == "exit":
			if how.Exit, err = strconv.Atoi(option[1]); err != nil {
				return how, fmt.Errorf("the marker's exit code: %w", err)
			}
		case strings.Join(option, " ") == "in the tree":
			how.InTree = true
		case len(option) == 2 && option[0] == "needs":
			how.Needs = append(how.Needs, option[1])
		case len(option) == 2 && option[0] == "index":
			how.Indices = append(how.Indices, option[1])
		case len(option) == 2 && option[0] == "makes":
			how.Makes = append(how.Makes, option[1])
		case len(option) == 1 && option[0] == "prepared":
			how.Prepared = true
		case len(option) == 1 && option[0] == "served":
			how.Served = true
		default:
			return how, fmt.Errorf("the marker has the option %q, which is none of index NAME, makes NAME, prepared, served, "+
				"background, exit N, in the tree, needs NAME", strings.TrimSpace(part))
		}
	}
	if how.none() && (how.Prepared || how.Served || len(how.Indices) > 0 || len(how.Makes) > 0) {
		return how, errors.New("the marker has an index or a sidecar in front of none: name an engine")
	}
	return how, nil
}

// none reports whether the block is run without an engine.
func (how How) none() bool { return slices.Contains(how.Engines, "none") }

// Step is a block in the order of a run: commands, or a file to be put down.
type Step struct {
	Block  *Block
	How    How
	File   string // of a file alone
	Output *Block // what it prints, or nil
}

// Steps returns what is to be done of a page, by the engine that it is in front of. Blocks in front of none belong to the first
// engine that the page names; files belong to all.
func (p *Page) Steps() (byEngine map[string][]*Step, err error) {
	first := "none"
	for _, b := range p.Blocks {
		if value, found := b.Marker("run"); found {
			how, err := ParseRun(value)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", b.Line, err)
			}
			if !how.none() && first == "none" {
				first = how.Engines[0]
			}
		}
	}
	byEngine = map[string][]*Step{}
	var files []*Step
	var last []*Step // one for each engine
	for _, b := range p.Blocks {
		if name, file := b.Marker("file"); file {
			files = append(files, &Step{Block: b, File: name})
			for engine := range byEngine {
				byEngine[engine] = append(byEngine[engine], files[len(files)-1])
			}
		}
		if _, output := b.Marker("output"); output {
			for _, s := range last {
				s.Output = b
			}
		}
		value, run := b.Marker("run")
		if !run {
			continue
		}
		how, _ := ParseRun(value) // was read above
		last = nil
		for _, engine := range how.Engines {
			if engine == "none" {
				engine = first
			}
			if byEngine[engine] == nil {
				byEngine[engine] = slices.Clone(files)
			}
			last = append(last, &Step{Block: b, How: how})
			byEngine[engine] = append(byEngine[engine], last[len(last)-1])
		}
	}
	return byEngine, nil
}

// Run is what a page's blocks are run in.
type Run struct {
	Folder string   // where they begin
	Tree   string   // where those begin that run in the tree
	Env    []string // over the process's own
	// Lead leads the addresses in a text of the page elsewhere, Back those in what was printed back again.
	Lead, Back func(text string) string
	Limit      time.Duration // of all together
	Grace      time.Duration // for what still runs in the end, between SIGTERM and SIGKILL; 2 s if zero
}

// Failure says which block went wrong, and how.
type Failure struct {
	Step *Step
	What string
}

func (f *Failure) Error() string { return fmt.Sprintf("line %d: %s", f.Step.Block.Line, f.What) }

// Do runs the steps in one bash, and compares what they print with what their page says. Whatever they started is ended.
func (r *Run) Do(ctx context.Context, steps []*Step) error {
	logs, err := os.MkdirTemp("", "neardup-docs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(logs)
	script := filepath.Join(logs, "script")
	if err := os.WriteFile(script, []byte(r.script(steps, logs)), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", script)
	cmd.Dir = r.Folder
	cmd.Env = append(os.Environ(), r.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	failed := cmd.Run()
	if cmd.Process != nil {
		end(cmd.Process.Pid, cmp.Or(r.Grace, 2*time.Second))
	}
	if failed != nil {
		return r.failure(ctx, steps, logs, failed)
	}
	return r.compare(steps, logs)
}

// end ends what a process group still does.
func end(group int, grace time.Duration) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = syscall.Kill(-group, signal) // none may be left
		for began := time.Now(); running(group); time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > grace {
				break
			}
		}
	}
}

// running reports whether a process of the group runs. A zombie does not: nobody may come for it for a while.
func running(group int) bool {
	if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return false
	}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, file := range files {
		text, _ := os.ReadFile(file) // "" of one that has ended
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 2 && fields[0] != "Z" && fields[2] == strconv.Itoa(group) {
			return true
		}
	}
	return len(files) == 0
}

// prologue is what stands before the steps: what is told of a command that fails, and how a background step is waited for.
const prologue = `strict() {
  set -eE -o pipefail
  trap 'code=$?; printf "exit code %s of: %s\n" "$code" "$BASH_COMMAND" >"$NEARDUP_DOCS/failed"; trap - ERR; exit 1' ERR
}
lenient() { trap - ERR; set +e; }
ended() { # CODE WANTED
  if [ "$1" -ne "$2" ]; then echo "exit code $1, not $2" >"$NEARDUP_DOCS/failed"; exit 1; fi
}
listens() { # PID LOG
  for _ in $(seq 150); do
    if grep -qiE 'listening|serving' "$2.out" "$2.err"; then sleep 0.2; return; fi
    if ! kill -0 "$1" 2>/dev/null; then echo "ended before it listened" >"$NEARDUP_DOCS/failed"; exit 1; fi
    sleep 0.1
  done
  echo "does not say within 15 s that it listens" >"$NEARDUP_DOCS/failed"; exit 1
}
strict
`

// script puts the steps together. What each prints goes to files of its own.
func (r *Run) script(steps []*Step, logs string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "NEARDUP_DOCS=%s\n%s", logs, prologue)
	for i, s := range steps {
		text := r.Lead(s.Block.Text)
		log := filepath.Join(logs, strconv.Itoa(i))
		fmt.Fprintf(&b, "exec >%s.out 2>%s.err\n", log, log)
		switch {
		case s.File != "":
			file := filepath.Join(r.Folder, s.File)
			fmt.Fprintf(&b, "mkdir -p %q\ncat >%q <<'END-OF-THE-FILE'\n%sEND-OF-THE-FILE\n", filepath.Dir(file), file, text)
			continue
		case s.How.InTree:
			fmt.Fprintf(&b, "cd %q\n", r.Tree)
		}
		switch {
		case s.How.Background:
			fmt.Fprintf(&b, "{ lenient\n%s\n} &\nlistens $! %s\n", text, log)
		case s.How.Exit != 0:
			fmt.Fprintf(&b, "lenient\n%s\nended $? %d\nstrict\n", text, s.How.Exit)
		default:
			b.WriteString(text + "\n")
		}
		if s.How.InTree {
			fmt.Fprintf(&b, "cd %q\n", r.Folder)
		}
	}
	return b.String()
}

// failure finds out which step failed.
func (r *Run) failure(ctx context.Context, steps []*Step, logs string, err error) error {
	last := 0
	for i := range steps {
		if _, err := os.Stat(filepath.Join(logs, strconv.Itoa(i)+".err")); err == nil {
			last = i
		}
	}
	what := err.Error()
	if said, err := os.ReadFile(filepath.Join(logs, "failed")); err == nil {
		what = strings.TrimSpace(string(said))
	}
	if ctx.Err() != nil {
		what = "takes too long: " + ctx.Err().Error()
	}
	return &Failure{steps[last], fmt.Sprintf("%s\n%s%s", what, tail(logs, last, ".out"), tail(logs, last, ".err"))}
}

// tail returns the end of what a step printed.
func tail(logs string, step int, kind string) string {
	text, err := os.ReadFile(filepath.Join(logs, strconv.Itoa(step)+kind))
	if err != nil {
		return ""
	}
	if len(text) > 3000 {
		text = text[len(text)-3000:]
	}
	return string(text)
}

// compare holds what the steps printed against what the page says.
func (r *Run) compare(steps []*Step, logs string) error {
	var errs []error
	for i, s := range steps {
		if s.Output == nil {
			continue
		}
		got, err := os.ReadFile(filepath.Join(logs, strconv.Itoa(i)+".out"))
		if err != nil {
			return err
		}
		if text := r.Back(string(got)); !Same(s.Output.Language, r.Back(r.Lead(s.Output.Text)), text) {
			errs = append(errs, &Failure{s, fmt.Sprintf("prints\n%s\nThe page says\n%s", text, s.Output.Text)})
		}
	}
	return errors.Join(errs...)
}
