package embedded

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// index is one index: its documents, and the inverted index of their text and keyword fields.
type index struct {
	name, uuid string
	created    time.Time
	replicas   string
	fields     map[string]*field // by full name, objects included
	dynamic    string            // true, false or strict
	meta       json.RawMessage
	docs       map[string]*document
	gone       map[string]int64 // versions of deleted documents: a new document with the id continues them
	seqNo      int64            // of the next write
	inverted   map[term]map[*document]bool
	stats      map[string]fieldStats // nil after a write
}

// create makes an empty index.
func (e *Engine) create(name string) (*index, error) {
	if err := validName(name); err != nil {
		return nil, err
	}
	if x := e.indices[name]; x != nil {
		f := fail(http.StatusBadRequest, "resource_already_exists_exception", "index [%s/%s] already exists", name, x.uuid)
		f.cause.UUID, f.cause.Index = x.uuid, name
		return nil, f
	}
	x := &index{name: name, uuid: rand.Text()[:22], created: time.Now(), replicas: "1", fields: map[string]*field{}, dynamic: "true",
		docs: map[string]*document{}, gone: map[string]int64{}, inverted: map[term]map[*document]bool{}}
	e.indices[name] = x
	return x, nil
}

// autoCreate returns the index of that name, made if need be.
func (e *Engine) autoCreate(name string) (*index, error) {
	if x := e.indices[name]; x != nil {
		return x, nil
	}
	return e.create(name)
}

func validName(name string) error {
	reason := ""
	switch {
	case name != strings.ToLower(name):
		reason = "must be lowercase"
	case strings.HasPrefix(name, "_"), strings.HasPrefix(name, "-"), strings.HasPrefix(name, "+"):
		reason = "must not start with '_', '-', or '+'"
	case strings.ContainsAny(name, `\/*?"<>| ,#:`):
		reason = `must not contain the following characters ['\','/','*','?','"','<','>','|',' ',',']`
	case name == "" || name == "." || name == ".." || len(name) > 255:
		reason = "must not be empty, '.', '..' or longer than 255 bytes"
	default:
		return nil
	}
	f := fail(http.StatusBadRequest, "invalid_index_name_exception", "Invalid index name [%s], %s", name, reason)
	f.cause.UUID, f.cause.Index = "_na_", name
	return f
}

// resolve returns the indices that the request's path names, sorted.
func (e *Engine) resolve(r *request) ([]*index, error) {
	if strings.HasPrefix(r.PathValue("index"), "_") && r.PathValue("index") != "_all" {
		return nil, unsupported(r.Method + " " + r.URL.Path)
	}
	return e.expand(r.PathValue("index"), r.flag("ignore_unavailable"), r.params.Get("allow_no_indices") == "false")
}

