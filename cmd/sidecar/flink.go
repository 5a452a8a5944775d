package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/jobs/flink"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// flinkFlags are what the command line says of that Flink.
type flinkFlags struct {
	gateway, shared, sharedURI string
	parallelism                int
	job                        *flink.Job // once it is begun
}

func (f *flinkFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.gateway, "gateway", "", "with --engine flink: `address` of its SQL gateway, such as http://flink:8083; a password in it as ${NAME} or ${file:/path}")
	flags.StringVar(&f.shared, "shared", "", "with --engine flink: `directory` that its taskmanagers see too")
	flags.StringVar(&f.sharedURI, "shared-uri", "", "with --engine flink: what they call it, if not the same: `file:///path`")
	flags.IntVar(&f.parallelism, "parallelism", 0, "with --engine flink: how many parts the work is cut into; 0 leaves it to Flink")
	bound(flags, "parallelism", 0, math.MaxInt32, "1 or more; 0 leaves it to Flink")
}

// check returns what is wrong with the flags beside --engine.
func (f *flinkFlags) check(engine string) error {
	if engine != onFlink {
		if *f != (flinkFlags{}) {
			return errors.New("--gateway, --shared, --shared-uri, --parallelism: go with --engine flink alone: add that, or drop them")
		}
		return nil
	}
	var errs []error
	if f.gateway == "" {
		errs = append(errs, errors.New("--gateway: is missing: give the address of Flink's SQL gateway, such as http://flink:8083"))
	} else if _, err := f.address(os.LookupEnv); err != nil {
		errs = append(errs, fmt.Errorf("--gateway: %w", err))
	}
	if f.shared == "" {
		errs = append(errs, errors.New("--shared: is missing: name a directory that Flink's taskmanagers see too"))
	} else if !isFolder(f.shared) {
		errs = append(errs, fmt.Errorf("--shared: %q is no directory here: name one that Flink's taskmanagers see too", f.shared))
	}
	return errors.Join(errs...)
}

// address returns the gateway's address, with name and password as a URL has them where they came from the environment or a file.
// Others on the machine see a command line, so no password may be in it.
func (f *flinkFlags) address(env config.Lookup) (string, error) {
	scheme, rest, _ := strings.Cut(f.gateway, "://")
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return f.gateway, nil
	}
	name, password, both := strings.Cut(rest[:at], ":")
	if password != "" && !strings.Contains(password, "${") {
		return "", errors.New("holds a password, and others on this machine see command lines: write ${NAME} or ${file:/path} in its place, " +
			"in single quotes, and put it into that environment variable or file")
	}
	name, err := config.Expand(name, env)
	if err != nil {
		return "", err
	}
	if password, err = config.Expand(password, env); err != nil {
		return "", err
	}
	user := url.User(name)
	if both {
		user = url.UserPassword(name, password)
	}
	return scheme + "://" + user.String() + rest[at:], nil
}

// bytesOfKey is how many bytes for each key are all that is of use: with these hardly any that comes once is taken for one of several.
const bytesOfKey = 2

// seeker returns what finds the pairs of the corpus on Flink.
func (f *flinkFlags) seeker(cmd *cobra.Command, c *cluster.Corpus, rule *rule.Rule) (cluster.Seeker, error) {
	gateway, err := f.address(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	f.job = &flink.Job{
		Gateway: gateway, Shared: f.shared, SharedURI: f.sharedURI, Parallelism: f.parallelism,
		Log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)),
	}
	f.job.Bands, f.job.Rows = c.Shape()
	if rule.Profile.Measure != rerank.Containment { // of which candidates are compared by the caller alone
		f.job.Threshold = rule.Profile.Threshold
	}
	return func(ctx context.Context, texts iter.Seq2[*sketch.Sketch, error]) (iter.Seq2[[2]uint64, error], error) {
		count, memory := c.Room()
		f.job.Memory = min(memory, bytesOfKey*int64(count*f.job.Bands))
		return f.job.Seek(ctx, texts)
	}, nil
}

// finish removes what Flink and this command have written for each other. It stays while the command may have to be run again.
func (f *flinkFlags) finish() {
	if f.job != nil {
		f.job.Finish()
	}
}
