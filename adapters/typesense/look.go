package typesense

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// LookFor returns the request of a look.
func (Dialect) LookFor(l adapters.Look) (*adapters.Request, error) {
	if strings.ContainsAny(l.Index, "/*,") || strings.Trim(l.Index, ".") == "" {
		return nil, fmt.Errorf("index: %q is no single collection: name one of those that there are", l.Index)
	}
	if odd := slices.IndexFunc(l.IDs, unnameable); odd >= 0 {
		if len(l.IDs) > 1 {
			return nil, fmt.Errorf("id: no filter can name %q: look it up alone", l.IDs[odd])
		}
		request := Dialect{}.DocumentOf(l.Index, l.IDs[0])
		request.Header = l.Header
		return request, nil
	}
	params, err := paramsFor(l)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	query := params.Encode()
	if len(query) <= maxQuery-maxQuery/8 { // what a control adds has room too
		return &adapters.Request{
			Method: "GET", Path: "/collections/" + url.PathEscape(l.Index) + "/documents/search", RawQuery: query, Header: l.Header,
		}, nil
	}
	if l.Search == nil {
		return nil, errors.New("query: it is too long for this engine: type fewer words")
	}
	search := jsonedit.AppendString([]byte(`{"collection":`), l.Index)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		search = jsonedit.AppendString(append(jsonedit.AppendString(append(search, ','), name), ':'), params.Get(name))
	}
	header := adapters.Header{"Content-Type": {"application/json"}}
	maps.Copy(header, l.Header)
	body := slices.Concat([]byte(`{"searches":[`), search, []byte("}]}"))
	return &adapters.Request{Method: "POST", Path: "/multi_search", Header: header, Body: body}, nil
}

// paramsFor returns the parameters of a look.
func paramsFor(l adapters.Look) (params url.Values, err error) {
	params = url.Values{"q": {"*"}}
	if l.Words != "" {
		params = url.Values{"q": {l.Words}, "query_by": {strings.Join(l.Fields, ",")}}
	}
	if l.Search != nil {
		if params, err = paramsIn(l.Search); err != nil {
			return nil, err
		}
	}
	if l.IDs != nil {
		params.Set("filter_by", "id:[`"+strings.Join(l.IDs, "`,`")+"`]")
	}
	if l.Search != nil && l.Size == 0 { // the client's own page, with ids
		if shown := params.Get("include_fields"); shown != "" {
			params.Set("include_fields", "id,"+shown)
		}
		hidden := slices.DeleteFunc(fieldList(params.Get("exclude_fields")), func(name string) bool { return name == "id" })
		if params.Del("exclude_fields"); len(hidden) > 0 {
			params.Set("exclude_fields", strings.Join(hidden, ","))
		}
		return params, nil
	}
	if params.Get("group_by") != "" {
		return nil, errors.New("it has group_by: such searches are left alone")
	}
	for _, name := range steered {
		if name != "vector_query" && name != "preset" {
			params.Del(name)
		}
	}
	shown := append([]string{"id"}, withRoots(slices.Concat(l.Fields, l.Titles))...)
	if l.Judged {
		shown = append(append(shown, rule.SketchField), decidingFields(l.Deciding)...)
	}
	params.Set("per_page", strconv.Itoa(l.Size))
	params.Set("include_fields", strings.Join(shown, ","))
	params.Set("highlight_fields", noField)
	return params, nil
}

// paramsIn returns the parameters of a client's own search, a JSON object or a query string, without a key in it: the look has its own.
func paramsIn(search []byte) (url.Values, error) {
	values, odd := valuesOf(paramsOf(string(search))), false
	if bytes.HasPrefix(bytes.TrimSpace(search), []byte("{")) {
		if err := adapters.Object(search); err != nil {
			return nil, err
		}
		members, _ := jsonedit.Members(search)
		if jsonedit.Get(members, "searches") != nil {
			return nil, errors.New("it holds several searches: give each by itself")
		}
		if values, odd = valuesIn(members); odd {
			return nil, errors.New("a parameter is a list, an object or null: give each as a text, a number, true or false")
		}
	}
	params := url.Values{}
	for name, value := range values {
		known := name != "" && url.QueryEscape(name) == name // the engine does not unescape a name
		if known && name != "collection" && !adapters.IsControl(name) && !strings.HasPrefix(strings.ToLower(name), "x-typesense-") {
			params.Set(name, value)
		}
	}
	return params, nil
}

