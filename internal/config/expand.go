package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Lookup returns the value of an environment variable and whether it is set, as os.LookupEnv does.
type Lookup func(name string) (string, bool)

// Expand replaces ${NAME} by the variable's value, ${NAME:-default} by the default where the variable is unset or empty,
// ${file:/path} by the file's text, and $$ by a dollar sign. Any other dollar sign stays.
func Expand(text string, env Lookup) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		switch {
		case !found:
			return out.String(), nil
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "{"):
			inner, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return "", errors.New("has ${ without }: write ${NAME} or ${file:/path}, or $$ for a dollar sign")
			}
			value, err := resolve(inner, env)
			if err != nil {
				return "", err
			}
			out.WriteString(value)
			text = after
		default:
			out.WriteByte('$')
			text = rest
		}
	}
}

// resolve returns the value of the text between ${ and }.
func resolve(inner string, env Lookup) (string, error) {
	if path, found := strings.CutPrefix(inner, "file:"); found {
		return secretFile(path)
	}
	return variable(inner, env)
}

// variable returns the value of NAME or NAME:-default.
func variable(inner string, env Lookup) (string, error) {
	name, fallback, hasFallback := strings.Cut(inner, ":-")
	if !variableName.MatchString(name) {
		return "", errors.New("has ${…} around what is no name of a variable: write ${NAME} or ${file:/path}, or $$ for a dollar sign")
	}
	value, set := env(name)
	switch {
	case hasFallback && value == "":
		return fallback, nil
	case !set:
		return "", fmt.Errorf("the environment variable %s is not set: set it, or give a default as in ${%s:-default}", name, name)
	}
	return value, nil
}
