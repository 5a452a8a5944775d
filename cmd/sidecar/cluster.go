package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/jobs/cluster"
)

// clusterFlags are what the command line asks of a clustering.
type clusterFlags struct {
	engine, index, input, id string
	fields                   []string
	hostField                string
	clusterWay
	clusterOutput
	write, untested bool
	flink           flinkFlags
	metrics         *server.JobMetrics
}

// clusterWay says how near-duplicates are found.
type clusterWay struct {
	algorithm string
	threshold float64
	memory    memorySize
	common    int
	tempDir   string
}

// clusterOutput says what is printed and written.
type clusterOutput struct {
	output, report string
	// file is what output names, unless that is a form.
	file string
}

// onFlink is what --engine says where the pairs are to be found on an Apache Flink.
const onFlink = "flink"

func clusterCommand() *cobra.Command {
	f := clusterFlags{clusterWay: clusterWay{memory: cluster.DefaultMemory}, metrics: new(server.JobMetrics)}
	cmd := &cobra.Command{
		Use:   "cluster --index NAME | --input FILE",
		Short: "Group the near-duplicates of a whole index, or of a file of documents",
		Long: `Cluster finds the near-duplicates among all documents of an index, or of a file that needs no engine, and groups them: two
documents are joined if they agree at or above the threshold and are long enough, or have the same text; a cluster is what
hangs together. What comes out depends neither on the order of the documents nor on the memory.

  bands    compares documents that share a band of their sketches. Fast; misses a pair now and then. The default.
  broder   counts the shingles that each two documents share, by sorting. Exact; for up to some hundred thousand documents.
  exact    joins equal texts alone.

A file has one JSON object in each line, gzipped if its name ends in .gz; - is standard input. For a file the defaults apply unless
--config names a configuration, of which the section sketch counts, and the rule if there is one alone or --index names it.

A report is printed, as text or as JSON (--output json). Where --output names a file, each document goes there with its cluster, the
size of that, and the agreement with its first: as JSON lines, or as CSV where the name ends in .csv; the file appears when it is
whole, and --report json prints the report as JSON beside it. --write stores the ids of the clusters in the engine's documents, where
the rule has native: true or on_duplicate: tag; it writes only what changes, and leaves alone what changed meanwhile.

--memory bounds what grows with the texts; beyond that there are some 40 bytes for each document. What does not fit goes to
temporary files, which vanish however the run ends.

--engine flink has the pairs found by an Apache Flink that runs already, through its SQL gateway; all else stays here, and so does
what comes out: see docs/clusters.md.

Exit code 0: done. 1: failed or interrupted. 3: done, and the engine refused some documents.`,
		Example: `  sidecar cluster --index news-2024
  sidecar cluster --index news-2024 --write
  sidecar cluster --input lyrics.jsonl.gz --fields title,text --output clusters.csv
  sidecar cluster --input pages.jsonl --id url --fields body --host-field url --output json > report.json
  sidecar cluster --input pages.jsonl --id url --fields body --output clusters.jsonl --report json
  sidecar cluster --index news-2024 --write --engine flink --gateway http://flink:8083 --shared /mnt/shared
  sidecar cluster --config config.yaml --index links --input links.jsonl --algorithm broder --common 200 --temp-dir /big/disk`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.engine, "engine", "", "the index is on the engine with this `name`; or flink: find pairs on an Apache Flink")
	flags.StringVar(&f.index, "index", "", "cluster the index with this `name`; with --input: the rule to go by")
	flags.StringVar(&f.input, "input", "", "cluster the documents of this `file`, - for standard input")
	flags.StringVar(&f.id, "id", "id", "the `field` of a file's documents that holds their id, a text or a number")
	flags.StringSliceVar(&f.fields, "fields", nil, "the `fields` of a file that are compared (by default those of the rule, or title,text)")
	flags.StringVar(&f.hostField, "host-field", "", "the `field` with a host or a URL, for the report (by default the rule's host_field)")
	flags.StringVar(&f.algorithm, "algorithm", "", "bands, broder or exact: the `way` (by default bands, or broder where sketches have none)")
	flags.Float64Var(&f.threshold, "threshold", 0, "the least `agreement` of near-duplicates, above 0, at most 1 (by default the rule's)")
	flags.Var(&f.memory, "memory", "`bytes` to work in, such as 512m or 4g")
	flags.IntVar(&f.common, "common", cluster.DefaultCommon, "broder leaves out shingles that more than so many texts have")
	flags.StringVar(&f.tempDir, "temp-dir", "", "`directory` for temporary files (by default the system's)")
	flags.StringVar(&f.output, "output", "", "the `form` of the report: text or json; or write the clusters to this file: .jsonl or .csv")
	flags.BoolVar(&f.write, "write", false, "store the ids of the clusters in the engine's documents")
	flags.StringVar(&f.report, "report", "", "the `form` of the report, text or json, where --output names a file")
	addUntested(flags, &f.untested)
	f.flink.add(flags)
	addMetrics(flags, f.metrics)
	return cmd
}

