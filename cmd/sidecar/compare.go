package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/offline"
)

// compareFlags are the flags of compare.
type compareFlags struct {
	offlineFlags
	offline.Comparison
}

func compareCommand() *cobra.Command {
	var flags compareFlags
	cmd := &cobra.Command{
		Use:   "compare A B | --docs docs.jsonl --pairs pairs.tsv",
		Short: "Say which documents are near-duplicates and why, without an engine",
		Long: `Compare with two files explains one pair: how many shingles each text has, their agreement and exact resemblance, and the longest
passages that both have and that only one has. It also says whether they are near-duplicates under each preset, and which rule
decides. Of HTML it compares the text.

With --docs and --pairs it compares many pairs. Documents are one JSON object in each line, as for sidecar sketch. Pairs are
lines of two ids with a tab between; further columns are ignored, and a first line that begins with id_a and id_b is skipped.
For each pair it prints, in the same order: both ids, the agreement, its standard error, and whether they are
near-duplicates. If a document has no word or the two can't be compared, the numbers are 0 and the answer is no.

The sketches decide, as in a search; the exact values are printed beside them. --threshold, or a threshold in the rule of a
configuration, replaces the preset's.

It uses the defaults, not config.yaml, unless --config names a file. Of that file it reads the section sketch, and the fields,
sketch, preset, measure, threshold, min_shingles, min_words and numbers of the rule that --index names, or of the only rule. The
other conditions of the rule (within, same, different) are printed, not checked.

Exit code 0: done, whatever the answer. 1: failed or interrupted.`,
		Example: `  sidecar compare old.txt new.html
  sidecar compare --docs docs.jsonl --pairs pairs.tsv > verdicts.tsv
  sidecar compare --docs docs.jsonl --fields title,body --pairs - --preset safe < pairs.tsv
  sidecar compare --config config.yaml --index news-2024 --docs docs.jsonl --pairs pairs.tsv --output json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 2 {
				return fmt.Errorf("compare takes two files, and got %d: for more give --docs and --pairs", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			many := cmd.Flags().Changed("docs") || cmd.Flags().Changed("pairs")
			if err := flags.check(args, many); err != nil {
				return err
			}
			g, err := newComparer(cmd, flags.Options)
			if err != nil {
				return err
			}
			flags.Comparison.Preset, flags.JSON = flags.Options.Preset, flags.output == formJSON
			if many {
				return g.Pairs(cmd.Context(), &flags.Comparison)
			}
			return g.Explain(cmd.Context(), &flags.Comparison, args[0], args[1])
		},
	}
	flags.bind(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.Docs, "docs", "", "`file` of documents, - for standard input")
	f.StringVar(&flags.Pairs, "pairs", "", "`file` of pairs of ids, - for standard input")
	f.Var(choice{&flags.Options.Preset, config.PresetNames()}, "preset", "judge by this `preset`: "+config.Either(config.PresetNames())+" (by default that of the rule, or default)")
	f.Float64Var(&flags.Threshold, "threshold", 0, "the least `agreement` of near-duplicates, above 0, at most 1, instead of the preset's")
	boundShare(f, "threshold")
	return cmd
}

// check checks the flags and arguments.
func (f *compareFlags) check(args []string, many bool) error {
	switch {
	case many && len(args) > 0:
		return errors.New("compare takes two files, or --docs and --pairs, not both")
	case many && f.Docs == "":
		return errors.New("--pairs goes with --docs: name the file of the documents")
	case many && f.Pairs == "":
		return errors.New("--docs goes with --pairs: name the file of the pairs, two ids in each line with a tab between")
	case many && f.Docs == "-" && f.Pairs == "-":
		return errors.New("--docs and --pairs can't both be standard input: name a file for one of them")
	case !many && len(args) < 2:
		return errors.New("compare takes two files, as in: sidecar compare old.txt new.txt, or --docs and --pairs")
	case !many && args[0] == "-" && args[1] == "-":
		return errors.New("two texts can't both be standard input: name a file for one of them")
	case !many && len(f.Fields) > 0:
		return errors.New("--fields goes with --docs: a file is compared whole")
	}
	return nil
}
