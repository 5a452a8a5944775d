// Command mutate measures what the tests notice. It breaks the product at random places, one at a time, and runs the tests that reach the place:
// a test that fails has noticed. What it prints, by package, is the share of broken places that some test notices, and every place that none did.
//
// A break is small: a condition turned round, a bound moved by one, a statement left out, an error dropped (sites.go). All breaks are compiled into one
// build, each behind a number that the environment switches on (schema.go), so the whole run compiles once. A first pass runs every test alone and
// notes which places it reaches; the second pass runs, for each place, only those tests, the package's own first (run.go).
//
// The same seed and sources give the same places. Figures can be compared only if the sources are the same.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	seed := flag.Uint64("seed", 1, "which places are drawn")
	count := flag.Int("n", 300, "how many places are broken")
	all := flag.Bool("all", false, "also run the tests on real engines, for what the short ones did not notice: the main job, then internal/e2e and the adapters")
	budget := flag.Duration("budget", 20*time.Second, "the longest that the tests with -all may take for one place, by package; the shortest tests go first, longer ones are left out")
	out := flag.String("out", "", "a file for the result of each place, as JSON lines; places that it already has are not tried again")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *seed, *count, *all, *budget, *out); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, seed uint64, count int, all bool, budget time.Duration, out string) error {
	sites, err := draw(seed, count)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "neardup-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(dir, sites)
	if err != nil {
		return err
	}
	r := &runner{dir: dir, overlay: overlay, sites: sites, budget: budget}
	results, err := readResults(out, sites)
	if err != nil {
		return err
	}
	if err := r.judge(ctx, results, out, all); err != nil {
		return err
	}
	report(os.Stdout, sites, results)
	return nil
}
