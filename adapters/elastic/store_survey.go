package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// What init asks of an engine that it does not know yet.

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
		n, err := s.count(ctx, target, "")
		if err != nil {
			return 0, fmt.Errorf("count the documents: %w", err)
		}
		documents += n
	}
	return documents, nil
}

// count returns how many documents of the indices a query in the URL finds. Without a query it counts all of them.
func (s *Store) count(ctx context.Context, indices, query string) (int, error) {
	var reply struct{ Count int }
	err := s.do(ctx, raw{http.MethodGet, "/" + indices + "/_count", query, ""}, &reply)
	return reply.Count, err
}

// Fields implements adapters.Surveyor.
func (s *Store) Fields(ctx context.Context, names []string) ([]adapters.Field, error) {
	found := map[string]*adapters.Field{}
	objects := map[string]bool{}
	for _, target := range targets(names) {
		known, err := s.capabilities(ctx, target, "fields=*&include_unmapped=true")
		if err != nil {
			return nil, fmt.Errorf("read the mapping: %w", err)
		}
		for name, types := range known {
			for _, kind := range []string{"object", "nested"} {
				if _, is := types[kind]; is {
					objects[name] = true
				}
			}
			if strings.HasPrefix(name, "_") || rule.Our(name) {
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
