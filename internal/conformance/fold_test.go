package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unfold takes out of the engine's own replies the hits that the sidecar folded, having checked that each has the text of one
// that stays above it, or of one on an earlier page. It says what is wrong, or nothing.
func unfold(first, second, through any, earlier map[string]bool) string {
	a, b, c := lists(first), lists(second), lists(through)
	if len(a) != len(b) || len(b) != len(c) {
		return fmt.Sprintf("%d lists of hits, directly %d", len(c), len(b))
	}
	for i := range b {
		for _, direct := range []map[string]any{a[i], b[i]} {
			left, how := stay(direct["hits"].([]any), c[i]["hits"].([]any), earlier)
			if how != "" {
				return how
			}
			direct["hits"] = left
		}
	}
	return ""
}

// lists returns the objects that hold the hits of a search, or of each search of several.
func lists(reply any) []map[string]any {
	m, _ := reply.(map[string]any)
	var list []map[string]any
	if outer, ok := m["hits"].(map[string]any); ok {
		if _, ok := outer["hits"].([]any); ok {
			list = append(list, outer)
		}
	}
	responses, _ := m["responses"].([]any)
	for _, r := range responses {
		list = append(list, lists(r)...)
	}
	return list
}

// stay returns the direct hits that are among those through the sidecar.
func stay(direct, through []any, earlier map[string]bool) (left []any, how string) {
	above := map[string]bool{}
	maps.Copy(above, earlier)
	for _, hit := range direct {
		text := textsOf(hit)
		if slices.ContainsFunc(through, func(other any) bool { return nameOf(other) == nameOf(hit) }) {
			left = append(left, hit)
			above[text] = true
		} else if text != "" && !above[text] {
			return nil, fmt.Sprintf("%s is left out, and no hit above it has its text %q", nameOf(hit), text)
		}
	}
	if len(left) != len(through) {
		return nil, fmt.Sprintf("%d of the hits are not among the direct ones", len(through)-len(left))
	}
	return left, ""
}

func nameOf(hit any) string {
	m, _ := hit.(map[string]any)
	return fmt.Sprint(m["_index"], "/", m["_id"])
}

// textsOf returns what a hit's source holds in the fields of the rule, or nothing where it shows none of them.
func textsOf(hit any) string {
	m, _ := hit.(map[string]any)
	source, _ := m["_source"].(map[string]any)
	var list []string
	for _, field := range fields {
		v := source[field]
		if v == nil {
			v = lookup(source, field, nil)
		}
		if v != nil {
			list = append(list, show(v))
		}
	}
	return strings.ToLower(strings.Join(list, " "))
}
