package typesense

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Dates are whole numbers of Unix seconds, as the engine recommends. A number that as seconds lies beyond the year 9999 is taken for
// milliseconds, which many write; anything but a number is no date.
const endOfSeconds = 253402300800

// decidingFields returns the fields by which hits are folded or chosen, each with the object that it is in.
func decidingFields(deciding []rule.Deciding) []string {
	var fields []string
	for _, d := range deciding {
		fields = append(fields, d.Field)
	}
	return withRoots(fields)
}

// withRoots returns fields, each with the object that it is in: a collection without nested fields takes a dotted name for a name.
func withRoots(fields []string) []string {
	list := make([]string, 0, 2*len(fields))
	for _, field := range fields {
		root, _, _ := strings.Cut(field, ".")
		for _, name := range []string{field, root} {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// deciding returns the values of a deciding field in a document that is [unflattened]. What is not shown of it, by a key's will above all, is
// not there.
func deciding(document []byte, d rule.Deciding) (values []string) {
	visit(document, d.Field, func(value []byte) {
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

// visit calls found with each value, be it in an array, that a path leads to in a JSON value: neither an object nor null. Where several members
// of an object lead along it, that with the shortest name counts, if it leads to anything: others are copies that the engine has written beside it.
func visit(value []byte, path string, found func(value []byte)) {
	jsonedit.Leaves(value, func(leaf []byte) {
		if path == "" {
			if leaf[0] != '{' && leaf[0] != 'n' {
				found(leaf)
			}
			return
		}
		members, _ := jsonedit.Members(leaf) // there are none in what is no object
		slices.SortStableFunc(members, func(a, b jsonedit.Member) int { return cmp.Compare(len(a.Key), len(b.Key)) })
		any := false
		for _, m := range members {
			rest, leads := strings.CutPrefix(path, m.Key)
			if path == "" || any || !leads || rest != "" && rest[0] != '.' {
				continue
			}
			visit(m.Value, strings.TrimPrefix(rest, "."), func(value []byte) {
				any = true
				found(value)
			})
		}
	})
}

// milliseconds returns a date as Unix milliseconds in digits, and false for anything else.
func milliseconds(value []byte) (digits string, ok bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		number, err := strconv.ParseFloat(string(value), 64)
		if err != nil || !(math.Abs(number) < 1e18) {
			return "", false
		}
		if math.Abs(number) < endOfSeconds {
			return strconv.FormatInt(int64(number*1000), 10), true
		}
		n = int64(number)
	}
	if n > -endOfSeconds && n < endOfSeconds {
		n *= 1000
	}
	return strconv.FormatInt(n, 10), true
}

// unflattened returns a stored document less the flattened copies of its nested fields ("meta.text" beside "meta"): engines up to 0.24
// store them with every update, and a text that comes twice would make another sketch.
func unflattened(document []byte) []byte {
	if !bytes.Contains(document, []byte(`.`)) {
		return document
	}
	members, _ := jsonedit.Members(document)
	nested := map[string]bool{"": true}
	for _, m := range members {
		if m.Value[0] == '{' || m.Value[0] == '[' {
			nested[m.Key] = true
		}
	}
	clean, err := jsonedit.Cut(document, func(key string) bool {
		root, _, dotted := strings.Cut(key, ".")
		return dotted && nested[root]
	})
	if err != nil {
		return document
	}
	return clean
}
