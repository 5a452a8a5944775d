package typesense

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// A search's parameters are in its body, in the query string, which counts before it, and in a scoped key, which counts before both.

// paramsOf parses a raw query as the engine does: names are taken as they come, escapes are read in values alone, and of several
// "&" in a row none separates, one in front of all does, and one at the end counts for nothing. Joined with "&" the Raw parts are the
// query again. (Source: the engine's parse_query_string.)
func paramsOf(rawQuery string) []adapters.Param {
	if rawQuery == "" {
		return nil
	}
	list := make([]adapters.Param, 0, 1+strings.Count(rawQuery, "&"))
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

// extensible reports whether "&" and more can go behind a raw query: none of its own is at an end of it or beside another one. Nor may it name the
// collection: that name counts before the path's.
func extensible(rawQuery string) bool {
	for part := range strings.SplitSeq(rawQuery, "&") {
		if part == "" && rawQuery != "" || part == "collection" || strings.HasPrefix(part, "collection=") {
			return false
		}
	}
	return true
}

// decode returns a value or a part of a path as the engine reads it: "+" is a space, "%" takes the next two bytes for digits
// whatever they are, and is left out where there are none.
func decode(text string) string {
	if !strings.ContainsAny(text, "+%") {
		return text
	}
	digit := func(c byte) byte {
		switch {
		case c >= '0' && c <= '9':
			return c - '0'
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		return c - 'a' + 10
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

// valuesIn returns the values of an object's members, the last of a name, and whether one is of no type for a parameter: that counts for none.
func valuesIn(members []jsonedit.Member) (values map[string]string, odd bool) {
	values = map[string]string{}
	for _, m := range members {
		text, isText := jsonedit.Text(m.Value)
		switch c := m.Value[0]; {
		case c == '{' || c == '[' || c == 'n':
			odd = true
			delete(values, m.Key)
			continue
		case !isText:
			text = string(m.Value)
		}
		values[m.Key] = text
	}
	return values, odd
}

// valuesOf returns the value that counts of each parameter of a query string.
func valuesOf(params []adapters.Param) map[string]string {
	values := map[string]string{}
	for _, p := range params {
		values[p.Name] = p.Value
	}
	return values
}

// number reads a parameter of plain digits; it is -1 for what only the engine can judge.
func number(values map[string]string, name string, otherwise int) int {
	text, given := values[name]
	if !given {
		return otherwise
	}
	return digits(text)
}

// digits reads a number of plain digits; it is -1 for anything else.
func digits(text string) int {
	if text == "" || len(text) > 9 || strings.Trim(text, "0123456789") != "" {
		return -1
	}
	n, _ := strconv.Atoi(text)
	return n
}

// fieldList parses a list of fields.
func fieldList(text string) []string {
	var list []string
	for field := range strings.SplitSeq(text, ",") {
		if field = strings.TrimSpace(field); field != "" {
			list = append(list, field)
		}
	}
	return list
}

// put returns a search with parameters, each a name and then a value, in place of all of their names. One without a value is left out, unless it is
// to be there empty.
func put(body []byte, empty bool, params ...string) ([]byte, error) {
	body, err := jsonedit.Cut(body, func(key string) bool {
		for i := 0; i < len(params); i += 2 {
			if params[i] == key {
				return true
			}
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	members := make([]byte, 0, 512)
	for i := 0; i < len(params); i += 2 {
		if name, value := params[i], params[i+1]; empty || value != "" {
			if len(members) > 0 {
				members = append(members, ',')
			}
			members = jsonedit.AppendString(append(append(append(members, '"'), name...), `":`...), value)
		}
	}
	return jsonedit.Append(body, members)
}

// withParams returns a query string with the parameters of a search behind it, all but its collection. Their values are texts.
func withParams(rawQuery string, search []byte) (string, error) {
	var query strings.Builder
	query.Grow(len(rawQuery) + 2*len(search))
	query.WriteString(rawQuery)
	r := jsonedit.NewReader(search)
	for r.Enter('{'); r.Next(); {
		key := r.Key()
		text, _ := jsonedit.Text(r.Value())
		if string(key) == "collection" {
			continue
		}
		if query.Len() > 0 {
			query.WriteByte('&')
		}
		query.Write(key)
		query.WriteByte('=')
		query.WriteString(url.QueryEscape(text))
	}
	if !r.Done() {
		return "", jsonedit.ErrMalformed
	}
	return query.String(), nil
}

const highlights = "highlight_fields"

// noField is a name that no field has. It is given where no field is to be highlighted, which costs more than reading sketches or texts, or
// where a list of fields that was not empty would be.
const noField = rule.FieldPrefix + "none"

// unhighlighted returns a search without our field among those to be highlighted: engines up to 0.24 hang on a field that is not indexed,
// and ignore one that is not there.
func unhighlighted(body []byte) []byte {
	value, _ := jsonedit.Text(jsonedit.Lookup(body, highlights))
	if kept, changed := highlightable(value); changed {
		if clean, err := put(body, true, highlights, kept); err == nil {
			return clean
		}
	}
	return body
}

// unhighlight takes our field from those to be highlighted in a request's query string, for the reason that unhighlighted gives.
func unhighlight(r *adapters.Request) {
	if !strings.Contains(r.RawQuery, highlights) {
		return
	}
	params := paramsOf(r.RawQuery)
	for i, p := range params {
		if kept, changed := highlightable(p.Value); changed && p.Name == highlights {
			params[i] = adapters.Param{Raw: highlights + "=" + url.QueryEscape(kept), Name: highlights, Value: kept}
			r.RawQuery = adapters.RawQuery(params, func(string) bool { return true })
		}
	}
}

// highlightable returns a list of fields without ours, and whether there was one.
func highlightable(value string) (kept string, changed bool) {
	fields := fieldList(value)
	if !slices.ContainsFunc(fields, rule.Our) {
		return value, false
	}
	others := slices.DeleteFunc(fields, rule.Our)
	if len(others) == 0 {
		others = []string{noField}
	}
	return strings.Join(others, ","), true
}
