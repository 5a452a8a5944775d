package offline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/neardup/sidecar/internal/documents"
)

// Sketch prints the sketches of a file of documents.
func (g *Comparer) Sketch(ctx context.Context, file string, asJSON bool) error {
	scheme := fmt.Sprintf("%08x", g.Sketcher.SchemeID())
	return EachDocument(ctx, g, file, "id", func(out []byte, _ int, d *documents.Document) ([]byte, error) {
		text := "" // of a document without a word
		if s, has := g.Sketcher.Sketch(d.Texts...); has {
			s.Source = g.Rule.Source()
			text = s.String()
		}
		switch {
		case asJSON:
			return fmt.Appendf(out, "{\"id\":%s,\"scheme\":%q,\"sketch\":%q}\n", d.RawID, scheme, text), nil
		case strings.ContainsAny(d.ID, "\t\n\r"):
			return out, errors.New("id: holds a tab or a line break, which no table can hold: use --output json")
		}
		return fmt.Appendf(out, "%s\t%s\t%s\n", d.ID, scheme, text), nil
	}, g.write)
}
