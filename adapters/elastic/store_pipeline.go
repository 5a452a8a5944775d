package elastic

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

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

// searchPipeline is OpenSearch's setting of an index that names a pipeline through which it sends every search: requests, and what is found.
const searchPipeline = "index.search.default_pipeline"

// pipe marks the indices, found by a request, that have such a pipeline. It may cut or sort the hits that it is shown, and a page is
// filled from more hits than the client asks for. Where the setting is not shown to a client, none is taken to be there.
func (s *Store) pipe(ctx context.Context, found esapi.IndicesGetFieldMappingRequest, list []adapters.Index) {
	var all map[string]struct{ Settings map[string]string }
	yes := true
	r := esapi.IndicesGetSettingsRequest{
		Index: found.Index, Name: []string{searchPipeline}, FlatSettings: &yes,
		IgnoreUnavailable: found.IgnoreUnavailable, AllowNoIndices: found.AllowNoIndices, ExpandWildcards: found.ExpandWildcards,
	}
	if err := s.do(ctx, r, &all); err != nil {
		return
	}
	for i := range list {
		name := list[i].Name
		if pipeline := all[name].Settings[searchPipeline]; pipeline == "" || pipeline == "_none" {
			s.shared.piped.Delete(name)
			continue
		}
		s.shared.piped.Store(name, true)
		list[i].Piped = true
	}
}

// past has a search of ours go past the search pipelines of its indices: jobs and look-ups go by all that is stored, as it is stored. An
// engine that has no such setting would refuse the parameter.
func (p performer) past(r *http.Request) {
	if names, search := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/_search"); search {
		r.URL.RawQuery = strings.Trim(r.URL.RawQuery+"&"+p.shared.past(strings.Split(names, ",")...), "&")
	}
}

// past returns the parameter that takes a search past the pipelines of indices, or nothing where none is known to have one.
func (s *shared) past(indices ...string) string {
	for _, index := range indices {
		if _, is := s.piped.Load(index); is {
			return "search_pipeline=_none"
		}
	}
	return ""
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
