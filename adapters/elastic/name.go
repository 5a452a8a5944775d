package elastic

import (
	"regexp"
	"strings"
)

var (
	// backing matches the name of a data stream's index, and finds the stream in it. Before it there may be how such an index was made of
	// another: restored-.ds-…, partial-.ds-…, shrink-x-.ds-….
	backing = regexp.MustCompile(`^(?:.*?-)?\.ds-(.+?)-\d{6,}$`)
	dated   = regexp.MustCompile(`.-\d{4}\.\d\d\.\d\d$`)
	// counted matches the name of an index that is rolled over to one of the next number.
	counted = regexp.MustCompile(`.-\d{6}$`)
)

// ruleName returns the name that rules are matched against for a concrete index: that of the data stream which it belongs to, as
// its own name tells it, or else its own. Elasticsearch names backing indices .ds-<stream>-<yyyy.MM.dd>-<generation>, OpenSearch
// .ds-<stream>-<generation>; a generation has six digits or more.
func (d Dialect) ruleName(index string) string {
	if !strings.Contains(index, ".ds-") { // as of most hits
		return index
	}
	found := backing.FindStringSubmatch(index)
	if found == nil {
		return index
	}
	stream := found[1]
	if !d.OpenSearch && dated.MatchString(stream) {
		stream = stream[:len(stream)-len("-2026.11.24")]
	}
	return stream
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
