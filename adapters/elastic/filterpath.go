package elastic

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// A filter_path is a list of paths, divided by commas, each of steps divided by dots. A step is a name in which "*" stands for
// any run of characters, or "**" for any number of names, though at least one. What a path leads to is kept with all that is in
// it; a path after a "-" takes out what it leads to. Elements of arrays have no names: a path goes through them.

// pathFilter is a parsed filter_path.
type pathFilter struct {
	keep, drop paths
	// keepsEmpty says that an empty object or array to which a path after "-" leads part of the way stays. OpenSearch drops it.
	keepsEmpty bool
}

// paths are the steps of a list of paths, one path after another.
type paths []step

// step is one step of a path, which begins or ends with it or neither.
type step struct {
	name        string
	first, last bool
}

// maxSteps bounds the steps of a list of paths. The longest lists that Kibana sends have about a hundred. What has more is not followed
// here: its searches are the engine's alone (reason=filter_path).
const maxSteps = 256

// places are the steps that come next in the paths followed so far, in order and each once; none where no path leads. There are never more of
// them than steps, however deep a reply is: a list of what is left of each path would double at every level that a "**" goes through.
type places []byte // a byte is enough to number maxSteps

// parseFilter parses the value of filter_path. It returns nil for one that filters nothing, and ok = false for one that is too long, or
// that the engines refuse or read in ways of their own: with a path or a name of no characters, or a backslash in front of something other
// than a dot.
func parseFilter(value string, openSearch bool) (f *pathFilter, ok bool) {
	f = &pathFilter{keepsEmpty: !openSearch}
	for path := range strings.SplitSeq(value, ",") {
		path = trim(path)
		to := &f.keep
		if rest, takes := strings.CutPrefix(path, "-"); takes {
			path, to = trim(rest), &f.drop
		} else if path == "" {
			continue
		}
		if !to.add(path) {
			return nil, false
		}
	}
	if f.keep == nil && f.drop == nil {
		return nil, true
	}
	return f, true
}

