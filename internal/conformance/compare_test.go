package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// difference is one thing in which a reply through the sidecar is not the engine's own.
type difference struct {
	what  string // section, status, header, leak, fold, fields, value, text or layout
	api   string
	place int    // of the request in its section
	value string // what was found, of a value: counters and the like are not the same twice
	how   string
}

func (d difference) String() string {
	return fmt.Sprintf("%s of %s, request %d: %s", d.what, d.api, d.place, d.how)
}

// own are headers that the sidecar adds, or that say when, or how a body is carried.
var own = []string{"Neardup", "Date", "Content-Length", "Transfer-Encoding"}

// comparison is of one request, asked three times.
type comparison struct {
	first, second, through *exchange
	place                  int
	shown                  map[string]bool // the texts of the hits in the replies before it, through the sidecar
	found                  []difference
}

// compare compares the replies of a section through the sidecar with those of the engine, asked twice: what differs between
// these two may differ in the third as well. failed is why the section could not go on through the sidecar.
func compare(first, second, through []exchange, failed error) []difference {
	var list []difference
	if failed != nil {
		list = append(list, difference{what: "section", place: len(through) + 1, how: failed.Error()})
	}
	shown := map[string]bool{}
	for i := range min(len(first), len(second), len(through)) {
		c := comparison{first: &first[i], second: &second[i], through: &through[i], place: i + 1, shown: shown}
		c.compare()
		list = append(list, c.found...)
	}
	return list
}

func (c *comparison) add(what, how string, args ...any) {
	how = fmt.Sprintf("%s %s: ", c.through.method, c.through.url) + fmt.Sprintf(how, args...)
	if did := c.through.header.Get("Neardup"); did != "" {
		how += " (" + did + ")"
	}
	c.found = append(c.found, difference{what: what, api: c.through.api, place: c.place, how: how})
}

func (c *comparison) compare() {
	if c.first.status != c.second.status {
		return
	}
	if c.second.status != c.through.status {
		c.add("status", "%d, directly %d: %.300s", c.through.status, c.second.status, c.through.body)
		return
	}
	c.headers()
	if i := bytes.Index(c.through.body, []byte("neardup_")); i >= 0 && !bytes.Contains(c.second.body, []byte("neardup_")) {
		c.add("leak", "%.200s", c.through.body[max(0, i-80):])
	}
	c.bodies()
}

func (c *comparison) headers() {
	direct, through := headersOf(c.second.header), headersOf(c.through.header)
	if !maps.EqualFunc(headersOf(c.first.header), direct, slices.Equal) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(direct)) {
		if !slices.Equal(direct[name], through[name]) {
			c.add("header", "%s is %q, directly %q", name, through[name], direct[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(through)) {
		if _, ok := direct[name]; !ok {
			c.add("header", "%s is %q, directly there is none", name, through[name])
		}
	}
}

func headersOf(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range own {
		h.Del(name)
	}
	return h
}

// decode reports whether all three replies are JSON.
func (c *comparison) decode(first, second, through *any) bool {
	return json.Unmarshal(c.first.body, first) == nil && json.Unmarshal(c.second.body, second) == nil &&
		json.Unmarshal(c.through.body, through) == nil
}

// bodies compares what the replies hold.
func (c *comparison) bodies() {
	var first, second, through any
	if !c.decode(&first, &second, &through) {
		direct, text := plainText(c.second.body), plainText(c.through.body)
		if plainText(c.first.body) == direct && direct != text {
			c.add("text", "%.300q, directly %.300q", c.through.body, c.second.body)
		}
		return
	}
	defer c.show(through)
	if folded([]exchange{*c.through}) > 0 {
		earlier := c.shown
		if !c.through.goesOn {
			earlier = nil
		}
		if how := unfold(first, second, through, earlier); how != "" {
			c.add("fold", "%s", how)
			return
		}
	} else if direct := layout(c.second.body); layout(c.first.body) == direct && layout(c.through.body) != direct {
		c.add("layout", "%.300q, directly %.300q", c.through.body, c.second.body)
	}
	c.values(flat(first), flat(second), flat(through))
}

// show takes down the texts of a reply's hits: pages that go on from it leave out what has them.
func (c *comparison) show(reply any) {
	for _, list := range lists(reply) {
		for _, hit := range list["hits"].([]any) {
			if text := textsOf(hit); text != "" {
				c.shown[text] = true
			}
		}
	}
}

var (
	number = regexp.MustCompile(`[0-9]+`)
	amount = regexp.MustCompile(`[0-9.:]+(b|[kmgt]b|[nmu]?s)?|[ -]+`)
)

// plainText returns a text less its numbers, sizes and columns.
func plainText(body []byte) string { return string(amount.ReplaceAll(body, []byte("0"))) }

// layout returns the characters of a reply, numbers apart, whatever the order of its members, which engines do not always keep.
func layout(body []byte) string {
	text := number.ReplaceAll(body, []byte("0"))
	slices.Sort(text)
	return string(text)
}

// volatile are members of replies that say how long something took, how large it is on disk, or how often something happened
// since the engine started.
var volatile = regexp.MustCompile(`(^|\.)(took|ingest_took|.*_in_millis|.*_millis|.*_in_nanos|.*_in_bytes|.*_size|.*time|size|` +
	`bytes|store|epoch|timestamp|state_uuid|cluster_uuid|uuid|version|.*_date|percent|.*_percent|load_average|breakdown|` +
	`earliest_last_modified_age|number_of_pending_tasks|tombstones)(\.|$)`)

// values compares members of replies by path.
func (c *comparison) values(first, second, through map[string]string) {
	steady := func(m map[string]string) []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(m)), volatile.MatchString)
	}
	names, here := steady(second), steady(through)
	if slices.Equal(steady(first), names) && !slices.Equal(names, here) {
		c.add("fields", "%s%s", only(here, names, "more"), only(names, here, "less"))
	}
	enough := len(c.found) + 20
	for _, path := range names {
		value, ok := through[path]
		if ok && value != second[path] && first[path] == second[path] && len(c.found) < enough {
			c.add("value", "%s is %s, directly %s", path, value, second[path])
			c.found[len(c.found)-1].value = path + " " + value
		}
	}
}

// only says which of a are not among b.
func only(a, b []string, word string) string {
	list := slices.DeleteFunc(slices.Clone(a), func(path string) bool { return slices.Contains(b, path) })
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s: %.300s; ", len(list), word, strings.Join(list, " "))
}

// flat returns the members of a value by path.
func flat(v any) map[string]string {
	out := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if len(v) == 0 {
				out[path] = "{}"
			}
			for key, e := range v {
				walk(path+"."+key, e)
			}
		case []any:
			if len(v) == 0 {
				out[path] = "[]"
			}
			for i, e := range v {
				walk(fmt.Sprintf("%s.%d", path, i), e)
			}
		default:
			out[path] = show(v)
		}
	}
	walk("", v)
	return out
}

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
