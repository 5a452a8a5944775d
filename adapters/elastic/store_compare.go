package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// The first document that a job writes to an index is compared with what it was before, in all ways in which it can be read or found. So
// a feature of the engine that we do not know stops the job at one document.

// fieldsAtOnce is how many fields one search shows: engines show doc values of 100.
const fieldsAtOnce = 100

// writeAndCompare patches documents one by one until one could be compared with what it was, unless one was already. It fills in their results, and
// returns how many these are.
func (s *Store) writeAndCompare(ctx context.Context, t *destination, patches []adapters.Stored, results []adapters.Result) (done int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.compared {
		return 0, nil
	}
	defer func() {
		if err != nil && errors.Is(s.same(ctx, t), adapters.ErrRecreated) { // which explains whatever was found
			err = adapters.ErrRecreated
		}
	}()
	for i, p := range patches {
		v := versionOf(p)
		before, err := s.view(ctx, t.index, p.ID, p.Routing, t.vectors)
		if err != nil {
			return i, fmt.Errorf("read document %s in all its fields: %w", p.ID, err)
		}
		if before.seqNo != v.seqNo {
			results[i] = adapters.Changed
			continue
		}
		seqNo, err := s.send(ctx, t, patches[i:i+1], results[i:i+1])
		if err != nil {
			return i, err
		}
		if results[i] != adapters.Patched {
			continue
		}
		after, err := s.view(ctx, t.index, p.ID, p.Routing, t.vectors)
		if err != nil {
			return i, fmt.Errorf("read document %s in all its fields: %w", p.ID, err)
		}
		if after.seqNo != seqNo { // somebody else was faster
			continue
		}
		if path, was, is := before.difference(after); path != "" {
			hint := "Please report this, with the index's mapping and settings"
			if strings.Contains(path, "_inference_fields") {
				hint = "Elasticsearch may keep embeddings that are not of length 1 in 16 bits, and then changes them with each write: " +
					"take a model with normalized embeddings, or one whose similarity is dot_product"
			}
			return i, fmt.Errorf("document %s is not what it was after it was written again: %s was %s and is %s. Nothing else was written. %s",
				p.ID, path, was, is, hint)
		}
		t.compared = true
		return i + 1, nil
	}
	return len(patches), nil
}

// changing is the sequence number of a document that changed while it was read.
const changing = math.MaxInt64

// view is all that the engine shows of a document, but our fields.
type view struct {
	s                 *Store
	index, params, id string
	seqNo             int64 // below 0 until it was seen
	// shown are the values by where they are, such as _source.chunks[1].vector[3]. A list also has its length, at tags[], and an object an empty value.
	shown map[string]any
	// rounded are the fields of vectors that the engine rebuilds, such as chunks.vector. It keeps a vector under cosine similarity as its
	// direction and length, so each write can change the last bits of what it shows. Its own update does the same.
	rounded map[string]bool
}

// view reads a document in all ways: its source, its fields, doc values and stored fields, and by which fields it is found. vectors says
// that the engine shows vectors only where they are asked for.
func (s *Store) view(ctx context.Context, index, id, routing string, vectors bool) (v view, err error) {
	if err := s.refresh(ctx, index); err != nil {
		return v, err
	}
	fields, dense, err := s.searchable(ctx, index)
	if err != nil {
		return v, err
	}
	query := url.Values{}
	if routing != "" {
		query.Set("routing", routing)
	}
	v = view{s: s, index: index, params: query.Encode(), id: string(jsonedit.AppendString(nil, id)), seqNo: -1, shown: map[string]any{}}
	if vectors {
		v.params = strings.TrimPrefix(v.params+"&"+withVectors, "&")
		v.rounded = dense
	}
	// Where the index keeps no _source the engine refuses to show fields by it.
	if err = v.ask(ctx, `"fields":["*","_inference_fields"],"stored_fields":["*"],`, nil); err != nil && refusedBy(err) {
		err = v.ask(ctx, `"stored_fields":["*"],`, nil)
	}
	for names := range slices.Chunk(slices.Sorted(maps.Keys(fields)), fieldsAtOnce) {
		if err == nil {
			err = v.fields(ctx, names, fields)
		}
	}
	return v, err
}

// fields asks what the document has in some fields, and by which it is found. Not every type can be asked about: a field that the engine
// refuses to tell of is left out.
func (v *view) fields(ctx context.Context, names []string, hasValues map[string]bool) error {
	var values []string
	for _, name := range names {
		if hasValues[name] {
			values = append(values, string(jsonedit.AppendString(nil, name)))
		}
	}
	err := v.ask(ctx, `"docvalue_fields":[`+strings.Join(values, ",")+`],`, names)
	switch half := len(names) / 2; {
	case err == nil || !refusedBy(err) || errors.Is(err, adapters.ErrBusy):
		return err
	case len(names) > 1:
		if err := v.fields(ctx, names[:half], hasValues); err != nil {
			return err
		}
		return v.fields(ctx, names[half:], hasValues)
	case len(values) > 0:
		return v.fields(ctx, names, nil)
	}
	return nil
}

