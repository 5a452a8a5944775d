package conformance

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The findings that are allowed, one a line: KIND, WHAT and WHY between bars. Lines that begin with # are comments.
//
//	folds  | section            | why  the section fails because hits with the same text are folded; checked hit by hit
//	known  | section            | why  the section fails for a reason that docs/guarantees.md tells
//	differ | what of endpoint   | why  replies of the endpoint may differ in this
//
//go:embed testdata/allowed.txt
var allowedText string

type allowed struct {
	why  map[outcome]map[string]string // by section
	may  map[string]string             // by difference
	used map[string]bool
}

var sectionKinds = map[string]outcome{"folds": folds, "known": fails}

// readAllowed reads the list.
func readAllowed(text string) (*allowed, error) {
	a := &allowed{why: map[outcome]map[string]string{folds: {}, fails: {}}, may: map[string]string{}, used: map[string]bool{}}
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

// clone returns the list with nothing found yet.
func (a *allowed) clone() *allowed { return &allowed{why: a.why, may: a.may, used: map[string]bool{}} }

// findings returns what of a verdict is not allowed.
func (a *allowed) findings(se *section, v verdict) []string {
	var list []string
	if v.outcome == folds || v.outcome == fails {
		if v.bare && a.why[v.outcome][se.name()] != "" {
			a.used[se.name()] = true
		} else {
			list = append(list, fmt.Sprintf("%s %s: %s", se.name(), v.outcome, v.why))
		}
	}
	for _, d := range v.differences {
		what := d.what + " of " + d.api
		if a.may[what] != "" {
			a.used[what] = true
		} else {
			list = append(list, fmt.Sprintf("%s: %s", se.name(), d))
		}
	}
	return list
}

// unused returns what is allowed and was not found, of the sections that have run.
func (a *allowed) unused(ran []string) []string {
	var list []string
	for _, o := range []outcome{folds, fails} {
		for name := range a.why[o] {
			if !a.used[name] && slices.Contains(ran, name) {
				list = append(list, name)
			}
		}
	}
	slices.Sort(list)
	return list
}

// short are the sections of the short form: those that concern documents, searches and mappings.
var short = regexp.MustCompile(`^(bulk|create|delete|exists|explain|field_caps|get|get_source|index|indices\.get|` +
	`indices\.get_field_mapping|indices\.get_mapping|indices\.put_mapping|indices\.rollover|mget|msearch|mtermvectors|pit|` +
	`scroll|search|search\.highlight|search\.inner_hits|suggest|termvectors|update)/`)
