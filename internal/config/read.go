package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/internal/kind"
)

// reader takes the values of a file over into a configuration. It guesses at none: a value of another type than its place's is wrong, and so is a
// key without a place.
type reader struct {
	env    Lookup
	config Config
	wrong  faults
	// texts are the values that are text, with variables replaced. files are those of them whose key says that they name a file.
	texts, files []string
}

// read returns the configuration of a file's sections, beside what is wrong with them.
func read(settings map[string]any, env Lookup) *reader {
	r := &reader{env: env, config: Default()}
	r.section("", settings, reflect.ValueOf(&r.config).Elem())
	for i := range r.config.Engines {
		e := &r.config.Engines[i]
		e.Name = cmp.Or(e.Name, e.Kind)
		for j := range e.Indices {
			e.Indices[j].resolveHost()
		}
	}
	return r
}

// read takes over the value of a key. One that is empty leaves the default in the place.
func (r *reader) read(key string, value any, place reflect.Value) {
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
		if value = text; text != written && place.Kind() != reflect.String && place.Kind() != reflect.Struct {
			value = scalar(text)
		}
	}
	switch entry := place.Addr().Interface().(type) {
	case *Engine:
		*entry = DefaultEngine()
		entry.Limits.EngineMaxBody = cmp.Or(Size(kind.Of(r.textOf(value, "kind")).MaxBody), entry.Limits.EngineMaxBody)
	case *Index: // the section sketch was read before the engines
		*entry = PresetOf(r.textOf(value, "preset")).Start(r.config.Sketch)
	}
	want, ok := r.take(key, value, place)
	switch {
	case ok:
	case secret(key):
		r.wrong.add(key, "%s", want)
	default:
		r.wrong.add(key, "%s, not %s", want, inShort(value))
	}
}

const wantedText = "must be text: put it in quotes"

// take puts a value in its place. Where it is not what the place wants, take says what that is.
func (r *reader) take(key string, value any, place reflect.Value) (want string, ok bool) {
	text, isText := value.(string)
	switch place := place.Addr().Interface().(type) {
	case *Secret:
		*place = SecretOf(text)
		return wantedText, isText
	case *Size:
		return "must be a size such as 64MB", place.UnmarshalText(fmt.Append(nil, value)) == nil
	case *Span:
		return "must be a span such as 72h or 3d", place.UnmarshalText(fmt.Append(nil, value)) == nil
	case *Representative:
		if *place = (Representative{By: text}); isText {
			return "", true
		}
		want = "must be a word such as newest, or a section such as {field: votes, order: desc}"
	}
	v := reflect.ValueOf(value)
	switch place.Kind() {
	case reflect.Struct:
		return cmp.Or(want, "must be a section with keys of its own"), r.section(key, value, place)
	case reflect.Slice:
		return "must be a list, as in [a, b]", r.list(key, value, place)
	case reflect.String:
		want, ok = wantedText, isText
	case reflect.Bool:
		want, ok = "must be true or false", v.Kind() == reflect.Bool
	case reflect.Int:
		want, ok = "must be a whole number", v.CanInt() || v.CanFloat() && v.Float() == math.Trunc(v.Float())
	case reflect.Float64:
		want, ok = "must be a number", v.CanInt() || v.CanFloat()
	}
	if ok {
		place.Set(v.Convert(place.Type()))
	}
	return want, ok
}

// section takes over the keys of a section, in the order of their places.
func (r *reader) section(at string, value any, place reflect.Value) bool {
	section, ok := value.(map[string]any)
	if !ok {
		return false
	}
	var known []string
	for field, place := range place.Fields() {
		if key := keyOf(field); key != "" {
			known = append(known, key)
			r.read(strings.TrimPrefix(at+"."+key, "."), section[key], place)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(section)) {
		if !slices.Contains(known, key) {
			r.wrong = append(r.wrong, unknownKey(strings.TrimPrefix(at+"."+key, "."), key, known))
		}
	}
	return true
}

// list takes over the elements of a list.
func (r *reader) list(at string, value any, place reflect.Value) bool {
	list, ok := value.([]any)
	if !ok {
		return false
	}
	place.Set(reflect.MakeSlice(place.Type(), len(list), len(list)))
	for i, element := range list {
		r.read(fmt.Sprintf("%s[%d]", at, i), element, place.Index(i))
	}
	return true
}

// keyOf returns the key of a section's field; empty for a field that is not read from a file.
func keyOf(field reflect.StructField) string { return strings.TrimPrefix(field.Tag.Get("yaml"), "-") }

// scalar parses the text of a variable as the file's own numbers and truth values are; any other text stays.
func scalar(text string) any {
	var value any
	_ = yaml.Unmarshal([]byte(text), &value) // what is not well formed stays text
	switch value.(type) {
	case int, float64, bool:
		return value
	}
	return text
}

// textOf returns the text of an entry's key. If it can't be read, reading the key itself says why.
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

// unknownKey says that a key is unknown and which of those known may be meant.
func unknownKey(at, key string, known []string) *KeyError {
	slices.Sort(known)
	best := slices.MinFunc(known, func(a, b string) int { return distance(a, key) - distance(b, key) })
	if distance(best, key) <= max(2, len(key)/3) {
		return &KeyError{Key: at, Err: fmt.Errorf("unknown key, did you mean %s?", best), meant: strings.TrimSuffix(at, key) + best}
	}
	return &KeyError{Key: at, Err: fmt.Errorf("unknown key: the keys here are %s", strings.Join(known, ", "))}
}

// distance returns how many letters must be changed, added or left out to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // from what was seen of a to each beginning of b
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
