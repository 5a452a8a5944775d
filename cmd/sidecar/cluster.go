package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/offline"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/jobs/cluster"
)

// clusterJob is one run of the command. Its output and report are the form of the report, unless output names a file.
type clusterJob struct {
	job
	cluster.Options
	input, id, hostField string
	decidedFile          string
	fields               []string
	threshold            float64
	report               string
	file                 string // that output names; empty for none
	memory               config.Size
	write                bool
	flink                flinkFlags
	clean                cleanFlags
	// work is the directory where the run saves its progress; empty for none.
	work string
	// boilerplate is the file that the passages learned go to; empty for none.
	boilerplate string
	learned     *cluster.Learned

	comparer *offline.Comparer // of --input
	corpus   *cluster.Corpus
	// began is when the run did, next when the next line of progress is due.
	began, next time.Time
}

// onFlink is what --engine says where the pairs are to be found on an Apache Flink.
const onFlink = "flink"

func clusterCommand() *cobra.Command {
	c := clusterJob{began: time.Now()}
	cmd := &cobra.Command{
		Use:   "cluster --index NAME | --input FILE",
		Short: "Group the near-duplicates of a whole index, or of a file of documents",
		Long: `Cluster groups the near-duplicates among all documents of an index, or of a file. A file needs no engine. Two documents are linked
if they are near-duplicates, by the same rules as in a search (docs/guarantees.md, What folds). A cluster is all documents that such
links connect.

There are three algorithms:

  bands    compares documents that share a band of their sketches. Fast. Misses about one pair in a hundred at the threshold,
           and fewer above it. The default.
  broder   counts the shingles that two documents share. It leaves out shingles that more than --common texts have, and is exact
           for all others. For up to about a hundred thousand documents.
  exact    links only equal texts.

A file has one JSON object in each line. If its name ends in .gz, it is decompressed. The name - is standard input. Without --config
the defaults apply to a file. With --config its section sketch and one rule apply: the rule that --index names, or the only one.

It prints a report. --report json prints it as JSON.

--output writes each document to a file, with its cluster, the size of the cluster, and its agreement with one document of the
cluster, the same for all. The form is JSON lines, or CSV if the name ends in .csv. The file appears when it is complete.

--write stores the ids of the clusters in the engine's documents. The rule must have native: true or on_duplicate: tag. Only ids that
change are written. A document that somebody else changes meanwhile is skipped.

--memory limits the memory for texts and sketches. Add about 24 bytes for each document. What does not fit goes to temporary files.

--engine flink lets a running Apache Flink find the pairs, through its SQL gateway. All other steps run here: see docs/clusters.md.

--work saves progress to a directory every few seconds. If the run is killed, run the same command again to resume. The directory is made
if need be, and holds ids and sketches. Its own files there are removed at the end, but for an empty neardup-lock. Not for broder,
--boilerplate, standard input or an index.

--open shows the groups on a page in the browser, until the command is interrupted: how much of the index are copies, what differs within
a group, and why which document would stay. There you can tell documents apart, export groups, and download a plan.

--boilerplate learns which passages of 12 words or more, such as disclaimers and footers, stand in many documents that are otherwise unlike,
and writes them to a file, one JSON object in each line. The key boilerplate of a rule names this file: these passages are then left out of
sketches. The report lists the first ten, and says which clusters fall apart without them. It reads the texts three more times. A rule's own
boilerplate does not count here.

--plan writes a plan of which documents to delete, or, with --hide, to hide, and changes nothing. In each group one document stays. The
documents that go are near-duplicates of it. --hide needs a field that the index declares as a boolean. --apply carries a plan out.
Just before, it reads both documents again. It leaves a document alone if either has changed, or if they are no near-duplicates any
more. First it writes each document to the file of --undo. It tests with one document that the engine takes it back as it was. After an
interruption run the same command again. --restore puts back what is in such a file, and never overwrites a document that was written
since. It shows hidden documents again whatever else was written to them. --apply refuses an index in which a deleted document could
not be put back as it was. It asks first on a terminal; elsewhere it needs --yes.

Exit code 0: done. 1: failed or interrupted. 3: done, and the engine refused some documents.`,
		Example: `  sidecar cluster --index news-2024
  sidecar cluster --index news-2024 --write
  sidecar cluster --index news-2024 --open
  sidecar cluster --index news-2024 --boilerplate footers.jsonl
  sidecar cluster --index news-2024 --plan plan.json --keep longest
  sidecar cluster --apply plan.json --undo undo.jsonl --yes
  sidecar cluster --restore undo.jsonl
  sidecar cluster --input lyrics.jsonl.gz --fields title,text --output clusters.csv
  sidecar cluster --input pages.jsonl --id url --fields body --host-field url --report json > report.json
  sidecar cluster --input pages.jsonl --id url --fields body --output clusters.jsonl --report json
  sidecar cluster --input lyrics.jsonl.gz --output clusters.csv --work /big/disk/lyrics
  sidecar cluster --index news-2024 --write --engine flink --gateway http://flink:8083 --shared /mnt/shared
  sidecar cluster --config config.yaml --index links --input links.jsonl --algorithm broder --common 200 --temp-dir /big/disk`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.engine, "engine", "", "`name` of the engine that holds the index; or flink: find the pairs on an Apache Flink")
	flags.StringVar(&c.index, "index", "", "cluster the index with this `name`; with --input: use the rule for it")
	flags.StringVar(&c.input, "input", "", "cluster the documents of this `file`, - for standard input")
	flags.StringVar(&c.id, "id", "id", "the `field` with the id of a file's documents, a text or a number")
	flags.StringSliceVar(&c.fields, "fields", nil, "the `fields` of a file that are compared (by default those of the rule, or title,text)")
	flags.StringVar(&c.decidedFile, "decided", "", "with --input: obey the decided pairs in this `file`, - for standard input (sidecar decide says how)")
	flags.StringVar(&c.hostField, "host-field", "", "the `field` with a host or a URL, for the report (by default the rule's host_field)")
	flags.Var(choice{(*string)(&c.Algorithm), []string{"bands", "broder", "exact"}}, "algorithm", "the algorithm (`way`): bands, broder or exact (by default bands, or broder if the family of sketches has no bands)")
	flags.Float64Var(&c.threshold, "threshold", 0, "the least `agreement` of near-duplicates, above 0, at most 1 (by default the rule's)")
	boundShare(flags, "threshold")
	flags.TextVar(&c.memory, "memory", config.Size(cluster.DefaultMemory), "`bytes` for texts and sketches, such as 512m or 4g")
	flags.IntVar(&c.Common, "common", cluster.DefaultCommon, "broder leaves out shingles that more than this many texts have")
	bound(flags, "common", 2, math.MaxInt32, fmt.Sprintf("at least 2 (%d is usual)", cluster.DefaultCommon))
	flags.StringVar(&c.Dir, "temp-dir", "", "`directory` for temporary files (by default the system's)")
	flags.StringVar(&c.work, "work", "", "with --input: save progress in this `directory`, and resume from it")
	flags.StringVar(&c.output, "output", "", "write the clusters to this `file`, whose name ends in .jsonl or .csv")
	flags.BoolVar(&c.write, "write", false, "store the ids of the clusters in the engine's documents")
	flags.Var(choice{&c.report, []string{formText, formJSON}}, "report", "the `form` of the report: text or json")
	flags.BoolVar(&c.undecided, "ignore-decided", false, "ignore decided pairs")
	flags.StringVar(&c.boilerplate, "boilerplate", "", "learn which passages stand in many otherwise unlike documents, and write them to this `file`")
	c.bindUntested(cmd)
	c.clean.add(flags)
	c.flink.add(flags)
	c.bindMetrics(cmd)
	return cmd
}

