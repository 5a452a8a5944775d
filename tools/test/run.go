package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// progress is how often a line says what runs, where nothing else was printed.
const progress = 20 * time.Second

// console prints whole lines of several steps, and collects what the end of the run shows.
type console struct {
	mu      sync.Mutex
	start   time.Time
	last    time.Time
	results []string // go test's line of each package
	failed  []string // steps
	why     []string // what each failed test said first
	slow    []took
	running map[string]string // what a step does now
}

type took struct {
	name    string
	seconds float64
}

func (c *console) print(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	fmt.Printf("[%4.0f s] %s\n", time.Since(c.start).Seconds(), fmt.Sprintf(format, args...))
}

// execute runs a plan and reports whether all of it passed.
func execute(ctx context.Context, p plan) bool {
	fmt.Println(p.intro)
	c := &console{start: time.Now(), last: time.Now(), running: map[string]string{}}
	if len(p.prepare) > 0 {
		fetch := step{name: "fetch", args: append([]string{"bash", "internal/engines/prepare.sh"}, p.prepare...)}
		if !c.run(ctx, fetch, nil) {
			return false
		}
	}
	ended := make(chan struct{})
	go c.tick(ended)
	var lanes sync.WaitGroup
	for _, lane := range p.lanes {
		if first := lane[0].engines; first != nil {
			first.start() // while the code compiles
		}
		lanes.Go(func() {
			for i, s := range lane {
				c.with(ctx, s)
				if s.engines != nil && (i+1 == len(lane) || lane[i+1].engines != s.engines) {
					s.engines.stop()
				}
			}
		})
	}
	lanes.Wait()
	close(ended)
	c.summary()
	return len(c.failed) == 0 && ctx.Err() == nil
}

// with runs a step on its engines, unless the run was broken off.
func (c *console) with(ctx context.Context, s step) {
	var env []string
	if s.engines != nil && ctx.Err() == nil {
		var err error
		if env, err = s.engines.await(); err != nil {
			c.fail(s.name, err)
			return
		}
	}
	if ctx.Err() == nil {
		c.run(ctx, s, env)
	}
}

// fail says why a step failed and remembers that it did.
func (c *console) fail(name string, why error) {
	c.print("%s: %v", name, why)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, name)
}

// tick says what runs when nothing was said for a while.
func (c *console) tick(ended chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
		}
		c.mu.Lock()
		var now []string
		if time.Since(c.last) >= progress {
			for name, what := range c.running {
				now = append(now, name+": "+what)
			}
		}
		c.mu.Unlock()
		if len(now) > 0 {
			slices.Sort(now)
			c.print("… %s", strings.Join(now, "; "))
		}
	}
}

// run runs a step and reports whether it passed.
func (c *console) run(ctx context.Context, s step, env []string) bool {
	began := time.Now()
	c.doing(s.name, "compiles")
	defer c.doing(s.name, "")
	cmd := exec.CommandContext(ctx, s.args[0], s.args[1:]...)
	cmd.Dir, cmd.Env = s.dir, append(append(os.Environ(), env...), s.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.fail(s.name, err)
		return false
	}
	var errors bytes.Buffer
	cmd.Stderr = &errors
	if err := cmd.Start(); err != nil {
		c.fail(s.name, err)
		return false
	}
	var said string
	if slices.Contains(s.args, "-json") {
		c.tests(s.name, out)
	} else {
		text, _ := io.ReadAll(out) // a command that ends early says so by its exit code
		said = strings.TrimSpace(string(text))
	}
	err = cmd.Wait()
	seconds := time.Since(began).Seconds()
	if err == nil && (!s.silent || said == "") {
		c.print("%s: passed, %.0f s", s.name, seconds)
		return true
	}
	c.fail(s.name, fmt.Errorf("FAILED, %.0f s\n%s%s", seconds, said, &errors))
	return false
}

func (c *console) doing(name, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[name] = what; what == "" {
		delete(c.running, name)
	}
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// tests prints the result of each package, and all that a failed test has said.
func (c *console) tests(name string, out io.Reader) {
	said := map[string][]string{} // by package and test
	passed := 0
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			c.print("%s", bytes.TrimSpace(line))
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "build-output":
			c.print("%s", strings.TrimRight(e.Output, "\n"))
		case "output":
			if result := strings.TrimRight(e.Output, "\n"); e.Test == "" && isResult(result) {
				c.result(result)
				continue
			}
			said[key] = append(said[key], e.Output)
		case "pass", "skip":
			delete(said, key)
			if e.Test != "" && !strings.Contains(e.Test, "/") {
				passed++
				c.finished(e)
			}
		case "fail":
			c.print("%s", strings.TrimRight("FAIL "+key+"\n"+strings.Join(said[key], ""), "\n"))
			c.keep(key, said[key])
			delete(said, key)
			c.finished(e)
		}
		if e.Action == "run" && !strings.Contains(e.Test, "/") {
			c.doing(name, fmt.Sprintf("%d tests passed, now %s", passed, e.Test))
		}
	}
}

func isResult(line string) bool {
	for _, prefix := range []string{"ok  \t", "FAIL\t", "?   \t"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

func (c *console) result(line string) {
	if !strings.HasPrefix(line, "?") {
		c.print("%s", line)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.results = append(c.results, line)
	}
}

func (c *console) finished(e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Test != "" && !strings.Contains(e.Test, "/") {
		c.slow = append(c.slow, took{e.Package + " " + e.Test, e.Elapsed})
	}
}

// keep remembers what a failed test said first, for the end of the run: a log that is cut keeps its end.
func (c *console) keep(test string, said []string) {
	said = slices.DeleteFunc(slices.Clone(said), func(line string) bool {
		line = strings.TrimSpace(line)
		return line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ")
	})
	if len(said) == 0 {
		return // its subtests have said it
	}
	text := "FAIL " + test
	for _, line := range said[:min(12, len(said))] {
		line = strings.TrimRight(line, "\n")
		text += "\n" + line[:min(400, len(line))]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = append(c.why, text)
}

// summary prints the slowest tests, what failed and go test's own lines.
func (c *console) summary() {
	slices.SortFunc(c.slow, func(a, b took) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Printf("\n%d tests. The slowest:\n", len(c.slow))
	for _, t := range c.slow[:min(10, len(c.slow))] {
		fmt.Printf("%6.1f s  %s\n", t.seconds, t.name)
	}
	fmt.Printf("\n%.0f s in all\n", time.Since(c.start).Seconds())
	if len(c.failed) > 0 {
		fmt.Printf("failed: %s\n", strings.Join(c.failed, ", "))
	}
	for _, line := range slices.Concat(c.why, c.results) {
		fmt.Println(line)
	}
}
