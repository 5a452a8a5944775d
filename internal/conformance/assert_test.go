package conformance

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// errRunner says that a step asks what this runner can't do.
var errRunner = errors.New("beyond the runner")

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

// holds checks one assertion of a section against the last reply's body.
func holds(verb string, arg, body any, s stash) error {
	if verb == "is_true" || verb == "is_false" {
		path, _ := arg.(string)
		v := lookup(body, path, s)
		if truth(v) != (verb == "is_true") {
			return fmt.Errorf("%s %s: it is %.200s", verb, path, show(v))
		}
		return nil
	}
	if verb == "exists" {
		path, _ := arg.(string)
		if lookup(body, path, s) == nil {
			return fmt.Errorf("exists %s: it does not", path)
		}
		return nil
	}
	o, ok := arg.(object)
	if !ok {
		return fmt.Errorf("%s %v: %w", verb, arg, errRunner)
	}
	for _, m := range o {
		got, want := lookup(body, m.key, s), s.expand(m.value)
		if err := check(verb, got, want); err != nil {
			return fmt.Errorf("%s %s: %w", verb, m.key, err)
		}
	}
	return nil
}

func check(verb string, got, want any) error {
	switch verb {
	case "match":
		return match(got, want)
	case "length":
		n := -1
		switch v := got.(type) {
		case string:
			n = len([]rune(v))
		case []any:
			n = len(v)
		case map[string]any:
			n = len(v)
		}
		if fmt.Sprint(n) != fmt.Sprint(want) {
			return fmt.Errorf("length %d, want %v", n, want)
		}
	case "gt", "gte", "lt", "lte":
		return order(verb, got, want)
	case "contains":
		if !contains(got, plain(want)) {
			return fmt.Errorf("%.200s does not contain %v", show(got), want)
		}
	case "close_to":
		return closeTo(got, want)
	default:
		return fmt.Errorf("%s: %w", verb, errRunner)
	}
	return nil
}

// truth reports whether a value counts as true.
func truth(v any) bool {
	switch text := fmt.Sprint(v); {
	case v == nil, text == "", strings.EqualFold(text, "false"), text == "0":
		return false
	}
	return true
}

func match(got, want any) error {
	if text, ok := want.(string); ok {
		text = strings.TrimSpace(text)
		if len(text) > 1 && strings.HasPrefix(text, "/") && strings.HasSuffix(text, "/") {
			s, ok := got.(string)
			if !ok {
				return fmt.Errorf("%.200s is no text, want one like %s", show(got), text)
			}
			re, err := pattern(text[1 : len(text)-1])
			if err != nil {
				return err
			}
			if !re.MatchString(s) {
				return fmt.Errorf("%q is not like %s", s, text)
			}
			return nil
		}
	}
	if !same(got, plain(want)) {
		return fmt.Errorf("it is %.300s, want %.300s", show(got), show(plain(want)))
	}
	return nil
}

// same compares two values; numbers by what they amount to.
func same(got, want any) bool {
	switch want := want.(type) {
	case json.Number:
		number, ok := got.(json.Number)
		return ok && sameNumber(number, want)
	case []any:
		list, ok := got.([]any)
		return ok && slices.EqualFunc(list, want, same)
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok || len(m) != len(want) {
			return false
		}
		for key, w := range want {
			if g, ok := m[key]; !ok || !same(g, w) {
				return false
			}
		}
		return true
	}
	switch got.(type) {
	case []any, map[string]any:
		return false
	}
	return got == want
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, err1 := a.Float64()
	y, err2 := b.Float64()
	return err1 == nil && err2 == nil && (x == y || math.Abs(x-y) < 1e-6)
}

// order compares two numbers or two texts.
func order(verb string, got, want any) error {
	by := math.MaxInt
	switch want := want.(type) {
	case json.Number:
		if n, ok := got.(json.Number); ok {
			a, _ := n.Float64()
			b, _ := want.Float64()
			by = cmp.Compare(a, b)
		}
	case string:
		if text, ok := got.(string); ok {
			by = strings.Compare(text, want)
		}
	}
	holds := map[string]bool{"gt": by > 0, "gte": by >= 0, "lt": by < 0, "lte": by <= 0}
	if by == math.MaxInt || !holds[verb] {
		return fmt.Errorf("%.200s is not %s %v", show(got), verb, want)
	}
	return nil
}

// contains reports whether a list holds the value, an object with these members among others, or a text the text.
func contains(got, want any) bool {
	switch got := got.(type) {
	case string:
		text, ok := want.(string)
		return ok && strings.Contains(got, text)
	case []any:
		return slices.ContainsFunc(got, func(e any) bool { return same(e, want) || within(e, want) })
	}
	return within(got, want)
}

func within(got, want any) bool {
	m, ok1 := got.(map[string]any)
	w, ok2 := want.(map[string]any)
	if !ok1 || !ok2 {
		return false
	}
	for key, v := range w {
		if g, ok := m[key]; !ok || !same(g, v) && !within(g, v) {
			return false
		}
	}
	return true
}

func closeTo(got, want any) error {
	o, _ := want.(object)
	x, ok1 := got.(json.Number)
	value, ok2 := o.get("value").(json.Number)
	by, ok3 := o.get("error").(json.Number)
	if !ok1 || !ok2 || !ok3 {
		return fmt.Errorf("%.200s is not close to %v", show(got), want)
	}
	a, _ := x.Float64()
	b, _ := value.Float64()
	e, _ := by.Float64()
	if math.Abs(a-b) > e {
		return fmt.Errorf("%s is not close to %s", x, value)
	}
	return nil
}

// pattern compiles a regular expression of a suite, in which white space and comments do not count.
func pattern(text string) (*regexp.Regexp, error) {
	var b strings.Builder
	class, comment := false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case comment:
			comment = c != '\n'
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(c)
			b.WriteByte(text[i])
		case class:
			class = c != ']'
			b.WriteByte(c)
		case strings.ContainsRune(" \t\r\n", rune(c)):
		case c == '#':
			comment = true
		default:
			class = c == '['
			b.WriteByte(c)
		}
	}
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRunner, err)
	}
	return re, nil
}

// show returns a value for a message.
func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
