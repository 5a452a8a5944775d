package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
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
func Load(file string, env Lookup) (*Config, error) { return load(file, env, Parse) }

// LoadOffline reads and validates what commands without an engine need of a configuration file: the section sketch, and of each engine the
// indices. All else may be wrong, or name environment variables that are not set.
func LoadOffline(file string, env Lookup) (*Config, error) { return load(file, env, parseOffline) }

// LoadAdmin reads and validates the key admin alone.
func LoadAdmin(file string, env Lookup) (*Config, error) {
	return load(file, env, func(text []byte, env Lookup) (*Config, error) {
		return parse(text, env, regexp.MustCompile(`^admin$`), (*Config).Validate)
	})
}

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
	return parse(text, env, regexp.MustCompile(``), (*Config).Validate)
}

func parseOffline(text []byte, env Lookup) (*Config, error) {
	return parse(text, env, regexp.MustCompile(`^(sketch|engines\[\d+\]\.indices)\b`), (*Config).validateOffline)
}

// parse reads the text of a configuration file and reports what is wrong with the keys that count.
func parse(text []byte, env Lookup, counts *regexp.Regexp, validate func(*Config) []*KeyError) (*Config, error) {
	v, err := readYAML(text)
	if err != nil {
		return nil, err
	}
	c, wrong := decode(v, env)
	if !v.IsSet("playground") {
		c.Playground = local(c.Admin) && !c.asksForCertificates()
	}
	for _, e := range validate(c) {
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
	section := c.Sketch
	if own, ok := v.AllSettings()["sketch"]; ok {
		// Entries of indices begin with it. What is wrong with it is found once more below.
		section.Keep = slices.Clone(section.Keep)
		alone := newYAML()
		_ = alone.MergeConfigMap(map[string]any{"sketch": own})
		_ = alone.UnmarshalKey("sketch", &section, strictly(env, section))
	}
	err := v.Unmarshal(&c, strictly(env, section))
	errs := append(keyed(err), unknownKeys("", v.AllSettings(), reflect.TypeFor[Config]())...)
	for i := range c.Engines {
		c.Engines[i].Name = cmp.Or(c.Engines[i].Name, c.Engines[i].Kind)
		for j := range c.Engines[i].Indices {
			c.Engines[i].Indices[j].resolveHost()
		}
	}
	return &c, errs
}

// strictly has each value converted, and none of them guessed at. Entries of indices begin with the section sketch.
func strictly(env Lookup, section Sketch) viper.DecoderConfigOption {
	return func(d *mapstructure.DecoderConfig) {
		d.WeaklyTypedInput = false
		d.DecodeHook = func(from, to reflect.Value) (any, error) { return convert(from.Interface(), to, env, section) }
	}
}

// convert prepares one value of the file for the place it goes to: variables are replaced, the entries of a list get their
// defaults, and a value of another type than the place's is refused.
func convert(value any, to reflect.Value, env Lookup, section Sketch) (any, error) {
	written, isText := value.(string)
	text, err := Expand(written, env)
	if err != nil {
		return nil, err
	}
	if isText {
		value = text
	}
	switch place := to.Addr().Interface().(type) {
	case *Engine:
		*place = DefaultEngine()
		place.Limits.EngineMaxBody = cmp.Or(Size(kind.Of(textOf(value, "kind", "", env)).MaxBody), place.Limits.EngineMaxBody)
	case *Index:
		*place = PresetOf(textOf(value, "preset", defaultPreset, env)).Start(section)
	case *Representative:
		*place = Representative{}
		if isText {
			return Representative{By: text}, nil
		}
		if _, ok := value.(map[string]any); !ok {
			return nil, &typeError{wantedRepresentative, value}
		}
	case *Secret:
		if !isText {
			return nil, &typeError{wantedText, value}
		}
		return SecretOf(text), nil
	case *Size:
		if n, whole := value.(int); whole && n >= 0 {
			return value, nil
		}
		if !isText || place.UnmarshalText([]byte(text)) != nil {
			return nil, &typeError{wantedSize, value}
		}
		return int64(*place), nil
	case *Span:
		if value == 0 {
			return value, nil
		}
		if !isText || place.UnmarshalText([]byte(text)) != nil {
			return nil, &typeError{wantedSpan, value}
		}
		return int64(*place), nil
	}
	if text != written && to.Kind() != reflect.String {
		value = scalar(text)
	}
	if want, ok := wanted(to.Kind(), reflect.ValueOf(value)); !ok {
		return nil, &typeError{want, value}
	}
	return value, nil
}

// scalar parses the text of a variable as a number or a truth value; any other text stays.
func scalar(text string) any {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return x
	}
	if b, err := strconv.ParseBool(text); err == nil {
		return b
	}
	return text
}

// What places of our own types take.
const (
	wantedText           = "must be text: put it in quotes"
	wantedSize           = "must be a size such as 64MB"
	wantedSpan           = "must be a span such as 72h or 3d"
	wantedRepresentative = "must be a word such as newest, or a section such as {field: votes, order: desc}"
)

// textOf returns the text of an entry's key, or a default. If it can't be read, decoding the key itself says why.
func textOf(entry any, key, without string, env Lookup) string {
	section, _ := entry.(map[string]any)
	written, ok := section[key].(string)
	text, err := Expand(written, env)
	if !ok || err != nil {
		return without
	}
	return text
}

// wanted says what a place of the kind takes, and whether the value is of that kind.
func wanted(place reflect.Kind, value reflect.Value) (want string, ok bool) {
	kind := value.Kind()
	switch place {
	case reflect.String:
		return wantedText, kind == reflect.String
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

// Names returns the names of the engines and the patterns of the indices in a configuration file, for completing command lines. The file need not
// be valid, nor its variables be set: a name that holds one is left out.
func Names(file string) (engines, indices []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil
	}
	v, err := readYAML(text)
	if err != nil {
		return nil, nil
	}
	c, _ := decode(v, func(string) (string, bool) { return "", false })
	for _, e := range c.Engines {
		engines = append(engines, e.Name)
		for _, i := range e.Indices {
			indices = append(indices, i.Match)
		}
	}
	return distinct(engines), distinct(indices)
}

// distinct returns the names of a list, each once.
func distinct(list []string) []string {
	var names []string
	for _, name := range list {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
