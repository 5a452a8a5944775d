package proxy

import (
	"regexp"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// report tells the operator why documents written to a name go on without sketches, once for each time that preparing was tried.
func (c *catalog) report(who client, name string, indices []adapters.Index, err error) {
	warn := func(index, reason string) {
		c.log.Warn("index not prepared: documents pass without sketches", "index", shortened(index), "reason", shortened(who.hide(reason)))
	}
	switch {
	case err != nil:
		warn(name, err.Error())
	case !there(indices) && fitOf(indices) != fits:
		warn(name, "it is not there, and to make it before the engine does was refused or in doubt")
	}
	for _, i := range indices {
		if (!i.Ready || i.Moves) && written(i) && !i.Absent && c.rules.Of(i) != nil {
			warn(i.Name, i.Why)
		}
	}
}

// queries are the parameters of the URLs in a text, which can hold keys.
var queries = regexp.MustCompile(`\?[^\s"]*`)

// hide takes out of a text what may be credentials: parameters of URLs and what the client's headers say.
func (c client) hide(text string) string {
	text = queries.ReplaceAllString(text, "?…")
	for _, values := range c.header {
		for _, value := range values {
			_, token, _ := strings.Cut(value, " ")
			for _, secret := range []string{value, token} {
				if len(secret) >= 6 {
					text = strings.ReplaceAll(text, secret, "…")
				}
			}
		}
	}
	return text
}

// shortened cuts what a client or an engine may have made very long.
func shortened(text string) string {
	if len(text) > 500 {
		return strings.ToValidUTF8(text[:500], "") + "…"
	}
	return text
}

// quotes are what errors quote of that which they are about.
var quotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?`)

// unquoted returns an error's text without what it quotes: that can be of a reply, and so of a document or of what a client said.
func unquoted(err error) string { return shortened(quotes.ReplaceAllString(err.Error(), `"…"`)) }
