package adapters

import "bytes"

// Cleaned returns data as [Clean] copies it: data itself if nothing is cut. Where Drop names fields of ours alone it goes over the bytes
// once, at the speed of [Members].
func Cleaned(data []byte, cuts Cuts) []byte {
	return cleaned(data, cuts, false)
}

// CleanedInPlace is [Cleaned] of data that no one else has and that is known to be well-formed, as what was read by [Reader] is: what is left
// can take the place of it.
func CleanedInPlace(data []byte, cuts Cuts) []byte {
	return cleaned(data, cuts, true)
}

func cleaned(data []byte, cuts Cuts, inPlace bool) []byte {
	if cuts.Ours && cuts.Edit == nil {
		k := knife{Cuts: cuts, s: begin(data), keys: make([]extent, 0, 8)}
		k.s.trusted = inPlace
		if k.whole() {
			return k.rest(inPlace)
		}
	}
	var out bytes.Buffer
	out.Grow(len(data))
	_ = Clean(&out, bytes.NewReader(data), cuts) // neither end fails
	return out.Bytes()
}

// knife finds what goes of one well-formed value. Only names that can be ours are decoded, with those that lead to them.
type knife struct {
	Cuts
	s     scanner
	keys  []extent // those that lead to where the knife stands, with their quotes
	path  []string // the first of them, decoded
	known int      // how many of path are those of keys
	texts []string // names that were decoded before: a reply has the same again and again
	gone  []extent // what goes, in order
}

// extent is a part of the data; where it goes, space says that a blank takes its place.
type extent struct {
	from, to int
	space    bool
}

// whole goes over the value. It returns false if that is not well-formed, or not all that there is.
func (k *knife) whole() bool {
	_, ok := k.value(0, false)
	k.s.space()
	return ok && k.s.at == len(k.s.data)
}

// rest returns what stays. More goes of each extent than is put there, so that there is room for it where it stood.
func (k *knife) rest(inPlace bool) []byte {
	data := k.s.data
	if len(k.gone) == 0 {
		return data
	}
	out, at := data[:0], 0
	if !inPlace {
		size := len(data)
		for _, g := range k.gone {
			size += g.from - g.to
		}
		out = make([]byte, 0, size+len(k.gone))
	}
	for _, g := range k.gone {
		if out, at = append(out, data[at:g.from]...), g.to; g.space {
			out = append(out, ' ')
		}
	}
	return append(out, data[at:]...)
}

// value goes over one value. It returns true if nothing is left of it and it is to be pruned; and false in ok where it is not well-formed.
func (k *knife) value(depth int, element bool) (emptied, ok bool) {
	if s := &k.s; s.at < len(s.data) && (s.data[s.at] == '{' || s.data[s.at] == '[') {
		return k.container(s.data[s.at], depth, element)
	}
	return false, k.s.value(depth)
}

// container goes over an object or array, as the method of cleaner does.
func (k *knife) container(open byte, depth int, element bool) (emptied, ok bool) {
	s := &k.s
	if depth > s.deepest {
		return false, false
	}
	s.at++
	// from is where the last member ends, be it kept or gone.
	for from, kept, dropped, gone := s.at, false, false, false; ; from = s.at {
		s.space()
		if s.take(open + 2) {
			return dropped && !kept && k.emptied(from, element), true
		}
		mark := len(k.gone)
		if kept || dropped {
			if !s.take(',') {
				return false, false
			}
			switch {
			case !kept: // the comma behind what was dropped
				k.gone = append(k.gone, extent{from: from, to: s.at})
			case !gone: // what stands in front of the comma belongs to the one before it, which stays
				from = s.at - 1
			}
			s.space()
		}
		var ok bool
		if gone, ok = k.member(open, depth); !ok {
			return false, false
		}
		if gone {
			k.gone = append(k.gone[:mark], extent{from: from, to: s.at})
		}
		kept, dropped = kept || !gone, dropped || gone
	}
}

// emptied decides what becomes of a container that everything was dropped of: it is pruned, or tidied from there on.
func (k *knife) emptied(from int, element bool) (pruned bool) {
	if k.Prune != nil && len(k.keys) > 0 && k.Prune(k.names(), element) {
		return true
	}
	if end := k.s.at - 1; bytes.IndexByte(k.s.data[from:end], '\n') >= 0 {
		k.gone = append(k.gone, extent{from: from, to: end, space: true})
	}
	return false
}

// member goes over a member or an element, and returns true if it goes.
func (k *knife) member(open byte, depth int) (gone, ok bool) {
	s := &k.s
	if open == '[' {
		return k.value(depth+1, true)
	}
	start := s.at
	if !s.str() {
		return false, false
	}
	key := extent{from: start, to: s.at}
	if s.space(); !s.take(':') {
		return false, false
	}
	s.space()
	k.known = min(k.known, len(k.keys))
	k.keys = append(k.keys, key)
	if mayBeOurs(s.data[key.from:key.to]) && k.Drop(k.names()) {
		gone, ok = true, s.value(depth+1)
	} else {
		gone, ok = k.value(depth+1, false)
	}
	k.keys = k.keys[:len(k.keys)-1]
	return gone, ok
}

// mayBeOurs reports whether a key can be the name of a field of ours.
func mayBeOurs(quoted []byte) bool {
	return bytes.HasPrefix(quoted[1:], []byte(FieldPrefix)) || !simple(quoted)
}

// names returns the path to where the knife stands, decoded.
func (k *knife) names() []string {
	for ; k.known < len(k.keys); k.known++ {
		quoted := k.s.data[k.keys[k.known].from:k.keys[k.known].to]
		if k.known == len(k.path) {
			k.path = append(k.path, "")
		}
		if name := &k.path[k.known]; *name != string(quoted[1:len(quoted)-1]) || !simple(quoted) {
			*name = k.text(quoted)
		}
	}
	return k.path[:len(k.keys)]
}

// text returns a name, decoded.
func (k *knife) text(quoted []byte) string {
	if !simple(quoted) {
		text, _ := keyText(quoted)
		return text
	}
	for _, text := range k.texts {
		if text == string(quoted[1:len(quoted)-1]) {
			return text
		}
	}
	text := string(quoted[1 : len(quoted)-1])
	if len(k.texts) < 8 {
		k.texts = append(k.texts, text)
	}
	return text
}