// expand resolves a comma list of names and wildcards.
func (e *Engine) expand(expr string, ignoreMissing, needSome bool) ([]*index, error) {
	found := map[string]*index{}
	for part := range strings.SplitSeq(expr, ",") {
		if part == "_all" || part == "" {
			part = "*"
		}
		pattern, without := strings.CutPrefix(part, "-")
		switch {
		case strings.Contains(part, "*"):
			for name, x := range e.indices {
				if wildcard(pattern, name) && without {
					delete(found, name)
				} else if wildcard(pattern, name) && (name[0] != '.' || pattern[0] == '.') {
					found[name] = x
				}
			}
		case e.indices[part] != nil:
			found[part] = e.indices[part]
		case !ignoreMissing:
			return nil, noSuchIndex(part)
		}
	}
	if len(found) == 0 && needSome {
		return nil, noSuchIndex(expr)
	}
	list := slices.Collect(maps.Values(found))
	slices.SortFunc(list, func(a, b *index) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

func (e *Engine) createIndex(r *request) (int, any, error) {
	var body struct {
		Settings map[string]any             `json:"settings"`
		Mappings json.RawMessage            `json:"mappings"`
		Aliases  map[string]json.RawMessage `json:"aliases"`
	}
	if len(r.body) > 0 {
		list, err := members(r.body)
		if err != nil {
			return 0, nil, err
		}
		for _, m := range list {
			if !slices.Contains([]string{"settings", "mappings", "aliases"}, m.key) {
				return 0, nil, fail(http.StatusBadRequest, "parse_exception", "unknown key [%s] for create index", m.key)
			}
		}
		if err := json.Unmarshal(r.body, &body); err != nil {
			return 0, nil, illegal("read body: %v", err)
		}
	}
	if len(body.Aliases) > 0 {
		return 0, nil, unsupported("aliases")
	}
	replicas, err := readSettings(body.Settings, "")
	if err != nil {
		return 0, nil, err
	}
	x, err := e.create(r.PathValue("index"))
	if err != nil {
		return 0, nil, err
	}
	if replicas != "" {
		x.replicas = replicas
	}
	if len(body.Mappings) > 0 {
		if err := x.putMappings(body.Mappings); err != nil {
			delete(e.indices, x.name)
			return 0, nil, err
		}
	}
	return http.StatusOK, appendJSON(nil, struct {
		Acknowledged bool   `json:"acknowledged"`
		Shards       bool   `json:"shards_acknowledged"`
		Index        string `json:"index"`
	}{true, true, x.name}), nil
}

// readSettings takes the settings that change no reply, nested or dotted, and refuses the others.
func readSettings(settings map[string]any, prefix string) (replicas string, err error) {
	for key, v := range settings {
		name := strings.TrimPrefix(prefix+key, "index.")
		switch nested, ok := v.(map[string]any); {
		case ok:
			var n string
			if n, err = readSettings(nested, prefix+key+"."); n != "" {
				replicas = n
			}
		case name == "number_of_replicas":
			replicas = text(v)
		case name == "number_of_shards", name == "refresh_interval":
		default:
			err = unsupported("the setting index." + name)
		}
		if err != nil {
			return "", err
		}
	}
	return replicas, nil
}

func (e *Engine) getIndex(r *request) (int, any, error) {
	list, err := e.resolve(r)
	out := map[string]any{}
	for _, x := range list {
		out[x.name] = map[string]any{"aliases": map[string]any{}, "mappings": x.mappings(), "settings": map[string]any{"index": map[string]any{
			"number_of_shards": "1", "number_of_replicas": x.replicas, "provided_name": x.name, "uuid": x.uuid,
			"creation_date": strconv.FormatInt(x.created.UnixMilli(), 10), "version": map[string]string{"created": "8537000"}}}}
	}
	return http.StatusOK, out, err
}

// settings returns an index's settings by their flat names.
func (x *index) settings() map[string]string {
	return map[string]string{
		"index.number_of_shards": "1", "index.number_of_replicas": x.replicas, "index.provided_name": x.name, "index.uuid": x.uuid,
		"index.creation_date": strconv.FormatInt(x.created.UnixMilli(), 10), "index.version.created": "8537000",
	}
}

func (e *Engine) indexSettings(r *request) (int, any, error) {
	if r.params.Get("flat_settings") != "true" {
		return 0, nil, unsupported("_settings without flat_settings=true")
	}
	list, err := e.resolve(r)
	out := map[string]any{}
	for _, x := range list {
		out[x.name] = map[string]any{"settings": x.settings()}
	}
	return http.StatusOK, out, err
}

// clusterSettings answers the one setting that says what a first write does here.
func (e *Engine) clusterSettings(*request) (int, any, error) {
	return http.StatusOK, []byte(`{"persistent":{},"transient":{},"defaults":{"action.auto_create_index":"true"}}`), nil
}

// templates answers with an empty list.
func (e *Engine) templates(*request) (int, any, error) {
	return http.StatusOK, []byte(`{"index_templates":[]}`), nil
}

func (e *Engine) legacyTemplates(*request) (int, any, error) { return http.StatusOK, []byte(`{}`), nil }

func (e *Engine) deleteIndex(r *request) (int, any, error) {
	if name := r.PathValue("index"); strings.Contains(name, "*") || name == "_all" {
		return 0, nil, illegal("Wildcard expressions or all indices are not allowed")
	}
	list, err := e.resolve(r)
	for _, x := range list {
		delete(e.indices, x.name)
	}
	return http.StatusOK, []byte(`{"acknowledged":true}`), err
}

func (e *Engine) catIndices(r *request) (int, any, error) {
	if r.params.Get("format") != "json" {
		return 0, nil, unsupported("_cat without format=json")
	}
	list, err := e.expand("*", false, false)
	out := []map[string]string{}
	for _, x := range list {
		out = append(out, map[string]string{"health": "green", "status": "open", "index": x.name, "uuid": x.uuid, "pri": "1", "rep": x.replicas,
			"docs.count": strconv.Itoa(len(x.docs)), "docs.deleted": "0"})
	}
	return http.StatusOK, out, err
}

func (e *Engine) refresh(r *request) (int, any, error) {
	list, err := e.resolve(r)
	return http.StatusOK, map[string]shards{"_shards": {len(list) * 2, len(list), 0}}, err
}
