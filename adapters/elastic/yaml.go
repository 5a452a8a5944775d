package elastic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// A document in YAML is written anew, with one notation for each thing: two parsers can differ in what they make of the notations that
// YAML has for the same text, and then we would look for our fields in another document than the engine stores. Values, their order,
// tags and anchors stay. Comments go, as they do whenever the engine itself writes YAML.

const (
	// maxYAML is how long a document in YAML may be, and maxYAMLNodes about how many keys and values it may have: each takes some 450 bytes
	// of memory, and twice that with a comment.
	maxYAML      = 4 << 20
	maxYAMLNodes = 1 << 17
	// yamlNodeRoom is what is held for each: see formatRoom.
	yamlNodeRoom = 300
	// maxYAMLTags is how many %TAG directives it may have: the parser compares each with all before it.
	maxYAMLTags = 100
)

// editYAML is editFormat for YAML.
func editYAML(e *rule.Enricher, index string, body []byte, update bool) (out []byte, why string) {
	top, why := readYAML(body)
	if why != "" {
		return nil, why
	}
	editYAMLIn(top, nil, documentsIn(e, index, appendYAMLAsJSON(nil, top), update))
	if !uniform(top) {
		return nil, "has keys or values that can't be read"
	}
	written, err := yaml.Marshal(top)
	if err != nil {
		return nil, "can't be written: " + err.Error()
	}
	return append(yamlBegins(body), written...), ""
}

// yamlBegins returns the beginning of what is written in the place of a body. Engines tell the format of what they have stored by its first
// bytes, and what does not begin in either of these ways they refuse or can't read again, as without us.
func yamlBegins(body []byte) []byte {
	switch {
	case bytes.HasPrefix(body, []byte("---")):
		return slices.Clone(yamlHead)
	case bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")):
		return nil
	}
	return []byte("#\n")
}

// readYAML returns the mapping that a body is.
func readYAML(body []byte) (top *yaml.Node, why string) {
	tags := bytes.Count(body, []byte("%TAG")) + bytes.Count(body, []byte("%\x00T\x00A\x00G")) // in UTF-8, or in UTF-16 of either order
	if len(body) > maxYAML || yamlNodes(body) > maxYAMLNodes || tags > maxYAMLTags {
		return nil, fmt.Sprintf("is longer than %d MB, or has more than some %d values or %d directives", maxYAML>>20, maxYAMLNodes, maxYAMLTags)
	}
	var document, next yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&document); err != nil || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, "can't be read as one mapping"
	}
	if err := d.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, "is followed by another"
	}
	return document.Content[0], ""
}

// yamlNodes returns about how many keys and values a body has, or more.
func yamlNodes(body []byte) (n int) {
	for _, c := range []string{"\n", "\r", ",", ":", "[", "{", "- "} {
		n += bytes.Count(body, []byte(c))
	}
	return n
}

// editYAMLIn edits the documents in a mapping at a path.
func editYAMLIn(mapping *yaml.Node, path []string, in documents) {
	kept := mapping.Content[:0:0]
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		if path := append(path, key.Value); in.drops(path) {
			continue
		} else if value.Kind == yaml.MappingNode {
			editYAMLIn(value, path, in)
		}
		kept = append(kept, key, value)
	}
	ours, _ := in.at(path)
	for _, m := range ours {
		var value yaml.Node
		_ = yaml.Unmarshal(m.Value, &value) // JSON is YAML
		kept = append(kept, &yaml.Node{Kind: yaml.ScalarNode, Value: m.Key}, value.Content[0])
	}
	mapping.Content = kept
}

// appendYAMLAsJSON appends a value as JSON: texts as they are, and 0 for what is none or may be none.
func appendYAMLAsJSON(dst []byte, n *yaml.Node) []byte {
	switch {
	case n.Kind == yaml.SequenceNode:
		dst = append(dst, '[')
		for i, element := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendYAMLAsJSON(dst, element)
		}
		return append(dst, ']')
	case n.Kind == yaml.MappingNode:
		dst = append(dst, '{')
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendYAMLAsJSON(append(jsonedit.AppendString(dst, n.Content[i].Value), ':'), n.Content[i+1])
		}
		return append(dst, '}')
	case n.Kind != yaml.ScalarNode || n.Style&yaml.TaggedStyle != 0:
		return append(dst, '0')
	case n.Style != 0 || !unquoted.MatchString(n.Value):
		return jsonedit.AppendString(dst, n.Value)
	}
	switch strings.ToLower(n.Value) {
	case "", "~", "null":
		return append(dst, "null"...)
	case "false":
		return append(dst, "false"...)
	}
	if letters.MatchString(n.Value) && !strings.ContainsAny(n.Value[:1], "yYnNtTfFoO.") {
		return jsonedit.AppendString(dst, n.Value)
	}
	return append(dst, '0')
}

