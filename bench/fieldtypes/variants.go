package main

import "strings"

// field is the name of the sketch's field.
const field = "neardup_sketch"

// variant is a way to store the sketch.
type variant struct {
	name    string
	mapping string // of the field; empty where documents have none
	// ask adds to a search body what makes each hit bring its sketch: beside its source, or alone.
	ask, only map[string]any
}

func (v variant) index(kind string) string {
	return prefix + kind + "-" + strings.NewReplacer(" ", "-", ",", "", ":", "").Replace(v.name)
}

var (
	docValues    = map[string]any{"docvalue_fields": []string{field}}
	docOnly      = map[string]any{"docvalue_fields": []string{field}, "_source": false}
	sourceOnly   = map[string]any{"_source": []string{field}}
	stored       = map[string]any{"stored_fields": []string{"_source", field}}
	storedOnly   = map[string]any{"stored_fields": []string{field}, "_source": false}
	withoutField = map[string]any{"_source": false}
)

// variants begin with the baseline. Those that cost is measured of come first.
var variants = []variant{
	{"none", ``, nil, withoutField},
	{"keyword, doc values", `{"type":"keyword","index":false,"doc_values":true}`, docValues, docOnly},
	{"binary, doc values", `{"type":"binary","doc_values":true}`, docValues, docOnly},
	{"source alone", `{"type":"binary","doc_values":false}`, nil, sourceOnly},
	{"binary, stored", `{"type":"binary","doc_values":false,"store":true}`, stored, storedOnly},
	{"keyword, neither", `{"type":"keyword","index":false,"doc_values":false}`, nil, sourceOnly},
	{"object, disabled", `{"type":"object","enabled":false}`, nil, sourceOnly},
}

// costly is how many of the variants cost is measured of: the last two keep the sketch in the source alone as well.
const costly = 5
