package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/offline"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/unseen"
)

// unseenJob is one run of the command.
type unseenJob struct {
	offline.Options
	unseen        unseen.Options
	input, output string
	seen, mark    string
	threshold     float64
	metrics       server.JobMetrics
}

func unseenCommand() *cobra.Command {
	var u unseenJob
	cmd := &cobra.Command{
		Use:   "unseen [--input FILE] [--seen FILE]",
		Short: "Pass on the documents of a stream that are new, without an engine",
		Long: `Unseen reads documents, one JSON object in each line, and writes the lines of those of which it has seen no near-duplicate. It needs no engine.
The input may be a stream without end: whenever it pauses, what is new was written.

--seen names a file that remembers the documents that were passed on, for the next run. Without it they are forgotten at the end. The file
grows little: it has a Bloom filter of about 40 bytes for each expected document. It holds no texts, and only one process can use it.

Only parts of sketches are remembered, so nothing is compared a second time. A document counts as seen if it shares one of the bands of its
sketch with a document that was passed on, or, if it is short, has the same words as one. With the threshold of 0.64 that is so for 45 in 100
pairs that agree by 0.64, for 95 at 0.8, and also for 10 at 0.5. See docs/internals/clusters.md, Only new documents. By chance a few more
documents count as seen, at most the share --false-positives while there are no more than --expect documents. After that there are more: the
summary says how many.

A document is written first, and remembered within a second. So if the process or the machine dies, run the same command with the same
input again: some documents may be written twice, and none is lost. --output appends to a file. An incomplete last line is removed first.

--mark writes all documents, each with one more field that is true if it was seen, or else false.

Without --config the defaults apply. With it the section sketch and one rule apply: the rule that --index names, or the only one. Its conditions
within, same and different do not apply.

Exit code 0: done. 1: failed or interrupted.`,
		Example: `  sidecar unseen --input docs.jsonl.gz --fields title,body > new.jsonl
  sidecar unseen --input docs.jsonl --seen seen.bloom --expect 20000 --output new.jsonl
  tail -F crawl.jsonl | sidecar unseen --fields body --seen crawl.bloom | ./load
  sidecar unseen --mark duplicate < docs.jsonl > marked.jsonl
  sidecar unseen --config config.yaml --index news-2024 --input docs.jsonl --seen news.bloom --output new.jsonl`,
		RunE: func(cmd *cobra.Command, _ []string) error { return u.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&u.input, "input", "-", "read the documents of this `file`, - for standard input")
	flags.StringVar(&u.output, "output", "", "append to this `file` (by default standard output)")
	flags.StringVar(&u.Index, "index", "", "use the rule for the index with this `name` in the configuration")
	flags.StringSliceVar(&u.Fields, "fields", nil, "the `fields` to compare, as in title,body (by default those of the rule, or title,text)")
	flags.StringVar(&u.seen, "seen", "", "remember the documents in this `file`")
	flags.IntVar(&u.unseen.Expected, "expect", 0, fmt.Sprintf("make room for this `number` of new documents (by default what --seen has room for, or %d)", unseen.DefaultExpected))
	bound(flags, "expect", 1, mostExpected, fmt.Sprintf("1 to %d", mostExpected))
	flags.Float64Var(&u.unseen.FalsePositives, "false-positives", 0,
		"the `share` of unlike documents that may count as seen (by default that of --seen, or "+strconv.FormatFloat(unseen.DefaultFalsePositives, 'f', -1, 64)+")")
	bound(flags, "false-positives", 1e-9, 0.1, "0.000000001 to 0.1")
	flags.Float64Var(&u.threshold, "threshold", 0, "the `agreement` above which documents are near-duplicates, above 0, at most 1 (by default the rule's)")
	boundShare(flags, "threshold")
	flags.StringVar(&u.mark, "mark", "", "write all documents, with one more `field` that says whether they were seen")
	flags.StringVar(&u.metrics.Address, "metrics", "", metricsUsage)
	return cmd
}

// mostExpected is the greatest number that --expect takes.
const mostExpected = 10_000_000_000

func (u *unseenJob) run(cmd *cobra.Command) error {
	stderr := cmd.ErrOrStderr()
	g, err := newComparer(cmd, u.Options)
	if err != nil {
		return err
	}
	u.unseen.Rule = g.RuleAt(u.threshold)
	if err := u.metrics.Start(cmd.Name(), stderr); err != nil {
		return err
	}
	defer u.metrics.Stop()
	job := offline.Unseen{Mark: u.mark}
	if u.output != "" {
		out, err := appendTo(u.output)
		if err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		defer out.Close()
		g.Out, job.Sync = out, out.Sync
	}
	if job.Seen, err = unseen.Open(u.seen, &u.unseen); err != nil {
		return err
	}
	defer job.Seen.Close()
	if n := job.Seen.Dropped; n > 0 {
		_, _ = fmt.Fprintf(stderr, "%s: left out an incomplete end of %d bytes: a few documents may come twice\n", u.seen, n)
	}
	meter := newMeter(stderr, offline.NameOf(u.input), u.metrics.Index(""))
	job.Progress = func(p offline.Passed) {
		more := fmt.Sprintf("%d new", p.New)
		if job.Seen.Full() {
			more += ", more are remembered than expected"
		}
		meter.at(p.Documents, 0, more)
		meter.metrics.Count(map[string]int{"scanned": p.Documents, "new": p.New, "seen": p.Seen, "textless": p.Textless})
	}
	passed, err := job.Run(cmd.Context(), g, u.input)
	meter.clearBar()
	_, _ = fmt.Fprintf(stderr, "%d documents: %d new, %d seen\n", passed.Documents, passed.New, passed.Seen)
	if passed.Textless > 0 {
		_, _ = fmt.Fprintf(stderr, "%d new documents have no word, and are not remembered\n", passed.Textless)
	}
	_, _ = fmt.Fprintln(stderr, job.Seen.Describe())
	return err
}

// appendTo opens a file to append lines to. An incomplete last line, of a run that was killed, is removed. To a whole one that lacks only its end, the end is added.
func appendTo(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	if err := completeLast(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func completeLast(file *os.File) error {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	var last []byte
	for at := info.Size(); at > 0; {
		piece := make([]byte, min(at, 1<<16))
		at -= int64(len(piece))
		if _, err := file.ReadAt(piece, at); err != nil {
			return err
		}
		end := bytes.LastIndexByte(piece, '\n')
		if last = append(piece[end+1:], last...); end >= 0 {
			break
		}
	}
	switch {
	case len(last) == 0:
		return nil
	case json.Valid(last):
		_, err := file.Write([]byte("\n"))
		return err
	}
	return file.Truncate(info.Size() - int64(len(last)))
}
