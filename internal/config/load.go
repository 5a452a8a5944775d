package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"

	"github.com/neardup/sidecar/internal/kind"
)

// DefaultFile is read where --config says nothing.
const DefaultFile = "config.yaml"

// Load reads and validates a configuration file. The error joins everything that is wrong with it.
func Load(file string, env Lookup) (*Config, error) {
	return load(file, env, Parse)
}

// LoadOffline reads and validates what commands without an engine need of a configuration file: the section sketch, and of each engine the
// indices.
func LoadOffline(file string, env Lookup) (*Config, error) { return load(file, env, parseOffline) }

// LoadAdmin reads and validates the key admin alone.
func LoadAdmin(file string, env Lookup) (*Config, error) { return load(file, env, parseAdmin) }

// load reads a configuration file and hands its text to the function that makes a Config of it.
func load(file string, env Lookup, parse func(text []byte, env Lookup) (*Config, error)) (*Config, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read config: %w: name the file with --config, or write one with: sidecar init", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	c, err := parse(text, env)
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
func Parse(text []byte, env Lookup) (*Config, error) {
	v, err := readYAML(text)
	if err != nil {
		return nil, err
	}
	c, errs := decode(v, env)
	if !v.IsSet("playground") {
		c.Playground = local(c.Admin) && !c.asksForCertificates()
	}
	return c.unless(errs, c.Validate())
}

// parseOffline reads and validates what commands without an engine need of a configuration file: the section sketch, and of each
// engine the indices. All else is left out, so that it may name environment variables that are not set.
func parseOffline(text []byte, env Lookup) (*Config, error) {
	all, err := readYAML(text)
	if err != nil {
		return nil, err
	}
	settings := all.AllSettings()
	engines, ok := settings["engines"].([]any)
	if !ok {
		delete(settings, "engines")
	}
	for i, engine := range engines {
		section, _ := engine.(map[string]any)
		engines[i] = only(section, "indices")
	}
	return parsePart(only(settings, "sketch", "engines"), env, (*Config).validateOffline)
}

// parseAdmin reads and validates the key admin alone.
func parseAdmin(text []byte, env Lookup) (*Config, error) {
	all, err := readYAML(text)
	if err != nil {
		return nil, err
	}
	return parsePart(only(all.AllSettings(), "admin"), env, func(c *Config) []*KeyError {
		var f faults
		if c.Admin != "" {
			f.address("admin", c.Admin)
		}
		return f
	})
}

// only returns those of the settings that have one of the keys and a value.
func only(settings map[string]any, keys ...string) map[string]any {
	kept := map[string]any{}
	for _, key := range keys {
		if value := settings[key]; value != nil {
			kept[key] = value
		}
	}
	return kept
}

// parsePart takes over and validates a part of a configuration file.
func parsePart(settings map[string]any, env Lookup, validate func(*Config) []*KeyError) (*Config, error) {
	v := newYAML()
	if err := v.MergeConfigMap(settings); err != nil {
		return nil, err
	}
	c, errs := decode(v, env)
	return c.unless(errs, validate(c))
}

func newYAML() *viper.Viper {
	// No key holds "::", so none is taken apart; one with a dot is a wrong key like any other.
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	v.SetConfigType("yaml")
	return v
}

func readYAML(text []byte) (*viper.Viper, error) {
	v := newYAML()
	if err := v.ReadConfig(bytes.NewReader(text)); err != nil {
		message := strings.TrimPrefix(errors.Unwrap(err).Error(), "yaml: ")
		message = strings.TrimPrefix(message, "unmarshal errors:")
		return nil, fmt.Errorf("is no well-formed YAML: %s", strings.Join(strings.Fields(message), " "))
	}
	return v, nil
}

// unless returns the configuration unless there are errors: those of reading it, and those that make what was read unusable.
func (c *Config) unless(errs, invalid []*KeyError) (*Config, error) {
	for _, e := range invalid {
		// A key that couldn't be read has its default here: what is wrong with that is no news.
		if !slices.ContainsFunc(errs, e.follows) {
			errs = append(errs, e)
		}
	}
	if len(errs) == 0 {
		return c, nil
	}
	slices.SortStableFunc(errs, func(a, b *KeyError) int { return strings.Compare(a.Key, b.Key) })
	all := make([]error, len(errs))
	for i, e := range errs {
		all[i] = e
	}
	return nil, errors.Join(all...)
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

// decode takes the file's values over strictly: an unknown key or a wrong type is an error, and all of them are returned.
func decode(v *viper.Viper, env Lookup) (*Config, []*KeyError) {
	c := Default()
	f := filing{env: env, section: c.Sketch}
	if section, ok := v.AllSettings()["sketch"]; ok {
		// Entries of indices begin with it. What is wrong with it is found once more below.
		f.section.Keep = slices.Clone(f.section.Keep)
		alone := newYAML()
		_ = alone.MergeConfigMap(map[string]any{"sketch": section})
		_ = alone.UnmarshalKey("sketch", &f.section, f.strictly)
	}
	err := v.Unmarshal(&c, f.strictly)
	errs := append(keyed(err), unknownKeys("", v.AllSettings(), reflect.TypeFor[Config]())...)
	for i := range c.Engines {
		if c.Engines[i].Name == "" {
			c.Engines[i].Name = c.Engines[i].Kind
		}
		for j := range c.Engines[i].Indices {
			c.Engines[i].Indices[j].named()
		}
	}
	return &c, errs
}

// filing is what taking a file's values over goes by.
type filing struct {
	env Lookup
	// section is the section sketch.
	section Sketch
}

// strictly has each value converted, and none of them guessed at.
func (f *filing) strictly(d *mapstructure.DecoderConfig) {
	d.WeaklyTypedInput = false
	d.DecodeHook = f.convert
}

// convert prepares one value of the file for the place it goes to: variables are replaced, the entries of a list get their
// defaults, and a value of another type than the place's is refused.
func (f *filing) convert(from, to reflect.Value) (any, error) {
	if from.Kind() == reflect.String {
		text, err := Expand(from.String(), f.env)
		if err != nil {
			return nil, err
		}
		return f.convertText(text, text != from.String(), to)
	}
	value := from.Interface()
	switch place := to.Addr().Interface().(type) {
	case *Engine:
		*place = DefaultEngine()
		place.Limits.EngineMaxBody = cmp.Or(Size(kind.Of(f.textOf(value, "kind", "")).MaxBody), place.Limits.EngineMaxBody)
	case *Index:
		*place = PresetOf(f.textOf(value, "preset", defaultPreset)).Start(f.section)
	case *Representative:
		*place = Representative{}
		if from.Kind() != reflect.Map {
			return nil, &typeError{wantedRepresentative, value}
		}
	case *Secret:
		return nil, &typeError{wantedText, value}
	case *Size:
		if n, whole := value.(int); !whole || n < 0 {
			return nil, &typeError{wantedSize, value}
		}
	case *Span:
		if value != 0 {
			return nil, &typeError{wantedSpan, value}
		}
	}
	want, ok := wanted(to.Kind(), from)
	if !ok {
		return nil, &typeError{want, value}
	}
	return value, nil
}

// What places of our own types take.
const (
	wantedText           = "must be text: put it in quotes"
	wantedSize           = "must be a size such as 64MB"
	wantedSpan           = "must be a span such as 72h or 3d"
	wantedRepresentative = "must be a word such as newest, or a section such as {field: votes, order: desc}"
)

// textOf returns the text of an entry's key, or what stands for it. Where it can't be read, decoding the key itself says why.
func (f *filing) textOf(entry any, key, without string) string {
	section, _ := entry.(map[string]any)
	text, ok := section[key].(string)
	if !ok {
		return without
	}
	text, err := Expand(text, f.env)
	if err != nil {
		return without
	}
	return text
}

// wanted says what a place of the kind takes, and whether the value is of that kind.
func wanted(place reflect.Kind, value reflect.Value) (want string, ok bool) {
	kind := value.Kind()
	switch place {
	case reflect.String:
		return wantedText, false // text never comes here
	case reflect.Bool:
		return "must be true or false", kind == reflect.Bool
	case reflect.Int, reflect.Int64:
		return "must be a whole number", kind == reflect.Int || kind == reflect.Float64 && value.Float() == math.Trunc(value.Float())
	case reflect.Float64:
		return "must be a number", kind == reflect.Int || kind == reflect.Float64
	case reflect.Slice:
		return "must be a list, as in [a, b]", kind == reflect.Slice
	case reflect.Struct:
		return "must be a section with keys of its own", kind == reflect.Map
	}
	return "", true
}

// convertText prepares a text. One that came out of a variable may stand for a number or a truth value.
func (f *filing) convertText(text string, fromVariable bool, to reflect.Value) (any, error) {
	switch place := to.Addr().Interface().(type) {
	case *Secret:
		return SecretOf(text), nil
	case *Size:
		if place.UnmarshalText([]byte(text)) != nil {
			return nil, &typeError{wantedSize, text}
		}
		return int64(*place), nil
	case *Span:
		if place.UnmarshalText([]byte(text)) != nil {
			return nil, &typeError{wantedSpan, text}
		}
		return int64(*place), nil
	case *Representative:
		return Representative{By: text}, nil
	}
	if to.Kind() == reflect.String {
		return text, nil
	}
	if fromVariable {
		if n, err := strconv.Atoi(text); err == nil {
			return f.convert(reflect.ValueOf(n), to)
		}
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return f.convert(reflect.ValueOf(x), to)
		}
		if b, err := strconv.ParseBool(text); err == nil {
			return f.convert(reflect.ValueOf(b), to)
		}
	}
	want, _ := wanted(to.Kind(), reflect.ValueOf(text))
	return nil, &typeError{want, text}
}

// typeError is a value of the wrong type.
type typeError struct {
	want  string
	value any
}

func (e *typeError) Error() string {
	switch value := e.value.(type) {
	case string:
		return fmt.Sprintf("%s, not %q", e.want, value)
	case []any:
		return e.want + ", not a list"
	case map[string]any:
		return e.want + ", not a section"
	}
	return fmt.Sprintf("%s, not %v", e.want, e.value)
}

// keyed returns the errors of decoding with their keys and with no secret in them.
func keyed(err error) []*KeyError {
	if err == nil {
		return nil
	}
	if at, ok := err.(*mapstructure.DecodeError); ok {
		if inner := at.Unwrap(); len(Flatten(inner)) == 1 {
			if wrong, ok := errors.AsType[*typeError](inner); ok && secret(at.Name()) {
				inner = errors.New(wrong.want)
			}
			return []*KeyError{{Key: at.Name(), Err: inner}}
		}
	}
	if inner := errors.Unwrap(err); inner != nil {
		return keyed(inner)
	}
	var all []*KeyError
	for _, e := range Flatten(err) {
		if e == err {
			return []*KeyError{{Key: "config", Err: err}}
		}
		all = append(all, keyed(e)...)
	}
	return all
}

// secret reports whether a key's value must not be shown.
func secret(key string) bool {
	return strings.Contains(key, ".credentials") || key == "sketch.seed" || strings.HasSuffix(key, ".sketch.seed")
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