// check returns what is wrong with the flags by themselves.
func (f *clusterFlags) check(cmd *cobra.Command) error {
	if err := f.checkOutput(); err != nil {
		return err
	}
	switch {
	case f.input == "" && f.index == "":
		return errors.New("nothing to cluster: name an index with --index, or a file with --input")
	case f.input != "" && f.write:
		return errors.New("--write stores clusters in an index: it does not go with --input")
	case f.input == "" && (len(f.fields) > 0 || cmd.Flags().Changed("id")):
		return errors.New("--fields and --id go with --input: the fields of an index are those of its rule")
	case f.algorithm != "" && !slices.Contains(cluster.Algorithms, cluster.Algorithm(f.algorithm)):
		return fmt.Errorf("--algorithm: %q is unknown: use bands, broder or exact", f.algorithm)
	case cmd.Flags().Changed("threshold") && !(f.threshold > 0 && f.threshold <= 1):
		return fmt.Errorf("--threshold: %v is out of range: use a number above 0, at most 1 (0.64 is usual)", f.threshold)
	case f.common < 2:
		return fmt.Errorf("--common: %d is too few: use at least 2 (%d is usual)", f.common, cluster.DefaultCommon)
	case f.write && f.algorithm == string(cluster.Exact):
		return errors.New("--write: searches take a cluster for all near-duplicates, and exact finds equal texts alone: use bands or broder")
	case f.engine == onFlink && f.algorithm != "" && f.algorithm != string(cluster.Bands):
		return fmt.Errorf("--engine flink: finds the pairs of bands alone, not of %s", f.algorithm)
	}
	return nil
}

// checkOutput tells apart what --output can be, and returns what is wrong with it and --report.
func (f *clusterFlags) checkOutput() error {
	switch {
	case f.output == formText || f.output == formJSON:
		if f.report != "" && f.report != f.output {
			return fmt.Errorf("--report: %s is another form than --output %s: drop one of them", f.report, f.output)
		}
		f.report = f.output
	case f.output == "":
	case !strings.HasSuffix(f.output, ".jsonl") && !strings.HasSuffix(f.output, ".csv"):
		return fmt.Errorf("--output: %q is of no known kind: use text or json, or a file whose name ends in .jsonl or .csv", f.output)
	case !isFolder(filepath.Dir(f.output)): // rather now than after hours
		return fmt.Errorf("--output: there is no directory %s: name a file in one that you may write to", filepath.Dir(f.output))
	default:
		f.file = f.output
	}
	if f.report = cmp.Or(f.report, formText); f.report != formText && f.report != formJSON {
		return fmt.Errorf("--report: %q is unknown: use text or json", f.report)
	}
	return nil
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

const (
	// leastMemory is what the collector of garbage is left however little memory there is to be, and aDocument what each document
	// takes beside it.
	leastMemory = 64 << 20
	aDocument   = 48
)

// clustering is one run of the command.
type clustering struct {
	flags    *clusterFlags
	out, err io.Writer
	corpus   *cluster.Corpus
	rule     *adapters.Rule
	// algorithm is the one that was asked for, or the sketches' own.
	algorithm cluster.Algorithm
	// began is when the run did, next when the next line of progress is due.
	began, next time.Time
}

func (f *clusterFlags) run(cmd *cobra.Command) error {
	if err := errors.Join(f.check(cmd), f.flink.check(f.engine)); err != nil {
		return err
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(max(int64(f.memory), leastMemory)))
	c := &clustering{flags: f, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), began: time.Now()}
	if err := f.metrics.Start("cluster", c.err); err != nil {
		return err
	}
	defer f.metrics.Stop()
	err := c.run(cmd)
	if c.corpus != nil {
		c.corpus.Close()
	}
	if err != nil && cmd.Context().Err() != nil {
		return errors.New("interrupted: a file of --output is there only if it is whole, and what --write has stored stands: run it again")
	}
	return hinted(err)
}

