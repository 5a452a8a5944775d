package elastic

import (
	"bytes"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// maxExtracted is how many fields a client may have extracted itself beside ours in one reading: the engine keeps them in a
// hash table, whose order changes when it grows.
const maxExtracted = 8

// judgedApart reports whether the fields that hits are judged by need a reading of their own. Read with the fields that the client asks for, they
// could not be separated from these, or would change them. (Elasticsearch puts a hit's fields in another order when "fields" asks for one more.)
func (d Dialect) judgedApart(q *clientSearch, deciding []rule.Deciding) bool {
	if !d.OpenSearch && jsonedit.Get(q.members, "fields") != nil && !q.patternsSketch() {
		return true
	}
	return len(deciding) > 0 && q.inherits() || q.collides(deciding)
}

// inherits reports whether hits stand elsewhere in the reply too, which show what the search's own hits are asked to: in an
// aggregation, or as suggestions of whole documents. What we ask for in addition can't be told from it there.
func (q *clientSearch) inherits() bool {
	return slices.ContainsFunc(q.members, func(m jsonedit.Member) bool {
		switch m.Key {
		case "aggs", "aggregations":
			return bytes.Contains(m.Value, []byte(`"top_hits"`))
		case "suggest":
			return bytes.Contains(m.Value, []byte(`"completion"`))
		}
		return false
	})
}

// collides reports whether the deciding fields, extracted in the client's own reading, could not be told from what the client has
// extracted there.
func (q *clientSearch) collides(deciding []rule.Deciding) bool {
	if len(deciding) == 0 {
		return false
	}
	var names []string
	for _, key := range []string{"docvalue_fields", "fields", "stored_fields"} {
		list, ok := fieldNames(jsonedit.Get(q.members, key))
		if !ok {
			return true
		}
		names = append(names, list...)
		if value, ok := adapters.Last(q.params, key); ok {
			names = append(names, strings.Split(value, ",")...)
		}
	}
	if scripts := jsonedit.Get(q.members, "script_fields"); scripts != nil {
		members, err := jsonedit.Members(scripts)
		if err != nil {
			return true
		}
		for _, m := range members {
			names = append(names, m.Key)
		}
	}
	return len(names)+len(deciding) > maxExtracted || slices.ContainsFunc(names, func(name string) bool {
		return strings.Contains(name, "*") || slices.ContainsFunc(deciding, func(d rule.Deciding) bool { return d.Field == name })
	})
}

// extracted are the fields extracted from a hit.
type extracted []jsonedit.Member

// Values is that of adapters.Shown.
func (fields extracted) Values(d rule.Deciding) (values []string) {
	elements, err := jsonedit.Elements(jsonedit.Get(fields, d.Field))
	if err != nil {
		return nil
	}
	for _, element := range elements {
		if text, ok := jsonedit.ValueText(element); ok {
			values = append(values, text)
		}
	}
	return values
}

// blames reports whether an error names one of the fields that we had extracted: a field without values by document, or of a
// type that is no date, can't be.
func blames(text []byte, deciding []rule.Deciding) bool {
	return slices.ContainsFunc(deciding, func(d rule.Deciding) bool { return strings.Contains(string(text), "["+d.Field+"]") })
}
