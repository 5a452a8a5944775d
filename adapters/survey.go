package adapters

import "context"

// Surveyor answers what init asks for an operator who has no configuration yet, and changes nothing. Lists are sorted by name.
type Surveyor interface {
	// Recognize asks what the store's address is. ours is false if it is no engine of this adapter.
	Recognize(context.Context) (r Recognition, ours bool, err error)
	// Holdings returns what the engine holds. What is hidden comes with a reason, and not at all where its name begins with a dot.
	Holdings(context.Context) ([]Holding, error)
	// Count counts the documents behind some names, Fields returns the fields that are declared there.
	Count(ctx context.Context, names []string) (int, error)
	Fields(ctx context.Context, names []string) ([]Field, error)
	// Documents returns n documents behind a name, chosen at random, with what they hold in these fields.
	Documents(ctx context.Context, name string, fields []string, n int) ([][]byte, error)
}

// Recognition is what an engine tells of itself to someone who does not know its kind yet.
type Recognition struct {
	Product
	// Locked says that it answers nothing to these credentials, or to none.
	Locked bool
}

// Holding is a name behind which an engine holds documents, as an operator chooses among them: that of an index, or the one that
// rules are matched against where that is another.
type Holding struct {
	Name string
	// Aliases are other names of it, sorted.
	Aliases []string
	// Stream says that the engine makes new indices behind the name.
	Stream bool
	// Why says, for an operator, why it is best left alone; empty where nothing speaks against it.
	Why string
	// Shut says that it can't be searched at all.
	Shut bool
}

// FieldKind is what can be done with a field.
type FieldKind int

// The kinds of field that an operator chooses by.
const (
	// OtherKind: a number, a truth value, and all else.
	OtherKind FieldKind = iota
	// TextKind: its words are searched.
	TextKind
	// NameKind: a text that is looked up as a whole, such as a host's.
	NameKind
	// DateKind: searches can go by it as a date.
	DateKind
	// VectorKind: searches look for its neighbours.
	VectorKind
)

// Field is a field that is declared.
type Field struct {
	Name string
	Kind FieldKind
	// Of is the field whose value it stores in another form; empty where it has one of its own.
	Of string
	// Lacking are those of the names asked for that do not declare it.
	Lacking []string
}
