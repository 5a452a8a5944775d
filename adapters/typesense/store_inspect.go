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
	"github.com/neardup/sidecar/internal/rule"
)

// Product implements adapters.Inspector. The engine shows its version only to keys with that right.
func (s *Store) Product(ctx context.Context) (adapters.Product, error) {
	version, err := s.version(ctx)
	if version != "" {
		return adapters.Product{Name: "Typesense", Version: version}, nil
	}
	if err != nil && !forbidden(err) {
		return adapters.Product{}, err
	}
	healthy, err := s.healthy(ctx)
	if err == nil && !healthy {
		err = errors.New("what answers there is not Typesense")
	}
	return adapters.Product{}, err
}

// version returns the engine's version, nothing where the reply names none.
func (s *Store) version(ctx context.Context) (string, error) {
	var about struct{ Version string }
	body, err := readAll(s.api.Debug(ctx))
	_ = json.Unmarshal(body, &about)
	return about.Version, err
}

// healthy reports whether the engine answers a request for its health as Typesense does.
func (s *Store) healthy(ctx context.Context) (bool, error) {
	var health struct{ OK *bool }
	body, err := readAll(s.api.Health(ctx))
	return err == nil && json.Unmarshal(body, &health) == nil && health.OK != nil, err
}

// forbidden reports whether err says that the key is unknown, or not for this: the engine makes no difference.
func forbidden(err error) bool {
	return answered(err, http.StatusUnauthorized, http.StatusForbidden)
}

// Condition implements adapters.Inspector.
func (s *Store) Condition(ctx context.Context, index adapters.Index, rule *rule.Rule) (adapters.Condition, error) {
	c, err := s.collection(ctx, index.Name)
	if err != nil {
		return adapters.Condition{}, err
	}
	condition := adapters.Condition{Documents: c.NumDocuments, Sketched: -1}
	for _, field := range rule.Fields {
		if found, dynamic := c.declared(field); found == nil && !dynamic {
			condition.Undeclared = append(condition.Undeclared, field)
		}
	}
	for _, d := range rule.Deciding() {
		found, dynamic := c.declared(d.Field)
		switch {
		case found == nil && !dynamic:
			condition.Unfit = append(condition.Unfit, adapters.Unfit{Deciding: d})
		case found != nil && d.Date && !slices.Contains([]string{"auto", "int64", "int32", "float"}, found.Type):
			why := "is of type " + found.Type + ", not int64 with Unix seconds"
			condition.Unfit = append(condition.Unfit, adapters.Unfit{Deciding: d, Why: why})
		}
	}
	condition.Refused = s.refused(ctx, index, rule)
	return condition, nil
}

// probe is the id of a document that is not there: an update of it asks for all that a patch needs, and changes nothing.
const probe = "neardup-probe"

// refused asks for what setup and reindex do to a collection, in a form that changes nothing, and returns what was refused.
func (s *Store) refused(ctx context.Context, index adapters.Index, rule *rule.Rule) error {
	var errs []error
	if !index.Ready { // no fields are a bad request, to those who may ask
		_, err := readAll(s.api.UpdateCollectionWithBody(ctx, index.Name, "application/json", strings.NewReader(`{"fields":[]}`)))
		if err != nil && !answered(err, http.StatusBadRequest) {
			errs = append(errs, fmt.Errorf("change its schema: %w", err))
		}
	}
	if err := s.update(ctx, index.Name, []byte(`{"id":"`+probe+`"}`), func([]byte) error { return nil }); err != nil {
		errs = append(errs, fmt.Errorf("write its documents: %w", err))
	}
	filter := "id:[" + probe + "]"
	if _, _, err := s.list(ctx, index.Name, listing{filter, readFields(rule, adapters.Selection{}), enginePage{1, 1}}); err != nil {
		errs = append(errs, fmt.Errorf("search its documents: %w", err))
	}
	if _, err := readAll(s.api.ExportDocuments(ctx, index.Name, &api.ExportDocumentsParams{FilterBy: &filter})); err != nil {
		errs = append(errs, fmt.Errorf("export its documents: %w", err))
	}
	return errors.Join(errs...)
}

// Recognize implements adapters.Surveyor.
func (s *Store) Recognize(ctx context.Context) (r adapters.Recognition, ours bool, err error) {
	healthy, err := s.healthy(ctx)
	refused, answered := errors.AsType[*refusal](err)
	switch {
	case answered && refused.code == http.StatusServiceUnavailable && strings.Contains(refused.reason, `"ok"`): // while it catches up
	case answered:
		return r, false, nil
	case err != nil:
		return r, false, err
	case !healthy:
		return r, false, nil
	}
	r.Name = "Typesense"
	if r.Version, err = s.version(ctx); !forbidden(err) {
		return r, true, err
	}
	_, err = readAll(s.api.GetCollections(ctx))
	r.Locked = forbidden(err)
	return r, true, nil
}

// Holdings implements adapters.Surveyor.
func (s *Store) Holdings(ctx context.Context) ([]adapters.Holding, error) {
	all, err := s.collections(ctx, "")
	if err != nil {
		return nil, err
	}
	known, _ := decoded[struct { // a key that may not see them does without
		Aliases []struct {
			Name       string
			Collection string `json:"collection_name"`
		}
	}](s.api.GetAliases(ctx))
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

// Count implements adapters.Surveyor.
func (s *Store) Count(ctx context.Context, names []string) (documents int, err error) {
	for _, name := range names {
		c, err := s.collection(ctx, name)
		if err != nil {
			return 0, err
		}
		documents += c.NumDocuments
	}
	return documents, nil
}

// Fields implements adapters.Surveyor.
func (s *Store) Fields(ctx context.Context, names []string) ([]adapters.Field, error) {
	found, all := map[string]*adapters.Field{}, map[string]map[string]bool{}
	for _, name := range names {
		c, err := s.collection(ctx, name)
		if err != nil {
			return nil, err
		}
		all[name] = map[string]bool{}
		for _, f := range c.Fields {
			if strings.Contains(f.Name, "*") || rule.Our(f.Name) || strings.HasPrefix(f.Type, "object") {
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

// Documents implements adapters.Surveyor.
func (s *Store) Documents(ctx context.Context, name string, fields []string, n int) (list [][]byte, err error) {
	sel := adapters.Selection{Random: true, Limit: n, Brief: true, Fields: fields}
	err = s.Scan(ctx, name, nil, sel, func(page adapters.Page) error {
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
func (Dialect) Words(index string, fields []string, words string) *adapters.Request {
	query := "q=" + url.QueryEscape(words)
	if words != "*" { // the engine refuses fields of vectors there
		query += "&query_by=" + strings.ReplaceAll(url.QueryEscape(strings.Join(fields, ",")), "%2C", ",")
	}
	return &adapters.Request{Method: http.MethodGet, Path: "/collections/" + url.PathEscape(index) + "/documents/search", RawQuery: query}
}

// Listed implements adapters.EngineStore.
func (s *Store) Listed(ctx context.Context) ([]adapters.Listed, error) {
	all, err := s.collections(ctx, "")
	if err != nil {
		return nil, err
	}
	var list []adapters.Listed
	for _, c := range all {
		if strings.HasPrefix(c.Name, ".") && s.rules.For(c.Name) == nil {
			continue
		}
		list = append(list, adapters.Listed{Index: adapters.Index{Name: c.Name}, Documents: c.NumDocuments})
	}
	slices.SortFunc(list, func(a, b adapters.Listed) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
