package elastic

import "strings"

// backing is what the name of a data stream's index begins with. Before it there may be how such an index was made of
// another: restored-.ds-…, partial-.ds-…, shrink-x-.ds-….
const backing = ".ds-"

// ruleName returns the name that rules are matched against for a concrete index: that of the data stream which it belongs to, as
// its own name tells it, or else its own. Elasticsearch names backing indices .ds-<stream>-<yyyy.MM.dd>-<generation>, OpenSearch
// .ds-<stream>-<generation>; a generation has six digits or more.
func (d Dialect) ruleName(index string) string {
	at := strings.Index(index, backing)
	if at < 0 || at > 0 && index[at-1] != '-' {
		return index
	}
	stream, generation, ok := cutLast(index[at+len(backing):])
	if !ok || len(generation) < 6 || !shaped(generation, strings.Repeat("9", len(generation))) {
		return index
	}
	if before, day, ok := cutLast(stream); !d.OpenSearch && ok && shaped(day, "9999.99.99") {
		stream = before
	}
	return stream
}

// cutLast cuts a name at its last hyphen. Both parts hold something, or it is not ok.
func cutLast(name string) (before, after string, ok bool) {
	at := strings.LastIndexByte(name, '-')
	if at <= 0 || at == len(name)-1 {
		return name, "", false
	}
	return name[:at], name[at+1:], true
}

// shaped reports whether s is like the shape, in which a 9 is any digit.
func shaped(s, shape string) bool {
	if len(s) != len(shape) {
		return false
	}
	for i := range len(s) {
		if digit := s[i] >= '0' && s[i] <= '9'; digit != (shape[i] == '9') || !digit && s[i] != shape[i] {
			return false
		}
	}
	return true
}

// dateMath reports whether a name is to be evaluated by the engine, as in <logs-{now/d}>.
func dateMath(name string) bool {
	return strings.HasPrefix(name, "<") && strings.HasSuffix(name, ">") && one(name)
}

// daily reports whether a name of date math can come to mean another index at midnight (UTC) alone. It looks for units, forms and
// zones finer than a day, and says no in doubt.
func daily(name string) bool {
	depth, escaped := 0, false
	for _, c := range strings.ReplaceAll(name, "now", "") {
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '{':
			depth++
		case c == '}':
			depth--
		case depth == 1 && strings.ContainsRune("hHms|", c), depth > 1 && strings.ContainsRune("HhKkmsSaAnNBVzOXxZ|'[", c):
			return false
		}
	}
	return true
}

// one reports whether a name is of a single thing, which can be written to: it is neither a list nor a pattern.
func one(name string) bool { return name != "" && !strings.ContainsAny(name, "*,") }

// remote reports whether a target names indices of another cluster, as in cluster:index.
func remote(target string) bool {
	for name := range strings.SplitSeq(target, ",") {
		if !dateMath(strings.TrimPrefix(name, "-")) && strings.Contains(name, ":") {
			return true
		}
	}
	return false
}

// makesIndex returns the name for which a request makes an index, or nothing: PUT /index, and a rollover, which makes one
// for an alias or a data stream.
func makesIndex(method string, path []string) string {
	switch {
	case path[0] == "" || strings.HasPrefix(path[0], "_"):
	case method == "PUT" && len(path) == 1, method == "POST" && len(path) > 1 && len(path) <= 3 && path[1] == "_rollover":
		return path[0]
	}
	return ""
}