// hinted adds to an error of temporary files what to do about it.
func hinted(err error) error {
	switch {
	case !errors.Is(err, cluster.ErrTemporary):
		return err
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: name a directory with more room with --temp-dir, or give more --memory", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: name a directory that can be written to with --temp-dir", err)
	}
	return err
}

func (c *clustering) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	var source *indexSource
	var err error
	if c.flags.input != "" {
		err = c.readFile(cmd)
	} else {
		source, err = c.readIndex(cmd)
	}
	if err != nil {
		return err
	}
	if err := c.join(cmd); err != nil {
		return err
	}
	report, err := c.corpus.Report(ctx, c.flags.file)
	if err != nil {
		return err
	}
	var written *cluster.Written
	if source != nil && c.flags.write {
		w, err := source.write(ctx, c)
		if err != nil {
			return errors.Join(err, c.print(report, &w))
		}
		written = &w
	}
	if err := c.print(report, written); err != nil {
		return err
	}
	if written != nil && written.Refused > 0 {
		return errRefused
	}
	return nil
}

// begin makes the corpus of documents under the rule, with the threshold of the flags.
func (c *clustering) begin(rule *adapters.Rule) (err error) {
	copied := *rule
	if c.flags.threshold > 0 && c.flags.threshold != rule.Profile.Threshold {
		copied.Profile.Threshold, copied.Bands, copied.Rows = c.flags.threshold, 0, 0
	}
	c.rule = &copied
	if c.algorithm = cluster.Algorithm(c.flags.algorithm); c.algorithm == "" {
		c.algorithm = cluster.AlgorithmFor(rule.Sketcher.Scheme())
	}
	c.corpus, err = cluster.New(cluster.Options{
		Rule: c.rule, Algorithm: c.algorithm, Memory: int64(c.flags.memory), Common: c.flags.common,
		Dir: c.flags.tempDir, Progress: c.progress,
	})
	return err
}

// progress prints a line now and then on what is being done.
func (c *clustering) progress(step string, done, of int) {
	c.flags.metrics.Stepped(step, done, of)
	now := time.Now()
	if now.Before(c.next) {
		return
	}
	c.next = now.Add(meterEvery)
	if of > 0 {
		step += fmt.Sprintf(": %.0f %%", 100*float64(done)/float64(of))
	}
	_, _ = fmt.Fprintf(c.err, "cluster: %s\n", step)
}

// join finds the clusters.
func (c *clustering) join(cmd *cobra.Command) error {
	c.next = time.Now().Add(meterEvery)
	debug.SetMemoryLimit(max(int64(c.flags.memory), leastMemory) + aDocument*int64(c.corpus.Documents()))
	if c.flags.engine != onFlink {
		return c.corpus.Cluster(cmd.Context())
	}
	seek, err := c.flags.flink.seeker(cmd, c.corpus, c.rule)
	if err != nil {
		return err
	}
	return c.corpus.ClusterBy(cmd.Context(), seek)
}

// print prints the report, and what was written to the engine if anything was to be.
func (c *clustering) print(r *cluster.Report, w *cluster.Written) error {
	result := c.corpus.Result(r, w, time.Since(c.began))
	if c.flags.report == formJSON {
		return terminal.WriteJSON(c.out, result)
	}
	return result.Print(c.out)
}

// memorySize is a number of bytes, written as 512m, 1g or as elsewhere.
type memorySize config.Size

// Set reads a size; with String and Type it implements [pflag.Value].
func (m *memorySize) Set(text string) error {
	if n := len(text); n > 0 && strings.ContainsRune("kKmMgG", rune(text[n-1])) {
		text += "B"
	}
	var size config.Size
	if err := size.UnmarshalText([]byte(text)); err != nil || size < 1 {
		return errors.New("is no size: use one such as 512m or 4g")
	}
	*m = memorySize(size)
	return nil
}

func (m *memorySize) String() string { return config.Size(*m).String() }

// Type is what the help calls it.
func (m *memorySize) Type() string { return "bytes" }
