package differ

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Difference is one thing in which two replies differ.
type Difference struct {
	// Aspect says in what: "status", "header NAME", "body", "compressed", "trailer", "interim", "connection", "conversation",
	// "extra"; or, if Minor, "framing", "phrase", "names", "order" or "protocol".
	Aspect string
	// Minor differences are those in how HTTP is spoken, not in what is said.
	Minor           bool
	Direct, Through string
}

// String returns the difference on two lines.
func (d Difference) String() string {
	return fmt.Sprintf("%s\n  directly: %s\n  through:  %s", d.Aspect, d.Direct, d.Through)
}

// Compare returns in what the second reply differs from the first. What the masks name is left out.
func Compare(direct, through *Reply, m Masks) []Difference {
	c := comparison{direct: direct, through: through, masks: m}
	c.tell("conversation", false, direct.Broken, through.Broken)
	c.tell("interim", false, strings.Join(statuses(direct.Interim), ", "), strings.Join(statuses(through.Interim), ", "))
	c.tell("status", false, direct.Status(), through.Status())
	c.line()
	c.header()
	c.framing()
	c.body()
	c.tell("trailer", false, fmt.Sprint(direct.Trailer), fmt.Sprint(through.Trailer))
	c.tell("extra", false, fmt.Sprintf("%q", direct.Extra), fmt.Sprintf("%q", through.Extra))
	return c.found
}

type comparison struct {
	direct, through *Reply
	masks           Masks
	found           []Difference
}

func (c *comparison) tell(aspect string, minor bool, direct, through string) {
	if direct != through {
		c.found = append(c.found, Difference{aspect, minor, direct, through})
	}
}

func statuses(lines []string) []string {
	var list []string
	for _, line := range lines {
		r := Reply{Line: line}
		list = append(list, r.Status())
	}
	return list
}

// line compares what else stands in the status line.
func (c *comparison) line() {
	cut := func(line string) (protocol, phrase string) {
		protocol, rest, _ := strings.Cut(line, " ")
		_, phrase, _ = strings.Cut(rest, " ")
		return protocol, phrase
	}
	p1, w1 := cut(c.direct.Line)
	p2, w2 := cut(c.through.Line)
	c.tell("protocol", true, p1, p2)
	c.tell("phrase", true, w1, w2)
}

// framed are the headers that say how a body goes over one connection. Framing compares them.
var framed = []string{"content-length", "transfer-encoding", "trailer"}

// header compares names without regard to case, and of each name the values and their order.
func (c *comparison) header() {
	names, order := headerNames(c.direct)
	others, otherOrder := headerNames(c.through)
	var both []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(names, others)))) {
		one, two := c.direct.Values(name), c.through.Values(name)
		if slices.Contains(c.masks.Headers, name) && len(one) == len(two) {
			continue
		}
		aspect := "header " + name
		if name == "connection" {
			aspect = "connection"
		}
		c.tell(aspect, false, list(one), list(two))
		if len(one) > 0 && len(two) > 0 {
			both = append(both, name)
		}
	}
	spelled := func(order []string) string {
		return list(slices.DeleteFunc(slices.Clone(order), func(n string) bool { return !slices.Contains(both, strings.ToLower(n)) }))
	}
	direct, through := spelled(order), spelled(otherOrder)
	if direct == through {
		return
	}
	if strings.EqualFold(direct, through) {
		c.tell("names", true, direct, through)
	} else {
		c.tell("order", true, direct, through)
	}
}

// headerNames returns the names in lower case, sorted, and as they stand, less those of framing.
func headerNames(r *Reply) (lower, order []string) {
	for _, f := range r.Header {
		name := strings.ToLower(f.Name)
		if slices.Contains(framed, name) {
			continue
		}
		order = append(order, f.Name)
		lower = append(lower, name)
	}
	return lower, order
}

func list(values []string) string {
	if values == nil {
		return "none"
	}
	return fmt.Sprintf("%q", values)
}

// framing compares how the body's end is told. A length that is not that of the body, or of the body that is not there, is no
// small matter.
func (c *comparison) framing() {
	how := func(r *Reply) string {
		return strings.TrimSpace(r.Framing + " " + strings.Join(r.Values("transfer-encoding"), ","))
	}
	length := func(r *Reply) string { return strings.Join(r.Values("content-length"), ",") }
	c.tell("framing", true, how(c.direct), how(c.through))
	if c.direct.Framing == "none" && c.through.Framing == "none" {
		c.tell("header content-length", false, length(c.direct), length(c.through))
		return
	}
	for _, r := range []*Reply{c.direct, c.through} {
		if got := length(r); got != "" && r.Broken == "" && got != strconv.Itoa(len(r.Body)) {
			c.tell("header content-length", false, length(c.direct), length(c.through))
			return
		}
	}
}

// body compares the bytes of the bodies, decompressed if they are compressed; and as they came, where they are the same
// decompressed.
func (c *comparison) body() {
	if bytes.Equal(c.direct.Body, c.through.Body) {
		return
	}
	one, ok1 := c.direct.Plain()
	two, ok2 := c.through.Plain()
	if !ok1 || !ok2 {
		size := func(r *Reply, ok bool) string { return fmt.Sprintf("%d bytes, decompressed: %t", len(r.Body), ok) }
		c.tell("body", false, size(c.direct, ok1), size(c.through, ok2))
		return
	}
	if bytes.Equal(one, two) {
		c.tell("compressed", false, fmt.Sprintf("%d bytes", len(c.direct.Body)), fmt.Sprintf("%d bytes, others", len(c.through.Body)))
		return
	}
	one = c.masks.masked(c.direct)
	two = c.masks.masked(c.through)
	if !bytes.Equal(one, two) {
		c.tell("body", false, excerpt(one, two), excerpt(two, one))
	}
}

// Rearranged reports whether the bodies hold the same bytes in another order, less what the masks name.
func Rearranged(direct, through *Reply, m Masks) bool {
	count := func(r *Reply) (n [256]int) {
		rest := m.masked(r)
		for _, b := range rest {
			n[b]++
		}
		return n
	}
	return count(direct) == count(through)
}

// Renumbered reports whether the bodies, less what the masks name, differ in the notation of numbers alone.
func Renumbered(direct, through *Reply, m Masks) bool {
	plain := func(r *Reply) []byte {
		return numbers.ReplaceAllFunc(m.masked(r), func(number []byte) []byte {
			n, err := strconv.ParseFloat(string(number), 64)
			if err != nil {
				return number
			}
			return strconv.AppendFloat(nil, n, 'g', -1, 64)
		})
	}
	return bytes.Equal(plain(direct), plain(through))
}

var numbers = regexp.MustCompile(`-?\d+(\.\d+)?([eE][-+]?\d+)?`)

// excerpt returns what stands in text around the first byte in which other differs.
func excerpt(text, other []byte) string {
	const before, after = 80, 160
	at := 0
	for at < len(text) && at < len(other) && text[at] == other[at] {
		at++
	}
	lead, tail := "", ""
	if at > before {
		lead = "…"
	}
	if at+after < len(text) {
		tail = "…"
	}
	return fmt.Sprintf("%d bytes, from byte %d: %s%q%s", len(text), at, lead, text[max(0, at-before):min(len(text), at+after)], tail)
}
