package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/viper"
)

// DefaultFile is read where --config says nothing.
const DefaultFile = "config.yaml"

// Load reads and validates a configuration file. The error joins everything that is wrong with it.
func Load(file string, env Lookup) (*Config, error) { return load(file, env, anyKey) }

// LoadOffline reads and validates what commands without an engine need of a configuration file: the section sketch, and of each engine the
// indices. All else may be wrong, or name environment variables that are not set.
func LoadOffline(file string, env Lookup) (*Config, error) { return load(file, env, offlineKeys) }

// LoadAdmin reads and validates the key admin alone.
func LoadAdmin(file string, env Lookup) (*Config, error) {
	return load(file, env, regexp.MustCompile(`^admin$`))
}

// The keys of which faults are reported.
var (
	anyKey      = regexp.MustCompile(``)
	offlineKeys = regexp.MustCompile(`^(sketch|engines\[\d+\]\.indices)\b`)
)

// load reads a configuration file and reports what is wrong with the keys that count.
func load(file string, env Lookup, counts *regexp.Regexp) (*Config, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read config: %w: name the file with --config, or write one with: sidecar init", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	c, err := parse(text, env, counts)
	if err != nil {
		var all []error
		for _, e := range Flatten(err) {
			all = append(all, fmt.Errorf("%s: %w", file, e))
		}
		return nil, errors.Join(all...)
	}
	c.File = file
	return c, nil
}

// Parse reads and validates the text of a configuration file.
func Parse(text []byte, env Lookup) (*Config, error) { return parse(text, env, anyKey) }

func parse(text []byte, env Lookup, counts *regexp.Regexp) (*Config, error) {
	settings, err := readYAML(text)
	if err != nil {
		return nil, err
	}
	r := read(settings, env)
	c, wrong := &r.config, r.wrong
	if _, given := settings["playground"]; !given {
		c.Playground = local(c.Admin) && !c.asksForCertificates()
	}
	for _, e := range c.Validate() {
		// A key that couldn't be read has its default here: its faults are not the file's.
		if !slices.ContainsFunc(wrong, e.follows) {
			wrong = append(wrong, e)
		}
	}
	slices.SortStableFunc(wrong, func(a, b *KeyError) int { return strings.Compare(a.Key, b.Key) })
	var errs []error
	for _, e := range wrong {
		if counts.MatchString(e.Key) {
			errs = append(errs, e)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return c, nil
}

// readYAML returns the sections of a configuration file, with their keys in lower case.
func readYAML(text []byte) (map[string]any, error) {
	// No key holds "::", so none is taken apart; one with a dot is a wrong key like any other.
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	v.SetConfigType("yaml")
	if err := v.ReadConfig(bytes.NewReader(text)); err != nil {
		message := strings.TrimPrefix(errors.Unwrap(err).Error(), "yaml: ")
		message = strings.TrimPrefix(message, "unmarshal errors:")
		return nil, fmt.Errorf("is no well-formed YAML: %s", strings.Join(strings.Fields(message), " "))
	}
	return v.AllSettings(), nil
}

// KeyError is what is wrong with one key.
type KeyError struct {
	Key string
	Err error
	// meant, for an unknown key, is the one that is probably meant.
	meant string
}

func (e *KeyError) Error() string { return e.Key + ": " + e.Err.Error() }

func (e *KeyError) Unwrap() error { return e.Err }

// follows reports whether e only comes from the other error, because that one's key leads to e's or stands below it, or was meant
// to be it.
func (e *KeyError) follows(other *KeyError) bool {
	return e.Key == other.meant || leads(other.Key, e.Key) || leads(e.Key, other.Key)
}

// leads reports whether the key is the section or stands below it.
func leads(section, key string) bool {
	rest, ok := strings.CutPrefix(key, section)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Flatten returns the single errors of joined ones.
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

// Names returns the names of the engines and the patterns of the indices in a configuration file, for completing command lines. The file need not
// be valid, nor its variables be set: a name that holds one is left out.
func Names(file string) (engines, indices []string) {
	text, _ := os.ReadFile(file)
	settings, _ := readYAML(text)
	none := func(string) (string, bool) { return "", false }
	for _, e := range read(settings, none).config.Engines {
		engines = append(engines, e.Name)
		for _, i := range e.Indices {
			indices = append(indices, i.Match)
		}
	}
	return distinct(engines), distinct(indices)
}

// distinct returns the names of a list, each once.
func distinct(list []string) []string {
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(name string) bool { return name == "" })
}
