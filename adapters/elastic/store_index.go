package elastic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"
)

// shape is what an index is made with.
type shape struct {
	// Settings are those that were set, Defaults all others, by their flat names.
	Settings, Defaults map[string]any
	Mappings           mapped
	// DataStream is the data stream that it is behind; empty for none.
	DataStream string `json:"data_stream"`
}

// setting returns a setting, or its default; empty where the engine does not know it.
func (s shape) setting(name string) string {
	for _, from := range []map[string]any{s.Settings, s.Defaults} {
		if value, there := from[name]; there {
			return fmt.Sprint(value)
		}
	}
	return ""
}

// shape returns the shape of an index.
func (s *Store) shape(ctx context.Context, index string) (shape, error) {
	var all map[string]shape
	yes := true
	r := esapi.IndicesGetRequest{Index: []string{url.PathEscape(index)}, FlatSettings: &yes, IncludeDefaults: &yes}
	if err := s.do(ctx, r, &all); err != nil {
		return shape{}, fmt.Errorf("read the settings of %s: %w", index, err)
	}
	one, there := all[index]
	if !there {
		return shape{}, fmt.Errorf("read the settings of %s: the engine says nothing of it", index)
	}
	return one, nil
}

// settings returns what the indices of a request have set of some settings, by the index and the settings' flat names.
func (s *Store) settings(ctx context.Context, r esapi.IndicesGetSettingsRequest, names ...string) (map[string]map[string]string, error) {
	yes := true
	r.Name, r.FlatSettings = names, &yes
	var reply map[string]struct{ Settings map[string]string }
	err := s.do(ctx, r, &reply)
	all := map[string]map[string]string{}
	for index, is := range reply {
		all[index] = is.Settings
	}
	return all, err
}

// Identity implements adapters.JobStore: it is the index's UUID.
func (s *Store) Identity(ctx context.Context, index string) (string, error) {
	all, err := s.settings(ctx, esapi.IndicesGetSettingsRequest{Index: []string{url.PathEscape(index)}}, uuidSetting)
	return all[index][uuidSetting], err
}

// indexTraits are what reading an index's documents, and writing them again, depends on.
type indexTraits struct {
	// uuid differs from that of any index that is created later under the same name.
	uuid   string
	shards int
	// partial is what the mapping says of _source where the index does not keep the whole of it; else empty.
	partial string
	// rebuilt is the setting by which the engine rebuilds a document from its fields rather than keep it as it came; else empty.
	rebuilt string
	// shifting is a field whose vectors each write would change by more than rounding; else empty.
	shifting string
	// joins is a field that joins documents to parents; else empty.
	joins string
	// vectors says that _source is shown without vectors and embeddings unless they are asked for (Elasticsearch since 9.2).
	vectors bool
	// embeds says that the engine computes embeddings of texts. They are kept where they are written back with the document.
	embeds bool
	// update says that documents are changed by the engine's own update, because writing a whole document would do more: run a final
	// pipeline over it once more, or compute all its embeddings again.
	update bool
}

// withVectors is the parameter by which documents are read with their vectors.
const withVectors = "_source_exclude_vectors=false"

// The settings that say how an index keeps its documents. Each engine leaves out those that it does not know.
const (
	// limitSetting bounds how many fields a mapping may hold; fieldLimit is what it is where nobody set it.
	limitSetting = "index.mapping.total_fields.limit"
	fieldLimit   = 1000

	shardsSetting  = "index.number_of_shards"
	uuidSetting    = "index.uuid"
	finalSetting   = "index.final_pipeline"
	modeSetting    = "index.mode"
	sourceSetting  = "index.mapping.source.mode"
	vectorsSetting = "index.mapping.exclude_source_vectors"
	derivedSetting = "index.derived_source.enabled"
	storedSource   = "stored"
	wholeSource    = `{"enabled":true}`
)

// traitsOf asks the engine for the traits of an index.
func (s *Store) traitsOf(ctx context.Context, index string) (indexTraits, error) {
	is, err := s.shape(ctx, index)
	if err != nil {
		return indexTraits{}, err
	}
	return traitsOf(is)
}

