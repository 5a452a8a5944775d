package elastic

import (
	"context"
	"fmt"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
)

// Pipelines returns the ingest pipelines that indices of the rules run over every document, by the index. What they change in a
// sketched field comes after the sketch.
func (s *Store) Pipelines(ctx context.Context, rules adapters.Rules) (map[string][]string, error) {
	var all map[string]struct{ Settings map[string]string }
	yes := true
	names := []string{"index.default_pipeline", "index.final_pipeline"}
	r := esapi.IndicesGetSettingsRequest{Name: names, FlatSettings: &yes, ExpandWildcards: "all"}
	d, err := s.ask(ctx, r, &all)
	if err != nil && !missing(err) {
		return nil, fmt.Errorf("read the pipelines of indices: %w", err)
	}
	found := map[string][]string{}
	for index, is := range all {
		for _, name := range names {
			if pipeline := is.Settings[name]; pipeline != "" && pipeline != "_none" && rules.For(d.ruleName(index)) != nil {
				found[index] = append(found[index], pipeline)
			}
		}
	}
	return found, nil
}
