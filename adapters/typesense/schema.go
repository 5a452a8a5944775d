package typesense

import (
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// ourField is one of our fields as it is to be declared.
type ourField struct {
	name, kind   string
	index, facet bool
}

// The sketch is stored and returned, and not indexed. Documents are looked up by their bands, and grouped by their cluster.
var (
	sketchField  = ourField{name: rule.SketchField, kind: "string"}
	bandsField   = ourField{name: rule.BandsField, kind: "int64[]", index: true}
	clusterField = ourField{name: rule.ClusterField, kind: "string", index: true, facet: true}
)

// fieldsOf returns the fields of ours that a rule stores; without a rule it is the sketch.
func fieldsOf(rule *rule.Rule) []ourField {
	list := []ourField{sketchField}
	if rule != nil && rule.Bands > 0 {
		list = append(list, bandsField)
	}
	if rule != nil && rule.Clusters {
		list = append(list, clusterField)
	}
	return list
}

// declaration returns the field as a schema has it.
func (f ourField) declaration() string {
	how := `,"index":false`
	switch {
	case f.facet:
		how = `,"facet":true`
	case f.index:
		how = ""
	}
	return `{"name":"` + f.name + `","type":"` + f.kind + `"` + how + `,"optional":true}`
}

// declared returns a new collection's schema with our fields declared after the client's own, if a rule matches the collection's
// name. A schema that the engine may refuse, and one that names a field of ours itself, stays as it is.
func declared(schema []byte, e *rule.Enricher) []byte {
	name := nameIn(schema, "name")
	members, _ := jsonedit.Members(schema)
	fields, _ := jsonedit.Elements(jsonedit.Get(members, "fields"))
	if name == "" || len(fields) == 0 || rule.NamesOurs(schema) || jsonedit.Repeated(members) {
		return schema
	}
	rule, _ := e.Rule(name, false)
	if rule == nil {
		return schema
	}
	for _, ours := range fieldsOf(rule) {
		fields = append(fields, []byte(ours.declaration()))
	}
	out, err := jsonedit.Set(schema, "fields", jsonedit.Array(fields))
	if err != nil {
		return schema
	}
	return out
}
