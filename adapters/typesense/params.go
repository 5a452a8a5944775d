package typesense

import (
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// queryOf takes a raw query apart as the engine does: names stand for themselves, escapes are read in values alone, and of several
// "&" in a row none separates, one in front of all does, and one at the end counts for nothing. Joined with "&" the Raw parts are the
// query again. (Source: the engine's parse_query_string.)
func queryOf(rawQuery string) []adapters.Param {
	if rawQuery == "" {
		return nil
	}
	var list []adapters.Param
	add := func(raw, text string) {
		name, value, _ := strings.Cut(text, "=")
		list = append(list, adapters.Param{Raw: raw, Name: name, Value: decode(value)})
	}
	start, last := 0, len(rawQuery)-1
	for i := range rawQuery {
		alone := rawQuery[i] == '&' && (i == 0 || rawQuery[i-1] != '&') && (i == last || rawQuery[i+1] != '&')
		if alone {
			add(rawQuery[start:i], rawQuery[start:i])
			start = i + 1
		}
	}
	add(rawQuery[start:], strings.TrimSuffix(rawQuery[start:], "&"))
	return list
}

// decode returns a value or a part of a path as the engine reads it: "+" is a space, "%" takes the next two bytes for digits
// whatever they are, and is left out where there are none.
func decode(text string) string {
	if !strings.ContainsAny(text, "+%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '+':
			b.WriteByte(' ')
		case c != '%':
			b.WriteByte(c)
		case i+2 < len(text):
			b.WriteByte(digit(text[i+1])<<4 | digit(text[i+2]))
			i += 2
		}
	}
	return b.String()
}

// digit returns what the engine takes a byte for behind a "%".
func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'A' && c <= 'Z':
		c += 'a' - 'A'
	}
	return c - 'a' + 10
}
