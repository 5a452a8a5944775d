package content

import (
	"strings"
	"unicode/utf8"
)

// IsHTML reports whether a text counts as HTML: one of its "<" begins one of these, in any case of letters:
//
//   - a doctype: "<!doctype", white space, "html";
//   - the end tag of an HTML element: "</", its name, white space or none, ">";
//   - <html or <body, followed by white space, "/" or ">";
//   - the start tag of <br>, <hr>, <p>, <li> or <div> without attributes: the name, white space or none, "/" or none, ">";
//   - the start tag of any HTML element with an attribute that has a value: the name, white space, at least one letter, digit,
//     "-", "_" or ":", white space or none, "=".
//
// HTML elements are those of the HTML standard, the obsolete ones too. So "a < b", "x <y> z", "Vec<T>", "<b>" alone, "<img>"
// alone and "<bob@example.org>" are plain text, and so is a text with entities alone; XML that has a <title> or an <a> counts as
// HTML. It takes time linear in the text and allocates nothing; a text without "<" costs one search for it.
func IsHTML(text string) bool {
	for {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			return false
		}
		text = text[i+1:]
		if beginsTag(text) {
			return true
		}
	}
}

// beginsTag looks at what follows a "<". It never looks beyond the next one, which keeps the whole linear.
func beginsTag(rest string) bool {
	if rest == "" {
		return false
	}
	switch rest[0] {
	case '!':
		return isDoctype(rest[1:])
	case '/':
		k, after := cutName(rest[1:])
		return k&known != 0 && strings.HasPrefix(trimSpace(after), ">")
	}
	k, after := cutName(rest)
	if k&known == 0 || after == "" {
		return false
	}
	space := isSpace(after[0])
	if k&whole != 0 {
		return space || after[0] == '/' || after[0] == '>'
	}
	after = trimSpace(after)
	if k&alone != 0 && strings.HasPrefix(strings.TrimPrefix(after, "/"), ">") {
		return true
	}
	return space && beginsAttribute(after)
}

func isDoctype(rest string) bool {
	const doctype, html = "doctype", "html"
	if len(rest) <= len(doctype) || !strings.EqualFold(rest[:len(doctype)], doctype) || !isSpace(rest[len(doctype)]) {
		return false
	}
	rest = trimSpace(rest[len(doctype):])
	return len(rest) >= len(html) && strings.EqualFold(rest[:len(html)], html)
}

// cutName reads the name of an element, and returns its kind: 0 if it is no element.
func cutName(text string) (k kind, after string) {
	var lower [maxName]byte
	n := 0
	for n < len(text) && isAlphanumeric(text[n]) {
		if n == maxName {
			return 0, ""
		}
		lower[n] = text[n] | 0x20 // lower case for a letter; a digit has the bit already
		n++
	}
	return elements[string(lower[:n])], text[n:]
}

func beginsAttribute(text string) bool {
	after := strings.TrimLeftFunc(text, func(r rune) bool {
		return r < utf8.RuneSelf && isAlphanumeric(byte(r)) || r == '-' || r == '_' || r == ':'
	})
	return len(after) < len(text) && strings.HasPrefix(trimSpace(after), "=")
}

func trimSpace(text string) string { return strings.TrimLeft(text, " \n\t\r\f") }

// isSpace tells the white space of the HTML standard.
func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
