package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	ts "github.com/typesense/typesense-go/v2/typesense"
	tsapi "github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
)

// withKey runs a program that is given the engine's key.
func withKey(file string) clientRun {
	return func(t *testing.T, base, prefix string, list []corpus.Document) []byte {
		key := engines.Shared(t, engines.Typesense).Key
		return clients.Run(t, file, "--url", base, "--key", key, "--index", prefix, "--corpus", corpusFile(t, list))
	}
}

// wipeTypesense drops all collections and aliases of the prefix. Presets and keys a session drops itself.
func wipeTypesense(t *testing.T, e *engines.Engine, prefix string) {
	t.Helper()
	var aliases struct{ Aliases []struct{ Name string } }
	var collections []struct{ Name string }
	for path, into := range map[string]any{"/aliases": &aliases, "/collections": &collections} {
		if err := json.Unmarshal(call(t, e, "GET", e.URL+path, "").want(t, 200).body, into); err != nil {
			t.Fatal(err)
		}
	}
	for path, list := range map[string][]struct{ Name string }{"/aliases/": aliases.Aliases, "/collections/": collections} {
		for _, item := range list {
			if strings.HasPrefix(item.Name, prefix+"-") {
				call(t, e, "DELETE", e.URL+path+item.Name, "").want(t, 200)
			}
		}
	}
}

// goTypesense is a session with the official Typesense client for Go.
type goTypesense struct {
	*recorder
	ctx    context.Context
	prefix string
	list   []corpus.Document
	base   string
	client *ts.Client
}

func goTypesenseSession(t *testing.T, base, prefix string, list []corpus.Document) []byte {
	s := goTypesense{newRecorder(t), t.Context(), prefix, list, base, nil}
	s.client = s.connect(engines.Shared(t, engines.Typesense).Key)
	s.collections()
	s.imports()
	s.documents()
	s.schemas()
	s.searches()
	s.several()
	return marshal(t, s.session)
}

func (s goTypesense) connect(key string) *ts.Client {
	return ts.NewClient(ts.WithServer(s.base), ts.WithAPIKey(key), ts.WithConnectionTimeout(time.Minute))
}

func (s goTypesense) index(name string) string { return s.prefix + "-" + name }

// held returns the documents of a collection.
func (s goTypesense) held(name string) ts.DocumentsInterface {
	return s.client.Collection(s.index(name)).Documents()
}

// same records a reply, with what an error holds as text.
func (s goTypesense) same(step string, value any, err error) {
	s.t.Helper()
	if refused, ok := errors.AsType[*ts.HTTPError](err); ok {
		value, err = map[string]any{"status": refused.Status, "body": string(refused.Body)}, nil
	}
	s.recorder.same(step, value, err)
}

// as is same for what a call returns.
func (s goTypesense) as(step string) func(value any, err error) {
	return func(value any, err error) { s.same(step, value, err) }
}

// document returns a document of the corpus with fields of other types.
func (s goTypesense) document(i int, more map[string]any) map[string]any {
	d := s.list[i]
	whole := map[string]any{"id": d.ID, "title": d.Title, "body": d.Body, "url": d.URL, "host": d.Host, "n": i % 7}
	maps.Copy(whole, more)
	return whole
}

func (s goTypesense) schema(name string) *tsapi.CollectionSchema {
	return &tsapi.CollectionSchema{Name: s.index(name), Fields: []tsapi.Field{
		{Name: "title", Type: "string", Infix: new(true)}, {Name: "body", Type: "string"},
		{Name: "host", Type: "string", Facet: new(true)}, {Name: "n", Type: "int32", Facet: new(true), Optional: new(true)},
		{Name: "url", Type: "string", Index: new(false), Optional: new(true)},
	}}
}

func (s goTypesense) collections() {
	for i, name := range []string{"main", "work", "lines", "main"} { // one of them twice
		s.as(fmt.Sprint("create ", i))(s.client.Collections().Create(s.ctx, s.schema(name)))
	}
	s.as("create with fields found")(s.client.Collections().Create(s.ctx, &tsapi.CollectionSchema{
		Name: s.index("auto"), EnableNestedFields: new(true), Fields: []tsapi.Field{{Name: ".*", Type: "auto"}}}))
	s.as("retrieve")(s.client.Collection(s.index("main")).Retrieve(s.ctx))
	s.as("retrieve nothing")(s.client.Collection(s.index("nowhere")).Retrieve(s.ctx))
	s.as("healthy")(s.client.Health(s.ctx, time.Minute))
}

