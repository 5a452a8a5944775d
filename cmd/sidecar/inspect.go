package main

import (
	"context"

	"github.com/neardup/sidecar/adapters"
)

// inspector is what jobs, verify and doctor ask of one kind of engine, beyond the port. The stores are those of the kind's adapter.
type inspector struct {
	product   func(context.Context, adapters.Store) (adapters.Product, error)
	condition func(context.Context, adapters.Store, adapters.Index, *adapters.Rule) (adapters.Condition, error)
	// anything returns a search of an index, in these of its text fields.
	anything func(index string, fields []string) *adapters.Request
	// document returns the request for a stored document, without credentials.
	document func(index, id string) *adapters.Request
	// split returns the names of n parts of a concrete index, for [adapters.Selection]: together all its documents, each once. Parts
	// of one name hold the same at any time and on any machine; the last takes in documents that come later. There may be fewer than n.
	split func(ctx context.Context, store adapters.Store, index string, n int) ([]string, error)
	// identity tells a concrete index from another that was made under its name.
	identity func(ctx context.Context, store adapters.Store, index string) (string, error)
	// journal returns the journal of jobs that the store's engine keeps.
	journal func(adapters.Store) adapters.Journal
	// remove takes the declarations of our fields out of a concrete index, as far as the engine can. note says, for an operator, what
	// stays and how to be rid of it; it is empty where nothing does.
	remove func(ctx context.Context, store adapters.Store, index string) (note string, err error)
}

func (e *EngineConfig) inspector() inspector { return kindOf(e.Kind).inspector }