// check returns what is wrong with the flags by themselves.
func (c *clusterJob) check(cmd *cobra.Command) error {
	if err := errors.Join(c.checkOutput(), c.clean.check(cmd, c.file)); err != nil {
		return err
	}
	switch {
	case c.clean.apply != "" || c.clean.restore != "":
	case c.input == "" && c.index == "":
		return errors.New("nothing to cluster: name an index with --index, or a file with --input")
	case c.input != "" && c.write:
		return errors.New("--write stores clusters in an index: it does not go with --input")
	case c.input == "" && (len(c.fields) > 0 || cmd.Flags().Changed("id")):
		return errors.New("--fields and --id go with --input: the fields of an index are those of its rule")
	case c.input == "" && c.decidedFile != "":
		return errors.New("--decided goes with --input: what is decided about an index is in the engine, see sidecar decide")
	case c.input == "-" && c.decidedFile == "-":
		return errors.New("--input and --decided can't both be standard input: name a file for one of them")
	case c.input != "" && c.id == "":
		return errors.New("--id: is empty: name the field with the id of each document")
	case c.memory < 1:
		return errors.New("--memory: 0 is not a size: use one such as 512m or 4g")
	case c.write && c.Algorithm == cluster.Exact:
		return errors.New("--write: searches take a cluster for all near-duplicates, and exact finds equal texts alone: use bands or broder")
	case c.engine == onFlink && c.Algorithm != "" && c.Algorithm != cluster.Bands:
		return fmt.Errorf("--engine flink: finds the pairs of bands alone, not of %s", c.Algorithm)
	case c.boilerplate != "":
		return c.checkBoilerplate()
	}
	return nil
}

