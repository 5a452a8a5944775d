package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
)

// Product asks the engine behind a store of this package what it is.
func Product(ctx context.Context, store adapters.Store) (adapters.Product, error) {
	s, ok := store.(*Store)
	if !ok {
		return adapters.Product{}, errForeign
	}
	var said about
	err := s.do(ctx, esapi.InfoRequest{}, &said)
	if forbidden(err) {
		var p adapters.Product
		s.nodes(ctx, &p)
		return p, nil
	}
	if _, odd := errors.AsType[*json.SyntaxError](err); odd || err == nil && said.Version.Number == "" {
		return adapters.Product{}, errors.New("what answers there is neither Elasticsearch nor OpenSearch")
	}
	if err != nil {
		return adapters.Product{}, err
	}
	p := said.product()
	s.nodes(ctx, &p)
	return p, nil
}

// The names of the engines, as they give them.
const (
	elasticsearch = "Elasticsearch"
	opensearch    = "OpenSearch"
)

// about is what an engine says of itself at its root.
type about struct {
	Version struct{ Number, Distribution string }
	Cluster string `json:"cluster_uuid"`
	Tagline string
}

func (a *about) product() adapters.Product {
	p := adapters.Product{Name: elasticsearch, Version: a.Version.Number, Cluster: a.Cluster}
	if a.Version.Distribution == "opensearch" || strings.Contains(a.Tagline, opensearch) {
		p.Name = opensearch
	}
	return p
}

var errForeign = errors.New("a store of another adapter")

// forbidden reports whether err says that the credentials are good, and not for this.
func forbidden(err error) bool {
	r, refused := errors.AsType[*refusal](err)
	return refused && r.status == http.StatusForbidden
}

// nodes adds the addresses that sniffing clients are told, and what OpenSearch's nodes listen to beside HTTP, where that is told.
func (s *Store) nodes(ctx context.Context, p *adapters.Product) {
	var reply struct {
		Nodes map[string]struct {
			HTTP struct {
				Address string `json:"publish_address"`
			}
			Settings struct {
				Aux struct{ Transport struct{ Types settingList } }
			}
		}
	}
	const fields = "nodes.*.http.publish_address,nodes.*.settings.aux.transport.types"
	if s.do(ctx, esapi.NodesInfoRequest{Metric: []string{"http", "settings"}, FilterPath: []string{fields}}, &reply) != nil {
		return
	}
	for _, node := range reply.Nodes {
		if node.HTTP.Address != "" {
			p.Nodes = append(p.Nodes, node.HTTP.Address)
		}
		for _, kind := range node.Settings.Aux.Transport.Types {
			p.Beside = append(p.Beside, "aux.transport.types: "+kind)
		}
	}
	slices.Sort(p.Nodes)
	slices.Sort(p.Beside)
	p.Beside = slices.Compact(p.Beside)
}

// settingList is a setting that is a list, or one value of it.
type settingList []string

// UnmarshalJSON implements json.Unmarshaler.
func (l *settingList) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*l = strings.Split(one, ",")
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// ConditionOf asks for the state of an index, through a store of this package.
func ConditionOf(ctx context.Context, store adapters.Store, index adapters.Index, rule *adapters.Rule) (
	c adapters.Condition, err error,
) {
	s, ok := store.(*Store)
	if !ok {
		return c, errForeign
	}
	if err := s.countSketched(ctx, index.Name, &c); err != nil {
		return c, fmt.Errorf("count its documents: %w", err)
	}
	var known map[string]struct{ Mappings map[string]json.RawMessage }
	fields := esapi.IndicesGetFieldMappingRequest{Index: []string{url.PathEscape(index.Name)}, Fields: rule.Fields}
	if err := s.do(ctx, fields, &known); err != nil {
		return c, fmt.Errorf("read its mapping: %w", err)
	}
	for _, field := range rule.Fields {
		if _, mapped := known[index.Name].Mappings[field]; !mapped {
			c.Undeclared = append(c.Undeclared, field)
		}
	}
	if err := s.countFields(ctx, index.Name, &c); err != nil {
		return c, fmt.Errorf("read its mapping: %w", err)
	}
	if c.Unfit, err = s.unfit(ctx, index.Name, rule.Deciding()); err != nil {
		return c, fmt.Errorf("read its mapping: %w", err)
	}
	c.Refused = s.refused(ctx, index)
	return c, nil
}

// unfit returns which of the fields have no values by document, or none that are dates where such are wanted.
func (s *Store) unfit(ctx context.Context, index string, fields []adapters.Deciding) (list []adapters.Unfit, err error) {
	if len(fields) == 0 {
		return nil, nil
	}
	var names []string
	for _, d := range fields {
		for name := d.Field; name != ""; name = name[:max(0, strings.LastIndexByte(name, '.'))] {
			names = append(names, name) // the objects that it stands in, too
		}
	}
	var known struct {
		Fields map[string]map[string]struct{ Aggregatable bool }
	}
	request := esapi.FieldCapsRequest{Index: []string{url.PathEscape(index)}, Fields: names}
	if err := s.do(ctx, request, &known); err != nil {
		return nil, err
	}
	for _, d := range fields {
		if why, fit := fits(d, known.Fields[d.Field]); !fit {
			list = append(list, adapters.Unfit{Deciding: d, Why: why})
			continue
		}
		for name := range known.Fields {
			if _, nested := known.Fields[name]["nested"]; nested && strings.HasPrefix(d.Field, name+".") {
				why := "stands in " + name + ", which is nested: its values belong to no document by itself"
				list = append(list, adapters.Unfit{Deciding: d, Why: why})
			}
		}
	}
	return list, nil
}

