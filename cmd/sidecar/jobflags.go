package main

import (
	"github.com/spf13/pflag"

	"github.com/neardup/sidecar/internal/server"
)

// addUntested adds the flag of a job that writes to documents that are stored.
func addUntested(flags *pflag.FlagSet, untested *bool) {
	flags.BoolVar(untested, "untested", false, "write even if the engine's version is one that neardup is not tested on")
}

// addMetrics adds the flag of a job that can be watched.
func addMetrics(flags *pflag.FlagSet, metrics *server.JobMetrics) {
	flags.StringVar(&metrics.Address, "metrics", "", "while it runs, show /metrics for Prometheus at this `address`, such as 127.0.0.1:9601")
}