// unquoted are the texts without quotes that may be numbers, truth values or null. They are written as they are, and every other text in quotes.
var (
	unquoted = regexp.MustCompile(`^[0-9A-Za-z_+.~-]{0,100}$`)
	letters  = regexp.MustCompile(`^[A-Za-z]`)
)

// uniform sets one notation for a node and those in it: all in one line, texts in double quotes. It returns false for what the engines' parser
// can't mean or can't take.
func uniform(n *yaml.Node) bool {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	tagged := n.Style & yaml.TaggedStyle
	if n.Anchor != "" && !plainAnchor.MatchString(n.Anchor) || tagged != 0 && !plainTag.MatchString(n.Tag) {
		return false
	}
	for i, inner := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if inner.Kind != yaml.ScalarNode {
				return false
			}
			*inner = yaml.Node{Kind: yaml.ScalarNode, Value: inner.Value, Style: yaml.DoubleQuotedStyle}
		}
		if !uniform(inner) {
			return false
		}
	}
	switch {
	case n.Kind == yaml.AliasNode:
		return plainAnchor.MatchString(n.Value)
	case n.Kind != yaml.ScalarNode:
		n.Style = tagged | yaml.FlowStyle
	case n.Style != 0 || !unquoted.MatchString(n.Value):
		n.Style = tagged | yaml.DoubleQuotedStyle
	case n.Value == "":
		n.Value = "null" // without quotes it would be written as a text
	}
	return true
}

var (
	plainAnchor = regexp.MustCompile(`^[0-9A-Za-z_-]+$`)
	plainTag    = regexp.MustCompile(`^!!?[0-9A-Za-z_-]+$`)
)

// yamlHead is how the engines begin a reply in YAML; JSON never begins so.
var yamlHead = []byte("---\n")

// cleanYAML copies a reply in YAML less our fields. The engines write each member on a line of its own and every text in quotes, so it is the
// line that begins with our name, and what stands below it: deeper, or as a list right under it. Of a long text each line but the last ends with a
// backslash. edit, if not nil, edits each line that stays, and a long text as one line; of what is longer than maxYAMLText, each part.
func cleanYAML(dst io.Writer, src io.Reader, edit func(path []string, line []byte) []byte) error {
	r, w := bufio.NewReaderSize(src, 32<<10), bufio.NewWriterSize(dst, 32<<10)
	dropped := -1   // how deep the member stands that is being left out
	var held []byte // the lines of a text that is not complete yet
	for begins := true; ; {
		line, err := r.ReadSlice('\n')
		if begins {
			text := bytes.TrimLeft(line, " ")
			switch depth := len(line) - len(text); {
			case ourLine(text):
				dropped = depth
			case dropped >= 0 && (depth > dropped || depth == dropped && bytes.HasPrefix(text, []byte("- "))):
			default:
				dropped = -1
			}
		}
		begins = err == nil && !bytes.HasSuffix(line, []byte("\\\n"))
		if dropped >= 0 {
			line = nil
		} else if edit != nil {
			held = append(held, line...)
			if line = nil; begins || err == io.EOF || len(held) > maxYAMLText {
				line, held = editYAMLLine(held, edit), held[:0]
			}
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		switch err {
		case nil, bufio.ErrBufferFull:
		case io.EOF:
			return w.Flush()
		default:
			return err
		}
	}
}

// maxYAMLText is how long a text of a reply in YAML may be to be edited as a whole.
const maxYAMLText = 256 << 10

// yamlBreak is where a text goes on in the next line. A space that the line begins with has a backslash.
var yamlBreak = regexp.MustCompile(`\\\n *(?:\\( ))?`)

// editYAMLLine edits a line, or several that are one text. What the edit leaves as it is keeps its lines.
func editYAMLLine(lines []byte, edit func(path []string, line []byte) []byte) []byte {
	joined := yamlBreak.ReplaceAll(lines, []byte("$1"))
	if edited := edit(nil, joined); !bytes.Equal(edited, joined) {
		return edited
	}
	return lines
}

// ourLine reports whether a line begins with the name of one of our fields.
func ourLine(text []byte) bool {
	name, _, found := bytes.Cut(text, []byte(":"))
	return found && rule.Our(string(name))
}
