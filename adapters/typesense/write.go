package typesense

import (
	"bytes"
	"io"

	"github.com/neardup/sidecar/adapters"
)

// writing is what Classify reads of a write's query.
type writing struct {
	partial bool // the document is merged into what is stored
	drops   bool // values that do not fit the schema are left out of it
}

// EnrichWrite implements adapters.Dialect. Documents of update, emplace and PATCH count as partial: the engine merges them into what
// is stored. (An emplace that finds nothing stored makes a document that merely lacks a sketch if it lacks a sketched field.)
func (Dialect) EnrichWrite(c adapters.Class, dst io.Writer, src io.Reader, e *adapters.Enricher) error {
	how, _ := c.Params.(writing)
	e.NoCreate = true // no write makes a collection
	e.Unsure = how.drops
	var out []byte
	enrich := func(document []byte) []byte {
		if len(bytes.TrimSpace(document)) == 0 {
			return document
		}
		out = e.Append(out[:0], c.Target, document, how.partial)
		return out
	}
	if c.Form == formImport {
		return adapters.EditLines(dst, src, enrich)
	}
	return adapters.EditWhole(dst, src, enrich)
}
