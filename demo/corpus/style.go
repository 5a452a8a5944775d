package corpus

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// styles are different ways to write the same words in a page.
var styles = map[string]func(string) string{
	"typographic": typographic,
	"ascii":       ascii.Replace,
	"unaccented":  unaccented,
	"decomposed":  norm.NFD.String,
}

// ascii puts typewriter signs for printer's ones and leaves letters alone.
var ascii = strings.NewReplacer("“", `"`, "”", `"`, "«\u00a0", `"`, "\u00a0»", `"`, "« ", `"`, " »", `"`, "«", `"`, "»", `"`,
	"‘", "'", "’", "'", "—", "-", "–", "-", "…", "...")

// typographic puts printer's signs for typewriter ones. A quote opens at the start and after a space or an opening bracket.
func typographic(s string) string {
	s = strings.NewReplacer("...", "…", " - ", " — ").Replace(s)
	var b strings.Builder
	opens := true
	for _, r := range s {
		switch {
		case r == '"' && opens:
			b.WriteRune('“')
		case r == '"':
			b.WriteRune('”')
		case r == '\'' && opens:
			b.WriteRune('‘')
		case r == '\'':
			b.WriteRune('’')
		default:
			b.WriteRune(r)
		}
		opens = unicode.IsSpace(r) || strings.ContainsRune("([—", r)
	}
	return b.String()
}

// unaccented writes accented letters as plain ones, as authors without the keys do.
func unaccented(s string) string {
	s = strings.NewReplacer("ø", "o", "Ø", "O").Replace(s)
	plain := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(s))
	return norm.NFC.String(plain)
}
