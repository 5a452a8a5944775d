// Package conformance runs the tests that the engines' own projects publish for their REST interfaces, directly and through the
// sidecar: what holds directly must hold through the sidecar, and its replies must be the engine's own but for hits that are
// folded.
//
// The suites are fetched by internal/engines/suites.sh. Each section of a suite runs
//
//  1. at the engine,
//  2. through a sidecar whose rule matches no index: nothing may differ,
//  3. through a sidecar with a rule for every index and threshold 1: documents get sketches, and hits with the same text fold,
//  4. the same, but only what reads documents goes through the sidecar, which finds them without sketches.
//
// What does not hold, or differs, is tried once more. What may differ stands in testdata/allowed.txt, each with its reason; a
// section that fails because hits fold must hold with Neardup-Control: off, and each hit left out must have the text of one above
// it. A third of the sections are asked with white space in the replies, and a third compressed.
//
// The short form runs most sections that concern documents, searches and mappings, one in four of them in each of the ways 2 and
// 4, and takes some minutes. With NEARDUP_SUITES=all all sections run in all ways, and twice at the engine:
//
//	NEARDUP_ENGINES=required NEARDUP_SUITES=all go test -count=1 -timeout 3h -run TestSuites -v ./internal/conformance
//
// The engines are always its own, for they are wiped after each section.
package conformance

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// sections narrows a run down, to look at a finding.
var sections = flag.String("sections", "", "run the sections whose name this matches, and tell what came of each")

func TestMain(m *testing.M) {
	flag.Parse()
	// An engine that runs already is not ours to wipe.
	for _, name := range []string{"NEARDUP_ELASTICSEARCH_URL", "NEARDUP_OPENSEARCH_URL"} {
		if err := os.Unsetenv(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if built {
		path, _ := binary()
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// program is a suite as it runs on an engine.
type program struct {
	suite  string // the folder
	compat string // of the media type
	short  int    // how many sections have to hold through the sidecar in the short form, 0 if it is left out there
	long   int    // and in the long form
	hits   int    // how many hits have to be folded
}

// programs are the suites for each engine. The numbers are somewhat below what was measured: a suite that is not read, or not
// run, is no success.
var programs = map[string][]program{
	engines.Elasticsearch: {
		{"opensearch", "", 300, 300, 40},
		{"elasticsearch", "7", 85, 85, 5},
	},
	engines.OpenSearch: {
		{"opensearch", "", 350, 350, 40},
		{"elasticsearch", "", 0, 1, 1}, // what it has beside the other one is of no use there
	},
}

// TestSuites is the whole of it.
func TestSuites(t *testing.T) {
	if testing.Short() {
		t.Skip("-short")
	}
	list, err := readAllowed(allowedText)
	if err != nil {
		t.Fatal("allowed.txt:", err)
	}
	for kind, suites := range programs {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := engines.Start(t, kind)
			dir := suitesDir(t)
			l := newLab(t, e)
			l.long = os.Getenv("NEARDUP_SUITES") == "all"
			ran := map[string]bool{}
			for _, p := range suites {
				if !l.long && p.short == 0 {
					continue
				}
				s, err := readSuite(filepath.Join(dir, p.suite, "rest-api-spec"), p.compat)
				if err != nil {
					t.Fatal(err)
				}
				l.suite(t, p, s, ran, list)
			}
		})
	}
}

// suitesDir returns the folder of the suites.
func suitesDir(t *testing.T) string {
	t.Helper()
	script := filepath.Join("..", "engines", "suites.sh")
	if !engines.Required() && exec.Command("bash", script, "installed").Run() != nil {
		engines.Unavailable(t, errors.New("the suites are not installed; run internal/engines/suites.sh install"))
	}
	out, err := exec.CommandContext(t.Context(), "bash", script, "install").Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		engines.Unavailable(t, fmt.Errorf("fetch the suites: %w", err))
	}
	return strings.TrimSpace(string(out))
}

// suite runs a suite and fails t on any finding that is not allowed. In the short form a section that an earlier suite had as
// well is left out.
func (l *lab) suite(t *testing.T, p program, s *suite, ran map[string]bool, list *allowed) {
	t.Helper()
	chosen := func(se *section) bool { return l.long || se.inShort() && !ran[se.name()] }
	if *sections != "" {
		pattern := regexp.MustCompile(*sections)
		chosen = func(se *section) bool { return pattern.MatchString(se.name()) }
	}
	count, hits := map[outcome]int{}, 0
	for _, se := range s.sections {
		if !chosen(se) {
			continue
		}
		ran[se.name()] = true
		v, err := l.judge(t.Context(), s, se)
		if err != nil {
			t.Fatal(err)
		}
		count[v.outcome]++
		hits += v.folded
		for _, f := range list.findings(se, v) {
			t.Errorf("suite %s: %s", p.suite, f)
		}
		if *sections != "" || v.outcome == unsure {
			t.Logf("suite %s: %s: %s: %s", p.suite, se.name(), v.outcome, v.why)
		}
	}
	t.Logf("suite %s on %s: %v; %d hits folded", p.suite, l.kind, count, hits)
	if *sections != "" {
		return
	}
	floor := p.short
	if l.long {
		floor = p.long
	}
	if count[passes] < floor {
		t.Errorf("suite %s: %d sections hold through the sidecar, want at least %d", p.suite, count[passes], floor)
	}
	if hits < p.hits {
		t.Errorf("suite %s: %d hits are folded, want at least %d", p.suite, hits, p.hits)
	}
}
