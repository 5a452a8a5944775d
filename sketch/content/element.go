package content

import "strings"

// kind says what an element means for the words in it and around it. An element may be of several kinds; one that is only known
// is an inline element that holds text, such as <b>.
type kind uint16

const (
	known     kind = 1 << iota // an element of HTML
	block                      // parts words: the texts before, in and after it are different words
	void                       // has no content and no end tag
	hidden                     // its content is not shown
	raw                        // its content is not markup, and ends at its end tag or with the text
	gloss                      // contains text alone, and its end tag is often missing
	paragraph                  // ends a <p> that is open
	alone                      // shows that a text is HTML even without an attribute: <p> is rarely anything else
	whole                      // shows that a text is HTML by its name alone: <html> and <body>
)

// elements has the elements of the HTML standard and those it calls obsolete, in lower case.
var elements = tabulate(map[kind]string{
	known: `a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label map mark math meter nobr output picture
		progress q ruby s samp slot small span strike strong sub sup time tt u var`,
	known | void:          `area base basefont bgsound col embed frame img input keygen link meta param source track wbr`,
	known | block | whole: `html body`,
	known | block: `button caption colgroup frameset head legend optgroup option select tbody td textarea tfoot th thead
		title tr`,
	known | block | paragraph: `address article aside blockquote center dd details dialog dir dl dt fieldset figcaption figure footer
		form h1 h2 h3 h4 h5 h6 header hgroup listing main marquee menu nav ol plaintext pre search section summary table ul xmp`,
	known | block | paragraph | alone:        `p li div`,
	known | block | void | alone:             `br`,
	known | block | void | paragraph | alone: `hr`,
	known | hidden:                           `applet audio canvas datalist object svg template video`,
	known | hidden | raw:                     `iframe noembed noframes noscript script style`,
	known | hidden | gloss:                   `rp rt`,
})

// maxName is the length of the longest name in elements.
const maxName = 10

func tabulate(lists map[kind]string) map[string]kind {
	table := make(map[string]kind)
	for k, names := range lists {
		for name := range strings.FieldsSeq(names) {
			table[name] = k
		}
	}
	return table
}