// checkOutput sets the file or the form that --output names, and returns what is wrong with it and --report.
func (c *clusterJob) checkOutput() error {
	switch {
	case c.output == formText || c.output == formJSON:
		if c.report != "" && c.report != c.output {
			return fmt.Errorf("--report: %s is another form than --output %s: drop one of them", c.report, c.output)
		}
		c.report = c.output
	case c.output == "":
	case !strings.HasSuffix(c.output, ".jsonl") && !strings.HasSuffix(c.output, ".csv"):
		return fmt.Errorf("--output: %q is of no known kind: use text or json, or a file whose name ends in .jsonl or .csv", c.output)
	case !isFolder(filepath.Dir(c.output)): // rather now than after hours
		return fmt.Errorf("--output: there is no directory %s: name a file in one that you may write to", filepath.Dir(c.output))
	default:
		c.file = c.output
	}
	c.report = cmp.Or(c.report, formText)
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
	aDocument   = 24
	// garbagePercent is how much garbage there may be for what is kept, unless GOGC says it: half of Go's own 100. What is kept has few pointers, so
	// collecting it takes little.
	garbagePercent = 50
)

func (c *clusterJob) run(cmd *cobra.Command) error {
	if err := errors.Join(c.check(cmd), c.checkWork(), c.flink.check(c.engine)); err != nil {
		return err
	}
	c.Memory = int64(c.memory)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(max(c.Memory, leastMemory)))
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent))
	}
	c.out, c.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := c.metrics.Start(cmd.Name(), c.err); err != nil {
		return err
	}
	defer c.metrics.Stop()
	c.in = cmd.InOrStdin()
	switch {
	case c.clean.apply != "":
		return c.applyPlan(cmd)
	case c.clean.restore != "":
		return c.restore(cmd)
	}
	err := c.cluster(cmd)
	if c.corpus != nil {
		c.corpus.Close()
	}
	if err == nil || errors.Is(err, errRefused) {
		c.flink.finish()
	}
	if err != nil && cmd.Context().Err() != nil && c.work != "" {
		return errors.New("interrupted: run the same command again to go on")
	}
	if err != nil && cmd.Context().Err() != nil {
		return errors.New("interrupted: a file of --output is there only if it is whole, and what --write has stored stands: run it again")
	}
	return c.hinted(err)
}

// hinted adds to an error of temporary files what to do about it.
func (c *clusterJob) hinted(err error) error {
	switch {
	case c.work != "" && errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: make room there and run the same command again: it goes on", err)
	case errors.Is(err, cluster.ErrSaved) && (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)):
		return fmt.Errorf("%w: leave the directory of --work alone until the run ends, and run the same command again", err)
	case !errors.Is(err, cluster.ErrTemporary):
		return err
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: name a directory with more room with --temp-dir, or give more --memory", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: name a directory that can be written to with --temp-dir", err)
	}
	return err
}

func (c *clusterJob) cluster(cmd *cobra.Command) error {
	ctx := cmd.Context()
	var source *indexSource
	var err error
	if c.input != "" {
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
	if c.boilerplate != "" {
		if err := c.learn(ctx, source); err != nil {
			return err
		}
	}
	switch {
	case c.clean.plan != "":
		return source.makePlan(ctx)
	case c.clean.open:
		return source.openPage(ctx)
	}
	report, err := c.corpus.Report(ctx, c.file)
	if err != nil {
		return err
	}
	var written *cluster.Written
	if source != nil && c.write {
		w, err := source.write(ctx)
		if err != nil {
			return errors.Join(err, c.print(report, &w))
		}
		written = &w
	}
	if err := c.print(report, written); err != nil {
		return err
	}
	if err := c.corpus.RemoveSaved(); err != nil {
		return err
	}
	if written != nil && written.Refused > 0 {
		return errRefused
	}
	return nil
}

// begin makes the corpus of documents under the rule, with the threshold of the flags.
func (c *clusterJob) begin(rule *rule.Rule) (err error) {
	copied := *rule
	if c.threshold > 0 && c.threshold != rule.Profile.Threshold {
		copied.Profile.Threshold, copied.Bands, copied.Rows = c.threshold, 0, 0
	}
	if c.boilerplate != "" {
		if copied.Sketcher, err = withoutBoilerplate(copied.Sketcher); err != nil {
			return err
		}
	}
	c.Rule, c.Progress, c.SaveEvery = &copied, c, saveEvery
	c.corpus, err = cluster.New(c.Options)
	return err
}

// Step implements cluster.Progress: it prints a line now and then on what is being done.
func (c *clusterJob) Step(step string, done, of int) {
	c.metrics.Stepped(step, done, of)
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
func (c *clusterJob) join(cmd *cobra.Command) error {
	c.next = time.Now().Add(meterEvery)
	debug.SetMemoryLimit(max(c.Memory, leastMemory) + aDocument*int64(c.corpus.Documents()))
	if c.engine != onFlink {
		return c.corpus.Cluster(cmd.Context())
	}
	seek, err := c.flink.seeker(cmd, c.corpus, c.Rule)
	if err != nil {
		return err
	}
	return c.corpus.ClusterBy(cmd.Context(), seek)
}

// print prints the report, and what was written to the engine if anything was to be.
func (c *clusterJob) print(r *cluster.Report, w *cluster.Written) error {
	r.Boilerplate = c.learned
	r.Written, r.Took = w, time.Since(c.began).Round(10*time.Millisecond)
	if c.report == formJSON {
		return terminal.WriteJSON(c.out, r)
	}
	return r.Print(c.out)
}
