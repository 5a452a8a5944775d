// Command bench measures how fast texts become sketches: this project's package and its peers, in one run, on the same
// corpora, one core each. It prints the tables as Markdown on the standard output and what it is doing on the standard error.
// It fetches what it needs into a cache. A peer that is not available is shown as absent. See README.md.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/neardup/sidecar/bench/internal/corpora"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 8, "how often each contender meets each corpus; the best counts")
	documents := flag.Int("documents", 10000, "how many documents a corpus has at most")
	goOnly := flag.Bool("go", false, "leave the peers of other languages out")
	flag.Parse()
	if _, err := os.Stat("peers"); err != nil {
		return fmt.Errorf("run it in its own folder (cd bench && go run .): %w", err)
	}
	cache, err := corpora.Cache()
	if err != nil {
		return err
	}
	all, missing, err := corpora.Prepare(cache, *documents)
	if err != nil {
		return fmt.Errorf("prepare corpora: %w", err)
	}
	contenders := goContenders()
	if !*goOnly {
		peers, stop := startPeers(cache)
		defer stop()
		contenders = append(contenders, peers...)
	}
	runtime.GOMAXPROCS(1) // one core each; the peers' processes set the same for themselves
	start := time.Now()
	agreements, err := checkAgreement(all, contenders)
	if err != nil {
		return err
	}
	results := measure(all, contenders, *rounds)
	parts, err := measureParts(all["synth"].Documents)
	if err != nil {
		return err
	}
	r := report{corpora: all, missing: missing, contenders: contenders, results: results, agreements: agreements, parts: parts}
	r.print(os.Stdout, *rounds, time.Since(start))
	fmt.Fprintln(os.Stderr, "checksum of the Go contenders:", sink)
	return nil
}

// key names a cell of the table.
type key struct{ contender, corpus string }

// cell is the best pass of a contender over a corpus, or the reason why there is none.
type cell struct {
	documents, bytes int
	seconds          float64
	err              error
}

func (c cell) documentsPerSecond() float64 { return float64(c.documents) / c.seconds }
func (c cell) megabytesPerSecond() float64 { return float64(c.bytes) / 1e6 / c.seconds }

// visit is how long a contender stays at a corpus in one round; it makes one pass at least. It is there for the fast ones: a
// pass of a few milliseconds alone would often meet a neighbour's burst.
const visit = 150 * time.Millisecond

// measure lets the contenders take turns at each corpus, round after round, so that a slow minute of the machine hits them all.
func measure(all corpora.Corpora, contenders []contender, rounds int) map[key]cell {
	results := map[key]cell{}
	for round := range rounds {
		start := time.Now()
		for _, c := range all.Timed() {
			for _, who := range contenders {
				k := key{who.name, c.Name}
				if who.absent != nil || results[k].err != nil {
					continue
				}
				results[k] = better(results[k], who.visit(c))
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d: %.0f s\n", round+1, rounds, time.Since(start).Seconds())
	}
	return results
}

func better(a, b cell) cell {
	if a.seconds == 0 || b.err != nil || b.seconds < a.seconds {
		return b
	}
	return a
}

// visit makes passes over as much of the corpus as the contender is given and returns the best.
func (c contender) visit(on corpus) cell {
	count, size := on.First(cmp.Or(c.limit, len(on.Text)))
	best := cell{documents: count, bytes: size}
	for start := time.Now(); best.seconds == 0 || time.Since(start) < visit; {
		seconds, err := c.pass(on, count)
		if err != nil {
			best.err = err
			return best
		}
		if best.seconds == 0 || seconds < best.seconds {
			best.seconds = seconds
		}
	}
	return best
}

// checkAgreement asks every contender for the mean agreement over the pairs of near-duplicates.
func checkAgreement(all corpora.Corpora, contenders []contender) (map[string]float64, error) {
	pairs := all["pairs"]
	exact, err := meanResemblance(pairs.Documents)
	if err != nil {
		return nil, err
	}
	agreements := map[string]float64{exactly: exact}
	for _, who := range contenders {
		if who.absent != nil || who.agree == nil {
			continue
		}
		agreement, err := who.agree(pairs)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: agreement: %v\n", who.name, err)
			continue
		}
		agreements[who.name] = agreement
	}
	return agreements, nil
}
