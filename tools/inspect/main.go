// Inspect reads package files with the libraries of the programs that install them, for the tests of internal/packages.
//
//	inspect dockerfile FILE        parses it as BuildKit does, and prints its lint warnings, one in each line
//	inspect compose FILE [PROFILE…]  loads it as Docker Compose does: schema, interpolation, references; prints the services
//	inspect rpm FILE               prints the content of an rpm as JSON
//	inspect custom FILE            decodes the ServiceMonitors and PrometheusRules in it strictly into the operator's own types
//
// Exit code 1 and the reason on standard error: the file is not what it should be.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "inspect:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("say what and which file: dockerfile, compose, rpm or custom")
	}
	switch what, file := args[0], args[1]; what {
	case "dockerfile":
		return dockerfile(file)
	case "compose":
		return compose(file, args[2:])
	case "rpm":
		return rpm(file)
	case "custom":
		return custom(file)
	default:
		return fmt.Errorf("%q is unknown: use dockerfile, compose, rpm or custom", what)
	}
}
