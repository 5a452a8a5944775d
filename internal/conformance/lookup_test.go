package conformance

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

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