// ReadQuery returns the query of a line: words, as they are or as a JSON string, or the parameters of a search, as a JSON object or as a query string.
func (Dialect) ReadQuery(line string) (q adapters.Query, err error) {
	line = strings.TrimSpace(line)
	isQuery := !strings.ContainsAny(line, " \t") && slices.ContainsFunc(paramsOf(line), func(p adapters.Param) bool { return strings.HasPrefix(p.Raw, "q=") })
	if !isQuery && !strings.HasPrefix(line, "{") {
		return adapters.Query{Words: adapters.Typed(line)}, nil
	}
	params, err := paramsIn([]byte(line))
	if isQuery { // it is shown, so it has no key
		line = params.Encode()
	}
	return adapters.Query{Search: []byte(line)}, err
}

// LookedAt reads the reply to a look. Where the engine refused, the error is of its own words and status.
func (Dialect) LookedAt(l adapters.Look, reply *adapters.Reply) (adapters.Looked, error) {
	alone := len(l.IDs) == 1 && unnameable(l.IDs[0])
	if alone && reply.Status == 404 {
		return adapters.Looked{}, nil
	}
	if err := refusalOf(reply.Status, reply.Body); err != nil {
		return adapters.Looked{}, err
	}
	body := reply.Body
	if alone { // it is the document
		of := jsonedit.AppendString(nil, l.Index)
		body = fmt.Appendf(nil, `{"found":1,"page":1,"hits":[{"document":%s}],"request_params":{"collection_name":%s,"per_page":1}}`, body, of)
	}
	if results, err := jsonedit.Elements(member(body, "results")); err == nil && len(results) == 1 && l.Search != nil { // a multi-search
		body = results[0]
	}
	result, err := parseResult(body, nil)
	if declined, ok := errors.AsType[*adapters.Declined](err); ok {
		return adapters.Looked{}, &refusal{declined.Status, declined.Reason}
	}
	if err != nil {
		return adapters.Looked{}, adapters.NotUnderstood(err)
	}
	q := &query{key: key{fixed: embedded(keyOf(&adapters.Request{Header: l.Header}, nil))}}
	q.asked.Scope.Deciding = l.Deciding
	looked := adapters.Looked{Total: result.found, Doubting: true} // as in a search that is collapsed
	for i, seen := range q.seen(result.collection, full, full, result.hits, result.hits) {
		h := &result.hits[i]
		if h.id == "" {
			return adapters.Looked{}, adapters.NotUnderstood(errors.New("a hit without id"))
		}
		seen.Withheld, seen.Shown = false, lookedHit{h, q}
		looked.Hits = append(looked.Hits, adapters.LookedHit{
			Seen: seen, Document: h.unflattened(), Name: result.collection, Score: member(h.raw, "text_match"), Folded: foldedIn(result.collection, h.raw),
		})
	}
	return looked, nil
}

// foldedIn returns the hits that are listed as folded into one.
func foldedIn(collection string, hit []byte) (list []adapters.Named) {
	listed, _ := jsonedit.Elements(member(hit, "neardup", "hits")) // none where none are listed
	for _, folded := range listed {
		id, _ := jsonedit.Text(member(folded, "id"))
		list = append(list, adapters.Named{Index: collection, ID: id})
	}
	return list
}

// lookedHit is a hit of a look: its document is the whole one, as far as the key lets it be seen.
type lookedHit struct {
	*hit
	q *query
}

// Document implements rule.Shown.
func (h lookedHit) Document(rule *rule.Rule) []byte {
	if !h.q.mayRead(rule.Fields) {
		return nil
	}
	return h.unflattened()
}
