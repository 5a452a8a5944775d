package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Values of a suite are nil, bool, string, json.Number, []any and object; those of a reply are the same with map[string]any in
// place of object.

// object is a mapping with its order, which the engines see in the bodies that they are sent.
type object []member

type member struct {
	key   string
	value any
}

// get returns the value under the key, or nil.
func (o object) get(key string) any {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// has reports whether the key is there.
func (o object) has(key string) bool {
	return slices.ContainsFunc(o, func(m member) bool { return m.key == key })
}

// valueOf converts a node of YAML.
func valueOf(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return valueOf(n.Content[0])
	case yaml.AliasNode:
		return valueOf(n.Alias)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			var err error
			if list[i], err = valueOf(c); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		var o object
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := valueOf(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			o = append(o, member{n.Content[i].Value, v})
		}
		if o == nil {
			o = object{}
		}
		return o, nil
	}
	return scalarOf(n)
}

// jsonNumber is how a number may stand in JSON.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// scalarOf converts a scalar. What YAML takes for a date the suites mean as a text.
func scalarOf(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), nil
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			return json.Number(n.Value), nil
		}
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return json.Number(strconv.FormatInt(i, 10)), nil
		}
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil && f-f == 0 {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), nil
		}
	}
	return n.Value, nil
}

// plain turns objects into maps, as replies have them.
func plain(v any) any {
	switch v := v.(type) {
	case object:
		m := make(map[string]any, len(v))
		for _, e := range v {
			m[e.key] = plain(e.value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plain(e)
		}
		return list
	}
	return v
}

// MarshalJSON keeps the order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, m := range o {
		key, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", key, value)
	}
	return fmt.Appendf(nil, "{%s}", b.Bytes()), nil
}

// decodeReply reads a reply's body as the kind of content it says it is. What is neither JSON nor YAML is a text.
func decodeReply(contentType string, body []byte) (any, error) {
	switch {
	case strings.Contains(contentType, "json"):
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("read a reply: %w", err)
		}
		return v, nil
	case strings.Contains(contentType, "yaml"):
		var n yaml.Node
		if err := yaml.Unmarshal(body, &n); err != nil {
			return nil, fmt.Errorf("read a reply: %w", err)
		}
		v, err := valueOf(&n)
		return plain(v), err
	}
	return string(body), nil
}

// stash holds what a section has set aside, by name.
type stash map[string]any

var embedded = regexp.MustCompile(`\$\{([^}]+)\}`)

// expand puts what is set aside in the place of its names, in texts and in keys.
func (s stash) expand(v any) any {
	switch v := v.(type) {
	case string:
		return s.expandText(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = s.expand(e)
		}
		return list
	case object:
		o := make(object, len(v))
		for i, m := range v {
			o[i] = member{fmt.Sprint(s.expandText(m.key)), s.expand(m.value)}
		}
		return o
	}
	return v
}

func (s stash) expandText(text string) any {
	if name, ok := strings.CutPrefix(text, "$"); ok {
		if v, ok := s[strings.Trim(name, "{}")]; ok {
			return v
		}
	}
	return embedded.ReplaceAllStringFunc(text, func(match string) string {
		if v, ok := s[match[2:len(match)-1]]; ok {
			return fmt.Sprint(v)
		}
		return match
	})
}
