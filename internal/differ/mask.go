package differ

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// span is where a member's value stands in a body.
type span struct {
	member     string
	start, end int
}

// covers returns the first of the masks that covers a member, or "". Masks are patterns as path.Match has them.
func covers(masks []string, member string) string {
	for _, mask := range masks {
		if ok, _ := path.Match(mask, member); ok {
			return mask
		}
	}
	return ""
}

// find returns where the values of the members stand, in order. It reads JSON, one value after the other or none at all: what is
// not JSON has no members. A value within another that is found is not returned.
func find(text []byte, members []string) []span {
	var list []span
	for i := 0; i < len(text); {
		if text[i] != '"' {
			i++
			continue
		}
		end := stringEnd(text, i)
		key, colon := string(text[i+1:max(i+1, end-1)]), skipSpace(text, end)
		i = end
		if colon >= len(text) || text[colon] != ':' {
			continue
		}
		mask := covers(members, key)
		if mask == "" {
			continue
		}
		start := skipSpace(text, colon+1)
		i = valueEnd(text, start)
		list = append(list, span{mask, start, i})
	}
	return list
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && bytes.IndexByte([]byte(" \t\r\n"), text[i]) >= 0 {
		i++
	}
	return i
}

// stringEnd returns where the string that begins at i ends.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// valueEnd returns where the value that begins at i ends.
func valueEnd(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// findYAML returns the same of YAML in which each member has a line of its own.
func findYAML(text []byte, members []string) []span {
	var list []span
	at := 0
	for line := range bytes.Lines(text) {
		bare := bytes.TrimLeft(line, " -")
		key, value, ok := bytes.Cut(bare, []byte(": "))
		if mask := covers(members, strings.Trim(string(key), `"`)); ok && mask != "" {
			end := at + len(line)
			start := end - len(value)
			list = append(list, span{mask, start, start + len(bytes.TrimRight(value, "\r\n"))})
		}
		at += len(line)
	}
	return list
}

// findText returns where a text stands.
func findText(text []byte, name, value string) []span {
	var list []span
	for at := 0; value != ""; {
		i := bytes.Index(text[at:], []byte(value))
		if i < 0 {
			break
		}
		list = append(list, span{name, at + i, at + i + len(value)})
		at += i + len(value)
	}
	return list
}

// masked returns the reply's body, decompressed, with what the masks name left out.
func (m Masks) masked(r *Reply) (rest []byte) {
	var values []span
	text, _ := r.Plain()
	if strings.Contains(strings.Join(r.Values("content-type"), ","), "yaml") {
		values = findYAML(text, m.Members)
	} else {
		values = find(text, m.Members)
	}
	for _, name := range m.Members {
		if v, ok := strings.CutPrefix(name, "<<"); ok {
			values = append(values, findText(text, name, r.Kept[strings.TrimSuffix(v, ">>")])...)
		}
	}
	slices.SortStableFunc(values, func(a, b span) int { return a.start - b.start })
	at := 0
	for _, v := range values {
		if v.start < at {
			continue // within one that is left out
		}
		rest = append(append(rest, text[at:v.start]...), "‹"+strings.Trim(v.member, "<>")+"›"...)
		at = v.end
	}
	return append(rest, text[at:]...)
}
