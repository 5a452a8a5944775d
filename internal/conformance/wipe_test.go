package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// wiper makes an engine as it was when it started, straight at the engine.
type wiper struct {
	base   string
	client *http.Client
	open   bool                // it is OpenSearch
	kinds  []kind              // those that the engine has
	first  map[string][]string // what there was of each kind, which stays
}

// kind is one kind of things that tests leave behind: where their names are listed and where one is deleted.
type kind struct {
	list, drop string
	names      func(reply any) []string
}

// all kinds are listed in the order in which they can be deleted.
var all = []kind{
	{"/_data_stream?filter_path=data_streams.name", "/_data_stream/", namesIn("data_streams")},
	{state + "indices.*.state", "/", namesAt("metadata", "indices")},
	{"/_index_template?filter_path=index_templates.name", "/_index_template/", namesIn("index_templates")},
	{"/_component_template?filter_path=component_templates.name", "/_component_template/", namesIn("component_templates")},
	{"/_template?filter_path=*.order", "/_template/", namesAt()},
	{"/_ingest/pipeline?filter_path=*.processors", "/_ingest/pipeline/", namesAt()},
	{state + "stored_scripts.*.lang", "/_scripts/", namesAt("metadata", "stored_scripts")},
	{"/_snapshot?filter_path=*.type", "/_snapshot/", namesAt()},
	{"/_search/pipeline?filter_path=*.*", "/_search/pipeline/", namesAt()},
}

const state = "/_cluster/state/metadata?filter_path=metadata."

// namesAt returns the keys of the object at a path.
func namesAt(path ...string) func(any) []string {
	return func(v any) []string {
		for _, key := range path {
			m, _ := v.(map[string]any)
			v = m[key]
		}
		m, _ := v.(map[string]any)
		return slices.Sorted(maps.Keys(m))
	}
}

// namesIn returns the names of the objects in the list under a key.
func namesIn(key string) func(any) []string {
	return func(v any) []string {
		m, _ := v.(map[string]any)
		list, _ := m[key].([]any)
		var names []string
		for _, e := range list {
			m, _ := e.(map[string]any)
			if name, ok := m["name"].(string); ok {
				names = append(names, name)
			}
		}
		return names
	}
}

// newWiper remembers what there is and lets tests delete by patterns, as the suites take for granted.
func newWiper(ctx context.Context, base string, open bool) (*wiper, error) {
	w := &wiper{base: base, client: newClient(), open: open, first: map[string][]string{}}
	for _, k := range all {
		reply, status, err := w.ask(ctx, http.MethodGet, k.list, "")
		if err != nil {
			return nil, err
		}
		if status == http.StatusBadRequest || status == http.StatusMethodNotAllowed { // the engine has no such kind
			continue
		}
		if w.kinds = append(w.kinds, k); k.drop != "/" && k.drop != "/_data_stream/" {
			w.first[k.drop] = k.names(reply)
		}
	}
	return w, w.wipe(ctx)
}

// settings are those that stand after a wipe.
const settings = `{"action":{"destructive_requires_name":"false"}}`

// wipe deletes what a section left behind, and resets the settings of the cluster.
func (w *wiper) wipe(ctx context.Context) error {
	const path = "/_cluster/settings"
	v, _, err := w.ask(ctx, http.MethodGet, path, "")
	if err != nil {
		return err
	}
	if m, _ := v.(map[string]any); show(m["persistent"]) != settings || show(m["transient"]) != "{}" {
		for _, body := range []string{`{"persistent":{"*":null},"transient":{"*":null}}`, `{"persistent":` + settings + `}`} {
			if _, _, err := w.ask(ctx, http.MethodPut, path, body); err != nil {
				return err
			}
		}
	}
	for _, k := range w.kinds {
		reply, _, err := w.ask(ctx, http.MethodGet, k.list, "")
		if err != nil {
			return err
		}
		for _, name := range k.names(reply) {
			if slices.Contains(w.first[k.drop], name) || k.drop == "/" && strings.HasPrefix(name, ".ds-") { // part of a data stream
				continue
			}
			if err := w.drop(ctx, k, name); err != nil {
				return err
			}
		}
	}
	readers := []string{"/_search/scroll/_all"}
	if w.open {
		readers = append(readers, "/_search/point_in_time/_all")
	}
	for _, path := range readers {
		if _, _, err := w.ask(ctx, http.MethodDelete, path, ""); err != nil {
			return err
		}
	}
	return nil
}

// drop deletes one thing, with what is in it where it is a repository.
func (w *wiper) drop(ctx context.Context, k kind, name string) error {
	path := k.drop + escapePart(name)
	if k.drop == "/_snapshot/" {
		if _, _, err := w.ask(ctx, http.MethodDelete, path+"/*", ""); err != nil {
			return err
		}
	}
	reply, status, err := w.ask(ctx, http.MethodDelete, path, "")
	if err == nil && status >= 400 && status != http.StatusNotFound {
		err = fmt.Errorf("delete %s: status %d: %.200s", path, status, show(reply))
	}
	return err
}

// ask sends a request and returns what the reply holds, if it is JSON.
func (w *wiper) ask(ctx context.Context, method, path, body string) (reply any, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, w.base+path, strings.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		_ = json.Unmarshal(text, &reply) // an error need not be JSON
	}
	return reply, resp.StatusCode, err
}
