package docs

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
)

// anything is what stands in a page for what differs from time to time.
const anything = "…"

// Same reports whether a command printed what its page says: line by line but for blanks at the ends of lines, JSON but for all
// blanks between its parts. … stands for any text; alone in a line for any lines.
func Same(language, want, got string) bool {
	if language == "json" {
		want, got = dense(want), dense(got)
	} else {
		want, got = trimmed(want), trimmed(got)
	}
	pattern := regexp.QuoteMeta(want)
	if language != "json" {
		pattern = strings.ReplaceAll("\n"+pattern+"\n", "\n"+anything+"\n", "\n(?:.*\n)?")
		pattern, got = strings.ReplaceAll(pattern, "\n"+anything+"\n", "\n(?:.*\n)?"), "\n"+got+"\n"
	}
	found, err := regexp.MatchString(`(?s)\A`+strings.ReplaceAll(pattern, anything, ".*?")+`\z`, got)
	return err == nil && found
}

// trimmed takes blanks from the ends of lines, and empty lines from both ends.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// dense takes all white space out of JSON that stands outside of texts.
func dense(text string) string {
	var out strings.Builder
	inside, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case inside && r == '\\':
			escaped = true
		case r == '"':
			inside = !inside
		case !inside && strings.ContainsRune(" \t\r\n", r):
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// isJSON says what is wrong with JSON in which … may stand for a value, for members or for elements. Several values may follow
// each other.
func isJSON(text string) error {
	text = dense(text)
	for _, pair := range [][2]string{
		{`{…}`, `{}`}, {`[…]`, `[]`}, {`,…}`, `}`}, {`,…]`, `]`}, {`{…,`, `{`}, {`[…,`, `[`}, {`,…,`, `,`},
		{`:…`, `:null`},
	} {
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	for n := 0; ; n++ {
		var value any
		switch err := decoder.Decode(&value); {
		case err == io.EOF && n > 0:
			return nil
		case err == io.EOF:
			return errors.New("holds nothing")
		case err != nil:
			return err
		}
	}
}
