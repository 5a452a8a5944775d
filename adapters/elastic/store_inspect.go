package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// Product implements adapters.Inspector.
func (s *Store) Product(ctx context.Context) (adapters.Product, error) {
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

// Condition implements adapters.Inspector.
func (s *Store) Condition(ctx context.Context, index adapters.Index, rule *adapters.Rule) (c adapters.Condition, err error) {
	if err := s.countSketched(ctx, index.Name, &c); err != nil {
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
func (s *Store) unfit(ctx context.Context, index string, fields []adapters.Deciding) (list []adapters.Unfit, err error) {
	if len(fields) == 0 {
		return nil, nil
	}
	var names []string
	for _, d := range fields {
		for name := d.Field; name != ""; name = name[:max(0, strings.LastIndexByte(name, '.'))] {
			names = append(names, name) // the objects around it, too
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
			if adapters.Our(target) {
				found = append(found, path+" is copied to "+target+" (copy_to)")
			}
		}
		if field.Type == "alias" && adapters.Our(path) {
			found = append(found, path+" is an alias of "+field.Path)
		}
		for _, name := range slices.Sorted(maps.Keys(field.Runtime)) {
			if adapters.Our(name) {
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
	var reply bulkOutcome
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

const (
	// surveyLength is how many bytes of names one request carries in its path: engines take 4096 for the whole of it.
	surveyLength = 3000
	// surveySeen is how many documents of each shard a sample is drawn from: more would take large indices seconds.
	surveySeen = 10000
	// surveyBytes is how large the reply with a sample may be.
	surveyBytes = 16 << 20
)

// Recognize implements adapters.Surveyor.
func (s *Store) Recognize(ctx context.Context) (r adapters.Recognition, ours bool, err error) {
	resp, err := esapi.InfoRequest{}.Do(ctx, s)
	if err != nil {
		return r, false, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return r, false, err
	}
	r.Product, ours = productOf(resp.Header, body)
	r.Locked = resp.StatusCode == http.StatusUnauthorized
	switch {
	case !ours, resp.StatusCode < 300, r.Locked:
		return r, ours, nil
	case resp.StatusCode == http.StatusForbidden: // it knows them, and what it is they may not ask
		return r, true, nil
	}
	return r, true, refusalOf(resp.StatusCode, body)
}

// productOf returns what an engine says of itself in its first reply, be it a refusal.
func productOf(header http.Header, body []byte) (p adapters.Product, ours bool) {
	var said about
	if json.Unmarshal(body, &said) == nil && said.Version.Number != "" && said.Tagline != "" {
		return said.product(), true
	}
	asks := strings.Join(header.Values("Www-Authenticate"), " ")
	switch {
	case strings.Contains(asks, opensearch):
		return adapters.Product{Name: opensearch}, true
	case header.Get("X-Elastic-Product") != "", strings.Contains(asks, `realm="security"`):
		return adapters.Product{Name: elasticsearch}, true
	case bytes.Contains(body, []byte("security_exception")):
		return adapters.Product{Name: opensearch}, true
	}
	return p, asks != "" // a proxy in front of it asks for credentials
}

// Holdings implements adapters.Surveyor. What its own makers or an operator have hidden
// comes with a reason, and not at all where its name begins with a dot.
func (s *Store) Holdings(ctx context.Context) ([]adapters.Holding, error) {
	var all struct {
		Indices []struct {
			Name                string
			Backs               string `json:"data_stream"`
			Aliases, Attributes []string
		}
		Streams []struct {
			Name string
		} `json:"data_streams"`
		Aliases []struct {
			Name    string
			Indices json.RawMessage // one name or several
		}
	}
	if err := s.do(ctx, raw{http.MethodGet, "/_resolve/index/*", "expand_wildcards=all", ""}, &all); err != nil {
		return nil, fmt.Errorf("list its indices: %w", err)
	}
	var list []adapters.Holding
	for _, index := range all.Indices {
		if index.Backs != "" || strings.HasPrefix(index.Name, ".") || index.Name == JournalIndex {
			continue
		}
		slices.Sort(index.Aliases)
		shut := slices.Contains(index.Attributes, "closed")
		list = append(list, adapters.Holding{Name: index.Name, Aliases: index.Aliases, Why: whyNot(index.Attributes), Shut: shut})
	}
	for _, stream := range all.Streams {
		if !strings.HasPrefix(stream.Name, ".") {
			list = append(list, adapters.Holding{Name: stream.Name, Stream: true})
		}
	}
	for _, alias := range all.Aliases { // the only place that names those of streams
		names := namesWithin(alias.Indices)
		for i := range list {
			if list[i].Stream && slices.Contains(names, list[i].Name) {
				list[i].Aliases = append(list[i].Aliases, alias.Name)
			}
		}
	}
	slices.SortFunc(list, func(a, b adapters.Holding) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// namesWithin returns the names in a value that is one or a list of them.
func namesWithin(value json.RawMessage) (names []string) {
	var one string
	if json.Unmarshal(value, &one) == nil {
		return []string{one}
	}
	_ = json.Unmarshal(value, &names) // what is neither holds none
	return names
}

// whyNot says what of an index's attributes speaks against it.
func whyNot(attributes []string) string {
	for _, reason := range []struct{ attribute, why string }{
		{"system", "belongs to the engine"}, {"closed", "is closed"}, {"hidden", "is hidden"},
	} {
		if slices.Contains(attributes, reason.attribute) {
			return reason.why
		}
	}
	return ""
}

// targets returns the names in lists that fit into a path.
func targets(names []string) (lists []string) {
	length := surveyLength
	for _, name := range names {
		name = url.PathEscape(name)
		if length += len(name) + 1; length > surveyLength {
			lists, length = append(lists, name), len(name)
			continue
		}
		lists[len(lists)-1] += "," + name
	}
	return lists
}

// Count implements adapters.Surveyor.
func (s *Store) Count(ctx context.Context, names []string) (documents int, err error) {
	for _, target := range targets(names) {
		var reply struct{ Count int }
		if err := s.do(ctx, raw{http.MethodGet, "/" + target + "/_count", "", ""}, &reply); err != nil {
			return 0, fmt.Errorf("count the documents: %w", err)
		}
		documents += reply.Count
	}
	return documents, nil
}

// Fields implements adapters.Surveyor.
func (s *Store) Fields(ctx context.Context, names []string) ([]adapters.Field, error) {
	found := map[string]*adapters.Field{}
	objects := map[string]bool{}
	for _, target := range targets(names) {
		var reply struct {
			Indices []string
			Fields  map[string]map[string]struct{ Indices []string }
		}
		const query = "fields=*&include_unmapped=true"
		if err := s.do(ctx, raw{http.MethodGet, "/" + target + "/_field_caps", query, ""}, &reply); err != nil {
			return nil, fmt.Errorf("read the mapping: %w", err)
		}
		for name, types := range reply.Fields {
			for _, kind := range []string{"object", "nested"} {
				if _, is := types[kind]; is {
					objects[name] = true
				}
			}
			if strings.HasPrefix(name, "_") || adapters.Our(name) {
				continue
			}
			f := found[name]
			if f == nil {
				f = &adapters.Field{Name: name}
				found[name] = f
			}
			for kind, where := range types {
				if kind == "unmapped" {
					f.Lacking = append(f.Lacking, where.Indices...)
				}
				f.Kind = kindAmong(f.Kind, fieldKinds[kind])
			}
		}
	}
	return sortedFields(found, objects), nil
}

// fieldKinds are what the engines' types are to an operator.
var fieldKinds = map[string]adapters.FieldKind{
	"text": adapters.TextKind, "match_only_text": adapters.TextKind, "annotated_text": adapters.TextKind,
	"search_as_you_type": adapters.TextKind, "semantic_text": adapters.TextKind,
	"keyword": adapters.NameKind, "wildcard": adapters.NameKind, "constant_keyword": adapters.NameKind,
	"date": adapters.DateKind, "date_nanos": adapters.DateKind,
	"dense_vector": adapters.VectorKind, "knn_vector": adapters.VectorKind,
}

// kindAmong returns the kind of a field that is of two kinds in different indices.
func kindAmong(a, b adapters.FieldKind) adapters.FieldKind {
	if a == adapters.OtherKind || b == adapters.TextKind {
		return b
	}
	return a
}

// sortedFields returns the fields that hold values, each with the one whose value it has.
func sortedFields(found map[string]*adapters.Field, objects map[string]bool) (list []adapters.Field) {
	for name, f := range found {
		if objects[name] {
			continue
		}
		slices.Sort(f.Lacking)
		if at := strings.LastIndexByte(name, '.'); at > 0 && found[name[:at]] != nil && !objects[name[:at]] {
			f.Of = name[:at]
		}
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b adapters.Field) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Documents implements adapters.Surveyor: the documents are chosen at random among those that each shard shows first.
func (s *Store) Documents(ctx context.Context, name string, fields []string, n int) (list [][]byte, err error) {
	for {
		body := `{"size":` + strconv.Itoa(n) + `,"terminate_after":` + strconv.Itoa(surveySeen) + `,"timeout":"10s","track_total_hits":false,` +
			`"_source":` + string(stringsOf(fields)) +
			`,"query":{"function_score":{"query":{"match_all":{}},"random_score":{},"boost_mode":"replace"}}}`
		reply, err := s.body(ctx, post(name+"/_search", "", body), surveyBytes)
		switch {
		case errors.Is(err, errTooLong) && n > 1:
			n = max(1, n/4)
			continue
		case err != nil:
			return nil, fmt.Errorf("read documents: %w", err)
		}
		var found struct {
			Hits struct {
				Hits []struct {
					Source json.RawMessage `json:"_source"`
				}
			}
		}
		if err := json.Unmarshal(reply, &found); err != nil {
			return nil, fmt.Errorf("read documents: %w", err)
		}
		for _, hit := range found.Hits.Hits {
			if hit.Source != nil {
				list = append(list, hit.Source)
			}
		}
		return list, nil
	}
}

// Words returns a search for words in some fields of an index, short enough to be typed.
func (Dialect) Words(index string, _ []string, words string) *adapters.Request {
	return &adapters.Request{Method: http.MethodGet, Path: "/" + url.PathEscape(index) + "/_search", RawQuery: "q=" + url.QueryEscape(words)}
}

// Listed implements adapters.EngineStore. Data streams come as themselves. Hidden ones come where a rule matches them.
func (s *Store) Listed(ctx context.Context) ([]adapters.Listed, error) {
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
	s.countAll(ctx, list)
	return list, nil
}

// countAll counts the documents of indices, each by a search of its own in one request. Those that the client may not search stay uncounted.
func (s *Store) countAll(ctx context.Context, list []adapters.Listed) {
	var searches strings.Builder
	for _, l := range list {
		fmt.Fprintf(&searches, `{"index":%s,"ignore_unavailable":true}`+"\n"+`{"size":0,"track_total_hits":true}`+"\n", jsonedit.AppendString(nil, l.Name))
	}
	var reply struct {
		Responses []struct {
			Hits struct{ Total *struct{ Value int } }
		}
	}
	r := esapi.MsearchRequest{Body: strings.NewReader(searches.String())}
	if len(list) == 0 || s.do(ctx, r, &reply) != nil || len(reply.Responses) != len(list) {
		return
	}
	for i, counted := range reply.Responses {
		if counted.Hits.Total != nil {
			list[i].Documents = counted.Hits.Total.Value
		}
	}
}
