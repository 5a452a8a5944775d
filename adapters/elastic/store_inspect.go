package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// Product implements adapters.Inspector.
func (s *Store) Product(ctx context.Context) (adapters.Product, error) {
	var said about
	var p adapters.Product
	err := s.do(ctx, esapi.InfoRequest{}, &said)
	switch _, odd := errors.AsType[*json.SyntaxError](err); {
	case odd || err == nil && said.Version.Number == "":
		return p, errors.New("what answers there is neither Elasticsearch nor OpenSearch")
	case err == nil:
		p = said.product()
	case !forbidden(err):
		return p, err
	}
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

// forbidden reports whether err says that the credentials are good, and not for this.
func forbidden(err error) bool { return adapters.StatusOf(err) == http.StatusForbidden }

// nodes adds the addresses that the engine names to sniffing clients, and what OpenSearch's nodes listen to beside HTTP, if it shows that.
func (s *Store) nodes(ctx context.Context, p *adapters.Product) {
	var reply struct {
		Nodes map[string]struct {
			HTTP struct {
				Address string `json:"publish_address"`
			}
			Settings struct {
				Aux struct {
					Transport struct{ Types json.RawMessage }
				}
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
		kinds := strings.Join(namesWithin(node.Settings.Aux.Transport.Types), ",") // which can be a list in one name
		for _, kind := range strings.FieldsFunc(kinds, func(c rune) bool { return c == ',' }) {
			p.Beside = append(p.Beside, "aux.transport.types: "+kind)
		}
	}
	slices.Sort(p.Nodes)
	slices.Sort(p.Beside)
	p.Beside = slices.Compact(p.Beside)
}

// withSketch is the query in the URL for documents with something in our field.
const withSketch = "q=_exists_:" + rule.SketchField

// Condition implements adapters.Inspector.
func (s *Store) Condition(ctx context.Context, index adapters.Index, rule *rule.Rule) (c adapters.Condition, err error) {
	if c.Sketched, err = s.count(ctx, url.PathEscape(index.Name), withSketch); err == nil {
		c.Documents, err = s.count(ctx, url.PathEscape(index.Name), "")
	}
	if err != nil {
		return c, fmt.Errorf("count its documents: %w", err)
	}
	made, err := s.shape(ctx, index.Name)
	if err != nil {
		return c, fmt.Errorf("read its mapping: %w", err)
	}
	known := map[string]bool{}
	eachField("", made.Mappings, func(path string, field mapped) {
		known[path] = field.Type != "" && field.Properties == nil // else it is an object
	})
	for _, field := range rule.Fields {
		if !known[field] {
			c.Undeclared = append(c.Undeclared, field)
		}
	}
	c.Fields = fieldsOf(made.Mappings)
	c.Limit, _ = strconv.Atoi(made.setting(limitSetting))
	if c.Unfit, err = s.unfit(ctx, index.Name, rule.Deciding()); err != nil {
		return c, fmt.Errorf("read its mapping: %w", err)
	}
	c.Refused = s.refused(ctx, index)
	return c, nil
}

// unfit returns which of the fields have no values by document, or none that are dates where such are wanted.
func (s *Store) unfit(ctx context.Context, index string, fields []rule.Deciding) (list []adapters.Unfit, err error) {
	if len(fields) == 0 {
		return nil, nil
	}
	var names []string
	for _, d := range fields {
		for name := d.Field; name != ""; name = name[:max(0, strings.LastIndexByte(name, '.'))] {
			names = append(names, name) // the objects around it, too
		}
	}
	known, err := s.capabilities(ctx, url.PathEscape(index), "fields="+url.QueryEscape(strings.Join(names, ",")))
	if err != nil {
		return nil, err
	}
	for _, d := range fields {
		if why, fit := fits(d, known[d.Field]); !fit {
			list = append(list, adapters.Unfit{Deciding: d, Why: why})
			continue
		}
		for name := range known {
			if _, nested := known[name]["nested"]; nested && strings.HasPrefix(d.Field, name+".") {
				why := "stands in " + name + ", which is nested: its values belong to no document by itself"
				list = append(list, adapters.Unfit{Deciding: d, Why: why})
			}
		}
	}
	return list, nil
}

// capability is what an engine says that fields of one name and type are good for, and in which indices.
type capability struct {
	Searchable, Aggregatable bool
	Metadata                 bool `json:"metadata_field"`
	Indices                  []string
}

// capabilities returns what the fields of some indices are good for, by their names and types.
func (s *Store) capabilities(ctx context.Context, indices, query string) (map[string]map[string]capability, error) {
	var reply struct {
		Fields map[string]map[string]capability
	}
	err := s.do(ctx, raw{http.MethodGet, "/" + indices + "/_field_caps", query, ""}, &reply)
	return reply.Fields, err
}

// fits reports whether a field's types serve to decide by it, and if not, why; nothing where it has none.
func fits(d rule.Deciding, types map[string]capability) (why string, fit bool) {
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

// Filled says, for an operator, how the mapping of an index fills fields of ours with what is not in them: a line each. Searches read such values,
// and no document shows them.
func (s *Store) Filled(ctx context.Context, index string) ([]string, error) {
	is, err := s.shape(ctx, index)
	if err != nil {
		return nil, err
	}
	var found []string
	eachField("", is.Mappings, func(path string, field mapped) {
		for _, target := range namesWithin(field.CopyTo) {
			if rule.Our(target) {
				found = append(found, path+" is copied to "+target+" (copy_to)")
			}
		}
		if field.Type == "alias" && rule.Our(path) {
			found = append(found, path+" is an alias of "+field.Path)
		}
		for _, name := range slices.Sorted(maps.Keys(field.Runtime)) {
			if rule.Our(name) {
				found = append(found, name+" is a runtime field")
			}
		}
	})
	return found, nil
}

// probe is the id of a document that is not there.
const probe = "neardup-probe"

// refused asks for what setup and reindex do to an index, in forms that change nothing, and returns what was refused. None of them creates
// the index if it is deleted meanwhile, as an update or a bulk of them would.
func (s *Store) refused(ctx context.Context, index adapters.Index) error {
	var errs []error
	name := url.PathEscape(index.Name)
	if !index.Ready {
		if err := s.putMapping(ctx, index.Name, properties(nil, "")); err != nil {
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

// Listed implements adapters.EngineStore. Data streams come as themselves. Hidden ones come where a rule matches them.
func (s *Store) Listed(ctx context.Context) ([]adapters.Listed, error) {
	indices, err := s.Resolve(ctx, "*")
	if err != nil {
		return nil, err
	}
	var list []adapters.Listed
	for _, i := range indices {
		name := i.RuleName()
		same := func(l adapters.Listed) bool { return l.Name == name }
		if strings.HasPrefix(name, ".") && s.rules.For(name) == nil || slices.ContainsFunc(list, same) {
			continue
		}
		list = append(list, adapters.Listed{Index: adapters.Index{Name: name, Mapped: i.Mapped, Ready: i.Ready}, Documents: -1})
	}
	slices.SortFunc(list, func(a, b adapters.Listed) int { return strings.Compare(a.Name, b.Name) })
	counts, ctx := errgroup.WithContext(ctx)
	counts.SetLimit(atOnce)
	for i := range list {
		counts.Go(func() error {
			if n, err := s.Count(ctx, []string{list[i].Name}); err == nil {
				list[i].Documents = n
			}
			return nil // it may not be granted: then nothing is said of it
		})
	}
	return list, counts.Wait()
}
