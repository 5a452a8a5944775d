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

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
)

// completions returns what the shell would be offered for the last argument.
func completions(t *testing.T, args ...string) []string {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"__complete"}, args...)
	code := run(context.Background(), args, strings.NewReader(""), &out, &errs)
	expect.Must(t, exitDone, code, "%q: %s", args, errs.String())
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
	expect.OK(t, os.WriteFile(file, []byte(`engines:
  - name: one
    kind: elasticsearch
    credentials: {api_key: "${NOBODY_SETS_THIS}"}
    indices: [{match: news-*}, {match: blog}, {match: "${NOBODY_SETS_THIS}"}]
  - kind: typesense
    indices: [{match: blog}, {match: goods}]
`), 0o600))
	const nothing, byDefault = ":4", ":0"
	for _, c := range []struct {
		args string
		want []string
	}{
		{"reindex --engine ", []string{"one", "typesense", nothing}},
		{"similar --index ", []string{"blog", "goods", "news-*", nothing}},
		{"compare --preset ", append(config.PresetNames(), nothing)},
		{"cluster --output ", []string{"text", "json", byDefault}},
		{"config ", []string{"check"}},
		{"rein", []string{"reindex", nothing}},
		{"help conf", []string{"config", nothing}},
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
		expect.Same(t, []string{nothing}, completions(t, "--config", file+".not", "reindex", "--engine", ""), "")
	})
}

func eachCommand(cmd *cobra.Command, do func(cmd *cobra.Command)) {
	do(cmd)
	for _, child := range cmd.Commands() {
		eachCommand(child, do)
	}
}
