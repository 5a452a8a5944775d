package try

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
)

// Hint says what to do about bad lines.
const Hint = "Correct or remove these lines. A query is a line of words, or a search on one line (jq -c puts it on one line)."

const (
	// maxLine is the size limit of a line in bytes, maxProblems how many bad lines are reported.
	maxLine     = 1 << 20
	maxProblems = 10
)

// Query is one of the different queries of an input, with how often it appears.
type Query struct {
	adapters.Query
	Count int
}

// Text returns the query as a line, which [Reader] reads back as the same query. Words that could be read as something else become a JSON string.
func (q *Query) Text() string {
	if q.Search != nil {
		return string(q.Search)
	}
	words := strings.TrimSpace(q.Words)
	if words != q.Words || words == "" || strings.ContainsAny(words[:1], `{["`) || strings.ContainsFunc(words, func(r rune) bool { return r == '=' || r < ' ' || r == '\ufeff' }) {
		quoted, _ := json.Marshal(q.Words) // a string never fails
		return string(quoted)
	}
	return words
}

// Input is the queries that [Reader.Read] found.
type Input struct {
	// Queries are in the order in which they first appear.
	Queries []*Query
	// Elsewhere is how many lines hold searches of other indices. Left is how many lines hold queries beyond the limit.
	Elsewhere, Left int
}

// Reader reads queries, one a line.
type Reader struct {
	// Name is the name of the file, for errors; empty for none.
	Name string
	// Line returns the query of a line.
	Line func(line string) (adapters.Query, error)
	// Here reports whether searches of an index are to be read. The others count as Elsewhere.
	Here func(index string) bool
	// Most is how many different queries are read at most.
	Most int
}

// Read reads queries. Its error names the bad lines, at most maxProblems of them.
func (r *Reader) Read(from io.Reader) (*Input, error) {
	in, known, problems := &Input{}, map[string]*Query{}, []error(nil)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	line := 0
	for lines.Scan() && len(problems) < maxProblems {
		line++
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if text == "" {
			continue
		}
		q, err := r.query(text)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("%s: %w", r.at(line), err))
			continue
		case q.Index != "" && !r.Here(q.Index):
			in.Elsewhere++
			continue
		}
		one := &Query{adapters.Query{Words: q.Words, Search: compact(q.Search)}, 1}
		switch same := known[one.Text()]; {
		case same != nil:
			same.Count++
		case len(in.Queries) == r.Most:
			in.Left++
		default:
			known[one.Text()] = one
			in.Queries = append(in.Queries, one)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		problems = append(problems, fmt.Errorf("%s: it is longer than %d bytes: write one query a line", r.at(line+1), maxLine))
	case err != nil:
		problems = append(problems, fmt.Errorf("%s: %w", r.at(line+1), err))
	}
	return in, errors.Join(problems...)
}

// at returns a line's place, for an error.
func (r *Reader) at(line int) string {
	if r.Name == "" {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("%s:%d", r.Name, line)
}

// Check returns an error if there is no query.
func (in *Input) Check(name string) error {
	switch {
	case len(in.Queries) > 0:
		return nil
	case in.Elsewhere > 0:
		return fmt.Errorf("%s: all of its searches are of other indices", name)
	}
	return fmt.Errorf("%s: there is no query in it: write one a line", name)
}

// query returns the query of a line.
func (r *Reader) query(line string) (adapters.Query, error) {
	switch {
	case strings.HasPrefix(line, "\x1f\x8b"):
		return adapters.Query{}, errors.New("it is compressed: unpack it first, as in: gunzip -c FILE | sidecar try -")
	case !utf8.ValidString(line):
		return adapters.Query{}, errors.New("it is not UTF-8: convert the file, as with iconv")
	}
	return r.Line(line)
}

// compact returns a search without the white space between its parts.
func compact(search []byte) []byte {
	var b bytes.Buffer
	if search == nil || json.Compact(&b, search) != nil { // a query string
		return search
	}
	return b.Bytes()
}
