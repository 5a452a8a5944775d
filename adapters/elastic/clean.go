package elastic

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// CleanReply implements adapters.Dialect.
func (d Dialect) CleanReply(c adapters.Class, dst io.Writer, src io.Reader) error {
	if c.Form == formNodes {
		return rewriteNodes(dst, src, c.Address)
	}
	if isTable(c.Form) {
		return cleanTable(c, dst, src)
	}
	r := bufio.NewReaderSize(src, 16) // for the head alone: what follows is read past its buffer
	if head, _ := r.Peek(len(yamlHead)); bytes.Equal(head, yamlHead) {
		return cleanYAML(dst, r, d.cuts(c).Edit)
	} else if p := packedOf(head); p != nil {
		return cleanPacked(p, dst, r, d.cuts(c))
	}
	return jsonedit.Clean(dst, r, d.cuts(c))
}

// cuts returns what is cut out of a reply of the class. With a filter_path it is what the engine would filter if our fields were
// not there: containers that it then has nothing to keep of go too.
func (d Dialect) cuts(c adapters.Class) jsonedit.Cuts {
	cuts := inDocument
	switch c.Form {
	case formSource: // which is not filtered
		return atTop
	case formMapping:
		cuts = inMapping
	case formIndex:
		cuts = jsonedit.Cuts{Drop: inMapping.Drop, Prune: func(path []string, element bool) bool {
			return path[len(path)-1] != "_doc" && inMapping.Prune(path, element)
		}}
	case formFields:
		cuts.Prune = nil
	case formPreview:
		cuts = inPreview
	case formBulk, formDoc, formUpdate, formByQuery:
		cuts.Edit = func(_ []string, quoted []byte) []byte { return unquote(quoted) }
	}
	path, _ := adapters.Last(c.Params, "filter_path")
	if f, ok := parseFilter(path, d.OpenSearch); ok && f != nil {
		plain := cuts.Prune
		cuts.Prune = func(path []string, element bool) bool {
			return f.within(path) || plain != nil && plain(path, element)
		}
	}
	return cuts
}

// atTop cuts our fields out of a reply that is a document.
var atTop = jsonedit.Cuts{Drop: func(path []string) bool { return len(path) == 1 && rule.Our(path[0]) }}

// parts are the members beside "_source" that show fields of a document by their names, in a hit and in a reply about one document. To have
// our fields cut out of another one, add a line here: collapsed pages, CBOR and SMILE go by it too. YAML goes by lines. deep says that our fields
// can be anywhere below it; pruned that the engine leaves the member out where it has nothing for it.
var parts = map[string]struct{ deep, pruned bool }{
	"fields":       {deep: true, pruned: true},
	"highlight":    {pruned: true},
	"term_vectors": {},
}

// inDocument cuts our fields out of a document's source, and out of what is extracted or highlighted beside it: of a script's
// result too, which may be the source.
var inDocument = jsonedit.Cuts{
	Prefix: rule.FieldPrefix,
	Drop: func(path []string) bool {
		last := len(path) - 1
		if last == 0 || !rule.Our(path[last]) {
			return false
		}
		if i := slices.Index(path, "_source"); i >= 0 && i < last {
			return i == last-1 // what is further down is the client's own
		}
		_, shown := parts[path[last-1]]
		return shown || slices.ContainsFunc(path[:last], func(name string) bool { return parts[name].deep })
	},
	Prune: func(path []string, element bool) bool { return !element && parts[path[len(path)-1]].pruned },
}

// previewed are the lists of a preview, whose elements are documents or hold one below the key that follows.
var previewed = [][]string{{"preview"}, {"feature_values"}, {"sample", "source"}}

// inPreview cuts our fields out of documents that stand in such a list, and out of the mapping beside it.
var inPreview = jsonedit.Cuts{
	Drop: func(path []string) bool {
		last := len(path) - 1
		return rule.Our(path[last]) && slices.ContainsFunc(previewed, func(list []string) bool { return slices.Equal(list, path[:last]) }) || inMapping.Drop(path)
	},
	Prune: inMapping.Prune,
}

// mappingKeys are the keys of the mapping of an index or template.
var mappingKeys = []string{"mappings", "effective_mapping", "effective_mappings"}

// inMapping cuts our fields out of the mappings of indices and templates, below their names, and out of a list of fields in
// place of a mapping. A mapping without fields has no list of them. Who asks for version 7 of the API can have a type above them,
// which then is not there either, but in an index's own description.
var inMapping = jsonedit.Cuts{
	Drop: func(path []string) bool {
		below := belowMappings(path)
		return len(below) == 2 && below[0] == "properties" && rule.Our(below[1]) || len(below) == 1 && rule.Our(below[0])
	},
	Prune: func(path []string, element bool) bool {
		last := len(path) - 1
		return last > 1 && path[last] == "_doc" && slices.Contains(mappingKeys, path[last-1]) ||
			slices.Equal(belowMappings(path), []string{"properties"})
	},
}

// belowMappings returns the path's part below the mappings of an index or template.
func belowMappings(path []string) []string {
	for i, name := range path {
		if i > 0 && slices.Contains(mappingKeys, name) { // the first name is an index's
			below := path[i+1:]
			if len(below) > 1 && below[0] == "_doc" { // the type, where a client of version 7 asks for it
				below = below[1:]
			}
			return below
		}
	}
	return nil
}

// An error's text can quote a document, within a string of the reply. Our fields are in a row there: with the comma before them, or after them
// if they come first. Engines quote only the beginning of a document.
var (
	quotedOurs = `\\"(?:` + strings.Join(rule.OurFields, "|") + `)\\":(?:\\"[^"\\]*\\"|\[[-\d,]*\]|null)`
	// quotedBegun matches what can follow the beginning of a name, up to anywhere in its value.
	quotedBegun = `(?:\\"(?::(?:\\"[^"\\]*|\[[-\d,]*|nu?l?l?)?)?)?`
)

var (
	quoted = regexp.MustCompile(`(,?)` + quotedOurs + `(?:,` + quotedOurs + `)*(,?)`)
	// quotedShort is where the quoting ends among our fields, which are the document's last.
	quotedShort = regexp.MustCompile(`,?(?:(?:` + quotedOurs + `,)*` + quotedOurs + `(?:,(?:\\"[a-z_]*` + quotedBegun + `)?)?|` +
		`\\"neardup_[a-z]*` + quotedBegun + `)\\"\[truncated \d+ bytes\]`)
)

// unquote takes our fields out of a document that an error's text quotes.
func unquote(text []byte) []byte {
	if !bytes.Contains(text, []byte(rule.FieldPrefix)) {
		return text
	}
	text = quotedShort.ReplaceAllLiteral(text, []byte(`}\"`)) // without ours it is quoted whole
	return quoted.ReplaceAllFunc(text, func(found []byte) []byte {
		if parts := quoted.FindSubmatch(found); len(parts[1]) > 0 { // the comma after them stays
			return parts[2]
		}
		return nil
	})
}