// ask asks for the document, for what show says, and by which fields it is found.
func (v *view) ask(ctx context.Context, show string, names []string) error {
	var exist []string
	for _, name := range names {
		quoted := string(jsonedit.AppendString(nil, name))
		exist = append(exist, `{"exists":{"field":`+quoted+`,"_name":`+quoted+`}}`)
	}
	body := fmt.Sprintf(`{"size":1,"seq_no_primary_term":true,"_source":true,%s"query":{"bool":{"filter":[{"ids":{"values":[%s]}}],"should":[%s]}}}`,
		show, v.id, strings.Join(exist, ","))
	reply, err := v.s.body(ctx, post(v.index+"/_search", v.params, body), 0)
	if err != nil {
		return err
	}
	return v.add(reply)
}

// searchable returns the fields by which documents of the index can be found, with whether each has doc values. dense are those that are
// vectors.
func (s *Store) searchable(ctx context.Context, index string) (fields, dense map[string]bool, err error) {
	known, err := s.capabilities(ctx, url.PathEscape(index), "fields=*")
	fields, dense = map[string]bool{}, map[string]bool{}
	for name, types := range known {
		for typ, kind := range types {
			if kind.Searchable && !kind.Metadata && !strings.HasPrefix(name, "_") && !rule.Our(name) {
				fields[name], dense[name] = kind.Aggregatable, typ == "dense_vector"
			}
		}
	}
	return fields, dense, err
}

// add takes in what one search shows of the document.
func (v *view) add(reply []byte) error {
	var found struct {
		Hits struct {
			Hits []struct {
				SeqNo   int64          `json:"_seq_no"`
				Source  any            `json:"_source"`
				Fields  map[string]any `json:"fields"`
				Ignored any            `json:"_ignored"`
				Values  map[string]any `json:"ignored_field_values"`
				Routing any            `json:"_routing"`
				Matched []string       `json:"matched_queries"`
			}
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(reply))
	decoder.UseNumber()
	if err := decoder.Decode(&found); err != nil {
		return err
	}
	for _, hit := range found.Hits.Hits {
		if v.seqNo >= 0 && v.seqNo != hit.SeqNo { // it changed from one search to the next
			hit.SeqNo = changing
		}
		v.seqNo = hit.SeqNo
		if source, ok := hit.Source.(map[string]any); ok {
			maps.DeleteFunc(source, func(key string, _ any) bool { return rule.Our(key) })
		}
		maps.DeleteFunc(hit.Fields, func(key string, _ any) bool { return rule.Our(key) })
		// The first search shows the most of it.
		if _, later := v.shown["_source"]; !later {
			v.show("_source", hit.Source)
			v.show("_ignored", hit.Ignored)
			v.show("ignored_field_values", hit.Values)
			v.show("_routing", hit.Routing)
		}
		for name, value := range hit.Fields {
			v.show("the field "+name, value)
		}
		for _, name := range hit.Matched {
			v.show("that it is found by "+name, true)
		}
	}
	return nil
}

// show takes in a value and all that is in it.
func (v *view) show(path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		v.shown[path] = struct{}{}
		for key, inner := range value {
			v.show(path+"."+key, inner)
		}
	case []any:
		v.shown[path+"[]"] = len(value)
		for i, element := range value {
			v.show(fmt.Sprintf("%s[%d]", path, i), element)
		}
	default:
		v.shown[path] = value
	}
}

// difference returns where two views of a document differ first, and both sides of it; an empty path where they are equal.
func (v *view) difference(from view) (where, was, is string) {
	all := maps.Clone(v.shown)
	maps.Copy(all, from.shown)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if a, b := v.shown[path], from.shown[path]; a != b && !v.sameNumber(path, a, b) {
			return path, asText(a), asText(b)
		}
	}
	return "", "", ""
}

// sameNumber reports whether two values at a path are numbers that are equal by value: an update writes 1.50 as 1.5.
func (v *view) sameNumber(path string, a, b any) bool {
	x, one := a.(json.Number)
	y, both := b.(json.Number)
	return one && both && (sameNumber(x.String(), y.String()) || v.rounded[fieldAt(path)] && sameRounded(x, y))
}

// fieldAt returns the field at a path: that of _source.chunks[1].vector[3] is chunks.vector.
func fieldAt(path string) string {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "_source."), "the field ")
	return positions.ReplaceAllString(path, "")
}

var positions = regexp.MustCompile(`\[\d+\]`)

// mostRounded is the greatest relative change of a number that counts as rounding. Random vectors of 3 to 4,096 dimensions changed by
// 1.9e-7 at most, which is about two steps of a number of 32 bits.
const mostRounded = 1e-6

// sameRounded reports whether two numbers are the same but for rounding to 32 bits.
func sameRounded(a, b json.Number) bool {
	x, err := a.Float64()
	y, err2 := b.Float64()
	return err == nil && err2 == nil && math.Abs(x-y) <= mostRounded*math.Abs(x)
}

// sameNumber reports whether two numbers in JSON have the same value.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, ok := new(big.Rat).SetString(short(a))
	y, both := new(big.Rat).SetString(short(b))
	return ok && both && x.Cmp(y) == 0
}

// short returns a number in JSON, or nothing where its exponent is so large that its value takes long to compute.
func short(number string) string {
	if _, exponent, has := strings.Cut(strings.ToLower(number), "e"); has && len(strings.TrimLeft(exponent, "+-0")) > 3 {
		return ""
	}
	return number
}

// asText returns a value in JSON, cut where it is long.
func asText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	if value == nil {
		return "not there"
	}
	if len(text) > 200 {
		return string(text[:200]) + "…"
	}
	return string(text)
}
