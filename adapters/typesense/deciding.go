package typesense

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Dates are whole numbers of Unix seconds, as the engine recommends. A number that as seconds lies beyond the year 9999 is taken for
// milliseconds, which many write; anything but a number is no date.
const endOfSeconds = 253402300800

// deepest bounds how deep values of a deciding field are looked for in arrays and objects; the engine's own nested fields end far above.
const deepest = 32

// decidingFields returns the fields by which hits are folded or chosen, each with the object that it stands in.
func decidingFields(deciding []rule.Deciding) []string {
	var fields []string
	for _, d := range deciding {
		fields = append(fields, d.Field)
	}
	return rooted(fields)
}

// rooted returns fields, each with the object that it stands in: a collection without nested fields takes a dotted name for a name.
func rooted(fields []string) []string {
	var list []string
	add := func(name string) {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	for _, field := range fields {
		add(field)
		if root, _, dotted := strings.Cut(field, "."); dotted {
			add(root)
		}
	}
	return list
}

// deciding returns the values of a deciding field in a document that is [unflattened]. What is not shown of it, by a key's will above all, is
// not there.
func deciding(document []byte, d rule.Deciding) (values []string) {
	visit(document, d.Field, deepest, func(value []byte) {
		text, ok := jsonedit.ValueText(value)
		if d.Date {
			text, ok = milliseconds(value)
		}
		if ok {
			values = append(values, text)
		}
	})
	return values
}

// visit calls found with each value, be it in an array, that a path leads to in a JSON value: neither an object nor null.
func visit(value []byte, path string, depth int, found func(value []byte)) {
	if len(value) == 0 || depth == 0 {
		return
	}
	switch value[0] {
	case '[':
		elements, _ := jsonedit.Elements(value)
		for _, element := range elements {
			visit(element, path, depth-1, found)
		}
	case '{':
		if path != "" {
			visitMembers(value, path, depth, found)
		}
	case 'n':
	default:
		if path == "" {
			found(value)
		}
	}
}

// visitMembers follows a path into an object. Where several members lead along it, that with the shortest name counts, if it leads to
// anything: others are copies that the engine has written beside it.
func visitMembers(object []byte, path string, depth int, found func(value []byte)) {
	members, _ := jsonedit.Members(object)
	slices.SortStableFunc(members, func(a, b jsonedit.Member) int { return cmp.Compare(len(a.Key), len(b.Key)) })
	any := false
	for _, m := range members {
		rest, leads := strings.CutPrefix(path, m.Key)
		if any || !leads || rest != "" && rest[0] != '.' {
			continue
		}
		visit(m.Value, strings.TrimPrefix(rest, "."), depth-1, func(value []byte) {
			any = true
			found(value)
		})
	}
}

// milliseconds returns a date as Unix milliseconds in digits, and false for what is none.
func milliseconds(value []byte) (digits string, ok bool) {
	seconds, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		number, err := strconv.ParseFloat(string(value), 64)
		if err != nil || !(number > -1e18 && number < 1e18) {
			return "", false
		}
		if number > -endOfSeconds && number < endOfSeconds {
			return strconv.FormatInt(int64(number*1000), 10), true
		}
		seconds = int64(number)
	}
	if seconds > -endOfSeconds && seconds < endOfSeconds {
		seconds *= 1000
	}
	return strconv.FormatInt(seconds, 10), true
}