// trim cuts white space as the engines do: all up to the space.
func trim(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

// add adds a path. It returns false if that can't be followed.
func (p *paths) add(path string) bool {
	const dot = "\x00" // one that is part of a name
	if !utf8.ValidString(path) || strings.Contains(path, dot) {
		return false
	}
	steps := strings.Split(strings.ReplaceAll(path, `\.`, dot), ".")
	for i, name := range steps {
		if name == "" || strings.Contains(name, `\`) || len(*p) == maxSteps {
			return false
		}
		if name = strings.ReplaceAll(name, dot, "."); name != "**" { // so that a name is compared with a step in no more than its length
			name = starRuns.ReplaceAllLiteralString(name, "*")
		}
		*p = append(*p, step{name, i == 0, i == len(steps)-1})
	}
	return true
}

var starRuns = regexp.MustCompile(`\*{2,}`)

// start returns where the paths begin.
func (p paths) start() (at places) {
	for i, s := range p {
		if s.first {
			at = append(at, byte(i))
		}
	}
	return at
}

// step follows the paths from the places to a name. whole says that one of them ends there.
func (p paths) step(from places, name string) (next places, whole bool) {
	for _, at := range from {
		s := p[at]
		switch {
		case s.name != "**" && !rule.Globbed(s.name, name):
			continue
		case s.last:
			return nil, true
		case next == nil:
			next = make(places, 0, 2*len(from))
		}
		if s.name == "**" && (len(next) == 0 || next[len(next)-1] < at) { // it stands for more names too
			next = append(next, at)
		}
		next = append(next, at+1)
	}
	return next, false
}

// follow follows the paths from their beginning to the names.
func (p paths) follow(names []string) places {
	at := p.start()
	for _, name := range names {
		at, _ = p.step(at, name)
	}
	return at
}

// maxFollowed is how deep in a reply the filter is followed to what our fields were cut out of.
const maxFollowed = 64

// within reports whether the filter keeps or takes out only parts of the container that the path leads to: with nothing left in
// it, it goes. Where it takes out, a container that was empty from the start may stay, which can't be told from one that the
// engine emptied: it is taken to be one if what the engine takes out of it can be a member of it.
func (f *pathFilter) within(path []string) bool {
	if len(path) > maxFollowed {
		return false
	}
	drop := f.drop.follow(path)
	return len(f.keep.follow(path)) > 0 || len(drop) > 0 && !f.keepsEmpty || slices.ContainsFunc(drop, func(at byte) bool { return f.drop[at].last })
}

// filter returns a reply, one JSON object, as the engine filters it: all of it where f is nil. What is kept whole keeps its bytes, where the
// engine writes a document's source anew. It returns ErrLate where the deadline comes before a large reply is done with. An error of the engine (a status of 400 and above, but for a document that is not there) is never filtered: that is for the
// caller to know.
func (f *pathFilter) filter(body []byte, deadline rerank.Deadline) ([]byte, error) {
	if f == nil {
		return body, nil
	}
	p := filtered{
		pathFilter: f, r: jsonedit.NewReader(body), out: make([]byte, 0, len(body)/4),
		pretty: bytes.HasSuffix(body, []byte("}\n")), Deadline: deadline, ahead: lookAfter,
	}
	if len(body) == 0 || body[0] != '{' {
		return nil, adapters.Alone{Reason: "filter_path", Searched: true}
	}
	p.value(place{keep: f.keep.start(), drop: f.drop.start(), whole: f.keep == nil}, 0)
	switch {
	case p.over:
		return nil, adapters.ErrLate
	case !p.r.Done():
		return nil, adapters.Alone{Reason: "filter_path", Searched: true}
	case p.pretty:
		p.out = append(p.out, '\n')
	}
	return p.out, nil
}

// filtered is what is kept of a reply.
type filtered struct {
	*pathFilter
	r      jsonedit.Reader
	out    []byte
	pretty bool

	rerank.Deadline
	ahead int // members until the next look at the time
	over  bool
}

// place is where a value is: in the paths that keep parts of it, or in what is kept whole, and in those that take parts out of it.
type place struct {
	keep, drop places
	whole      bool
}

// value writes what is kept of the value that comes next. It returns false if that is nothing.
func (p *filtered) value(at place, depth int) bool {
	open := byte('{')
	switch {
	case at.whole && len(at.drop) == 0:
		p.out = append(p.out, p.r.Value()...)
		return true
	case p.r.Enter('{'):
	case p.r.Enter('['):
		open = '['
	default: // no path leads further
		if value := p.r.Value(); at.whole {
			p.out = append(p.out, value...)
		}
		return at.whole
	}
	before, count, kept := len(p.out), 0, 0
	p.out = append(p.out, open)
	for ; !p.over && p.r.Next(); count++ {
		mark := len(p.out)
		if kept > 0 {
			p.out = append(p.out, ',')
		}
		p.line(depth + 1)
		if p.member(open, at, depth) {
			kept++
		} else {
			p.out = p.out[:mark]
		}
	}
	if kept == 0 && depth > 0 && !(at.whole && p.keepsEmpty && count == 0) {
		p.out = p.out[:before]
		return false
	}
	if kept > 0 {
		p.line(depth)
	} else if p.pretty {
		p.out = append(p.out, ' ')
	}
	p.out = append(p.out, open+2)
	return true
}

// member writes what is kept of the member or element at hand. It returns false if that is nothing.
func (p *filtered) member(open byte, at place, depth int) bool {
	if open == '[' {
		return p.value(at, depth+1)
	}
	if p.ahead--; p.ahead < 0 {
		p.ahead = lookAfter
		p.over = p.Deadline != nil && p.Late()
	}
	key := p.r.Key()
	dropped := false
	if at.drop, dropped = p.drop.step(at.drop, string(key)); dropped {
		return false
	}
	if !at.whole {
		if at.keep, at.whole = p.keep.step(at.keep, string(key)); !at.whole && len(at.keep) == 0 {
			return false
		}
	}
	p.out = jsonedit.AppendString(p.out, string(key))
	if p.out = append(p.out, ':'); p.pretty {
		p.out = append(p.out[:len(p.out)-1], " : "...)
	}
	return p.value(at, depth+1)
}

// lookAfter is after how many members filtering checks the time: each is compared with up to 256 steps. A page of ten hits is done
// without, late as it may be.
const lookAfter = 4 << 10

// line begins a line of a pretty-printed reply.
func (p *filtered) line(depth int) {
	if !p.pretty {
		return
	}
	p.out = append(p.out, '\n')
	for range depth {
		p.out = append(p.out, "  "...)
	}
}
