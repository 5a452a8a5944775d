package embedded

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// matcher is a text to look for in fields.
type matcher struct {
	text        string
	all, phrase bool
	lenient     bool // a field that cannot have the text does not match; otherwise the search fails
	atLeast     any
}

func newMatcher(p parameters) (m matcher, err error) {
	if p["query"] == nil {
		return m, parsing("No text specified for text query")
	}
	m = matcher{text: text(p["query"]), atLeast: p["minimum_should_match"], lenient: p.str("lenient", "false") == "true"}
	switch operator := strings.ToLower(p.str("operator", "or")); operator {
	case "and":
		m.all = true
	case "or":
	default:
		return m, illegal("unknown operator [%s]", operator)
	}
	if z := p.str("zero_terms_query", "none"); z != "none" {
		return m, unsupported("zero_terms_query " + z)
	}
	_, err = atLeast(m.atLeast, 1, 1)
	return m, err
}

// match looks for the text in one field.
func (m matcher) match(x *index, path string) (scores, error) {
	f := x.lookup(path)
	if f == nil || f.kind() != "text" {
		out, err := x.exact(path, m.text)
		if m.lenient && err != nil {
			return nil, nil
		}
		return out, err
	}
	list := words(m.text)
	switch {
	case len(list) == 0 || !f.searchable():
		return nil, nil
	case m.phrase:
		return x.phrase(path, list), nil
	}
	least, err := atLeast(m.atLeast, len(list), 1)
	if err != nil {
		return nil, err
	}
	if m.all {
		least = len(list)
	}
	any, queries := scores{}, []query(nil)
	for _, w := range list {
		found := x.word(path, w)
		for d := range found {
			any[d] = 0
		}
		queries = append(queries, func(*index) (scores, error) { return found, nil })
	}
	return some(x, queries, any, least)
}

// over looks for the text in several fields, names and wildcards with ^boost; none is all of them. A document's score is that of its
// best field plus tie times the others'.
func (m matcher) over(fields []string, tie float64) query {
	if m.lenient = m.lenient || len(fields) == 0; len(fields) == 0 {
		fields = []string{"*"}
	}
	return func(x *index) (scores, error) {
		best, sum := scores{}, scores{}
		for _, name := range fields {
			pattern, boost, _ := strings.Cut(name, "^")
			by, err := strconv.ParseFloat("0"+boost, 64)
			if err != nil {
				return nil, illegal("malformed boost in field [%s]", name)
			}
			if boost == "" {
				by = 1
			}
			one := m
			one.lenient = m.lenient || pattern == "*"
			for _, path := range x.names(pattern) {
				found, err := one.match(x, path)
				if err != nil {
					return nil, err
				}
				for d, s := range found {
					best[d] = max(best[d], s*by)
					sum[d] += s * by
				}
			}
		}
		for d, b := range best {
			best[d] = b + tie*(sum[d]-b)
		}
		return best, nil
	}
}

// parseQueryString reads a query in the language of a search box: words, "phrases", field:word, field:*, + - AND OR NOT and brackets.
func parseQueryString(name string, p parameters) (query, error) {
	if err := p.only(name, "query", "fields", "default_field", "default_operator", "boost", "lenient"); err != nil {
		return nil, err
	}
	fields, err := strs(p["fields"], "fields")
	if err != nil {
		return nil, err
	}
	if f := p.str("default_field", ""); f != "" && f != "*" {
		fields = []string{f}
	}
	s := stringParser{name: name, rest: p.str("query", ""), fields: fields, and: strings.EqualFold(p.str("default_operator", "or"), "and")}
	q, err := s.clauses(0)
	if err == nil && s.rest != "" {
		err = s.bad("unexpected [" + s.rest + "]")
	}
	return q, err
}

// stringParser reads a query string from the left.
type stringParser struct {
	name, rest string
	fields     []string
	and        bool
}

func (s *stringParser) bad(why string) error {
	return parsing("[%s] the embedded demo engine cannot read this query: %s", s.name, why)
}

