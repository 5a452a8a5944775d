package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// unknownKeys returns an error for each key at or below the path that has no place in the type. (The decoder's own list of unused
// keys is cut short by any other error.)
func unknownKeys(path string, value any, place reflect.Type) []*KeyError {
	var errs []*KeyError
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			if place.Kind() == reflect.Slice {
				errs = append(errs, unknownKeys(fmt.Sprintf("%s[%d]", path, i), element, place.Elem())...)
			}
		}
	case map[string]any:
		if place.Kind() != reflect.Struct || len(keysOf(place)) == 0 {
			return nil
		}
		known := keysOf(place)
		for key, below := range value {
			at := strings.TrimPrefix(path+"."+key, ".")
			if field, ok := known[key]; ok {
				errs = append(errs, unknownKeys(at, below, field)...)
			} else {
				errs = append(errs, unknownKey(at, key, slices.Sorted(maps.Keys(known))))
			}
		}
	}
	return errs
}

// unknownKey says that a key is unknown and which of those known may be meant.
func unknownKey(at, key string, known []string) *KeyError {
	best := slices.MinFunc(known, func(a, b string) int { return distance(a, key) - distance(b, key) })
	if distance(best, key) <= max(2, len(key)/3) {
		return &KeyError{Key: at, Err: fmt.Errorf("unknown key, did you mean %s?", best), meant: strings.TrimSuffix(at, key) + best}
	}
	return &KeyError{Key: at, Err: fmt.Errorf("unknown key: the keys here are %s", strings.Join(known, ", "))}
}

// keysOf returns the keys of a section and the types of their values.
func keysOf(section reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}
	for field := range section.Fields() {
		if key := field.Tag.Get("mapstructure"); key != "" && key != "-" {
			keys[key] = field.Type
		}
	}
	return keys
}

// distance returns how many letters must be changed, added, left out or swapped with their neighbour to turn a into b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
