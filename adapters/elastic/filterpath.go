package elastic

import (
	"regexp"
	"slices"
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
	keep, drop paths
	// keepsEmpty says that an empty object or array to which a path behind "-" leads part of the way stays. OpenSearch drops it.
	keepsEmpty bool
	// blank says that there is a "-" with nothing behind it: it takes out nothing, and OpenSearch refuses it where it stands
	// alone.
	blank bool
}

// paths are places to which paths have been followed: what is left of each, the next step first.
type paths [][]string

// parseFilter takes the value of filter_path apart. It returns nil for one that filters nothing, and ok = false for one that the
// engine refuses.
func parseFilter(value string, openSearch bool) (f *pathFilter, ok bool) {
	f = &pathFilter{keepsEmpty: !openSearch}
	if !utf8.ValidString(value) {
		return nil, false
	}
	for path := range strings.SplitSeq(value, ",") {
		switch path = trim(path); {
		case path == "":
		case path[0] != '-':
			f.keep = append(f.keep, stepsOf(path, openSearch))
		case trim(path[1:]) == "":
			f.blank = true
		default:
			f.drop = append(f.drop, stepsOf(trim(path[1:]), openSearch))
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

var escapes = regexp.MustCompile(`\\.`)

// step follows the paths to a name. whole says that one of them ends there.
func (p paths) step(name string) (next paths, whole bool) {
	for _, path := range p {
		if len(path) == 0 || !globbed(path[0], name) {
			continue
		}
		if len(path) == 1 {
			return nil, true
		}
		if path[0] == "**" {
			next = append(next, path)
		}
		next = append(next, path[1:])
	}
	return next, false
}

// within reports whether the filter keeps or takes out only parts of the container that the path leads to: with nothing left in
// it, it goes. Where it takes out, a container that was empty from the start may stay, which can't be told from one that the
// engine emptied: it is taken to be one if what the engine takes out of it can be a member of it.
func (f *pathFilter) within(path []string) bool {
	if left := f.keep.lead(path); len(left) > 0 {
		return true
	}
	left := f.drop.lead(path)
	return len(left) > 0 && !f.keepsEmpty || slices.ContainsFunc(left, func(steps []string) bool { return len(steps) == 1 })
}

// lead follows the paths to where the names lead. It returns nothing if one of them ends on the way.
func (p paths) lead(names []string) paths {
	for _, name := range names {
		var whole bool
		if p, whole = p.step(name); whole {
			return nil
		}
	}
	return p
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
