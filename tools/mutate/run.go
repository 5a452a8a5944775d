package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// mainJob begins the names of the tests on real engines that are part of make test.
const mainJob = "TestMainJob"

// test is one test function, of a package's short form or of its long one.
type test struct {
	pkg     *suite
	name    string
	took    time.Duration
	reaches map[int]bool
}

// suite is the built test binary of one package.
type suite struct {
	path   string // from the module's root
	binary string
	long   bool // run with -all alone: without -short, on real engines
	first  bool // the main job
}

// result is what became of one site.
type result struct {
	ID      int
	File    string
	Line    int
	Break   string
	Reached int    // tests that reach it
	By      string // the package whose tests noticed it; empty if none did
	Long    bool   // noticed by make test-all alone
	Tried   bool   // with -all: the long forms were tried
}

type runner struct {
	dir, overlay string
	sites        []*site
	budget       time.Duration
}

// judge adds results to those of earlier runs, and appends each new one to the file.
func (r *runner) judge(ctx context.Context, results map[int]*result, out string, all bool) error {
	if open := r.open(results, false); len(open) > 0 {
		tests, err := r.tests(ctx, false, open)
		if err != nil {
			return err
		}
		if err := r.try(ctx, open, tests, results, out, false); err != nil {
			return err
		}
	}
	if open := r.open(results, true); all && len(open) > 0 {
		tests, err := r.tests(ctx, true, open)
		if err != nil {
			return err
		}
		return r.try(ctx, open, tests, results, out, true)
	}
	return nil
}

// open returns the sites that have no result yet, or those that the short tests did not notice and the long ones were not tried on.
func (r *runner) open(results map[int]*result, long bool) (list []*site) {
	for _, s := range r.sites {
		if known := results[s.ID]; known == nil && !long || known != nil && long && known.By == "" && !known.Tried {
			list = append(list, s)
		}
	}
	return list
}

// tests builds the test binaries, runs every test alone and notes what it reaches. A test that fails without a break is left out, and said so.
func (r *runner) tests(ctx context.Context, long bool, open []*site) ([]*test, error) {
	listed, err := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}", "./...").Output()
	if err != nil {
		return nil, err
	}
	if long {
		sidecar := filepath.Join(r.dir, "sidecar")
		if out, err := exec.CommandContext(ctx, "go", "build", "-overlay", r.overlay, "-o", sidecar, "./cmd/sidecar").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the sidecar: %w\n%s", err, out)
		}
		os.Setenv("NEARDUP_SIDECAR", sidecar)
	}
	var suites []*suite
	for line := range strings.Lines(string(listed)) {
		path, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
		onEngines := strings.HasSuffix(path, "/internal/e2e") || strings.HasSuffix(path, "/adapters/elastic") || strings.HasSuffix(path, "/adapters/typesense")
		if !ok || strings.HasSuffix(path, "/internal/packages") || strings.HasSuffix(path, "/internal/conformance") || strings.HasSuffix(path, "/internal/e2e") != long && !(long && onEngines) {
			continue
		}
		s := &suite{path: dir, binary: filepath.Join(r.dir, strings.NewReplacer("/", "_").Replace(path)+".test"), long: long}
		out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", r.overlay, "-o", s.binary, path).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("build the tests of %s: %w\n%s", path, err, out)
		}
		suites = append(suites, s)
	}
	var tests []*test
	var jobs *suite
	for _, s := range suites {
		out, err := s.command(ctx, "-test.list", ".").Output()
		if err != nil {
			return nil, fmt.Errorf("list the tests of %s: %w", s.path, err)
		}
		for name := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(name, mainJob) {
				job := *s
				job.first = true
				jobs = cmp.Or(jobs, &job)
				tests = append(tests, &test{pkg: jobs, name: name})
			} else if regexp.MustCompile("^(Test|Fuzz|Example)").MatchString(name) {
				tests = append(tests, &test{pkg: s, name: name})
			}
		}
	}
	fmt.Printf("%d tests in %d packages: which places does each reach?\n", len(tests), len(suites))
	var left []string
	var mu sync.Mutex
	if err := side(ctx, tests, workers(long), func(t *test) error {
		ok, err := r.reach(ctx, t)
		if !ok {
			mu.Lock()
			left = append(left, filepath.Base(t.pkg.path)+"."+t.name)
			mu.Unlock()
		}
		return err
	}); err != nil {
		return nil, err
	}
	if len(left) > 0 {
		fmt.Printf("left out, since they fail alone without a break, or take too long: %s\n", strings.Join(left, ", "))
	}
	return tests, nil
}

// workers is 1 where tests share engines, else 2.
func workers(long bool) int {
	if long {
		return 1
	}
	return 2
}

func (s *suite) command(ctx context.Context, args ...string) *exec.Cmd {
	if !s.long {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Dir = s.path
	cmd.Env = os.Environ()
	if !s.long {
		cmd.Env = append(cmd.Env, "NEARDUP_ENGINES=off", "CI=")
	}
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return endGroup(cmd) }
	return cmd
}

// endGroup ends a test process with all that it started: a broken place, or a test that runs out of time, can leave sidecars running.
func endGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// runGroup runs a test process and ends all processes that it left running.
func runGroup(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	_ = endGroup(cmd) // fails where nothing is left
	return err
}

