package typesense

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
)

// Product asks the engine behind a store of this package what it is. It tells its version to keys with that right alone.
func Product(ctx context.Context, st adapters.Store) (adapters.Product, error) {
	s, ok := st.(*store)
	if !ok {
		return adapters.Product{}, errForeign
	}
	var about struct{ Version string }
	body, err := s.get(func(c *api.Client) (*http.Response, error) { return c.Debug(ctx) })
	if err == nil && json.Unmarshal(body, &about) == nil && about.Version != "" {
		return adapters.Product{Name: "Typesense", Version: about.Version}, nil
	}
	if err != nil && !forbidden(err) {
		return adapters.Product{}, err
	}
	var health struct{ OK *bool }
	body, sick := s.get(func(c *api.Client) (*http.Response, error) { return c.Health(ctx) })
	if sick == nil && (json.Unmarshal(body, &health) != nil || health.OK == nil) {
		return adapters.Product{}, errors.New("what answers there is not Typesense")
	}
	return adapters.Product{}, sick
}

var errForeign = errors.New("a store of another adapter")

// forbidden reports whether err says that the key is unknown, or not for this: the engine makes no difference.
func forbidden(err error) bool {
	r, refused := errors.AsType[*refusal](err)
	return refused && (r.code == http.StatusUnauthorized || r.code == http.StatusForbidden)
}

// ConditionOf asks for the state of a collection, through a store of this package.
func ConditionOf(ctx context.Context, st adapters.Store, index adapters.Index, rule *adapters.Rule) (adapters.Condition, error) {
	s, ok := st.(*store)
	if !ok {
		return adapters.Condition{}, errForeign
	}
	c, err := s.collection(ctx, index.Name)
	if err != nil {
		return adapters.Condition{}, err
	}
	condition := adapters.Condition{Documents: c.NumDocuments, Sketched: -1}
	for _, field := range rule.Fields {
		if !c.declares(field) {
			condition.Undeclared = append(condition.Undeclared, field)
		}
	}
	for _, d := range rule.Deciding() {
		kind := c.kind(d.Field)
		switch {
		case kind == "" && !c.declares(d.Field):
			condition.Unfit = append(condition.Unfit, adapters.Unfit{Deciding: d})
		case d.Date && !slices.Contains([]string{"", "auto", "int64", "int32", "float"}, kind):
			condition.Unfit = append(condition.Unfit, adapters.Unfit{Deciding: d, Why: "is of type " + kind + ", not int64 with Unix seconds"})
		}
	}
	condition.Refused = s.refused(ctx, index, rule)
	return condition, nil
}

// declares reports whether a collection's schema has a field, by its name or by a pattern of names.
func (c collection) declares(field string) bool {
	for _, f := range c.Fields {
		if f.Name == field {
			return true
		}
		pattern, err := regexp.Compile("^(?:" + f.Name + ")$")
		if err == nil && strings.Contains(f.Name, "*") && pattern.MatchString(field) {
			return true
		}
	}
	return false
}

// kind returns the type of a field that is declared by its name, empty if there is none.
func (c collection) kind(field string) string {
	for _, f := range c.Fields {
		if f.Name == field {
			return f.Type
		}
	}
	return ""
}

// probe is the id of a document that is not there: an update of it asks for all that a patch needs, and changes nothing.
const probe = "neardup-probe"

// refused asks for what setup and reindex do to a collection, in a form that changes nothing, and returns what was refused.
func (s *store) refused(ctx context.Context, index adapters.Index, rule *adapters.Rule) error {
	var errs []error
	if !index.Ready { // no fields are a bad request, to those who may ask
		_, err := s.get(func(c *api.Client) (*http.Response, error) {
			return c.UpdateCollectionWithBody(ctx, index.Name, "application/json", strings.NewReader(`{"fields":[]}`))
		})
		if r, refused := errors.AsType[*refusal](err); err != nil && !(refused && r.code == http.StatusBadRequest) {
			errs = append(errs, fmt.Errorf("change its schema: %w", err))
		}
	}
	if _, err := s.importLines(ctx, index.Name, []byte(`{"id":"`+probe+`"}`)); err != nil {
		errs = append(errs, fmt.Errorf("write its documents: %w", err))
	}
	filter := "id:[" + probe + "]"
	if _, err := s.list(ctx, index.Name, listing{filter, readFields(rule, adapters.Selection{}), 1, 1}); err != nil {
		errs = append(errs, fmt.Errorf("search its documents: %w", err))
	}
	if _, err := s.get(func(c *api.Client) (*http.Response, error) {
		return c.ExportDocuments(ctx, index.Name, &api.ExportDocumentsParams{FilterBy: &filter})
	}); err != nil {
		errs = append(errs, fmt.Errorf("export its documents: %w", err))
	}
	return errors.Join(errs...)
}

// Anything returns a search of a collection for the first documents that there are.
func Anything(index string, fields []string) *adapters.Request {
	query := url.Values{"q": {"*"}, "query_by": {strings.Join(fields, ",")}}
	path := "/collections/" + url.PathEscape(index) + "/documents/search"
	return &adapters.Request{Method: http.MethodGet, Path: path, RawQuery: query.Encode()}
}