func (s goTypesense) imports() {
	load := func(step, name, action string, list ...any) {
		s.as(step)(s.held(name).Import(s.ctx, list, &tsapi.ImportDocumentsParams{Action: &action, BatchSize: new(11)}))
	}
	part := func(n int) (list []any) {
		for i := range n {
			list = append(list, s.document(i, nil))
		}
		return list
	}
	load("import", "main", "create", part(len(s.list))...)
	load("import into fields found", "auto", "create", part(9)...)
	load("import to nowhere", "nowhere", "create", part(2)...)
	load("import a part", "work", "create", part(40)...)
	for _, action := range []string{"create", "update", "upsert", "emplace"} {
		load("import: "+action, "work", action, s.document(39, nil), s.document(40, nil),
			map[string]any{"id": s.list[0].ID, "title": s.list[1].Title},
			map[string]any{"id": s.list[2].ID, "title": s.list[3].Title, "body": s.list[3].Body},
			s.document(41, map[string]any{"n": "no number"}))
	}
	// A body of no length, sent as it is written.
	from, to := io.Pipe()
	go func() {
		for i := range s.list {
			fmt.Fprintf(to, "%s\n", marshal(s.t, s.document(i, nil)))
		}
		fmt.Fprint(to, "\nno json\n[]")
		to.Close()
	}()
	s.text("import of a stream")(s.held("lines").ImportJsonl(s.ctx, from, &tsapi.ImportDocumentsParams{Action: new("create")}))
}

// text records a reply that is a stream.
func (s goTypesense) text(step string) func(body io.ReadCloser, err error) {
	return func(body io.ReadCloser, err error) {
		if err != nil {
			s.same(step, nil, err)
			return
		}
		defer body.Close()
		text, err := io.ReadAll(body)
		s.same(step, string(text), err)
	}
}

func (s goTypesense) documents() {
	work, first := s.held("work"), s.list[60].ID
	one := s.client.Collection(s.index("work")).Document(first)
	s.as("create")(work.Create(s.ctx, s.document(60, nil)))
	s.as("create twice")(work.Create(s.ctx, s.document(60, nil)))
	s.as("create too little")(work.Create(s.ctx, map[string]any{"title": "x"}))
	s.as("upsert")(work.Upsert(s.ctx, s.document(61, map[string]any{"id": first})))
	s.as("upsert a struct")(work.Upsert(s.ctx, s.list[62]))
	for _, c := range []struct {
		step   string
		change map[string]any
	}{
		{"whole text", map[string]any{"title": s.list[63].Title, "body": s.list[63].Body}},
		{"part of the text", map[string]any{"title": "half of it"}},
		{"another field", map[string]any{"n": 3, "beside": []int{1}}},
		{"null", map[string]any{"n": nil}},
	} {
		s.as("upsert before " + c.step)(work.Upsert(s.ctx, s.document(61, map[string]any{"id": first})))
		s.as("update " + c.step)(one.Update(s.ctx, c.change))
		s.as("after update " + c.step)(one.Retrieve(s.ctx))
	}
	s.as("update nothing")(s.client.Collection(s.index("work")).Document("nowhere").Update(s.ctx, map[string]any{"n": 1}))
	s.as("update by filter")(work.Update(s.ctx, map[string]any{"n": 9}, &tsapi.UpdateDocumentsParams{FilterBy: new("n:=1")}))
	s.as("delete")(one.Delete(s.ctx))
	s.as("delete again")(one.Delete(s.ctx))
	s.as("delete by filter")(work.Delete(s.ctx, &tsapi.DeleteDocumentsParams{FilterBy: new("n:=4"), BatchSize: new(10)}))
	for _, name := range []string{"main", "work", "nowhere"} {
		s.text("export " + name)(s.held(name).Export(s.ctx))
	}
}

func (s goTypesense) schemas() {
	s.as("schema: add")(s.client.Collection(s.index("work")).Update(s.ctx, &tsapi.CollectionUpdateSchema{
		Fields: []tsapi.Field{{Name: "later", Type: "string", Optional: new(true)}}}))
	s.as("alias")(s.client.Aliases().Upsert(s.ctx, s.index("alias"), &tsapi.CollectionAliasSchema{CollectionName: s.index("main")}))
	s.as("collection: delete")(s.client.Collection(s.index("auto")).Delete(s.ctx))
}

// paged reads a search of documents in pages.
func (s goTypesense) paged(step string, held ts.DocumentsInterface, size int, params tsapi.SearchCollectionParams) {
	s.t.Helper()
	s.search(step, size, func(from int) (any, error) {
		asked := params
		asked.Page, asked.PerPage = new(from/size+1), &size
		return held.Search(s.ctx, &asked)
	})
}

