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

	"github.com/neardup/sidecar/adapters"
)

// made is how an index was made, as far as reading its documents and writing them again goes.
type made struct {
	// uuid differs from that of any index that is created later under the same name.
	uuid   string
	shards int
	// partial is what the mapping says of _source where the index does not keep the whole of it; else empty.
	partial string
	// rebuilt is the setting by which the engine rebuilds a document from its fields rather than keep it as it came; else empty.
	rebuilt string
	// shifting is a field whose vectors each write would change by more than rounding; else empty.
	shifting string
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

// made asks how an index was made.
func (s *Store) made(ctx context.Context, index string) (m made, err error) {
	var mappings map[string]struct{ Mappings json.RawMessage }
	name := []string{url.PathEscape(index)}
	if err := s.do(ctx, esapi.IndicesGetMappingRequest{Index: name}, &mappings); err != nil {
		return m, err
	}
	for _, one := range mappings {
		var mapping struct {
			Source json.RawMessage `json:"_source"`
		}
		if err := json.Unmarshal(one.Mappings, &mapping); err != nil {
			return m, fmt.Errorf("its mapping is not understood: %w", err)
		}
		if source := string(mapping.Source); source != "" && source != wholeSource {
			m.partial = source
		}
		m.embeds = m.embeds || fieldOf(one.Mappings, "", mapped.embeds) != ""
		m.shifting = cmp.Or(m.shifting, fieldOf(one.Mappings, "", mapped.shifts))
	}
	settings, err := s.settings(ctx, index, shardsSetting, uuidSetting, finalSetting, modeSetting, sourceSetting, vectorsSetting, derivedSetting)
	if err != nil {
		return m, err
	}
	m.uuid, m.vectors = settings[uuidSetting], settings[vectorsSetting] == "true"
	m.update = m.embeds && !m.vectors
	if !m.vectors {
		m.shifting = ""
	}
	if final := settings[finalSetting]; final != "" && final != "_none" {
		m.update = true
	}
	if mode := settings[sourceSetting]; mode != "" && !strings.EqualFold(mode, storedSource) {
		m.rebuilt = sourceSetting + ": " + strings.ToLower(mode)
	}
	if mode := settings[modeSetting]; strings.EqualFold(mode, "time_series") {
		m.rebuilt = modeSetting + ": " + mode
	}
	if settings[derivedSetting] == "true" {
		m.rebuilt = derivedSetting + ": true"
	}
	if m.shards, _ = strconv.Atoi(settings[shardsSetting]); m.shards == 0 || m.uuid == "" {
		return m, errors.New("its settings don't tell how many shards it has, and its UUID")
	}
	return m, nil
}

// settings returns some settings of an index, with the defaults that the engine tells.
func (s *Store) settings(ctx context.Context, index string, names ...string) (map[string]string, error) {
	var reply map[string]struct{ Settings, Defaults map[string]any }
	yes := true
	err := s.do(ctx, esapi.IndicesGetSettingsRequest{
		Index: []string{url.PathEscape(index)}, Name: names, FlatSettings: &yes, IncludeDefaults: &yes,
	}, &reply)
	all := map[string]string{}
	for _, one := range reply {
		for _, from := range []map[string]any{one.Defaults, one.Settings} {
			for name, value := range from {
				all[name] = fmt.Sprint(value)
			}
		}
	}
	return all, err
}

// mapped is what a mapping says of a field, or of the whole document.
type mapped struct {
	Type       string
	Element    string `json:"element_type"`
	Similarity string
	Properties map[string]json.RawMessage
	Fields     map[string]json.RawMessage
}

// embeds reports whether the engine computes embeddings of the field whenever a whole document is written.
func (m mapped) embeds() bool { return m.Type == "semantic_text" || m.Type == "semantic" }

// shifts reports whether the engine keeps the field's vectors as a direction of 16 bits and a length. The rounded direction is not of length
// one, so the vector that it shows is longer or shorter than the one that was written, by up to 0.3 %, and again with each write.
func (m mapped) shifts() bool {
	return m.Type == "dense_vector" && m.Element == "bfloat16" && m.Similarity == "cosine"
}

// fieldOf returns a field of a mapping, below path, that is such a one; empty if there is none.
func fieldOf(mapping json.RawMessage, path string, such func(mapped) bool) string {
	var m mapped
	if json.Unmarshal(mapping, &m) != nil {
		return ""
	}
	if such(m) {
		return path
	}
	for _, below := range []map[string]json.RawMessage{m.Properties, m.Fields} {
		for _, name := range slices.Sorted(maps.Keys(below)) {
			if found := fieldOf(below[name], strings.TrimPrefix(path+"."+name, "."), such); found != "" {
				return found
			}
		}
	}
	return ""
}

// writable says why no document of the index can be written again and be what it was; nil if each can.
func (m made) writable() error {
	switch {
	case m.partial != "":
		return fmt.Errorf("the index keeps only a part of its documents (_source is %s): send the documents again instead", m.partial)
	case m.rebuilt != "":
		return fmt.Errorf("the index rebuilds its documents from their fields (%s), so what was sent cannot be written again unchanged. "+
			"New documents get sketches as they are written; for the old ones, copy the index through the sidecar into one that stores its documents", m.rebuilt)
	case m.shifting != "":
		return fmt.Errorf("each write would change the vectors of %s that are not of length 1, since the engine keeps them in bfloat16 for cosine similarity. "+
			"New documents get sketches as they are written; for the old ones, copy the index through the sidecar into one with "+
			"%s: false, or send the documents again", m.shifting, vectorsSetting)
	}
	return nil
}

// IdentityOf returns what the engine tells an index by, whatever others are made under its name.
func IdentityOf(ctx context.Context, store adapters.Store, index string) (string, error) {
	s, ok := store.(*Store)
	if !ok {
		return "", errForeign
	}
	settings, err := s.settings(ctx, index, uuidSetting)
	return settings[uuidSetting], err
}
