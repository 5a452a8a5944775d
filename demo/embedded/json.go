package embedded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// member is one key of a JSON object with its value's bytes as sent and where they begin.
type member struct {
	key   string
	value json.RawMessage
	at    int
}

// members splits a JSON object into its members in their order.
func members(raw []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	t, err := dec.Token()
	if err != nil {
		return nil, malformed(err, dec)
	}
	if t != json.Delim('{') {
		f := parsing("Expected [START_OBJECT] but found [%s]", tokenName(raw))
		f.cause.Line, f.cause.Col = 1, 1
		return nil, f
	}
	var out []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, malformed(err, dec)
		}
		m := member{key: key.(string)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, malformed(err, dec)
		}
		m.at = int(dec.InputOffset()) - len(m.value)
		out = append(out, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, malformed(err, dec)
	}
	return out, nil
}

func malformed(err error, dec *json.Decoder) *failure {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fail(http.StatusBadRequest, "x_content_e_o_f_exception", "[1:%d] Unexpected end of file", dec.InputOffset()+1)
	}
	return fail(http.StatusBadRequest, "x_content_parse_exception", "[1:%d] %v", dec.InputOffset()+1, err)
}

// decode reads JSON with its numbers kept as they are written.
func decode(raw []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(to); err != nil {
		return malformed(err, dec)
	}
	return nil
}

// tokenName names the JSON token that raw begins with as Elasticsearch's errors do.
func tokenName(raw []byte) string {
	names := map[byte]string{'{': "START_OBJECT", '[': "START_ARRAY", '"': "VALUE_STRING", 't': "VALUE_BOOLEAN", 'f': "VALUE_BOOLEAN", 'n': "VALUE_NULL"}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && names[raw[0]] != "" {
		return names[raw[0]]
	}
	return "VALUE_NUMBER"
}

// merge puts the members of patch over those of base, objects within objects, and keeps the order of base.
func merge(base, patch json.RawMessage) (json.RawMessage, error) {
	old, err := members(base)
	if err != nil {
		return nil, err
	}
	changes, err := members(patch)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		i := slices.IndexFunc(old, func(m member) bool { return m.key == c.key })
		switch {
		case i < 0:
			old = append(old, c)
		case tokenName(old[i].value) == "START_OBJECT" && tokenName(c.value) == "START_OBJECT":
			if old[i].value, err = merge(old[i].value, c.value); err != nil {
				return nil, err
			}
		default:
			old[i].value = c.value
		}
	}
	return object(old), nil
}

// object is the reverse of members.
func object(list []member) json.RawMessage {
	b := []byte{'{'}
	for i, m := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(appendJSON(b, m.key), ':'), m.value...)
	}
	return append(b, '}')
}

// compact is raw without insignificant space.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// sourceFilter is what of a document's source a reply shows.
type sourceFilter struct {
	off                bool
	includes, excludes []string
}

// sourceFilterOf reads the `_source` of a request's body.
func sourceFilterOf(raw []byte) (f sourceFilter, err error) {
	switch tokenName(raw) {
	case "VALUE_BOOLEAN":
		f.off = string(raw) == "false"
	case "VALUE_STRING", "START_ARRAY":
		f.includes, err = stringList(raw)
	case "START_OBJECT":
		list, err := members(raw)
		if err != nil {
			return f, err
		}
		for _, m := range list {
			switch m.key {
			case "includes", "include":
				f.includes, err = stringList(m.value)
			case "excludes", "exclude":
				f.excludes, err = stringList(m.value)
			default:
				err = parsing("Unknown key for a %s in [%s].", tokenName(m.value), m.key)
			}
			if err != nil {
				return f, err
			}
		}
	default:
		err = parsing("Unknown key for a %s in [_source].", tokenName(raw))
	}
	return f, err
}

// override takes the URL's source parameters where there are some.
func (f *sourceFilter) override(r *request) {
	switch v := r.params.Get("_source"); {
	case !r.params.Has("_source"):
	case v == "true" || v == "false":
		f.off = v == "false"
	default:
		*f = sourceFilter{includes: strings.Split(v, ",")}
	}
	for name, to := range map[string]*[]string{"_source_includes": &f.includes, "_source_excludes": &f.excludes} {
		if r.params.Has(name) {
			*to = strings.Split(r.params.Get(name), ",")
		}
	}
}

// apply returns the source as stored, or only what the filter lets through.
func (f sourceFilter) apply(source []byte) []byte {
	if len(f.includes) == 0 && len(f.excludes) == 0 {
		return source
	}
	return f.object(source, "", len(f.includes) == 0)
}

func (f sourceFilter) object(raw []byte, prefix string, whole bool) []byte {
	list, _ := members(raw) // it was checked when it was stored
	kept := list[:0]
	for _, m := range list {
		path := prefix + m.key
		if matchesAny(f.excludes, path) {
			continue
		}
		inside := whole || matchesAny(f.includes, path)
		nested := tokenName(m.value) == "START_OBJECT" || tokenName(m.value) == "START_ARRAY"
		if nested {
			m.value = f.value(m.value, path+".", inside)
		}
		if empty := string(m.value) == "{}" || string(m.value) == "[]"; inside || nested && !empty {
			kept = append(kept, m)
		}
	}
	return object(kept)
}

// value filters the objects in an object or array; other values in an array stay only where their field is let through.
func (f sourceFilter) value(raw []byte, prefix string, whole bool) []byte {
	switch tokenName(raw) {
	case "START_OBJECT":
		return f.object(raw, prefix, whole)
	case "START_ARRAY":
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		b := []byte{'['}
		for _, v := range list {
			if v = f.value(v, prefix, whole); len(v) > 0 && (whole || string(v) != "{}") {
				if len(b) > 1 {
					b = append(b, ',')
				}
				b = append(b, v...)
			}
		}
		return append(b, ']')
	}
	if whole {
		return raw
	}
	return nil
}

// stringList reads a string or a list of strings.
func stringList(raw []byte) ([]string, error) {
	var list []string
	if tokenName(raw) == "VALUE_STRING" {
		list = make([]string, 1)
		return list, decode(raw, &list[0])
	}
	return list, decode(raw, &list)
}

func matchesAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return wildcard(p, s) })
}

// wildcard says whether s matches pattern, where * matches any characters.
func wildcard(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	for s = s[len(head):]; ; s = s[1:] {
		if wildcard(rest, s) {
			return true
		}
		if s == "" {
			return false
		}
	}
}

// text is a JSON scalar as Elasticsearch would read it into a string.
func text(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}
