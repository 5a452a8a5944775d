package conformance

import (
	_ "embed"
	"fmt"
	"strings"
)

// The findings that are allowed, one a line: KIND, WHAT and WHY between bars. Lines that begin with # are comments.
//
//	folds  | section          | why    it fails because hits with the same text are folded, which is checked hit by hit
//	known  | section          | why    it fails for a reason that docs/guarantees.md tells
//	differ | what of endpoint | why    the endpoint's replies may differ in this
//
//go:embed testdata/allowed.txt
var allowedText string

type allowed struct {
	why map[outcome]map[string]string // by section
	may map[string]string             // by difference
}

var sectionKinds = map[string]outcome{"folds": folds, "known": fails}

// readAllowed reads the list.
func readAllowed(text string) (*allowed, error) {
	a := &allowed{why: map[outcome]map[string]string{folds: {}, fails: {}}, may: map[string]string{}}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "|")
		if len(parts) != 3 || strings.TrimSpace(parts[2]) == "" {
			return nil, fmt.Errorf("line %d: want kind | what | why", i+1)
		}
		kind, what, why := strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1]), strings.TrimSpace(parts[2])
		if kind == "differ" {
			a.may[what] = why
		} else if o, ok := sectionKinds[kind]; ok {
			a.why[o][what] = why
		} else {
			return nil, fmt.Errorf("line %d: kind %q is none of folds, known, differ", i+1, kind)
		}
	}
	return a, nil
}

// findings returns what of a verdict is not allowed.
func (a *allowed) findings(se *section, v verdict) []string {
	var list []string
	switch mayFail := a.why[folds][se.name()] != "" || a.why[fails][se.name()] != ""; v.outcome {
	case folds, fails:
		if !v.bare || a.why[v.outcome][se.name()] == "" {
			list = append(list, fmt.Sprintf("%s %s: %s", se.name(), v.outcome, v.why))
		}
	case passes:
		if mayFail {
			list = append(list, fmt.Sprintf("%s passes: take it off the list of what may fail", se.name()))
		}
	}
	for _, d := range v.differences {
		if a.may[d.what+" of "+d.api] == "" {
			list = append(list, fmt.Sprintf("%s: %s", se.name(), d))
		}
	}
	return list
}
