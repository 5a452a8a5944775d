package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// suite is one published set of tests with the description of the endpoints that it calls.
type suite struct {
	compat   string // the media type's compatible-with parameter that its requests carry, or nothing
	spec     map[string]*api
	sections []*section
}

// section is one test: steps with what comes before and after them.
type section struct {
	file                   string // less ".yml"
	title                  string
	setup, steps, teardown []step
	skip                   string // why it is not run, or nothing
}

func (s *section) name() string { return s.file + "/" + s.title }

// common are the endpoints of which a normal run has sections.
var common = regexp.MustCompile(`^(bulk|create|delete|exists|explain|field_caps|get|get_source|index|indices\.get|` +
	`indices\.get_field_mapping|indices\.get_mapping|indices\.put_mapping|indices\.rollover|mget|msearch|mtermvectors|pit|` +
	`scroll|search|search\.highlight|search\.inner_hits|suggest|termvectors|update)/`)

// folding is a section of which hits fold.
const folding = "search/40_indices_boost/Indices boost using object"

// few returns some sections of the common endpoints, those in ran apart: of n for one endpoint the square root of n, thinned, with
// the least hashes or, where others are wanted, with the greatest; and the one whose hits fold.
func (s *suite) few(thin float64, others bool, ran map[string]bool) map[*section]bool {
	byEndpoint, chosen := map[string][]*section{}, map[*section]bool{}
	for _, se := range s.sections {
		if se.skip == "" && !ran[se.name()] && common.MatchString(se.name()) {
			endpoint, _, _ := strings.Cut(se.name(), "/")
			byEndpoint[endpoint] = append(byEndpoint[endpoint], se)
			chosen[se] = se.name() == folding
		}
	}
	for _, list := range byEndpoint {
		slices.SortStableFunc(list, func(a, b *section) int { return a.hash() - b.hash() })
		if others {
			slices.Reverse(list)
		}
		for _, se := range list[:int(math.Round(math.Sqrt(float64(len(list)))/thin))] {
			chosen[se] = true
		}
	}
	return chosen
}

// hash is a number that is always the same for the section, to do things one way or another by.
func (s *section) hash() int {
	h := fnv.New32a()
	_, _ = io.WriteString(h, s.name()) // a hash takes every write
	return int(h.Sum32() % 1024)
}

// step is one line of a section: a verb and its argument.
type step struct {
	verb string
	arg  any
}

// supported are the features that suites may ask of a runner.
var supported = []string{
	"allowed_warnings", "allowed_warnings_regex", "arbitrary_key", "catch_unauthorized", "close_to", "contains", "default_shards",
	"embedded_stash_key", "headers", "node_selector", "stash_in_key", "stash_in_path", "warnings", "warnings_regex",
	"xpack", "yaml",
}

// readSuite reads the suite in a folder: the tests in its folder test and the endpoints in api.
func readSuite(dir, compat string) (*suite, error) {
	s := &suite{compat: compat}
	var err error
	if s.spec, err = readSpec(filepath.Join(dir, "api")); err != nil {
		return nil, err
	}
	tests := filepath.Join(dir, "test")
	err = filepath.WalkDir(tests, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yml") {
			return err
		}
		rel, err := filepath.Rel(tests, path)
		if err != nil {
			return err
		}
		sections, err := readFile(path, strings.TrimSuffix(filepath.ToSlash(rel), ".yml"))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		s.sections = append(s.sections, sections...)
		return nil
	})
	if err == nil && len(s.sections) == 0 {
		err = fmt.Errorf("no tests in %s", tests)
	}
	return s, err
}

// readFile reads the sections of one file.
func readFile(path, name string) ([]*section, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseFile(f, name)
}

// parseFile reads the sections that a reader holds.
func parseFile(r io.Reader, name string) ([]*section, error) {
	var list []*section
	var setup, teardown []step
	for d := yaml.NewDecoder(r); ; {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		v, err := valueOf(&n)
		if err != nil {
			return nil, err
		}
		parts, _ := v.(object)
		for _, part := range parts {
			steps, err := stepsOf(part.value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", part.key, err)
			}
			switch part.key {
			case "setup":
				setup = steps
			case "teardown":
				teardown = steps
			default:
				list = append(list, &section{file: name, title: part.key, steps: steps})
			}
		}
	}
	for _, s := range list {
		s.setup, s.teardown = setup, teardown
		s.skip = skipped(slices.Concat(setup, s.steps))
	}
	return list, nil
}

func stepsOf(v any) ([]step, error) {
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, errors.New("no list of steps")
	}
	var steps []step
	for _, e := range list {
		o, ok := e.(object)
		if !ok {
			return nil, fmt.Errorf("no step: %v", e)
		}
		for _, m := range o {
			steps = append(steps, step{m.key, m.value})
		}
	}
	return steps, nil
}

// skipped returns why steps can't be run, or nothing. Ranges of versions are no reason: whether a test fits the engine shows
// when it is sent there.
func skipped(steps []step) string {
	for _, s := range steps {
		if s.verb != "skip" && s.verb != "requires" {
			continue
		}
		o, _ := s.arg.(object)
		for _, key := range []string{"features", "test_runner_features"} {
			for _, feature := range listOf(o.get(key)) {
				if !slices.Contains(supported, feature) {
					return "feature " + feature
				}
			}
		}
		if o.has("awaits_fix") || strings.TrimSpace(textOf(o.get("version"))) == "all" {
			return "muted"
		}
	}
	return ""
}

// listOf returns a text, a text of several with commas, or a list, as a list of texts.
func listOf(v any) []string {
	var list []string
	for part := range strings.SplitSeq(textOf(v), ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// lookup follows a path with dots through a reply's body.
func lookup(body any, path string, s stash) any {
	if path == "" || path == "$body" {
		return body
	}
	path = strings.TrimPrefix(path, "$body.")
	v := body
	for _, token := range tokens(path) {
		token = fmt.Sprint(s.expandText(token))
		switch at := v.(type) {
		case map[string]any:
			if token == "_arbitrary_key_" {
				for key := range at {
					return key
				}
				return nil
			}
			v = at[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// tokens cuts a path at its dots, but for those behind a backslash.
func tokens(path string) []string {
	var list []string
	token := ""
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path) && path[i+1] == '.':
			token += "."
			i++
		case path[i] == '.':
			if token != "" {
				list = append(list, token)
			}
			token = ""
		default:
			token += string(path[i])
		}
	}
	if token != "" {
		list = append(list, token)
	}
	return list
}

// show returns a value for a message.
func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
