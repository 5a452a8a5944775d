package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// lab runs sections on one engine, which it wipes after each.
type lab struct {
	kind   string
	direct *runner
	bare   *runner // through a sidecar whose rule matches no index
	ruled  *runner // through one with a rule for every index, which folds by stored sketches alone
	late   *runner // reads through one that computes missing sketches: documents are written past it
	wipe   func(context.Context, []exchange) error
	long   bool // all sections in all ways
	turn   int
}

// newLab puts two sidecars in front of an engine.
func newLab(t *testing.T, e *engines.Engine) *lab {
	t.Helper()
	w, err := newWiper(t.Context(), e.URL, e.Kind == engines.OpenSearch)
	if err != nil {
		t.Fatal(err)
	}
	sidecar := func(match, missing string) string { return serve(t, configuration(e.Kind, e.URL, match, missing)) }
	client := newClient()
	at := func(base, reads string) *runner { return &runner{base: base, reads: reads, client: client} }
	return &lab{
		kind: e.Kind, wipe: w.wipe, direct: at(e.URL, ""),
		bare:  at(sidecar("no-such-index", "compute"), ""),
		ruled: at(sidecar("*", "alone"), ""),
		late:  at(e.URL, sidecar("*", "compute")),
	}
}

// outcome is what became of a section.
type outcome string

const (
	notRun  outcome = "not run"     // it needs what this runner or engine does not have
	notHere outcome = "not here"    // it does not hold directly
	passes  outcome = "passes"      // it holds through the sidecar
	folds   outcome = "folds"       // it does not, because hits were rightly folded
	fails   outcome = "fails"       // it does not
	unsure  outcome = "not certain" // it does not hold the same way each time
)

// verdict is what came of one section on one engine.
type verdict struct {
	outcome outcome
	// why says what did not hold, under which configuration.
	why string
	// bare says that it holds through a sidecar without a rule.
	bare bool
	// differences are those of the replies, where the section holds.
	differences []difference
	// folded is how many hits were left out of the replies for their stored sketches.
	folded int
}

// wiped is the failure to wipe the engine, after which nothing is certain any more.
type wiped struct{ error }

// run runs a section once and wipes the engine.
func (l *lab) run(ctx context.Context, r *runner, su *suite, se *section, control string) (trace []exchange, failed, err error) {
	// A sidecar remembers for two seconds what it knows of an index, apart for each client, and the wipes go past it. So each
	// run is a client of its own.
	l.turn++
	r.header = http.Header{"X-Conformance-Run": {strconv.Itoa(l.turn)}}
	if control != "" {
		r.header.Set("Neardup-Control", control)
	}
	trace, failed = r.run(ctx, su, se)
	left := trace
	if failed != nil { // what was asked last may be missing in the trace
		left = nil
	}
	if err := l.wipe(ctx, left); err != nil {
		return nil, nil, wiped{fmt.Errorf("%s: %w", se.name(), err)}
	}
	return trace, failed, nil
}

// judge runs a section directly and through both sidecars.
func (l *lab) judge(ctx context.Context, su *suite, se *section) (verdict, error) {
	if se.skip != "" {
		return verdict{outcome: notRun, why: se.skip}, nil
	}
	first, failed, err := l.run(ctx, l.direct, su, se, "")
	if err != nil || failed != nil {
		return verdict{outcome: notHere, why: fmt.Sprint(failed)}, err
	}
	second, v := first, verdict{outcome: passes}
	if l.long { // what differs from one time to the next is no finding
		if second, failed, err = l.run(ctx, l.direct, su, se, ""); err != nil || failed != nil {
			return verdict{outcome: unsure, why: fmt.Sprint(failed)}, err
		}
	}
	if l.long || se.hash()%4 == 0 { // it goes wrong far more seldom
		if v, err = l.through(ctx, su, se, l.bare, first, second); err != nil || v.outcome != passes {
			return v, err
		}
	}
	differences, hits := v.differences, 0
	for _, r := range []*runner{l.ruled, l.late} {
		if r == l.late && !l.long && se.hash()%4 != 1 {
			continue
		}
		v, err = l.through(ctx, su, se, r, first, second)
		differences = append(differences, v.differences...)
		if r == l.ruled {
			hits = v.folded
		}
		v.bare, v.differences, v.folded = true, differences, hits
		if err != nil || v.outcome != passes {
			return v, err
		}
	}
	return v, err
}

// through runs a section through a sidecar. What does not hold, and what differs, is tried once more.
func (l *lab) through(
	ctx context.Context, su *suite, se *section, r *runner, first, second []exchange,
) (verdict, error) {
	trace, failed, err := l.run(ctx, r, su, se, "")
	if err != nil {
		return verdict{}, err
	}
	found := compare(first, second, trace)
	if failed == nil && len(found) == 0 {
		return verdict{outcome: passes, folded: folded(trace)}, nil
	}
	again, failedAgain, err := l.run(ctx, r, su, se, "")
	if err != nil {
		return verdict{}, err
	}
	direct, failedHere, err := l.run(ctx, l.direct, su, se, "")
	if err != nil {
		return verdict{}, err
	}
	odd := (failed == nil) != (failedAgain == nil)
	why := errors.Join(failed, failedAgain, failedHere)
	if odd && failedHere == nil { // two of three have it
		if _, failed, err = l.run(ctx, r, su, se, ""); err != nil {
			return verdict{}, err
		}
	}
	if failedHere != nil || odd && failed == nil {
		return verdict{outcome: unsure, why: why.Error()}, nil
	}
	both := lasting(found, compare(first, direct, again))
	if failed == nil {
		return verdict{outcome: passes, differences: both, folded: folded(trace)}, nil
	}
	v := verdict{outcome: fails, why: failed.Error(), folded: folded(trace)}
	if r != l.bare && folded(trace) > 0 && !slices.ContainsFunc(both, func(d difference) bool { return d.what == "fold" }) {
		_, failed, err := l.run(ctx, r, su, se, "off")
		if err != nil {
			return verdict{}, err
		}
		if failed == nil {
			v.outcome = folds
		}
	}
	return v, nil
}

// lasting returns the differences that are found both times.
func lasting(a, b []difference) []difference {
	var list []difference
	for _, d := range a {
		same := func(e difference) bool { return d.what == e.what && d.place == e.place && d.value == e.value }
		if slices.ContainsFunc(b, same) {
			list = append(list, d)
		}
	}
	return list
}

// folded returns how many hits the sidecar says that it left out of the replies.
func folded(trace []exchange) int {
	n := 0
	for _, x := range trace {
		for part := range strings.SplitSeq(x.header.Get("Neardup"), ";") {
			if count, ok := strings.CutPrefix(strings.TrimSpace(part), "folded="); ok {
				i, _ := strconv.Atoi(count) // no number is no fold
				n += i
			}
		}
	}
	return n
}