// traitsOf returns the traits of an index of a shape.
func traitsOf(is shape) (m indexTraits, err error) {
	if source := string(is.Mappings.Source); source != "" && source != wholeSource {
		m.partial = source
	}
	eachField("", is.Mappings, func(path string, field mapped) {
		if field.Type == "join" {
			m.joins = cmp.Or(m.joins, path)
		}
		if m.embeds = m.embeds || field.embeds(); field.shifts() {
			m.shifting = cmp.Or(m.shifting, path)
		}
	})
	m.uuid, m.vectors = is.setting(uuidSetting), is.setting(vectorsSetting) == "true"
	m.update = m.embeds && !m.vectors || runs(is.setting(finalSetting))
	if !m.vectors {
		m.shifting = ""
	}
	if mode := is.setting(sourceSetting); mode != "" && !strings.EqualFold(mode, storedSource) {
		m.rebuilt = sourceSetting + ": " + strings.ToLower(mode)
	}
	if mode := is.setting(modeSetting); strings.EqualFold(mode, "time_series") {
		m.rebuilt = modeSetting + ": " + mode
	}
	if is.setting(derivedSetting) == "true" {
		m.rebuilt = derivedSetting + ": true"
	}
	if m.shards, _ = strconv.Atoi(is.setting(shardsSetting)); m.shards == 0 || m.uuid == "" {
		return m, errors.New("its settings don't tell how many shards it has, and its UUID")
	}
	return m, nil
}

// altered says why a document of the index that is written again would not be what it was; nil if each would be.
func (m indexTraits) altered() error {
	switch {
	case m.partial != "":
		return fmt.Errorf("the index keeps only a part of its documents (_source is %s)", m.partial)
	case m.rebuilt != "":
		return fmt.Errorf("the index rebuilds its documents from their fields (%s), so what was sent cannot be written again unchanged", m.rebuilt)
	case m.shifting != "":
		return fmt.Errorf("each write would change the vectors of %s that are not of length 1, since the engine keeps them in bfloat16 for cosine similarity",
			m.shifting)
	}
	return nil
}

// writable is altered with what to do about sketches.
func (m indexTraits) writable() error {
	const copied = "%w. New documents get sketches as they are written; for the old ones, copy the index through the sidecar into one "
	switch err := m.altered(); {
	case err == nil:
		return nil
	case m.partial != "":
		return fmt.Errorf("%w: send the documents again instead", err)
	case m.rebuilt != "":
		return fmt.Errorf(copied+"that stores its documents", err)
	default:
		return fmt.Errorf(copied+"with %s: false, or send the documents again", err, vectorsSetting)
	}
}

// mapped is what a mapping says of a field, or of the whole document. Index and DocValues are nil where they are as by default.
type mapped struct {
	Type       string
	Element    string `json:"element_type"`
	Similarity string
	Path       string          // of an alias
	CopyTo     json.RawMessage `json:"copy_to"` // one name or several
	Source     json.RawMessage `json:"_source"`
	Index      *bool
	DocValues  *bool `json:"doc_values"`
	Meta       map[string]string

	Properties, Fields, Runtime declarations
}

// UnmarshalJSON leaves out a member of another type than is known of it.
func (m *mapped) UnmarshalJSON(mapping []byte) error {
	type plain mapped
	_ = json.Unmarshal(mapping, (*plain)(m))
	return nil
}

// embeds reports whether the engine computes embeddings of the field whenever a whole document is written.
func (m mapped) embeds() bool { return m.Type == "semantic_text" || m.Type == "semantic" }

// shifts reports whether the engine keeps the field's vectors as a direction of 16 bits and a length. The rounded direction is not of length
// one, so the vector that it shows is longer or shorter than the one that was written, by up to 0.3 %, and again with each write.
func (m mapped) shifts() bool {
	return m.Type == "dense_vector" && m.Element == "bfloat16" && m.Similarity == "cosine"
}

// eachField visits the document, whose path is empty, and each field of a mapping with those within it.
func eachField(path string, m mapped, visit func(path string, m mapped)) {
	visit(path, m)
	for _, below := range []declarations{m.Properties, m.Fields} {
		for _, name := range slices.Sorted(maps.Keys(below)) {
			eachField(strings.TrimPrefix(path+"."+name, "."), below[name], visit)
		}
	}
}

// fieldsOf counts the fields of a mapping as the engine does: objects, fields of fields, aliases and runtime fields are fields
// too.
func fieldsOf(mapping mapped) int {
	n := -1 // the document itself is no field
	eachField("", mapping, func(_ string, m mapped) { n += 1 + len(m.Runtime) })
	return n
}