// take skips blanks and takes prefix off the rest if it is there.
func (s *stringParser) take(prefix string) bool {
	s.rest = strings.TrimLeftFunc(s.rest, unicode.IsSpace)
	after, ok := strings.CutPrefix(s.rest, prefix)
	if isWord := unicode.IsLetter(rune(prefix[0])); ok && isWord && after != "" && !strings.ContainsAny(after[:1], " \t(") {
		return false
	}
	if ok {
		s.rest = after
	}
	return ok
}

// clauses reads up to the end or a closing bracket.
func (s *stringParser) clauses(depth int) (query, error) {
	var b boolean
	if depth > 20 {
		return nil, s.bad("too many brackets")
	}
	joined := s.and // the clause is joined to the last one by AND
	for {
		if s.take(" "); s.rest == "" || s.rest[0] == ')' {
			return b.find, nil
		}
		required := s.take("+")
		excluded := s.take("-") || s.take("NOT") || s.take("!")
		q, err := s.clause(depth)
		if err != nil {
			return nil, err
		}
		and := s.take("AND") || s.take("&&")
		or := !and && (s.take("OR") || s.take("||"))
		if excluded && s.name == "simple_query_string" { // there, -word is a clause like any other
			q, excluded = boolean{must: []query{matchAll}, mustNot: []query{q}}.find, false
		}
		switch {
		case excluded:
			b.mustNot = append(b.mustNot, q)
		case required || joined || and || s.and && !or:
			b.must = append(b.must, q)
		default:
			b.should = append(b.should, q)
		}
		joined = and || s.and && !or
	}
}

func (s *stringParser) clause(depth int) (query, error) {
	fields := s.fields
	if at := strings.IndexAny(s.rest, ": \t()\"+-\\"); at > 0 && s.rest[at] == ':' && s.name == "query_string" {
		fields, s.rest = []string{s.rest[:at]}, s.rest[at+1:]
	}
	switch {
	case s.rest == "":
		return nil, s.bad("it ends too early")
	case s.rest[0] == '(':
		inner := stringParser{s.name, s.rest[1:], fields, s.and}
		q, err := inner.clauses(depth + 1)
		if err == nil && !inner.take(")") {
			err = s.bad("a bracket is not closed")
		}
		s.rest = inner.rest
		return q, err
	case s.rest[0] == '"':
		phrase, rest, closed := strings.Cut(s.rest[1:], `"`)
		if s.rest = rest; !closed {
			return nil, s.bad("a quotation mark is not closed")
		}
		return matcher{text: phrase, phrase: true}.over(fields, 0), nil
	}
	word, escaped := s.word()
	switch {
	case word == "*" && len(fields) == 1 && fields[0] != "*":
		return parseExists(parameters{"field": fields[0]})
	case word == "*":
		return matchAll, nil
	case word == "":
		return nil, s.bad("a word is missing before [" + s.rest + "]")
	case s.name == "query_string" && !escaped && strings.ContainsAny(word, "*?~^[]{}/<>"):
		return nil, s.bad("no wildcards, ranges, fuzziness, regular expressions or boosts in [" + word + "]")
	case slices.Equal(fields, []string{"_id"}):
		return parseIDs(parameters{"values": word})
	}
	return matcher{text: word, all: s.and}.over(fields, 0), nil
}

// word reads up to a blank, bracket or quotation mark; a backslash makes any character part of the word.
func (s *stringParser) word() (word string, escaped bool) {
	var b strings.Builder
	for i := 0; i < len(s.rest); i++ {
		c := s.rest[i]
		if c == '\\' && i+1 < len(s.rest) {
			i, escaped = i+1, true
			c = s.rest[i]
		} else if strings.IndexByte(" \t\r\n()\"", c) >= 0 {
			s.rest = s.rest[i:]
			return b.String(), escaped
		}
		b.WriteByte(c)
	}
	s.rest = ""
	return b.String(), escaped
}
