package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completions returns what the shell would be offered for the last argument.
func completions(t *testing.T, args ...string) []string {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"__complete"}, args...)
	if code := run(context.Background(), args, strings.NewReader(""), &out, &errs); code != exitDone {
		t.Fatalf("%q ends with %d: %s", args, code, errs.String())
	}
	var list []string
	for line := range strings.Lines(out.String()) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		list = append(list, word)
	}
	return list
}

func TestCompletion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	// Neither valid nor with its variables set: completing must not need either.
	err := os.WriteFile(file, []byte(`engines:
  - name: one
    kind: elasticsearch
    credentials: {api_key: "${NOBODY_SETS_THIS}"}
    indices: [{match: news-*}, {match: blog}, {match: "${NOBODY_SETS_THIS}"}]
  - kind: typesense
    indices: [{match: blog}, {match: goods}]
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	const nothing, byDefault, extension, directories = ":4", ":0", ":8", ":16"
	for _, c := range []struct {
		args string
		want []string
	}{
		{"reindex --engine ", []string{"one", "typesense", nothing}},
		{"doctor --engine ", []string{"one", "typesense", nothing}},
		{"cluster --engine ", []string{"one", "typesense", "flink", nothing}},
		{"similar --index ", []string{"news-*", "blog", "goods", nothing}},
		{"sketch --index ", []string{"news-*", "blog", "goods", nothing}},
		{"compare --preset ", append(presetNames(), nothing)},
		{"verify --output ", []string{"text", "json", nothing}},
		{"cluster --output ", []string{"text", "json", byDefault}},
		{"cluster --report ", []string{"text", "json", nothing}},
		{"cluster --algorithm ", []string{"bands", "broder", "exact", nothing}},
		{"cluster --temp-dir ", []string{directories}},
		{"serve --config ", []string{"yaml", "yml", extension}},
		{"reindex --slices ", []string{nothing}},
		{"config ", []string{"check"}},
		{"rein", []string{"reindex", nothing}},
		{"ma", []string{nothing}}, // man is hidden
		{"serve ", []string{nothing}},
		{"similar ", []string{nothing}},
		{"sketch ", []string{byDefault}},
		{"help conf", []string{"config", nothing}},
		{"help config ch", []string{"check", nothing}},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := append([]string{"--config", file}, strings.Split(c.args, " ")...)
			if got := completions(t, args...); c.args == "config " && !slices.Contains(got, "check") ||
				c.args != "config " && !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	t.Run("without a file", func(t *testing.T) {
		if got := completions(t, "--config", file+".not", "reindex", "--engine", ""); !slices.Equal(got, []string{nothing}) {
			t.Errorf("%q", got)
		}
	})
}

// TestEveryFlagCompletes finds flags that would offer the names of files where no file is meant.
func TestEveryFlagCompletes(t *testing.T) {
	files := map[string]bool{"output": true, "shared-uri": true}
	flags := 0
	eachCommand(newRoot(), func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Value.Type() == "bool" {
				return
			}
			flags++
			complete, found := cmd.GetFlagCompletionFunc(flag.Name)
			if !found {
				t.Errorf("%s --%s completes to files", cmd.CommandPath(), flag.Name)
				return
			}
			value, _ := pflag.UnquoteUsage(flag)
			_, directive := complete(cmd, nil, "")
			if directive == cobra.ShellCompDirectiveDefault && !files[flag.Name] && value != "file" {
				t.Errorf("%s --%s completes to files", cmd.CommandPath(), flag.Name)
			}
		})
	})
	if flags < 40 {
		t.Errorf("only %d flags found", flags)
	}
}

func eachCommand(cmd *cobra.Command, do func(cmd *cobra.Command)) {
	do(cmd)
	for _, child := range cmd.Commands() {
		eachCommand(child, do)
	}
}
