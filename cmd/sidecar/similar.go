package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/similar"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
)

// similarJob is one run of the command.
type similarJob struct {
	job
	id string // - for standard input
	similar.Likeness
}

// maxStdin bounds what is read from standard input.
const maxStdin = 64 << 20

func similarCommand() *cobra.Command {
	var s similarJob
	cmd := &cobra.Command{
		Use:   "similar --index NAME ID | -",
		Short: "Find the near-duplicates of a document or a text",
		Long: `Similar finds the near-duplicates of a stored document, or of the text or JSON document on standard input (-). These are the
documents that would fold in a search (docs/guarantees.md, What folds). The conditions within, same and different do not count. If --index is an alias or a pattern, each of its indices is searched by its own rule.

It prints a line for each, the most alike first: index, id, agreement, its standard error, and whether the texts are the same, or decided.
--source shows the documents too, with the exact resemblance. Where the index stores clusters, the ids of these are its groups.

It looks them up by bands, which the rule must store (bands: auto). This finds at least 99 of 100 documents whose agreement is exactly
the rule's threshold, and more of those above it. With a --threshold below the rule's it misses more, and prints which percentage it
finds. --scan compares with every sketch of the index instead. That takes longer, misses nothing and needs no bands.

Exit code 0: done, whatever was found. 1: failed or interrupted.`,
		Example: `  sidecar similar --index news-2024 4711
  sidecar similar --index news-* --threshold 0.5 --size 100 --output json 4711
  sidecar similar --index news-2024 --source - < article.txt
  echo '{"title": "Storm over Sylt", "body": "..."}' | sidecar similar --index news-2024 --scan -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("similar takes the id of a document, or - for standard input, as in: sidecar similar --index news-2024 4711")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		PreRunE:           s.check,
		RunE: func(cmd *cobra.Command, args []string) error {
			s.id = args[0]
			return s.withEngines(cmd, s.run)
		},
	}
	s.bind(cmd, "the `name` of an index, an alias or a pattern")
	flags := cmd.Flags()
	flags.Float64Var(&s.Threshold, "threshold", 0, "the least `agreement`, above 0, at most 1, instead of the rule's")
	flags.IntVar(&s.Size, "size", 10, "print at most this many")
	boundShare(flags, "threshold")
	bound(flags, "size", 1, math.MaxInt32, "at least 1")
	flags.BoolVar(&s.Source, "source", false, "show the documents, with the exact resemblance")
	flags.BoolVar(&s.Scan, "scan", false, "compare with all sketches, without bands")
	return cmd
}

func (s *similarJob) check(*cobra.Command, []string) error {
	if s.index == "" {
		return errors.New("--index is missing: name the index, alias or pattern to look in")
	}
	return nil
}

func (s *similarJob) run(ctx context.Context) error {
	e, indices, err := s.engineOf(ctx)
	if err != nil {
		return err
	}
	var document []byte
	if s.id == "-" {
		document, err = readDocument(terminal.UntilDone(ctx, s.in))
	} else if document, s.Except, err = similar.Document(ctx, e.Rules, e.Store, indices, s.id); err == nil && document == nil {
		err = fmt.Errorf("there is no such document: %s in %s", s.id, s.index)
	}
	if err == nil && s.id != "-" {
		err = s.decide(ctx, e, indices)
	}
	if err != nil {
		return e.Explain(err)
	}
	found, err := similar.Find(ctx, e.Rules, e.Store, indices, document, s.Likeness)
	if err != nil {
		return e.Explain(err)
	}
	return show(s.out, s.output, found, s.text(found))
}

// decide reads what is decided about the document.
func (s *similarJob) decide(ctx context.Context, e *upstream.Engine, indices []adapters.Index) error {
	at := slices.IndexFunc(indices, func(i adapters.Index) bool { return i.Name == s.Except.Index })
	pairs, err := s.decidedIn(ctx, targetOf(e, indices[at]), false)
	s.Decided = decided.NewSet(pairs)
	for _, p := range pairs {
		switch s.Except.ID {
		case p.A:
			s.Partners = append(s.Partners, p.B)
		case p.B:
			s.Partners = append(s.Partners, p.A)
		}
	}
	return err
}

// readDocument reads a document from standard input: a JSON object, or else a text.
func readDocument(in io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(in, maxStdin+1))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	if len(raw) > maxStdin {
		return nil, fmt.Errorf("standard input: is longer than %d bytes: it holds one document", maxStdin)
	}
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '{' {
		if _, err := jsonedit.Members(trimmed); err == nil {
			return trimmed, nil
		}
	}
	return json.Marshal(map[string]string{rule.TextField: string(raw)})
}

// text returns what was found as a table.
func (s *similarJob) text(found similar.Similar) string {
	var b bytes.Buffer
	for _, in := range found.Searched {
		fmt.Fprintf(&b, "%s: threshold %v, compared with %d", in.Index, in.Threshold, in.Compared)
		if in.Cut {
			b.WriteString(" (there are more)")
		}
		if in.Recall != nil {
			fmt.Fprintf(&b, ", finds %.1f %% of pairs at the threshold", 100**in.Recall)
		}
		b.WriteByte('\n')
	}
	switch {
	case len(found.Searched) == 0:
		b.WriteString("nothing to look for: the document has no word in the fields that are compared\n")
	case len(found.Alike) == 0:
		b.WriteString("no near-duplicates\n")
	default:
		s.table(&b, found)
	}
	return terminal.Harmless(b.String())
}

func (s *similarJob) table(b *bytes.Buffer, found similar.Similar) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	grouped := found.Group != "" || slices.ContainsFunc(found.Alike, func(a similar.Alike) bool { return a.Group != "" })
	head := "INDEX\tID\tAGREEMENT\t±\tSAME TEXT\tRESEMBLANCE"
	if grouped {
		head += "\tGROUP"
	}
	_, _ = fmt.Fprintln(w, head)
	for _, a := range found.Alike {
		same, resemblance := map[bool]string{true: "yes"}[a.SameText], ""
		if a.Decided {
			same = "decided"
		}
		if a.Resemblance != nil {
			resemblance = fmt.Sprintf("%.3f", *a.Resemblance)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%.3f\t%.3f\t%s\t%s", a.Index, inTable(a.ID), a.Agreement, a.Error, same, resemblance)
		if grouped {
			_, _ = fmt.Fprint(w, "\t"+a.Group)
		}
		_, _ = fmt.Fprintln(w)
	}
	_ = w.Flush()
	if found.Group != "" {
		fmt.Fprintf(b, "the document itself is of group %s\n", found.Group)
	}
	if found.Total > len(found.Alike) {
		fmt.Fprintf(b, "%d by their sketches in all: show more with --size\n", found.Total)
	}
	for _, a := range found.Alike {
		if s.Source {
			fmt.Fprintf(b, "%s/%s: %s\n", a.Index, inTable(a.ID), a.Source)
		}
	}
}

// inTable returns an id for a table: quoted if it would break one.
func inTable(id string) string {
	if strings.ContainsFunc(id, func(r rune) bool { return r < ' ' }) {
		return fmt.Sprintf("%q", id)
	}
	return id
}
