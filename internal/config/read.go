package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/certs"
	"github.com/neardup/sidecar/internal/kind"
)

// reader decodes a file's values into a configuration. It is strict: a value of the wrong type is an error, and so is an unknown key.
type reader struct {
	env    Lookup
	config Config
	wrong  faults
	// texts are the values that are text, with variables replaced. files are those whose key ends in _file, and files of passages.
	texts, files []string
}

// read decodes a file's sections into a configuration and a list of errors. The file is in the directory dir.
func read(settings map[string]any, dir string, env Lookup) *reader {
	r := &reader{env: env, config: Default()}
	r.section("", settings, reflect.ValueOf(&r.config).Elem())
	for i := range r.config.Engines {
		e := &r.config.Engines[i]
		e.Name = cmp.Or(e.Name, e.Kind)
		for j := range e.Indices {
			e.Indices[j].resolveHost()
			if file := e.Indices[j].Boilerplate; file != "" {
				r.files = append(r.files, fileIn(dir, file))
			}
		}
	}
	return r
}

// fileIn returns the path of a file that a configuration in a directory names.
func fileIn(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// readPassages reads the files of passages.
func (r *reader) readPassages(dir string) {
	for i, e := range r.config.Engines {
		for j := range e.Indices {
			entry := &e.Indices[j]
			if entry.Boilerplate == "" {
				continue
			}
			text, err := certs.ReadFile(fileIn(dir, entry.Boilerplate), boilerplate.MostBytes)
			if err == nil {
				entry.Passages, err = boilerplate.Parse(text)
			}
			if err != nil {
				r.wrong.add(fmt.Sprintf("engines[%d].indices[%d].boilerplate", i, j), "%s: %w", entry.Boilerplate, err)
			}
		}
	}
}

// read decodes the value of a key into its field. An empty value leaves the default.
func (r *reader) read(key string, value any, field reflect.Value) {
	if value == nil {
		return
	}
	if written, isText := value.(string); isText {
		text, err := Expand(written, r.env)
		if err != nil {
			r.wrong.add(key, "%w", err)
			return
		}
		if r.texts = append(r.texts, text); strings.HasSuffix(key, "_file") {
			r.files = append(r.files, text)
		}
		if value = text; text != written && field.Kind() != reflect.String && field.Kind() != reflect.Struct {
			value = scalar(text)
		}
	}
	switch entry := field.Addr().Interface().(type) {
	case *Engine:
		*entry = DefaultEngine()
		entry.Sketch = r.config.Sketch // it was read before the engines
		entry.Limits.EngineMaxBody = cmp.Or(Size(kind.Of(r.textOf(value, "kind")).MaxBody), entry.Limits.EngineMaxBody)
	case *Index:
		*entry = PresetOf(r.textOf(value, "preset")).Start(r.config.Sketch)
	}
	want, ok := r.set(key, value, field)
	switch {
	case ok:
	case secret(key):
		r.wrong.add(key, "%s", want)
	default:
		r.wrong.add(key, "%s, not %s", want, inShort(value))
	}
}

const wantedText = "must be text: put it in quotes"

// addressKeys are the keys of addresses. A port alone is a number to YAML.
var addressKeys = []string{"admin", "listen", "advertise"}

// set sets a field to a value. If the value has the wrong type, it reports false and says what is wanted.
func (r *reader) set(key string, value any, field reflect.Value) (want string, ok bool) {
	text, isText := value.(string)
	switch f := field.Addr().Interface().(type) {
	case *Secret:
		*f = SecretOf(text)
		return wantedText, isText
	case *Size:
		return "must be a size such as 64MB", f.UnmarshalText(fmt.Append(nil, value)) == nil
	case *Span:
		return "must be a span such as 72h or 3d", f.UnmarshalText(fmt.Append(nil, value)) == nil
	case *Representative:
		if *f = (Representative{By: text}); isText {
			return "", true
		}
		want = "must be a word such as newest, or a section such as {field: votes, order: desc}"
	case *CaseDocument:
		if *f = (CaseDocument{Text: text}); isText {
			return "", true
		}
		want = "must be a text in quotes, or a section such as {id: a1}"
	}
	v := reflect.ValueOf(value)
	switch field.Kind() {
	case reflect.Struct:
		return cmp.Or(want, "must be a section with its own keys"), r.section(key, value, field)
	case reflect.Slice:
		return "must be a list, as in [a, b]", r.list(key, value, field)
	case reflect.String:
		want, ok = wantedText, isText
		if slices.Contains(addressKeys, key[strings.LastIndexByte(key, '.')+1:]) {
			want = "must be host:port, such as 127.0.0.1:9201"
		}
	case reflect.Bool:
		want, ok = "must be true or false", v.Kind() == reflect.Bool
	case reflect.Int:
		want, ok = "must be a whole number", v.CanInt() || v.CanFloat() && v.Float() == math.Trunc(v.Float())
	case reflect.Float64:
		want, ok = "must be a number", v.CanInt() || v.CanFloat()
	}
	if ok {
		field.Set(v.Convert(field.Type()))
	}
	return want, ok
}

// section decodes the keys of a section, in the order of the struct's fields.
func (r *reader) section(at string, value any, into reflect.Value) bool {
	section, ok := value.(map[string]any)
	if !ok {
		return false
	}
	var known []string
	for field, into := range into.Fields() {
		if key := keyOf(field); key != "" {
			known = append(known, key)
			r.read(strings.TrimPrefix(at+"."+key, "."), section[key], into)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(section)) {
		if !slices.Contains(known, key) {
			r.wrong = append(r.wrong, unknownKey(at, key, known))
		}
	}
	return true
}

// list decodes the elements of a list.
func (r *reader) list(at string, value any, into reflect.Value) bool {
	list, ok := value.([]any)
	if !ok {
		return false
	}
	into.Set(reflect.MakeSlice(into.Type(), len(list), len(list)))
	for i, element := range list {
		r.read(fmt.Sprintf("%s[%d]", at, i), element, into.Index(i))
	}
	return true
}

// keyOf returns the key of a section's field; empty for a field that is not read from a file.
func keyOf(field reflect.StructField) string { return strings.TrimPrefix(field.Tag.Get("yaml"), "-") }

// scalar parses the text of a variable as a number or truth value, as YAML does; any other text stays text.
func scalar(text string) any {
	var value any
	_ = yaml.Unmarshal([]byte(text), &value) // invalid YAML stays text
	switch value.(type) {
	case int, float64, bool:
		return value
	}
	return text
}

// textOf returns the text of an entry's key. If it is invalid, reading the key itself reports why.
func (r *reader) textOf(entry any, key string) string {
	section, _ := entry.(map[string]any)
	written, _ := section[key].(string)
	text, _ := Expand(written, r.env)
	return text
}

// inShort returns a value for an error.
func inShort(value any) string {
	switch value := value.(type) {
	case string:
		return fmt.Sprintf("%q", value)
	case []any:
		return "a list"
	case map[string]any:
		return "a section"
	}
	return fmt.Sprint(value)
}

// secret reports whether a key's value must not be shown.
func secret(key string) bool {
	return strings.Contains(key, ".credentials") || key == "sketch.seed" || strings.HasSuffix(key, ".sketch.seed")
}

// advancedKey is the key of the sections with the keys that hardly anybody sets, and advancedKeys are these.
const advancedKey = "advanced"

var advancedKeys = slices.Concat(
	keysOf(reflect.TypeFor[AdvancedSketch]()), keysOf(reflect.TypeFor[AdvancedLimits]()), keysOf(reflect.TypeFor[AdvancedIndex]()),
)

func keysOf(section reflect.Type) (keys []string) {
	for field := range section.Fields() {
		keys = append(keys, keyOf(field))
	}
	return keys
}

// unknownKey returns the error for an unknown key of a section. It says where the key belongs, or suggests a known one.
func unknownKey(section, key string, known []string) *KeyError {
	at := func(key string) string { return strings.TrimPrefix(section+"."+key, ".") }
	slices.Sort(known)
	best := slices.MinFunc(known, func(a, b string) int { return distance(a, key) - distance(b, key) })
	places := placesOf(reflect.TypeFor[Config](), "", key)
	moved := at(advancedKey + "." + key)
	switch {
	case slices.Contains(places, placeOf(moved)):
		return &KeyError{Key: at(key), Err: fmt.Errorf("has moved to %s: write %s: {%s: …} here", moved, advancedKey, key), meant: moved}
	case distance(best, key) <= max(2, len(key)/3):
		return &KeyError{Key: at(key), Err: fmt.Errorf("unknown key, did you mean %s?", best), meant: at(best)}
	case len(places) > 0:
		return &KeyError{Key: at(key), Err: fmt.Errorf("unknown key: it belongs in %s", Either(places))}
	}
	return &KeyError{Key: at(key), Err: fmt.Errorf("unknown key: the keys here are %s", strings.Join(known, ", "))}
}

// placesOf returns the full names of all keys of a name, without the numbers of list entries.
func placesOf(section reflect.Type, at, name string) (places []string) {
	for field := range section.Fields() {
		key, value := keyOf(field), field.Type
		if key == "" {
			continue
		}
		if key == name {
			places = append(places, at+key)
		}
		entries := ""
		if value.Kind() == reflect.Slice {
			value, entries = value.Elem(), "[]"
		}
		if value.Kind() == reflect.Struct {
			places = append(places, placesOf(value, at+key+entries+".", name)...)
		}
	}
	return places
}

// placeOf returns a full name without the numbers of list entries.
func placeOf(key string) string { return entryNumber.ReplaceAllString(key, "[]") }

var entryNumber = regexp.MustCompile(`\[\d+\]`)

// distance returns how many letters must be changed, added or left out to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // the distances from the beginning of a to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0]++
		for j := range len(b) {
			if a[i] != b[j] {
				corner = min(corner, row[j], row[j+1]) + 1
			}
			corner, row[j+1] = row[j+1], corner
		}
	}
	return row[len(b)]
}
