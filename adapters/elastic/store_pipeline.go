package elastic

import (
	"context"
	"fmt"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
)

// pipelineSettings are the settings of an index that name the pipelines which it runs over every document.
var pipelineSettings = []string{"index.default_pipeline", "index.final_pipeline"}

// piped reports whether an index runs a pipeline over every document, which may then go elsewhere or nowhere.
func (s shape) piped() bool {
	return slices.ContainsFunc(pipelineSettings, func(name string) bool {
		pipeline, _ := s.Settings[name].(string)
		return pipeline != "" && pipeline != "_none"
	})
}

// legacyPiped reports whether a legacy template gives a new index of that name a pipeline. In doubt it says yes.
func (s *Store) legacyPiped(ctx context.Context, name string) bool {
	list, err := s.legacy(ctx)
	return err != nil || slices.ContainsFunc(list, func(t blueprint) bool { return t.patterns.match(name) && t.made.piped() })
}

// Pipelines returns the ingest pipelines that indices of the rules run over every document, by the index. What they change in a
// sketched field comes after the sketch.
func (s *Store) Pipelines(ctx context.Context, rules adapters.Rules) (map[string][]string, error) {
	var all map[string]struct{ Settings map[string]string }
	yes := true
	r := esapi.IndicesGetSettingsRequest{Name: pipelineSettings, FlatSettings: &yes, ExpandWildcards: "all"}
	d, err := s.ask(ctx, r, &all)
	if err != nil && !missing(err) {
		return nil, fmt.Errorf("read the pipelines of indices: %w", err)
	}
	found := map[string][]string{}
	for index, is := range all {
		for _, name := range pipelineSettings {
			if pipeline := is.Settings[name]; pipeline != "" && pipeline != "_none" && rules.For(d.ruleName(index)) != nil {
				found[index] = append(found[index], pipeline)
			}
		}
	}
	return found, nil
}
