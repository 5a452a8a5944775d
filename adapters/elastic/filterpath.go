package elastic

import (
	"math/bits"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A filter_path is a list of paths, divided by commas, each of steps divided by dots. A step is a name in which "*" stands for
// any run of characters, or "**" for any number of names, though at least one. What a path leads to is kept with all that is in
// it; a path behind a "-" takes out what it leads to. Elements of arrays have no names: a path goes through them. The engine
// first keeps, then takes out.
//
// The two engines read it alike but for three things, said where they matter.

// pathFilter is a filter_path taken apart.
type pathFilter struct {
	keep, drop *paths // nil for none
	// keepsEmpty says that an empty object or array to which a path behind "-" leads part of the way stays. OpenSearch drops it.
	keepsEmpty bool
	// blank says that there is a "-" with nothing behind it: it takes out nothing, and OpenSearch refuses it where it stands
	// alone.
	blank bool
}

// paths are the steps of a list of paths, one path behind another.
type paths struct {
	steps []string
	// first and last are the first and the last step of each path, double those that are "**".
	first, last, double places
}

// maxSteps bounds the steps of a list of paths. The longest lists that Kibana sends have about a hundred. What has more is not followed
// here: its searches are the engine's alone (reason=filter_path).
const maxSteps = 256

// places is a set of steps: those that come next in the paths followed so far, and none where no path leads. It has one bit for each, so it
// does not grow with the depth of a reply: a list of what is left of each path doubles at every level that a "**" goes through. All its steps
// are taken at once, as Baeza-Yates and Gonnet do for the characters of a text (CACM 35(10), 1992).
type places [maxSteps / 64]uint64

func (p *places) add(step int) { p[step/64] |= 1 << (step % 64) }

// meets reports whether the sets have a step in common.
func (p places) meets(other places) bool {
	for i, word := range p {
		if word&other[i] != 0 {
			return true
		}
	}
	return false
}

// parseFilter takes the value of filter_path apart. It returns nil for one that filters nothing, and ok = false for one that the
// engine refuses or that is too long.
func parseFilter(value string, openSearch bool) (f *pathFilter, ok bool) {
	f = &pathFilter{keepsEmpty: !openSearch}
	if !utf8.ValidString(value) {
		return nil, false
	}
	for path := range strings.SplitSeq(value, ",") {
		fits := true
		switch path = trim(path); {
		case path == "":
		case path[0] != '-':
			f.keep, fits = f.keep.with(stepsOf(path, openSearch))
		case trim(path[1:]) == "":
			f.blank = true
		default:
			f.drop, fits = f.drop.with(stepsOf(trim(path[1:]), openSearch))
		}
		if !fits {
			return nil, false
		}
	}
	switch {
	case f.blank && openSearch && f.drop == nil:
		return nil, false
	case f.keep == nil && f.drop == nil && !f.blank:
		return nil, true
	}
	return f, true
}

// with adds a path. It returns false if there are too many steps then.
func (p *paths) with(steps []string) (*paths, bool) {
	if p == nil {
		p = new(paths)
	}
	for i, step := range steps {
		at := len(p.steps)
		if at == maxSteps {
			return nil, false
		}
		if step == "**" {
			p.double.add(at)
		} else { // so that a name is compared with a step in no more than its length
			step = starRuns.ReplaceAllLiteralString(step, "*")
		}
		if p.steps = append(p.steps, step); i == 0 {
			p.first.add(at)
		}
		if i == len(steps)-1 {
			p.last.add(at)
		}
	}
	return p, true
}

// trim cuts white space as Java does: all up to the space.
func trim(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

// stepsOf cuts a path at its dots, less those behind a backslash. Elasticsearch takes what begins with a dot as one name, and has
// an empty one behind a dot at the end; OpenSearch has an empty one in front and none at the end, so that dots alone lead
// nowhere.
func stepsOf(path string, openSearch bool) []string {
	steps := []string{}
	for {
		at, escaped := 0, false
		for ; at < len(path) && path[at] != '.'; at++ {
			if strings.HasPrefix(path[at:], `\.`) {
				at, escaped = at+1, true
			}
		}
		if at == len(path) || at == 0 && !openSearch {
			steps = append(steps, unescaped(path, escaped || openSearch))
			break
		}
		steps = append(steps, unescaped(path[:at], escaped || openSearch))
		path = path[at+1:]
	}
	for openSearch && len(steps) > 0 && steps[len(steps)-1] == "" {
		steps = steps[:len(steps)-1]
	}
	return steps
}

// unescaped puts a dot where a backslash and any one character stand: that is how the engines do it, and not for dots alone.
// Elasticsearch does it only in a step that has an escaped dot.
func unescaped(step string, escaped bool) string {
	if !escaped {
		return step
	}
	return escapes.ReplaceAllLiteralString(step, ".")
}

var starRuns = regexp.MustCompile(`\*{2,}`)

var escapes = regexp.MustCompile(`\\.`)

// step follows the paths from the places to a name. whole says that one of them ends there.
func (p *paths) step(from places, name string) (next places, whole bool) {
	if from == (places{}) {
		return from, false
	}
	taken := from
	for i, word := range from {
		for word &^= p.double[i]; word != 0; word &= word - 1 {
			bit := bits.TrailingZeros64(word)
			if !globbed(p.steps[64*i+bit], name) {
				taken[i] &^= 1 << bit
			}
		}
	}
	if taken.meets(p.last) {
		return places{}, true
	}
	var carry uint64
	for i, word := range taken { // to the step behind each, and "**" to itself too
		next[i] = word<<1 | carry | word&p.double[i]
		carry = word >> 63
	}
	return next, false
}

// follower is a pathFilter that was followed to the names of a path, so that the next path that begins with the same ones is followed from
// there.
type follower struct {
	*pathFilter
	names      []string
	keep, drop []places // at i: the places after the first i names
}

// within reports whether the filter keeps or takes out only parts of the container that the path leads to: with nothing left in
// it, it goes. Where it takes out, a container that was empty from the start may stay, which can't be told from one that the
// engine emptied: it is taken to be one if what the engine takes out of it can be a member of it.
func (f *follower) within(path []string) bool {
	same := 0
	for same < min(len(path), len(f.names)) && path[same] == f.names[same] {
		same++
	}
	f.names = append(f.names[:same], path[same:]...)
	f.keep = f.pathFilter.keep.follow(f.keep, path, same)
	f.drop = f.pathFilter.drop.follow(f.drop, path, same)
	if f.keep[len(path)] != (places{}) {
		return true
	}
	drop := f.drop[len(path)]
	return drop != places{} && (!f.keepsEmpty || drop.meets(f.pathFilter.drop.last))
}

// follow follows the paths to the names. followed is the result of the last call, whose first names were the same. A path that ends on the way
// adds no places after it.
func (p *paths) follow(followed []places, names []string, same int) []places {
	if p == nil {
		p = new(paths)
	}
	if len(followed) == 0 {
		followed = append(followed, p.first)
	}
	followed = followed[:same+1]
	for _, name := range names[same:] {
		next, _ := p.step(followed[len(followed)-1], name)
		followed = append(followed, next)
	}
	return followed
}

// globbed reports whether a name is of the pattern.
func globbed(pattern, name string) bool {
	head, rest, stars := strings.Cut(pattern, "*")
	if !stars {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], after
	}
}
