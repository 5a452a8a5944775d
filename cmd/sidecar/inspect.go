package main

import (
	"context"

	"github.com/neardup/sidecar/adapters"
)

// inspector is what verify and doctor ask of one kind of engine, beyond the port. The stores are those of the kind's adapter.
type inspector struct {
	product   func(context.Context, adapters.Store) (adapters.Product, error)
	condition func(context.Context, adapters.Store, adapters.Index, *adapters.Rule) (adapters.Condition, error)
	// anything returns a search of an index, in these of its text fields.
	anything func(index string, fields []string) *adapters.Request
}

func (e *EngineConfig) inspector() inspector { return kindOf(e.Kind).inspector }
