package conformance

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// api is one endpoint as the engine's project describes it for writers of clients.
type api struct {
	name  string
	paths []apiPath
	known map[string]bool // its parameters
	lines bool            // its body is one JSON value for each line
}

type apiPath struct {
	path    string
	methods []string
	parts   []string
}

var partOf = regexp.MustCompile(`\{([a-z_]+)\}`)

// readSpec reads the descriptions in a folder, by name.
func readSpec(dir string) (map[string]*api, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	spec, common := map[string]*api{}, []string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if name == "_common" {
			var c struct{ Params map[string]any }
			if err := json.Unmarshal(text, &c); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for p := range c.Params {
				common = append(common, p)
			}
			continue
		}
		if spec[name], err = parseAPI(name, text); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, a := range spec {
		for _, p := range common {
			a.known[p] = true
		}
	}
	if len(spec) == 0 {
		return nil, fmt.Errorf("no descriptions of endpoints in %s", dir)
	}
	return spec, nil
}

func parseAPI(name string, text []byte) (*api, error) {
	var file map[string]struct {
		URL struct {
			Paths []struct {
				Path    string
				Methods []string
			}
		}
		Params map[string]any
		Body   struct{ Serialize string }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	described, ok := file[name]
	if !ok {
		return nil, fmt.Errorf("no description of %s", name)
	}
	a := &api{name: name, known: map[string]bool{}, lines: described.Body.Serialize == "bulk"}
	for p := range described.Params {
		a.known[p] = true
	}
	for _, p := range described.URL.Paths {
		path := apiPath{path: p.Path, methods: p.Methods}
		for _, part := range partOf.FindAllStringSubmatch(p.Path, -1) {
			path.parts = append(path.parts, part[1])
		}
		a.paths = append(a.paths, path)
	}
	return a, nil
}

// call is a request as a client would send it.
type call struct {
	method string
	path   string // escaped
	query  url.Values
}

// call builds the request to the endpoint with these arguments, or says why a client would not send it at all. turn chooses among
// the methods, where there are several.
func (a *api) call(args object, hasBody bool, turn int) (call, error) {
	var best *apiPath
	for i := range a.paths {
		p := &a.paths[i]
		if slices.ContainsFunc(p.parts, func(part string) bool { v := args.get(part); return v == nil || v == "" }) {
			continue
		}
		if best == nil || len(p.parts) > len(best.parts) {
			best = p
		}
	}
	if best == nil {
		return call{}, fmt.Errorf("no path of %s fits its arguments", a.name)
	}
	c := call{query: url.Values{}}
	c.path = partOf.ReplaceAllStringFunc(best.path, func(match string) string {
		return escapePart(textOf(args.get(match[1 : len(match)-1])))
	})
	for _, m := range args {
		if m.key == "body" || m.key == "ignore" || slices.Contains(best.parts, m.key) || m.value == "" && a.isPart(m.key) {
			continue
		}
		if !a.known[m.key] {
			return call{}, fmt.Errorf("%s has no parameter %s", a.name, m.key)
		}
		c.query.Set(m.key, textOf(m.value))
	}
	methods := best.methods
	c.method = methods[turn%len(methods)]
	if hasBody && (c.method == "HEAD" || c.method == "GET" && a.lines) {
		c.method = methods[len(methods)-1]
	}
	return c, nil
}

// isPart reports whether an argument stands in one of the paths.
func (a *api) isPart(name string) bool {
	return slices.ContainsFunc(a.paths, func(p apiPath) bool { return slices.Contains(p.parts, name) })
}

// textOf returns an argument as it stands in a URL.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = textOf(e)
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(v)
}

// escapePart escapes a part of a path, but for the commas and stars that clients leave as they are.
func escapePart(part string) string {
	return strings.NewReplacer("%2C", ",", "%2A", "*").Replace(url.PathEscape(part))
}

// The findings that are allowed, one a line: KIND, WHAT and WHY between bars. Lines that begin with # are comments.
//
//	known  | section          | why    its replies differ for a reason that docs/internals/guarantees.md tells
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
