package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
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
	many       bool           // several names, with commas, are deleted at once
	by         *regexp.Regexp // matches the endpoints that make them, and nil all
}

// all kinds are listed in the order in which they can be deleted.
var all = []kind{
	{list: "/_data_stream?filter_path=data_streams.name", drop: "/_data_stream/", names: namesIn("data_streams"), many: true,
		by: regexp.MustCompile("data_stream|index_template")},
	{list: state + "indices.*.state", drop: "/", names: namesAt("metadata", "indices"), many: true},
	{list: "/_index_template?filter_path=index_templates.name", drop: "/_index_template/", names: namesIn("index_templates"),
		by: regexp.MustCompile("index_template")},
	{list: "/_component_template?filter_path=component_templates.name", drop: "/_component_template/",
		names: namesIn("component_templates"), by: regexp.MustCompile("component_template")},
	{list: "/_template?filter_path=*.order", drop: "/_template/", names: namesAt(), by: regexp.MustCompile("put_template")},
	{list: "/_ingest/pipeline?filter_path=*.processors", drop: "/_ingest/pipeline/", names: namesAt(),
		by: regexp.MustCompile("ingest")},
	{list: state + "stored_scripts.*.lang", drop: "/_scripts/", names: namesAt("metadata", "stored_scripts"),
		by: regexp.MustCompile("script")},
	{list: "/_snapshot?filter_path=*.type", drop: "/_snapshot/", names: namesAt(), by: regexp.MustCompile("snapshot")},
	{list: "/_search/pipeline?filter_path=*.*", drop: "/_search/pipeline/", names: namesAt(), by: regexp.MustCompile("pipeline")},
}

const state = "/_cluster/state/metadata?filter_path=metadata."

// The same of what is no kind of its own.
var (
	setters = regexp.MustCompile("put_settings")
	readers = regexp.MustCompile("scroll|pit|point_in_time")
)

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
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	for _, k := range all {
		status, _, err := w.ask(ctx, http.MethodGet, k.list, "")
		if err != nil {
			return nil, err
		}
		if status == http.StatusBadRequest || status == http.StatusMethodNotAllowed { // the engine has no such kind
			continue
		}
		w.kinds = append(w.kinds, k)
		names, err := w.names(ctx, k)
		if err != nil {
			return nil, err
		}
		if k.drop != "/" && k.drop != "/_data_stream/" {
			w.first[k.drop] = names
		}
	}
	return w, w.wipe(ctx, nil)
}

// settings are those that stand after a wipe.
const settings = `{"action":{"destructive_requires_name":"false"}}`

// settle resets the settings of the cluster.
func (w *wiper) settle(ctx context.Context) error {
	v, err := w.get(ctx, "/_cluster/settings")
	if err != nil {
		return err
	}
	m, _ := v.(map[string]any)
	if show(m["persistent"]) == settings && show(m["transient"]) == "{}" {
		return nil
	}
	body := `{"persistent":{"*":null},"transient":{"*":null}}`
	if err := w.put(ctx, "/_cluster/settings", body); err != nil {
		return err
	}
	return w.put(ctx, "/_cluster/settings", `{"persistent":`+settings+`}`)
}

// wipe deletes what a section left behind, judging by what it asked for; without a trace, whatever there is.
func (w *wiper) wipe(ctx context.Context, trace []exchange) error {
	var b strings.Builder
	for _, x := range trace {
		b.WriteString(x.api + x.url + "\n")
	}
	made := func(by *regexp.Regexp) bool { return by == nil || trace == nil || by.MatchString(b.String()) }
	if made(setters) {
		if err := w.settle(ctx); err != nil {
			return err
		}
	}
	for _, k := range w.kinds {
		if !made(k.by) {
			continue
		}
		if err := w.clear(ctx, k); err != nil {
			return err
		}
	}
	if made(readers) {
		return w.closeReaders(ctx)
	}
	return nil
}

// clear deletes all of a kind but what there was at first.
func (w *wiper) clear(ctx context.Context, k kind) error {
	names, err := w.names(ctx, k)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(w.first[k.drop], name) })
	if k.many && len(names) > 0 {
		names = []string{strings.Join(names, ",")}
	}
	for _, name := range names {
		if err := w.drop(ctx, k, name); err != nil {
			return err
		}
	}
	return nil
}

// drop deletes one thing, with what is in it where it is a repository.
func (w *wiper) drop(ctx context.Context, k kind, name string) error {
	if k.drop == "/_snapshot/" {
		_, _, err := w.ask(ctx, http.MethodDelete, k.drop+escapePart(name)+"/*", "")
		if err != nil {
			return err
		}
	}
	status, body, err := w.ask(ctx, http.MethodDelete, k.drop+escapePart(name), "")
	if err != nil {
		return err
	}
	if status >= 400 && status != 404 {
		return fmt.Errorf("delete %s%s: status %d: %.200s", k.drop, name, status, body)
	}
	return nil
}

// closeReaders ends scrolls and points in time.
func (w *wiper) closeReaders(ctx context.Context) error {
	if _, _, err := w.ask(ctx, http.MethodDelete, "/_search/scroll/_all", ""); err != nil {
		return err
	}
	if !w.open {
		return nil
	}
	_, _, err := w.ask(ctx, http.MethodDelete, "/_search/point_in_time/_all", "")
	return err
}

func (w *wiper) names(ctx context.Context, k kind) ([]string, error) {
	v, err := w.get(ctx, k.list)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range k.names(v) {
		if k.drop != "/" || !strings.HasPrefix(name, ".ds-") { // those go with their data stream
			names = append(names, name)
		}
	}
	return names, nil
}

// get asks for a list, which is nil where there is nothing of the kind.
func (w *wiper) get(ctx context.Context, path string) (any, error) {
	status, body, err := w.ask(ctx, http.MethodGet, path, "")
	if err != nil || status == http.StatusNotFound {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("get %s: status %d: %.200s", path, status, body)
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	return v, nil
}

func (w *wiper) put(ctx context.Context, path, text string) error {
	status, body, err := w.ask(ctx, http.MethodPut, path, text)
	if err == nil && status >= 300 {
		err = fmt.Errorf("put %s: status %d: %.200s", path, status, body)
	}
	return err
}

func (w *wiper) ask(ctx context.Context, method, path, text string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.base+path, bytes.NewReader([]byte(text)))
	if err != nil {
		return 0, nil, err
	}
	if text != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