// words returns a search for them, which widen changes.
func (s goTypesense) words(q string, widen ...func(*tsapi.SearchCollectionParams)) tsapi.SearchCollectionParams {
	params := tsapi.SearchCollectionParams{Q: &q, QueryBy: new("title,body")}
	for _, change := range widen {
		change(&params)
	}
	return params
}

func (s goTypesense) searches() {
	type params = tsapi.SearchCollectionParams
	main := s.held("main")
	for step, widen := range map[string]func(*params){
		"text":           func(*params) {},
		"filter":         func(p *params) { p.FilterBy, p.SortBy = new("n:<5"), new("n:desc,_text_match:desc") },
		"facets":         func(p *params) { p.FacetBy, p.MaxFacetValues, p.FacetQuery = new("host,n"), new(4), new("host:a") },
		"fields":         func(p *params) { p.IncludeFields, p.HighlightFullFields = new("id,title,url"), new("title") },
		"not all fields": func(p *params) { p.ExcludeFields, p.EnableHighlightV1 = new("body"), new(false) },
		"highlights": func(p *params) {
			p.HighlightFields, p.HighlightAffixNumTokens, p.SnippetThreshold = new("body"), new(2), new(5)
			p.HighlightStartTag, p.HighlightEndTag = new("<b>"), new("</b>")
		},
		"how words match": func(p *params) {
			p.QueryByWeights, p.NumTypos, p.Prefix, p.Infix = new("3,1"), new("2,1"), new("true,false"), new("off,off")
			p.DropTokensThreshold, p.TypoTokensThreshold, p.ExhaustiveSearch = new(2), new(3), new(true)
			p.MaxCandidates, p.MinLen1typo, p.PrioritizeExactMatch = new(9), new(3), new(false)
		},
		"pinned and hidden": func(p *params) {
			p.PinnedHits, p.HiddenHits = new(s.list[1].ID+":1"), new(s.list[2].ID+","+s.list[3].ID)
		},
		"limited": func(p *params) { p.SearchCutoffMs = new(30_000) },
	} {
		s.paged(step, main, 8, s.words("the town", widen))
	}
	s.paged("everything", main, 40, s.words("*"))
	s.paged("alias", s.held("alias"), 50, s.words("*"))
	s.paged("written in a stream", s.held("lines"), 13, s.words("old"))
	for step, widen := range map[string]func(*params){
		"counts alone":    func(p *params) { p.PerPage, p.FacetBy = new(0), new("host") },
		"grouped":         func(p *params) { p.GroupBy, p.GroupLimit = new("host"), new(3) },
		"bad field":       func(p *params) { p.QueryBy = new("nothing") },
		"bad filter":      func(p *params) { p.FilterBy = new("n:<<1") },
		"too many a page": func(p *params) { p.PerPage = new(251) },
		"page 0":          func(p *params) { p.Page = new(0) },
		"long":            func(p *params) { p.Q = new(strings.Repeat("town ", 900)) },
		"no hits":         func(p *params) { p.Q = new("nothingmatchesthis") },
	} {
		asked := s.words("the town", widen)
		s.as(step)(main.Search(s.ctx, &asked))
	}
	asked := s.words("*")
	s.as("nowhere")(s.held("nowhere").Search(s.ctx, &asked))
}

func (s goTypesense) several() {
	type entry = tsapi.MultiSearchCollectionParameters
	perform := func(searches ...entry) (*tsapi.MultiSearchResult, error) {
		return s.client.MultiSearch.Perform(s.ctx, &tsapi.MultiSearchParams{QueryBy: new("title,body"), PerPage: new(20)},
			tsapi.MultiSearchSearchesParameter{Searches: searches})
	}
	for i := range 2 {
		s.search(fmt.Sprint("multi ", i), 20, func(from int) (any, error) {
			page := new(from/20 + 1)
			got, err := perform(entry{Collection: s.index("main"), Q: new("old"), Page: page, FacetBy: new("host")},
				entry{Collection: s.index("alias"), Q: new("*"), Page: page})
			if err != nil {
				return nil, err
			}
			return got.Results[i], nil
		})
	}
	s.as("multi that fails")(perform(entry{Collection: s.index("nowhere"), Q: new("x")},
		entry{Collection: s.index("main"), Q: new("x"), QueryBy: new("nothing")}))
	s.as("multi of nothing")(perform())
}
