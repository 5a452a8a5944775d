package decided

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxLine is the size limit of a line in bytes.
const maxLine = 64 << 10

// Parse reads pairs from a file. A line holds two ids and same or different; an index name may come first, and index is the default. A word with
// blanks, or one that begins with a quotation mark or #, must be a JSON string. A # at the beginning of a word starts a comment. Empty lines are
// skipped. Errors name file and line.
func Parse(r io.Reader, name, index string) ([]Pair, error) {
	var pairs []Pair
	var errs []error
	lines := map[Name]int{} // where a pair is
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLine)
	number := 0
	for scanner.Scan() && len(errs) < mostErrors {
		number++
		p, ok, err := parseLine(strings.TrimPrefix(scanner.Text(), "\ufeff"), index)
		if err == nil && ok {
			if before, twice := lines[p.Name()]; twice && pairs[before].Verdict != p.Verdict {
				err = fmt.Errorf("%s and %s are %s here, but %s on an earlier line: delete one of the lines", p.A, p.B, p.Verdict, pairs[before].Verdict)
			} else if !twice {
				lines[p.Name()] = len(pairs)
				pairs = append(pairs, p)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: line %d: %w", name, number, err))
		}
	}
	if err := scanner.Err(); err != nil {
		errs = append(errs, fmt.Errorf("%s: line %d: %w", name, number+1, err))
	}
	return pairs, errors.Join(errs...)
}

// parseLine reads a line. It reports false for an empty line.
func parseLine(line, index string) (p Pair, ok bool, err error) {
	words, err := wordsOf(line)
	switch {
	case err != nil || len(words) == 0:
		return p, false, err
	case len(words) < 3 || len(words) > 4:
		return p, false, fmt.Errorf("holds %d words: write two ids and same or different, as in: a1 a2 same (an id with blanks as \"a 1\")", len(words))
	case len(words) == 4:
		index, words = words[0], words[1:]
	}
	p = Pair{Index: index, A: words[0], B: words[1], Verdict: Verdict(words[2])}
	switch {
	case p.Verdict != Same && p.Verdict != Different:
		return p, false, fmt.Errorf("%q: write same or different here", words[2])
	case p.A == "" || p.B == "":
		return p, false, errors.New("an id is empty: write the ids of two documents")
	case p.A == p.B:
		return p, false, fmt.Errorf("both ids are %s: write the ids of two documents", p.A)
	}
	return p, true, nil
}

// wordsOf returns the words of a line, up to a comment.
func wordsOf(line string) (words []string, err error) {
	if !utf8.ValidString(line) {
		return nil, errors.New("is not UTF-8: convert the file, as with iconv")
	}
	for {
		line = strings.TrimLeftFunc(line, unicode.IsSpace)
		switch {
		case line == "" || line[0] == '#':
			return words, nil
		case line[0] == '"':
			d := json.NewDecoder(strings.NewReader(line))
			var word string
			if err := d.Decode(&word); err != nil {
				return nil, errors.New(`a word begins with a quotation mark but is not a JSON string: write "a 1", and \" for a quotation mark inside`)
			}
			words, line = append(words, word), line[d.InputOffset():]
		default:
			end := strings.IndexFunc(line, unicode.IsSpace)
			if end < 0 {
				end = len(line)
			}
			words, line = append(words, line[:end]), line[end:]
		}
	}
}

// String returns the pair as a line of a file, without a line end. An empty Index is left out.
func (p Pair) String() string {
	line := strings.Join([]string{word(p.A), word(p.B), string(p.Verdict)}, " ")
	if p.Index != "" {
		line = word(p.Index) + " " + line
	}
	return line
}

// word returns a name as Parse reads it: as it is, or as a JSON string without control characters.
func word(text string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if text != "" && text[0] != '"' && text[0] != '#' && !strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || odd(r) }) {
		return text
	}
	quoted, _ := json.Marshal(text) // a string never fails
	var b strings.Builder
	for _, r := range string(quoted) {
		if !odd(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
