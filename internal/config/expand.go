package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	reference    = regexp.MustCompile(`\$\$|\$\{[^}]*\}?`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Lookup returns the value of an environment variable and whether it is set, as os.LookupEnv does.
type Lookup func(name string) (string, bool)

// Expand replaces ${NAME} by the variable's value, ${NAME:-default} by the default if the variable is unset or empty,
// ${file:/path} by the file's text, and $$ by a dollar sign. Any other dollar sign stays.
func Expand(text string, env Lookup) (string, error) {
	var failed error
	expanded := reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" || failed != nil {
			return "$"
		}
		var value string
		value, failed = resolve(found[2:], env)
		return value
	})
	if failed != nil {
		return "", failed
	}
	return expanded, nil
}

// resolve returns the value of a reference, given the text after ${.
func resolve(text string, env Lookup) (string, error) {
	inner, closed := strings.CutSuffix(text, "}")
	if path, isFile := strings.CutPrefix(inner, "file:"); isFile && closed {
		return secretFile(path)
	}
	name, fallback, hasFallback := strings.Cut(inner, ":-")
	value, set := env(name)
	switch {
	case !closed:
		return "", errors.New("has ${ without }: write ${NAME} or ${file:/path}, or $$ for a dollar sign")
	case !variableName.MatchString(name):
		return "", errors.New("has ${…} around text that is not the name of a variable: write ${NAME} or ${file:/path}, or $$ for a dollar sign")
	case hasFallback && value == "":
		return fallback, nil
	case !set:
		return "", fmt.Errorf("the environment variable %s is not set: set it, or give a default as in ${%s:-default}", name, name)
	}
	return value, nil
}