// fits reports whether a field's types serve to decide by it, and if not, why; nothing where it has none.
func fits(d adapters.Deciding, types map[string]struct{ Aggregatable bool }) (why string, fit bool) {
	for kind, can := range types {
		switch {
		case kind == "text" && !can.Aggregatable:
			return "is a text: name a keyword, such as " + d.Field + ".keyword where there is one", false
		case !can.Aggregatable:
			return "is of type " + kind + " and has no doc values", false
		case d.Date && kind != "date" && kind != "date_nanos":
			return "is of type " + kind + ", not a date", false
		}
	}
	return "", len(types) > 0
}

// countSketched counts the documents of an index, and those with something in our field.
func (s *Store) countSketched(ctx context.Context, index string, c *adapters.Condition) error {
	const query = `{"size":0,"track_total_hits":true,` +
		`"aggs":{"sketched":{"filter":{"exists":{"field":"` + adapters.SketchField + `"}}}}}`
	var reply struct {
		Hits         struct{ Total struct{ Value int } }
		Aggregations struct {
			Sketched struct {
				Count int `json:"doc_count"`
			}
		}
	}
	err := s.do(ctx, esapi.SearchRequest{Index: []string{url.PathEscape(index)}, Body: strings.NewReader(query)}, &reply)
	c.Documents, c.Sketched = reply.Hits.Total.Value, reply.Aggregations.Sketched.Count
	return err
}

// countFields counts the fields of an index's mapping as the engine does, and reads their limit.
func (s *Store) countFields(ctx context.Context, index string, c *adapters.Condition) error {
	made, err := s.shape(ctx, index)
	c.Fields, c.Limit = fieldsOf(made.Mappings), fieldLimit
	if n, odd := strconv.Atoi(fmt.Sprint(made.Settings[limitSetting])); odd == nil {
		c.Limit = n
	}
	return err
}

// probe is the id of a document that is not there.
const probe = "neardup-probe"

// refused asks for what setup and reindex do to an index, in forms that change nothing, and returns what was refused. None of them creates
// the index if it is deleted meanwhile, as an update or a bulk of them would.
func (s *Store) refused(ctx context.Context, index adapters.Index) error {
	var errs []error
	name := url.PathEscape(index.Name)
	if !index.Ready {
		nothing := strings.NewReader(`{"properties":{}}`)
		mapping := esapi.IndicesPutMappingRequest{Index: []string{name}, Body: nothing}
		if err := s.do(ctx, mapping, nil); err != nil {
			errs = append(errs, fmt.Errorf("change its mapping: %w", err))
		}
	}
	err := s.unauthorized(ctx, name)
	if err == nil {
		err = s.blocked(ctx, name)
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("write its documents: %w", err))
	}
	return errors.Join(errs...)
}

// unauthorized says that the credentials may not update documents. The engine looks at that first, and then refuses the update in any case,
// since the name is no alias.
func (s *Store) unauthorized(ctx context.Context, index string) error {
	yes := true
	update := esapi.UpdateRequest{Index: index, DocumentID: probe, RequireAlias: &yes, Body: strings.NewReader(`{"doc":{}}`)}
	if err := s.do(ctx, update, nil); err != nil && !missing(err) {
		return err
	}
	return nil
}

// blocked says that the index takes no writes, or the credentials may send no bulk. It asks for a deletion: no other write leaves a missing
// index missing. The condition is one that no document meets. Whether the credentials may delete does not matter.
func (s *Store) blocked(ctx context.Context, index string) error {
	var reply struct {
		Items []map[string]struct {
			Status int
			Error  struct{ Type, Reason string }
		}
	}
	deletion := strings.NewReader(`{"delete":{"_id":"` + probe + `","if_seq_no":0,"if_primary_term":9223372036854775807}}` + "\n")
	if err := s.do(ctx, esapi.BulkRequest{Index: index, Body: deletion}, &reply); err != nil {
		return err
	}
	for _, item := range reply.Items {
		for _, outcome := range item {
			switch outcome.Status {
			case http.StatusForbidden, http.StatusTooManyRequests:
				if outcome.Error.Type != "security_exception" {
					return &refusal{status: outcome.Status, reason: outcome.Error.Type + ": " + outcome.Error.Reason}
				}
			}
		}
	}
	return nil
}

// Anything returns a search of an index for the first documents that there are.
func Anything(index string, _ []string) *adapters.Request {
	return &adapters.Request{Method: http.MethodGet, Path: "/" + url.PathEscape(index) + "/_search", RawQuery: "size=10"}
}
