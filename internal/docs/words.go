package docs

import (
	"regexp"
	"strings"
	"unicode"
)

// Count is how much there is to read, and how hard it is.
type Count struct{ Words, Sentences, Syllables int }

// Grade is the Flesch-Kincaid grade: the years of school that a reader needs. The formula is from Kincaid, Fishburne, Rogers and
// Chissom, "Derivation of New Readability Formulas for Navy Enlisted Personnel", Research Branch Report 8-75, 1975.
func (c Count) Grade() float64 {
	if c.Words == 0 || c.Sentences == 0 {
		return 0
	}
	words := float64(c.Words)
	return 0.39*words/float64(c.Sentences) + 11.8*float64(c.Syllables)/words - 15.59
}

var (
	fenced   = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```\\s*?$")
	comments = regexp.MustCompile(`(?s)<!--.*?-->`)
	picture  = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	codeSpan = regexp.MustCompile("(?s)``.+?``|`[^`]+`")
	tag      = regexp.MustCompile(`</?[a-zA-Z][^>\n]*>`)
	bullet   = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	stop     = regexp.MustCompile(`[.!?][)"'”*]*(?:\s+|$)`)
)

// Words counts the words of a page as a reader meets them, tables and headings included, without code blocks.
func Words(text string) int {
	text = comments.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
	return len(words(linked.ReplaceAllString(text, "$1")))
}

// Prose counts the sentences of a page: paragraphs and lists, without code blocks, tables, headings and pictures. A text between
// backticks is one word of one syllable, as names of keys are read at a glance. The end of a paragraph or of a list's entry ends a sentence.
func Prose(text string) (c Count) {
	text = comments.ReplaceAllString(fenced.ReplaceAllString(text, "\n"), "")
	text = linked.ReplaceAllString(picture.ReplaceAllString(text, ""), "$1")
	text = tag.ReplaceAllString(codeSpan.ReplaceAllString(text, "code"), "")
	var part strings.Builder
	flush := func() {
		for _, sentence := range stop.Split(part.String(), -1) {
			list := words(sentence)
			if len(list) > 0 {
				c.Sentences++
			}
			for _, w := range list {
				c.Words++
				c.Syllables += Syllables(w)
			}
		}
		part.Reset()
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "", strings.HasPrefix(line, "|"), strings.HasPrefix(line, "#"):
			flush()
			continue
		case bullet.MatchString(line):
			flush()
			line = bullet.ReplaceAllString(line, "")
		}
		part.WriteString(line + " ")
	}
	flush()
	return c
}

// words are the parts between blanks in which there is a letter or a digit.
func words(text string) (list []string) {
	for _, w := range strings.Fields(text) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			list = append(list, w)
		}
	}
	return list
}

var (
	vowels = regexp.MustCompile(`[aeiouy]+`)
	silent = regexp.MustCompile(`(?:[^aeiouyl]e|[^aeioutdy]ed|[^aeiouysxzcgh]es)$`)
)

// Syllables counts groups of vowels, less a silent e at the end: the usual rule of readability programs. A hyphen parts two words.
func Syllables(word string) (n int) {
	for _, part := range strings.Split(strings.ToLower(word), "-") {
		part = strings.TrimFunc(part, func(r rune) bool { return !unicode.IsLetter(r) })
		if part == "" {
			continue
		}
		k := len(vowels.FindAllString(part, -1))
		if silent.MatchString(part) {
			k--
		}
		n += max(k, 1)
	}
	return max(n, 1)
}
