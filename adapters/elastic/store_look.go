package elastic

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
)

const (
	// countedAtOnce is how many indices one search counts the documents of: their names stand in a URL. countedSingly is how many
	// are counted by a request each where no such search is answered.
	countedAtOnce = 50
	countedSingly = 20
)

// Listed returns the concrete indices that a store's credentials may see, with how many documents each holds as far as that is
// told. Data streams come as themselves. Hidden ones come where a rule matches them.
func Listed(ctx context.Context, store adapters.Store) ([]adapters.Listed, error) {
	s, ok := store.(*Store)
	if !ok {
		return nil, errForeign
	}
	indices, err := s.Resolve(ctx, "*")
	if err != nil {
		return nil, err
	}
	var list []adapters.Listed
	for _, i := range indices {
		name := i.Name
		if i.As != "" {
			name = i.As
		}
		same := func(l adapters.Listed) bool { return l.Name == name }
		if strings.HasPrefix(name, ".") && s.rules.For(name) == nil || slices.ContainsFunc(list, same) {
			continue
		}
		list = append(list, adapters.Listed{Index: adapters.Index{Name: name, Mapped: i.Mapped, Ready: i.Ready}, Documents: -1})
	}
	slices.SortFunc(list, func(a, b adapters.Listed) int { return strings.Compare(a.Name, b.Name) })
	for part := range slices.Chunk(list, countedAtOnce) {
		if s.countAll(ctx, part) != nil {
			s.countEach(ctx, part[:min(len(part), countedSingly)])
			break
		}
	}
	return list, nil
}

// countAll counts the documents of some indices by one search.
func (s *Store) countAll(ctx context.Context, list []adapters.Listed) error {
	var names, queries []string
	for _, l := range list {
		names = append(names, url.PathEscape(l.Name))
		name := string(adapters.AppendString(nil, l.Name))
		queries = append(queries, name+`:{"terms":{"_index":[`+name+`]}}`)
	}
	var reply struct {
		Aggregations struct {
			Each struct {
				Buckets map[string]struct {
					Count *int `json:"doc_count"`
				}
			}
		}
	}
	yes := true
	query := fmt.Sprintf(`{"size":0,"aggs":{"each":{"filters":{"filters":{%s}}}}}`, strings.Join(queries, ","))
	r := esapi.SearchRequest{Index: names, IgnoreUnavailable: &yes, AllowNoIndices: &yes, Body: strings.NewReader(query)}
	if err := s.do(ctx, r, &reply); err != nil {
		return err
	}
	for i := range list {
		if n := reply.Aggregations.Each.Buckets[list[i].Name].Count; n != nil {
			list[i].Documents = *n
		}
	}
	return nil
}

// countEach counts the documents of some indices one by one.
func (s *Store) countEach(ctx context.Context, list []adapters.Listed) {
	for i := range list {
		var reply struct{ Count *int }
		r := esapi.CountRequest{Index: []string{url.PathEscape(list[i].Name)}}
		if s.do(ctx, r, &reply) == nil && reply.Count != nil {
			list[i].Documents = *reply.Count
		}
	}
}
