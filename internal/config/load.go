package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// DefaultFile is the default of --config.
const DefaultFile = "config.yaml"

// Load reads and validates a configuration file. The error joins all errors in it.
func Load(file string, env Lookup) (*Config, error) { return load(file, env, anyKey) }

// LoadOffline reads and validates what commands without an engine need: the section sketch, and the indices of each engine. Other keys may be
// wrong, or name environment variables that are not set.
func LoadOffline(file string, env Lookup) (*Config, error) { return load(file, env, offlineKeys) }

// LoadAdmin reads and validates the key admin alone.
func LoadAdmin(file string, env Lookup) (*Config, error) {
	return load(file, env, regexp.MustCompile(`^admin$`))
}

// The keys whose errors are reported.
var (
	anyKey      = regexp.MustCompile(``)
	offlineKeys = regexp.MustCompile(`^(sketch|engines\[\d+\]\.indices)\b`)
)

// load reads a configuration file and reports the errors in the keys that match.
func load(file string, env Lookup, counts *regexp.Regexp) (*Config, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read config: %w: name the file with --config, or write one with: sidecar init", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	c, err := parse(text, filepath.Dir(file), env, counts)
	if err != nil {
		var all []error
		for _, e := range Flatten(err) {
			wrong, _ := errors.AsType[*KeyError](e)
			all = append(all, fmt.Errorf("%s:%d: %w", file, wrong.Line, e))
		}
		return nil, errors.Join(all...)
	}
	c.File = file
	return c, nil
}

// Parse reads and validates the text of a configuration file in the working directory.
func Parse(text []byte, env Lookup) (*Config, error) { return parse(text, ".", env, anyKey) }

func parse(text []byte, dir string, env Lookup, counts *regexp.Regexp) (*Config, error) {
	settings, lines, err := readYAML(text)
	if err != nil {
		return nil, err
	}
	r := read(settings, dir, env)
	r.readPassages(dir)
	c, wrong := &r.config, r.wrong
	if settings["playground"] == nil {
		c.Playground = local(c.Admin) && !c.asksForCertificates()
	}
	for _, e := range c.Validate() {
		// A key that couldn't be read has its default here: an error in that is not the file's.
		if !slices.ContainsFunc(wrong, e.causedBy) {
			wrong = append(wrong, e)
		}
	}
	for _, e := range wrong {
		e.Line = lines.of(e.Key)
	}
	slices.SortStableFunc(wrong, func(a, b *KeyError) int { return cmp.Or(a.Line-b.Line, strings.Compare(a.Key, b.Key)) })
	var errs []error
	for _, e := range wrong {
		if counts.MatchString(e.Key) {
			errs = append(errs, e)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	c.setCaseLines(lines)
	return c, nil
}

// KeyError is an error in one key, or in the file as a whole if the key is empty.
type KeyError struct {
	Key string
	// Line is the line of the key, or of the section where it is missing.
	Line int
	Err  error
	// meant is the key that an unknown key was probably meant to be.
	meant string
}

func (e *KeyError) Error() string { return strings.TrimPrefix(e.Key+": ", ": ") + e.Err.Error() }

func (e *KeyError) Unwrap() error { return e.Err }

// causedBy reports whether e is only a consequence of the other error: one key is within the other, or the other was meant to be e's.
func (e *KeyError) causedBy(other *KeyError) bool {
	return e.Key == other.meant || isWithin(other.Key, e.Key) || isWithin(e.Key, other.Key)
}

// isWithin reports whether the key is the section or within it.
func isWithin(section, key string) bool {
	rest, ok := strings.CutPrefix(key, section)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Flatten returns the errors that were joined into one.
func Flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, Flatten(e)...)
	}
	return all
}

// Names returns the names of the engines and the patterns of the indices in a configuration file, to complete command lines. The file may be
// invalid. A name with a variable is left out, as the variable may not be set.
func Names(file string) (engines, indices []string) {
	text, _ := os.ReadFile(file)
	settings, _, _ := readYAML(text)
	none := func(string) (string, bool) { return "", false }
	for _, e := range read(settings, ".", none).config.Engines {
		engines = append(engines, e.Name)
		for _, i := range e.Indices {
			indices = append(indices, i.Match)
		}
	}
	return sortedNames(engines), sortedNames(indices)
}

// sortedNames sorts the names of a list, without empty and repeated ones.
func sortedNames(list []string) []string {
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(name string) bool { return name == "" })
}
