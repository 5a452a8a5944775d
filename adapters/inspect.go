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
