package elastic

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// create makes the index that a first write to the name would make, if we know which one that is, and returns what the name leads to then.
// absent is what the engine said of the name: that it is called otherwise, or nothing.
func (s *Store) create(ctx context.Context, name string, absent []adapters.Index) ([]adapters.Index, error) {
	concrete := name
	if len(absent) > 0 {
		concrete = absent[0].Name
	}
	list, err := s.composable(ctx)
	var t *blueprint // the first of them that applies
	if first := slices.IndexFunc(list, func(t blueprint) bool { return t.patterns.match(concrete) }); first >= 0 {
		t = &list[first]
	}
	var made shape
	if t != nil {
		var refused error
		made, refused = s.simulated(ctx, esapi.IndicesSimulateIndexTemplateRequest{Name: url.PathEscape(concrete)})
		if refused == nil && made.Mappings.Properties.fit(kept(s.rules.For(concrete))) { // whatever the engine makes declares our fields
			return []adapters.Index{{Name: concrete, Ready: true, Absent: true}}, nil
		}
	}
	if err == nil && s.makesPlain(ctx, concrete, t, made) {
		// By the client's own name for it, as in its write: a rollover goes by that.
		err := s.do(ctx, esapi.IndicesCreateRequest{Index: url.PathEscape(name)}, nil)
		switch {
		case err == nil && concrete == name:
			return []adapters.Index{{Name: name}}, nil
		case err != nil && !refusedBy(err):
			return nil, fmt.Errorf("create index %s: %w", name, err)
		}
	}
	return s.Resolve(ctx, name)
}

// makesPlain reports whether the first write to a missing index makes a plain index, by the template if there is one, rather than nothing or
// something else. In doubt it says no.
func (s *Store) makesPlain(ctx context.Context, name string, t *blueprint, made shape) bool {
	switch {
	case t == nil:
		return s.autoCreates(ctx, name) && !s.legacyPiped(ctx, name)
	case t.streams, made.piped(): // a document that a pipeline sends elsewhere, or nowhere, makes no index here
		return false
	case t.auto != nil:
		return *t.auto
	}
	return s.autoCreates(ctx, name)
}

// patterns are the names of indices that a template is for.
type patterns []string

func (p patterns) match(name string) bool {
	return slices.ContainsFunc(p, func(one string) bool { return rule.Globbed(one, name) })
}

// autoCreates reports whether the cluster lets a first write make an index of that name. In doubt it says no.
func (s *Store) autoCreates(ctx context.Context, name string) bool {
	type level struct {
		Action struct {
			Auto any `json:"auto_create_index"`
		}
		// A filter finds nothing in settings that are asked for in this form, so they are not.
		Flat any `json:"action.auto_create_index"`
	}
	var settings struct{ Transient, Persistent, Defaults level }
	yes := true
	r := esapi.ClusterGetSettingsRequest{IncludeDefaults: &yes, FilterPath: []string{"*.action.auto_create_index"}}
	if s.do(ctx, r, &settings) != nil {
		return false
	}
	for _, l := range []level{settings.Transient, settings.Persistent, settings.Defaults} {
		if value := cmp.Or(l.Action.Auto, l.Flat); value != nil {
			return allows(fmt.Sprint(value), name)
		}
	}
	return false
}

// allows reports whether the setting lets an index of that name be made: it is true or false, or a list of patterns, each with a
// plus or a minus in front or nothing for a plus, of which the first that matches decides. What matches none is not made.
func allows(setting, name string) bool {
	if setting == "true" || setting == "false" {
		return setting == "true"
	}
	for pattern := range strings.SplitSeq(setting, ",") {
		pattern = strings.TrimSpace(pattern)
		bare, refused := strings.CutPrefix(pattern, "-")
		if rule.Globbed(strings.TrimPrefix(bare, "+"), name) {
			return !refused
		}
	}
	return false
}
