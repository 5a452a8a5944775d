package conformance

import (
	_ "embed"
	"fmt"
	"strings"
)

// The findings that are allowed, one a line: KIND, WHAT and WHY between bars. Lines that begin with # are comments.
//
//	known  | section          | why    its replies differ for a reason that docs/guarantees.md tells
//	differ | what of endpoint | why    the endpoint's replies may differ in this
//
//go:embed testdata/allowed.txt
var allowedText string

// allowed are the findings that are allowed: kind, a blank and what.
type allowed map[string]bool

// readAllowed reads the list.
func readAllowed(text string) (allowed, error) {
	a := allowed{}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "|")
		if len(parts) != 3 || strings.TrimSpace(parts[2]) == "" {
			return nil, fmt.Errorf("line %d: want kind | what | why", i+1)
		}
		a[strings.TrimSpace(parts[0])+" "+strings.TrimSpace(parts[1])] = true
	}
	return a, nil
}

// findings returns what of a verdict is not allowed.
func (a allowed) findings(se *section, v verdict) (list []string) {
	for _, d := range v.differences {
		if !a["differ "+d.what+" of "+d.api] && !a["known "+se.name()] {
			list = append(list, fmt.Sprintf("%s: %s", se.name(), d))
		}
	}
	return list
}
