package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// dockerfile parses a Dockerfile into stages and instructions. Lint warnings are an error.
func dockerfile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	tree, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return err
	}
	var warnings []error
	for _, w := range tree.Warnings {
		warnings = append(warnings, errors.New(w.Short))
	}
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) {
		warnings = append(warnings, fmt.Errorf("%s: %s", rule, message))
	}})
	stages, _, err := instructions.Parse(tree.AST, lint)
	if err != nil {
		return err
	}
	for _, stage := range stages {
		fmt.Printf("FROM %s\n", stage.BaseName)
		for _, command := range stage.Commands {
			if shown, ok := command.(fmt.Stringer); ok {
				fmt.Println(shown)
			}
		}
	}
	return errors.Join(warnings...)
}

// compose loads a compose file with the profiles, and prints each service.
func compose(file string, profiles []string) error {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithProfiles(profiles),
		cli.WithWorkingDirectory(filepath.Dir(file)), cli.WithConsistency(true))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	names := project.ServiceNames()
	slices.Sort(names)
	for _, name := range names {
		fmt.Println(name)
	}
	return nil
}
