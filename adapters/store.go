package adapters

import "context"

// Store is the I/O half of an adapter, bound to one set of credentials. All methods are safe for concurrent use. Errors carry the
// engine's own words and what to do.
type Store interface {
	// Resolve returns the concrete indices behind a name (an index, alias or pattern; empty is all), none if there are none. One
	// that is absent comes alone, and only where it is called otherwise than the name.
	Resolve(ctx context.Context, name string) ([]Index, error)
	// Prepare declares our fields in every index behind the name that lacks them, in such a way that documents find as much room as
	// without us, and returns what stands there now. With create, a name behind which nothing is gets an index made in the way the
	// engine itself would make it at a first write; where the engine would declare our fields there by itself, or where that
	// is in doubt, nothing is made. An index that can't be prepared comes back with Ready false and is no error.
	Prepare(ctx context.Context, name string, create bool) ([]Index, error)
	// Scan reads every document of one concrete index, page by page, as of one moment where the engine can. It stops at the first
	// error of the engine or of yield.
	Scan(ctx context.Context, index string, rule *Rule, yield func(Page) error) error
	// Patch stores sketches for documents that Scan read, and gives way to whatever happened to them since. It returns one
	// result for each patch, in order; the error is for the request as a whole.
	Patch(ctx context.Context, index string, rule *Rule, patches []Patch) ([]Result, error)
}

// Index is a concrete index, whether our fields are declared in it, and what a write to the name that led to it finds.
type Index struct {
	Name string
	// As is the name that rules are matched against where that is not Name: what clients know the index as.
	As string
	// Ready says that an enriched document will be stored as meant.
	Ready bool
	// Mapped says that our field is known there, be it otherwise than we would declare it: clearing it does no harm.
	Mapped bool
	// Why says, for an operator, why it is not ready, or why it moves.
	Why string
	// NoWrite says that documents written to the name go to another index behind it.
	NoWrite bool
	// Moves says that the engine may lead the name to another index at any time, one in which our field need not be declared.
	Moves bool
	// Absent says that the index is not there: the first write would make it, declared as Ready says.
	Absent bool
}

// Of returns the rule of an index, or nil if none matches.
func (rs Rules) Of(i Index) *Rule {
	if i.As != "" {
		return rs.For(i.As)
	}
	return rs.For(i.Name)
}

// Page is some documents of a scan.
type Page struct {
	// Total is how many documents the scan will yield in all, as far as the engine says; 0 if it does not.
	Total     int
	Documents []Stored
}

// Stored is a document as the engine holds it.
type Stored struct {
	ID string
	// Source is the document's JSON with at least the rule's fields and our own.
	Source []byte
	// Version is the adapter's own mark of the document's state, handed back in a Patch.
	Version any
}

// Patch is a sketch for a stored document; an empty one clears what stands there.
type Patch struct {
	Stored
	Sketch string
}

// Result is what became of a patch.
type Result int

// The results of a patch.
const (
	// Patched: the sketch is stored.
	Patched Result = iota
	// Changed: the document changed since it was read; its writer's sketch stands, or a later run finds it.
	Changed
	// Gone: the document was deleted since.
	Gone
	// Refused: the engine would not take it.
	Refused
)
