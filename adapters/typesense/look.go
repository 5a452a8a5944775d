package typesense

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// LookFor returns the request of a look.
func (Dialect) LookFor(l adapters.Look) (*adapters.Request, error) {
	if strings.ContainsAny(l.Index, "/*,") || strings.Trim(l.Index, ".") == "" {
		return nil, fmt.Errorf("index: %q is no single collection: name one of those that there are", l.Index)
	}
	words, shown := cmp.Or(l.Words, "*"), append([]string{"id"}, withRoots(slices.Concat(l.Fields, l.Titles))...)
	if l.Judged {
		shown = append(append(shown, rule.SketchField), decidingFields(l.Deciding)...)
	}
	params := url.Values{
		"q": {words}, "query_by": {strings.Join(l.Fields, ",")}, "per_page": {strconv.Itoa(l.Size)},
		"include_fields": {strings.Join(shown, ",")}, "highlight_fields": {noField},
	}
	if l.IDs != nil {
		params.Set("filter_by", "id:[`"+strings.Join(l.IDs, "`,`")+"`]")
	}
	query := params.Encode()
	if len(query) > maxQuery-maxQuery/8 { // what a control adds has room too
		return nil, errors.New("query: it is too long for this engine: type fewer words")
	}
	return &adapters.Request{
		Method: "GET", Path: "/collections/" + url.PathEscape(l.Index) + "/documents/search", RawQuery: query, Header: l.Header,
	}, nil
}

// LookedAt reads the reply to a look. Where the engine refused, the error is of its own words and status.
func (Dialect) LookedAt(l adapters.Look, reply *adapters.Reply) (adapters.Looked, error) {
	if err := refusalOf(reply.Status, reply.Body); err != nil {
		return adapters.Looked{}, err
	}
	result, err := parseResult(reply.Body, nil)
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
			Seen: seen, Document: h.unflattened(), Name: result.collection, Score: member(h.raw, "text_match"),
		})
	}
	return looked, nil
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
