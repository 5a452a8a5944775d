package elastic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// scrollMark begins the name of the query that every document matches and by which every hit of a scroll that we began says so:
// engines tell with each hit which named queries it matched. What follows are scrollMarks.
const scrollMark = "neardup_scroll "

// scrollMarks are what a later page of a scroll has to be told, whichever sidecar it comes through: what the client asked for
// with the first page, and what was added to it.
type scrollMarks struct {
	Window    int     `json:"window"`
	Threshold float64 `json:"threshold,omitempty"`
	Keep      int     `json:"keep,omitempty"`
	DryRun    bool    `json:"dry_run,omitempty"`
	// Shown says that the client names our field, Extracted that it has it extracted.
	Shown     bool `json:"shown,omitempty"`
	Extracted bool `json:"extracted,omitempty"`
	// Texts says that each hit's source holds all sketched texts. Hidden are those that the client does not see, Bare says that
	// it sees no source at all.
	Texts  bool     `json:"texts,omitempty"`
	Hidden []string `json:"hidden,omitempty"`
	Bare   bool     `json:"bare,omitempty"`
	// Deciding are the fields that only we have extracted beside the sketch.
	Deciding []string `json:"deciding,omitempty"`

	filter []byte // the source filter asked with
}

var errCollides = errors.New("what we have to extract could not be told from what the client has extracted")

// marked returns what is told to the later pages of a scroll, and the search that begins it.
func (d Dialect) marked(q *query, p adapters.Plan, scope adapters.Scope) (*scrollMarks, []byte, error) {
	show := scope.Show(q.controls)
	m := &scrollMarks{
		Window: p.Window(scope, q.controls), Threshold: q.controls.Threshold, Keep: q.controls.Keep, DryRun: show.DryRun,
		Shown: q.shown, Extracted: q.extracted, Texts: q.whole,
	}
	deciding := decidingOf(scope.Deciding)
	if q.collides(deciding) || q.inherits() || bytes.Contains(q.body, []byte(`"inner_hits"`)) { // the hits in these are marked too
		return nil, nil, errCollides
	}
	for _, field := range deciding {
		m.Deciding = append(m.Deciding, field.Field)
	}
	// Later pages can hold hits without a sketch though the first has none.
	if t := q.texts(slices.Sorted(slices.Values(scope.Texts))); !q.whole && t.known {
		m.Texts, m.Hidden, m.Bare, m.filter = true, t.hidden, t.all, t.filter
	}
	name, err := json.Marshal(m)
	if err != nil {
		return nil, nil, err
	}
	asked := reading{deciding: deciding, judged: true}
	body, err := listed(q.body, "docvalue_fields", q.extractions(asked))
	if err == nil {
		body, err = adapters.Set(body, "post_filter", everyNamed(adapters.Get(q.members, "post_filter"), scrollMark+string(name)))
	}
	if err == nil && m.filter != nil {
		body, err = adapters.Set(body, "_source", m.filter)
	}
	return m, body, err
}

// everyNamed returns a filter that lets through what the client's does, if there is one, by a query of the name.
func everyNamed(client []byte, name string) []byte {
	return filteredToo(client, append(adapters.AppendString([]byte(`{"match_all":{"_name":`), name), `}}`...))
}

// texts returns how the sketched texts come.
func (m *scrollMarks) texts() texts {
	return texts{known: m.Texts, filter: m.filter, hidden: m.Hidden, all: m.Bare}
}

// bare returns a hit less what only we asked for.
func (m *scrollMarks) bare(hit []byte) ([]byte, error) {
	members, err := adapters.Members(hit)
	if err != nil {
		return nil, err
	}
	if fields := adapters.Get(members, "fields"); fields != nil {
		left, err := adapters.Cut(fields, func(key string) bool {
			only := adapters.Our(key) && !m.Shown
			if key == adapters.SketchField {
				only = !m.Extracted
			}
			return only || slices.Contains(m.Deciding, key)
		})
		if err != nil {
			return nil, err
		}
		if hit, err = orWithout(hit, "fields", left); err != nil {
			return nil, err
		}
	}
	if named := adapters.Get(members, "matched_queries"); named != nil {
		left, err := unmarked(named)
		if err != nil {
			return nil, err
		}
		if hit, err = orWithout(hit, "matched_queries", left); err != nil {
			return nil, err
		}
	}
	if len(m.Hidden) > 0 || m.Bare {
		hit = m.texts().cut(hit)
	}
	return hit, nil
}

// orWithout returns an object with the value, or without the key if nothing is left in the value.
func orWithout(object []byte, key string, value []byte) ([]byte, error) {
	elements, err1 := adapters.Elements(value)
	members, err2 := adapters.Members(value)
	if err := cmp.Or(err1, err2); err1 != nil && err2 != nil {
		return nil, err
	}
	if len(elements)+len(members) == 0 {
		return adapters.Cut(object, func(k string) bool { return k == key })
	}
	return adapters.Set(object, key, value)
}

// queryNames returns the names of the queries that a hit matched: a list, or an object that has their scores too.
func queryNames(value []byte) (names []string) {
	if members, err := adapters.Members(value); err == nil {
		for _, m := range members {
			names = append(names, m.Key)
		}
		return names
	}
	elements, _ := adapters.Elements(value) // none where there are none
	for _, element := range elements {
		if name, ok := adapters.Text(element); ok {
			names = append(names, name)
		}
	}
	return names
}

// unmark empties the name by which a hit is marked, in a page that could not be taken apart.
func unmark(path []string, quoted []byte) []byte {
	named := len(path) > 0 && path[len(path)-1] == "matched_queries" && !slices.Contains(path, "_source")
	if named && bytes.HasPrefix(quoted, []byte(`"`+scrollMark)) {
		return []byte(`""`)
	}
	return quoted
}

// unmarked returns the names of the queries that a hit matched less ours.
func unmarked(value []byte) ([]byte, error) {
	ours := func(name string) bool { return strings.HasPrefix(name, scrollMark) }
	if _, err := adapters.Members(value); err == nil {
		return adapters.Cut(value, ours)
	}
	elements, err := adapters.Elements(value)
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(elements), func(element []byte) bool {
		name, _ := adapters.Text(element)
		return ours(name)
	})
	return joinLike(value, left), nil
}
