package typesense

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
)

// Recognize asks what answers behind a store of this package. It returns false where that is not this engine.
func Recognize(ctx context.Context, st adapters.Store) (r adapters.Recognition, ours bool, err error) {
	s, ok := st.(*store)
	if !ok {
		return r, false, errForeign
	}
	var health struct{ OK *bool }
	body, err := s.get(func(c *api.Client) (*http.Response, error) { return c.Health(ctx) })
	refused, answered := errors.AsType[*refusal](err)
	switch {
	case answered && refused.code == http.StatusServiceUnavailable && strings.Contains(refused.reason, `"ok"`): // while it catches up
	case answered:
		return r, false, nil
	case err != nil:
		return r, false, err
	case json.Unmarshal(body, &health) != nil || health.OK == nil:
		return r, false, nil
	}
	r.Name = "Typesense"
	var about struct{ Version string }
	body, err = s.get(func(c *api.Client) (*http.Response, error) { return c.Debug(ctx) })
	if err == nil && json.Unmarshal(body, &about) == nil {
		r.Version = about.Version
	}
	if !forbidden(err) {
		return r, true, err
	}
	_, err = s.get(func(c *api.Client) (*http.Response, error) { return c.GetCollections(ctx) })
	r.Locked = forbidden(err)
	return r, true, nil
}

// Holdings returns the collections of the engine behind a store of this package, sorted by name.
func Holdings(ctx context.Context, st adapters.Store) ([]adapters.Holding, error) {
	s, ok := st.(*store)
	if !ok {
		return nil, errForeign
	}
	all, err := s.collections(ctx, "")
	if err != nil {
		return nil, err
	}
	var known struct {
		Aliases []struct {
			Name       string
			Collection string `json:"collection_name"`
		}
	}
	if body, err := s.get(func(c *api.Client) (*http.Response, error) { return c.GetAliases(ctx) }); err == nil {
		_ = json.Unmarshal(body, &known) // a key that may not see them does without
	}
	var list []adapters.Holding
	for _, c := range all {
		h := adapters.Holding{Name: c.Name}
		for _, alias := range known.Aliases {
			if alias.Collection == c.Name {
				h.Aliases = append(h.Aliases, alias.Name)
			}
		}
		slices.Sort(h.Aliases)
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b adapters.Holding) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// DocumentsIn counts the documents of some collections.
func DocumentsIn(ctx context.Context, st adapters.Store, names []string) (documents int, err error) {
	s, ok := st.(*store)
	if !ok {
		return 0, errForeign
	}
	for _, name := range names {
		c, err := s.collection(ctx, name)
		if err != nil {
			return 0, err
		}
		documents += c.NumDocuments
	}
	return documents, nil
}

// Fields returns the fields that are declared in some collections by a name of their own, sorted.
func Fields(ctx context.Context, st adapters.Store, names []string) ([]adapters.Field, error) {
	s, ok := st.(*store)
	if !ok {
		return nil, errForeign
	}
	found, all := map[string]*adapters.Field{}, map[string]map[string]bool{}
	for _, name := range names {
		c, err := s.collection(ctx, name)
		if err != nil {
			return nil, err
		}
		all[name] = map[string]bool{}
		for _, f := range c.Fields {
			if strings.ContainsAny(f.Name, "*") || adapters.Our(f.Name) || strings.HasPrefix(f.Type, "object") {
				continue
			}
			all[name][f.Name] = true
			if found[f.Name] == nil {
				found[f.Name] = &adapters.Field{Name: f.Name, Kind: kindOf(f.Name, f.Type)}
			}
		}
	}
	var list []adapters.Field
	for field, f := range found {
		for _, name := range names {
			if !all[name][field] {
				f.Lacking = append(f.Lacking, name)
			}
		}
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b adapters.Field) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// kindOf returns what a field is to an operator. The engine has no type for dates: numbers of seconds go by names such as
// published_at.
func kindOf(name, kind string) adapters.FieldKind {
	switch kind {
	case "string", "string[]", "string*", "auto":
		return adapters.TextKind
	case "float[]":
		return adapters.VectorKind
	case "int64":
		last := name[strings.LastIndexByte(name, '.')+1:]
		for _, word := range []string{"date", "time", "created", "published", "updated"} {
			if strings.Contains(last, word) {
				return adapters.DateKind
			}
		}
		if strings.HasSuffix(last, "_at") {
			return adapters.DateKind
		}
	}
	return adapters.OtherKind
}

// Documents returns so many documents of a collection, chosen at random, with what they hold in these fields.
func Documents(ctx context.Context, st adapters.Store, name string, fields []string, n int) (list [][]byte, err error) {
	if _, ok := st.(*store); !ok {
		return nil, errForeign
	}
	sel := adapters.Selection{Random: true, Limit: n, Brief: true, Fields: fields}
	err = st.Scan(ctx, name, nil, sel, func(page adapters.Page) error {
		for _, d := range page.Documents {
			list = append(list, d.Source)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read documents: %w", err)
	}
	return list, nil
}

// Words returns a search for words in some fields of a collection, short enough to be typed.
func Words(index string, fields []string, words string) *adapters.Request {
	query := "q=" + url.QueryEscape(words) + "&query_by=" + strings.ReplaceAll(url.QueryEscape(strings.Join(fields, ",")), "%2C", ",")
	return &adapters.Request{Method: http.MethodGet, Path: "/collections/" + url.PathEscape(index) + "/documents/search", RawQuery: query}
}
