// Package content turns the text of a document into the text that is to be sketched.
//
// Many indices hold HTML: whole pages, or what an editor's window gave. Two pages with the same words and other markup should
// have the same sketch, and two articles of one site should not seem alike for the menu and the footer that they share.
//
//	if content.IsHTML(text) {
//		text = content.Useful(text) // or content.Text(text), with menus and footers
//	}
//
// [IsHTML] tells HTML from plain text by a fixed rule, [Text] returns all that a reader is shown, and [Useful] returns of that
// the useful content: what is left without boilerplate. Useful is a guess by rules of thumb, and falls back to Text where it has
// little to show. On 983 pages with sentences marked as wanted or as boilerplate, Text keeps 96 % of the wanted and 80 % of the
// boilerplate, Useful 90 % and 16 %.
//
// All are pure functions of their argument: no I/O, no clock, safe for concurrent use. IsHTML and Text give the same on every
// machine. So does Useful for one version of the library behind it, as far as its floating-point scores come out alike; where two
// parts of a page score within rounding of one another, they may not. A new version of it may find something else.
package content
