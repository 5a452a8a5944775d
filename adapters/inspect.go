package adapters

import (
	"context"

	"github.com/neardup/sidecar/internal/rule"
)

// Inspector answers what doctor asks, and changes nothing.
type Inspector interface {
	// Product asks the engine what it is.
	Product(context.Context) (Product, error)
	// Condition asks for the state of an index under a rule.
	Condition(context.Context, Index, *rule.Rule) (Condition, error)
}

// Product is what an engine says of itself.
type Product struct {
	// Name and Version are such as Elasticsearch and 8.19.13. They are empty where it does not tell them to these credentials.
	Name, Version string
	// Cluster tells the engine's cluster from any other; empty where it has no such name.
	Cluster string
	// Nodes are the addresses that it gives to clients who ask for its nodes, sorted; nil where there is no such thing, or where it
	// does not tell.
	Nodes []string
	// Beside are the settings that open other ways to it than the one that the sidecar stands in, such as gRPC.
	Beside []string
}

// Condition is the state of one concrete index under a rule.
type Condition struct {
	// Documents is how many it holds; Sketched how many of them have something in our field, or -1 where the engine can't count
	// these.
	Documents, Sketched int
	// Undeclared are the rule's fields that the index has no declaration of, in the rule's order.
	Undeclared []string
	// Unfit are the rule's deciding fields whose values searches can't be shown, see [rule.Rule.Deciding].
	Unfit []Unfit
	// Fields is how many fields are declared in it and Limit how many there may be; both are 0 where there is no limit.
	Fields, Limit int
	// Refused says, in the engine's words, what setup and reindex need to do there and would be refused; nil if nothing.
	Refused error
}

// Unfit is a deciding field whose values searches can't be shown.
type Unfit struct {
	rule.Deciding
	// Why says, for an operator, what is wrong with it. It is empty where the field is not declared: no document has it yet.
	Why string
}

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
