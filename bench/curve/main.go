// Command curve measures how the cost of clustering by bands grows with the number of documents. It makes up sketches with the statistics of real
// texts, clusters them as `sidecar cluster` does, and prints the time, memory and disk of each step.
//
//	go run ./curve -sizes 1,3,10 -json curve.json    # millions of documents
//	go run ./curve -learn DIR DIR                    # prints statistics.json: of Debian's texts, and of labelled sets in folders
//
// What it makes goes from the maker to the corpus and nowhere else; temporary files are those of jobs/cluster. The rows of the CSV are hashed
// and thrown away.
package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/internal/measured"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// settings are the flags.
type settings struct {
	sizes, file, dir string
	memory           int64
	seed             uint64
	check            bool
	least            int64
}

// result is what one size took, and what it was held to.
type result struct {
	measured.Growth
	Quality *quality `json:"quality,omitempty"`
}

func main() {
	var s settings
	flag.StringVar(&s.sizes, "sizes", "1,3,10", "millions of documents, of each run")
	flag.StringVar(&s.file, "json", "", "file that the results are added to; those of the same size are replaced")
	flag.StringVar(&s.dir, "dir", os.TempDir(), "where temporary files are made")
	flag.Int64Var(&s.memory, "memory", cluster.DefaultMemory, "bytes of memory, as of sidecar cluster")
	flag.Uint64Var(&s.seed, "seed", 1, "seed of the sketches")
	flag.BoolVar(&s.check, "check", false, "hold the clusters to what was planted; takes memory of its own")
	flag.Int64Var(&s.least, "least", 16, "GB that must stay free on the disk: a run ends before")
	learning := flag.Bool("learn", false, "print the statistics of real texts")
	one := flag.Float64("one", 0, "run one size in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *learning:
		err = learn(ctx, flag.Args())
	case *one > 0:
		err = s.one(ctx, int(*one*1e6+0.5))
	default:
		err = s.all(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// theRule is the default one.
func theRule() (*rule.Rule, error) {
	s, err := sketch.New(sketch.DefaultScheme())
	return &rule.Rule{Match: "curve", Fields: []string{"text"}, Window: 10, Sketcher: s, Profile: rerank.Default()}, err
}

// all runs each size in a process of its own, adds what it took to the file, and prints all that is there.
func (s settings) all(ctx context.Context) error {
	var results []result
	if s.file != "" {
		text, err := os.ReadFile(s.file)
		if err == nil {
			err = json.Unmarshal(text, &results)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for size := range strings.SplitSeq(s.sizes, ",") {
		c := exec.CommandContext(ctx, "/proc/self/exe", "-one", size, "-dir", s.dir, "-memory", strconv.FormatInt(s.memory, 10),
			"-seed", strconv.FormatUint(s.seed, 10), "-check="+strconv.FormatBool(s.check), "-least", strconv.FormatInt(s.least, 10))
		c.Stderr = os.Stderr
		out, err := c.Output()
		var r result
		if err = cmp.Or(err, json.Unmarshal(out, &r)); err != nil {
			return fmt.Errorf("%s million documents: %w", size, err)
		}
		results = slices.DeleteFunc(results, func(old result) bool { return old.Documents == r.Documents })
		results = append(results, r)
		slices.SortFunc(results, func(a, b result) int { return cmp.Compare(a.Documents, b.Documents) })
		if s.file != "" {
			text, err := json.MarshalIndent(results, "", " ")
			if err = cmp.Or(err, os.WriteFile(s.file, append(text, '\n'), 0o644)); err != nil {
				return err
			}
		}
	}
	var growth []measured.Growth
	for _, r := range results {
		growth = append(growth, r.Growth)
	}
	fmt.Println(measured.GrowthTable(growth))
	for _, r := range results {
		fmt.Printf("%d documents: %d texts, %d clusters of %d documents, %d buckets cut, CSV %s\n", r.Documents, r.Texts, r.Clusters, r.Clustered, r.Cut, r.Digest)
		if q := r.Quality; q != nil {
			fmt.Printf("found %d of %d planted, right %d of %d joined\n", q.Found, q.Planted, q.Right, q.Joined)
		}
	}
	return nil
}

// Step gets what the corpus says that it does.
func (m *meter) Step(step string, done, of int) {
	fmt.Fprintf(os.Stderr, "%s %s: %d of %d\n", time.Now().Format(time.TimeOnly), step, done, of)
	m.begin(step)
}

// aDocument is how many bytes the command lets each document take beside its memory.
const aDocument = 24

// inTurn is how many sketches are made before they are added.
const inTurn = 1 << 12

// one runs one size and prints its result as JSON.
func (s settings) one(ctx context.Context, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	statistics, err := learned()
	if err != nil {
		return err
	}
	theRule, err := theRule()
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(s.memory) // as the command does
	r := result{Growth: measured.Growth{Documents: n, Memory: s.memory, Date: time.Now().UTC().Format(time.DateOnly), Commit: commit()}}
	meter := newMeter()
	watched := make(chan struct{})
	go func() { // ends the run before the disk is full
		for {
			select {
			case <-watched:
				return
			case <-time.After(200 * time.Millisecond):
				left, err := free(s.dir)
				if err == nil && left < s.least<<30 {
					err = fmt.Errorf("%d GB are left on the disk", left>>30)
				}
				if err != nil {
					cancel(err)
				}
			}
		}
	}()
	corpus, err := cluster.New(cluster.Options{Rule: theRule, Algorithm: cluster.Bands, Memory: s.memory, Dir: s.dir, Progress: meter})
	if err != nil {
		return err
	}
	defer corpus.Close()
	m := newMaker(n, s.seed, theRule.Sketcher.SchemeID(), statistics)
	made := make([]sketch.Sketch, inTurn)
	for from := 0; from < n && ctx.Err() == nil; from += inTurn {
		meter.begin("making sketches")
		turn := made[:min(inTurn, n-from)]
		for i := range turn {
			m.document(from+i, &turn[i])
		}
		meter.begin("adding")
		for i := range turn {
			if err := corpus.Add(cluster.Document{ID: id(from + i), Sketch: &turn[i]}); err != nil {
				return err
			}
		}
	}
	debug.SetMemoryLimit(s.memory + aDocument*int64(n))
	if err := corpus.Cluster(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	meter.begin("output")
	r.Cut = corpus.Left().CutBuckets
	var checked *checker
	if s.check {
		checked = newChecker(m, theRule)
	}
	digest := xxhash.New()
	rows := csv.NewWriter(digest)
	texts := 0
	err = corpus.Each(ctx, func(members []cluster.Member) error {
		if len(members) > 1 {
			r.Clusters++
			r.Clustered += len(members)
		}
		for _, m := range members {
			texts = max(texts, int(m.Text)+1)
			_ = rows.Write([]string{m.ID, m.Cluster, strconv.Itoa(m.Size), strconv.FormatFloat(m.Agreement, 'f', 4, 64)})
		}
		if checked != nil {
			checked.cluster(members)
		}
		return nil
	})
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	rows.Flush()
	meter.begin("")
	close(meter.done)
	close(watched)
	r.Texts = texts
	r.Digest, r.Steps = strconv.FormatUint(digest.Sum64(), 16), meter.steps
	if checked != nil {
		r.Quality = checked.done()
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func commit() string {
	out, _ := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	return strings.TrimSpace(string(out)) + " on " + strconv.Itoa(runtime.GOMAXPROCS(0)) + " cores"
}
