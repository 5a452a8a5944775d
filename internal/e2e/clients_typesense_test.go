package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
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

func (s goTypesense) part(from, to int) (list []any) {
	for i := from; i < to; i++ {
		list = append(list, s.document(i, nil))
	}
	return list
}

func (s goTypesense) schema(name string) *tsapi.CollectionSchema {
	return &tsapi.CollectionSchema{Name: s.index(name), Fields: []tsapi.Field{
		{Name: "title", Type: "string", Infix: new(true)}, {Name: "body", Type: "string"},
		{Name: "host", Type: "string", Facet: new(true)}, {Name: "n", Type: "int32", Facet: new(true), Optional: new(true)},
		{Name: "url", Type: "string", Index: new(false), Optional: new(true)},
	}}
}

func (s goTypesense) collections() {
	for _, name := range []string{"main", "work", "lines", "main"} {
		step := "create " + name
		if _, twice := s.Same[step]; twice {
			step += " twice"
		}
		s.as(step)(s.client.Collections().Create(s.ctx, s.schema(name)))
	}
	s.as("create with fields found")(s.client.Collections().Create(s.ctx, &tsapi.CollectionSchema{
		Name: s.index("auto"), EnableNestedFields: new(true), Fields: []tsapi.Field{{Name: ".*", Type: "auto"}}}))
	s.as("retrieve")(s.client.Collection(s.index("main")).Retrieve(s.ctx))
	s.as("retrieve nothing")(s.client.Collection(s.index("nowhere")).Retrieve(s.ctx))
	all, err := s.client.Collections().Retrieve(s.ctx)
	all = slices.DeleteFunc(all, func(c *tsapi.CollectionResponse) bool { return !strings.HasPrefix(c.Name, s.index("")) })
	slices.SortFunc(all, func(a, b *tsapi.CollectionResponse) int { return strings.Compare(a.Name, b.Name) })
	s.same("retrieve all", all, err)
	s.as("healthy")(s.client.Health(s.ctx, time.Minute))
}

func (s goTypesense) imports() {
	work := s.held("work")
	load := func(step, name, action string, list ...any) {
		s.as(step)(s.held(name).Import(s.ctx, list, &tsapi.ImportDocumentsParams{Action: &action, BatchSize: new(11)}))
	}
	load("import", "main", "create", s.part(0, len(s.list))...)
	load("import into fields found", "auto", "create", s.part(0, 9)...)
	load("import to nowhere", "nowhere", "create", s.part(0, 2)...)
	load("import a part", "work", "create", s.part(0, 40)...)
	for _, action := range []string{"create", "update", "upsert", "emplace"} {
		load("import: "+action, "work", action, s.document(39, nil), s.document(40, nil),
			map[string]any{"id": s.list[0].ID, "title": s.list[1].Title},
			map[string]any{"id": s.list[2].ID, "title": s.list[3].Title, "body": s.list[3].Body},
			s.document(41, map[string]any{"n": "no number"}))
	}
	lines := strings.Join([]string{string(marshal(s.t, s.document(50, nil))), "", "no json", `{"title":1,"body":[]}`, "[]",
		string(marshal(s.t, s.document(51, map[string]any{"n": "12"})))}, "\n")
	for _, dirty := range []tsapi.ImportDocumentsParamsDirtyValues{"coerce_or_reject", "coerce_or_drop", "drop", "reject"} {
		body, err := work.ImportJsonl(s.ctx, strings.NewReader(lines), &tsapi.ImportDocumentsParams{
			Action: new("upsert"), DirtyValues: &dirty})
		s.text("import of lines: "+string(dirty), body, err)
	}
	// A body of no length, sent as it is written.
	from, to := io.Pipe()
	go func() {
		for i := range s.list {
			fmt.Fprintf(to, "%s\n", marshal(s.t, s.document(i, nil)))
		}
		to.Close()
	}()
	body, err := s.held("lines").ImportJsonl(s.ctx, from, &tsapi.ImportDocumentsParams{Action: new("create")})
	s.text("import of a stream", body, err)
}

// text records a reply that is a stream.
func (s goTypesense) text(step string, body io.ReadCloser, err error) {
	s.t.Helper()
	if err != nil {
		s.same(step, nil, err)
		return
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	s.same(step, string(text), err)
}

func (s goTypesense) documents() {
	work, first := s.held("work"), s.list[60].ID
	one := s.client.Collection(s.index("work")).Document(first)
	for _, c := range []struct {
		step string
		ask  func() (any, error)
	}{
		{"create", func() (any, error) { return work.Create(s.ctx, s.document(60, nil)) }},
		{"create twice", func() (any, error) { return work.Create(s.ctx, s.document(60, nil)) }},
		{"create too little", func() (any, error) { return work.Create(s.ctx, map[string]any{"title": "x"}) }},
		{"upsert", func() (any, error) { return work.Upsert(s.ctx, s.document(61, map[string]any{"id": first})) }},
		{"upsert a struct", func() (any, error) { return work.Upsert(s.ctx, s.list[62]) }},
		{"retrieve", func() (any, error) { return one.Retrieve(s.ctx) }},
		{"update whole text", func() (any, error) {
			return one.Update(s.ctx, map[string]any{"title": s.list[63].Title, "body": s.list[63].Body})
		}},
		{"after it", func() (any, error) { return one.Retrieve(s.ctx) }},
		{"update part of the text", func() (any, error) { return one.Update(s.ctx, map[string]any{"title": "half of it"}) }},
		{"after it, in part", func() (any, error) { return one.Retrieve(s.ctx) }},
		{"update another field", func() (any, error) { return one.Update(s.ctx, map[string]any{"n": 3, "beside": []int{1}}) }},
		{"update null", func() (any, error) { return one.Update(s.ctx, map[string]any{"n": nil}) }},
		{"update nothing", func() (any, error) {
			return s.client.Collection(s.index("work")).Document("nowhere").Update(s.ctx, map[string]any{"n": 1})
		}},
		{"update by filter", func() (any, error) {
			return work.Update(s.ctx, map[string]any{"n": 9}, &tsapi.UpdateDocumentsParams{FilterBy: new("n:=1")})
		}},
		{"delete", func() (any, error) { return one.Delete(s.ctx) }},
		{"delete again", func() (any, error) { return one.Delete(s.ctx) }},
		{"delete by filter", func() (any, error) {
			return work.Delete(s.ctx, &tsapi.DeleteDocumentsParams{FilterBy: new("n:=4"), BatchSize: new(10)})
		}},
	} {
		s.as("document: " + c.step)(c.ask())
	}
	for _, name := range []string{"main", "work", "nowhere"} {
		body, err := s.held(name).Export(s.ctx)
		s.text("export "+name, body, err)
	}
}

func (s goTypesense) schemas() {
	s.as("schema: add")(s.client.Collection(s.index("work")).Update(s.ctx, &tsapi.CollectionUpdateSchema{
		Fields: []tsapi.Field{{Name: "later", Type: "string", Optional: new(true)}}}))
	s.as("alias")(s.client.Aliases().Upsert(s.ctx, s.index("alias"), &tsapi.CollectionAliasSchema{CollectionName: s.index("main")}))
	s.as("collection: delete")(s.client.Collection(s.index("auto")).Delete(s.ctx))
}