// reach runs a test alone and notes the places that it reaches, and how long it takes.
func (r *runner) reach(ctx context.Context, t *test) (passed bool, err error) {
	file, err := os.CreateTemp(r.dir, "reached-")
	if err != nil {
		return false, err
	}
	file.Close()
	defer os.Remove(file.Name())
	limit := 10 * time.Minute
	if t.pkg.long && !t.pkg.first {
		limit = r.budget
	}
	cmd := t.pkg.command(ctx, "-test.run", "^"+t.name+"$", "-test.timeout", limit.String())
	cmd.Env = append(cmd.Env, "NEARDUP_BREAKS_REACHED="+file.Name())
	start := time.Now()
	ran := runGroup(cmd)
	t.took = time.Since(start)
	if _, failed := errors.AsType[*exec.ExitError](ran); failed {
		return false, ctx.Err()
	}
	if ran != nil {
		return false, ran
	}
	data, err := os.ReadFile(file.Name())
	t.reaches = map[int]bool{}
	for id := range strings.FieldsSeq(string(data)) {
		n, err := strconv.Atoi(id)
		if err != nil {
			return false, err
		}
		t.reaches[n] = true
	}
	return true, err
}

// try breaks each site and runs the tests that reach it until one fails.
func (r *runner) try(ctx context.Context, open []*site, tests []*test, results map[int]*result, out string, long bool) error {
	var mu sync.Mutex
	start, done := time.Now(), 0
	return side(ctx, open, workers(long), func(s *site) error {
		reaching := map[*suite][]*test{}
		var suites []*suite
		n := 0
		for _, t := range tests {
			if t.reaches[s.ID] {
				if reaching[t.pkg] == nil {
					suites = append(suites, t.pkg)
				}
				reaching[t.pkg] = append(reaching[t.pkg], t)
				n++
			}
		}
		slices.SortStableFunc(suites, func(a, b *suite) int {
			if a.first != b.first {
				return map[bool]int{true: -1, false: 1}[a.first]
			}
			if own := strings.HasSuffix(a.path, "/"+s.Package); own != strings.HasSuffix(b.path, "/"+s.Package) {
				return map[bool]int{true: -1, false: 1}[own]
			}
			return cmp.Compare(total(reaching[a]), total(reaching[b]))
		})
		res := &result{ID: s.ID, File: s.File, Line: s.Line, Break: s.Break, Reached: n, Tried: long}
		for _, p := range suites {
			list := reaching[p]
			if long {
				slices.SortFunc(list, func(a, b *test) int { return cmp.Compare(a.took, b.took) })
				for len(list) > 0 && total(list) > r.budget {
					list = list[:len(list)-1]
				}
			}
			if len(list) == 0 {
				continue
			}
			failed, err := p.fails(ctx, s.ID, list)
			if err != nil {
				return err
			}
			if failed {
				res.By, res.Long = filepath.ToSlash(mustRel(p.path)), long && !isMainJob(list[0])
				break
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if known := results[s.ID]; known != nil && res.By == "" {
			res.Reached += known.Reached
		}
		results[s.ID] = res
		if done++; done%10 == 0 {
			fmt.Printf("%4d of %d after %s\n", done, len(open), time.Since(start).Round(time.Second))
		}
		return appendResult(out, res)
	})
}

// isMainJob reports whether a test on real engines is part of make test. Main jobs are a suite of their own.
func isMainJob(t *test) bool { return strings.HasPrefix(t.name, mainJob) }

func mustRel(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(here, path)
	if err != nil {
		return path
	}
	return rel
}

func total(list []*test) (sum time.Duration) {
	for _, t := range list {
		sum += t.took
	}
	return sum
}

// fails runs tests with a place broken.
func (s *suite) fails(ctx context.Context, id int, list []*test) (bool, error) {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.name
	}
	limit := 20*time.Second + 5*total(list)
	cmd := s.command(ctx, "-test.run", "^("+strings.Join(names, "|")+")$", "-test.failfast", "-test.timeout", limit.String())
	cmd.Env = append(cmd.Env, "NEARDUP_BREAK="+strconv.Itoa(id))
	err := runGroup(cmd)
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return true, ctx.Err()
	}
	return false, err
}

// side calls do for each of list, n at a time, and stops at the first error.
func side[T any](ctx context.Context, list []T, n int, do func(T) error) error {
	work, errs := make(chan T), make(chan error, n)
	for range n {
		go func() {
			var failed error
			for x := range work {
				if failed == nil && ctx.Err() == nil {
					failed = do(x)
				}
			}
			errs <- failed
		}()
	}
	for _, x := range list {
		work <- x
	}
	close(work)
	var all []error
	for range n {
		all = append(all, <-errs)
	}
	return errors.Join(append(all, ctx.Err())...)
}

// readResults reads what earlier runs over the same places found.
func readResults(path string, sites []*site) (map[int]*result, error) {
	results := map[int]*result{}
	data, err := os.ReadFile(path)
	if path == "" || errors.Is(err, os.ErrNotExist) {
		return results, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		var res result
		if err := json.Unmarshal(lines.Bytes(), &res); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if res.ID < 1 || res.ID > len(sites) || sites[res.ID-1].File != res.File || sites[res.ID-1].Line != res.Line {
			return nil, fmt.Errorf("%s has places of other sources or another seed: name a new file", path)
		}
		results[res.ID] = &res
	}
	return results, lines.Err()
}

func appendResult(path string, res *result) error {
	if path == "" {
		return nil
	}
	line, err := json.Marshal(res)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
