package elastic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// The mark of a template in the declaration of a field of ours. An index that carries it was made from a template that declares the
// field, so the next one made behind the same name will have it too.
const (
	markKey   = "declared_by"
	markValue = "template"
)

const mark = `"meta":{"` + markKey + `":"` + markValue + `"}`

const (
	// ourField is how the sketch is declared in an index: stored with the document, readable as doc values, not indexed.
	ourField = `{"type":"binary","doc_values":true}`
	// markedField is how it is declared in a template.
	markedField = `{"type":"binary","doc_values":true,` + mark + `}`
	// bandsField is how band keys are declared: to be looked up by. Without doc values, a client's pattern among docvalue_fields that
	// covers it would be refused.
	bandsField = `{"type":"long"}`
	// clusterField is how clusters are declared: to be looked up and grouped by.
	clusterField = `{"type":"keyword"}`
)

// declared is how a field of ours is mapped in an index. Index and DocValues are nil where they are as by default.
type declared struct {
	Type      string            `json:"type"`
	Index     *bool             `json:"index"`
	DocValues *bool             `json:"doc_values"`
	Meta      map[string]string `json:"meta"`
}

func (d declared) marked() bool { return d.Meta[markKey] == markValue }

// fit reports whether it is declared as the field needs it.
func (d declared) fit(field string) bool {
	is := func(setting *bool, instead bool) bool { return setting == nil && instead || setting != nil && *setting }
	switch field {
	case adapters.SketchField:
		return d.Type == "binary" && is(d.DocValues, false)
	case adapters.BandsField:
		return d.Type == "long" && is(d.Index, true) && is(d.DocValues, true)
	}
	return d.Type == "keyword" && is(d.Index, true) && is(d.DocValues, true)
}

// meant says, for an operator, how a field is to be mapped.
func meant(field string) string {
	return map[string]string{
		adapters.SketchField: "binary with doc values", adapters.BandsField: "long, indexed and with doc values",
		adapters.ClusterField: "keyword, indexed and with doc values",
	}[field]
}

// declaration returns how a field of ours is declared, with the mark of a template or without.
func declaration(field string, marked bool) string {
	is := map[string]string{adapters.SketchField: ourField, adapters.BandsField: bandsField, adapters.ClusterField: clusterField}[field]
	if marked {
		is = strings.TrimSuffix(is, "}") + "," + mark + "}"
	}
	return is
}

// properties returns the mapping of some fields, by their declarations.
func properties(fields []string, declaration func(field string) string) string {
	var list []string
	for _, field := range fields {
		list = append(list, `"`+field+`":`+declaration(field))
	}
	return `{"properties":{` + strings.Join(list, ",") + `}}`
}

// declarations are how our fields are mapped somewhere, by name; those that are not have no entry.
type declarations map[string]declared

// fit reports whether all of the fields are declared as they are needed, marked whether all of them carry the mark of a template.
func (ds declarations) fit(fields []string) bool { return len(ds.lacking(fields)) == 0 }

func (ds declarations) marked(fields []string) bool {
	for _, field := range fields {
		if !ds[field].marked() {
			return false
		}
	}
	return true
}

// lacking returns which of the fields are not declared as they are needed.
func (ds declarations) lacking(fields []string) (list []string) {
	for _, field := range fields {
		if !ds[field].fit(field) {
			list = append(list, field)
		}
	}
	return list
}

// undeclared returns which of the fields are not declared at all; unfit the first that is declared otherwise than needed, or "".
func (ds declarations) undeclared(fields []string) (list []string) {
	for _, field := range fields {
		if ds[field].Type == "" {
			list = append(list, field)
		}
	}
	return list
}

func (ds declarations) unfit(fields []string) string {
	for _, field := range fields {
		if d := ds[field]; d.Type != "" && !d.fit(field) {
			return field
		}
	}
	return ""
}

// why says, for an operator, what hinders documents from being stored with the fields; nothing where nothing does.
func (ds declarations) why(fields []string) string {
	if field := ds.unfit(fields); field != "" {
		return fmt.Sprintf("the field %s is mapped as %s, not as %s: reindex into a new index", field, ds[field].Type, meant(field))
	}
	if list := ds.undeclared(fields); len(list) > 0 {
		return "the field " + strings.Join(list, ", ") + " is not mapped: run setup with credentials that may change the mapping"
	}
	return ""
}

// declarationsIn returns how our fields are mapped in a mapping.
func declarationsIn(mapping json.RawMessage) declarations {
	var m struct{ Properties map[string]json.RawMessage }
	ds := declarations{}
	if json.Unmarshal(mapping, &m) == nil {
		for _, field := range ourFields {
			ds.take(field, m.Properties[field])
		}
	}
	return ds
}

// take notes a declaration. An object is declared by no type of its own.
func (ds declarations) take(field string, is json.RawMessage) {
	if is == nil {
		return
	}
	d := declared{}
	_ = json.Unmarshal(is, &d) // what is no declaration is none
	ds[field] = d
}

// ourFields are the names of our fields.
var ourFields = []string{adapters.SketchField, adapters.BandsField, adapters.ClusterField}

// kept returns which fields of ours documents hold under one of the rules. A sketch they hold without one, too.
func kept(rules ...*adapters.Rule) []string {
	list := ourFields[:1:1]
	bands, clusters := false, false
	for _, rule := range rules {
		bands, clusters = bands || rule != nil && rule.Bands > 0, clusters || rule != nil && rule.Clusters
	}
	if bands {
		list = append(list, adapters.BandsField)
	}
	if clusters {
		list = append(list, adapters.ClusterField)
	}
	return list
}
