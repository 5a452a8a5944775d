package elastic

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// TestCleanReply cuts our field out of replies in the forms in which engines print them, in CBOR and in SMILE, and holds the rest to what
// they print where there is no such field.
func TestCleanReply(t *testing.T) {
	for _, c := range cleanReplies {
		t.Run(c.name, func(t *testing.T) {
			method, target, _ := strings.Cut(c.request, " ")
			u := expect.Value(url.Parse(target))(t)
			for _, openSearch := range []bool{false, true} {
				want := c.want
				if openSearch && c.openSearch != "" {
					want = c.openSearch
				}
				d := Dialect{OpenSearch: openSearch}
				class := d.Classify(&adapters.Request{Method: method, Path: u.Path, RawQuery: u.RawQuery})
				if class.Kind != adapters.KindRead && class.Kind != adapters.KindSearch && !class.ReplyMayHoldOurs {
					t.Fatalf("the reply is not cleaned: %+v", class)
				}
				for _, reply := range []string{c.reply, want} {
					var got bytes.Buffer
					expect.OK(t, d.CleanReply(class, &got, strings.NewReader(reply)))
					expect.Same(t, want, got.String(), "OpenSearch %t: %s", openSearch, reply)
				}
				checkPackedReply(t, d, class, c.reply, want)
			}
		})
	}
}

// checkPackedReply cleans a reply written in CBOR and in SMILE.
func checkPackedReply(t *testing.T, d Dialect, class adapters.Class, reply, want string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for _, form := range writtenForms[:2] {
		var got bytes.Buffer
		expect.OK(t, d.CleanReply(class, &got, bytes.NewReader(form.reply(random, pairsOf(t, reply)))))
		expect.Same(t, readJSON(t, []byte(want)), form.read(t, got.Bytes()), "%s of %s, OpenSearch %t", form.name, reply, d.OpenSearch)
	}
}

// pairsOf reads a JSON object.
func pairsOf(t *testing.T, text string) pairs {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	var value func() any
	value = func() any {
		switch token := expect.Value(d.Token())(t); token {
		case json.Delim('{'):
			object := pairs{}
			for d.More() {
				key, _ := expect.Value(d.Token())(t).(string)
				object = append(object, pair{key, value()})
			}
			_, _ = d.Token()
			return object
		case json.Delim('['):
			list := []any{}
			for d.More() {
				list = append(list, value())
			}
			_, _ = d.Token()
			return list
		default:
			return token
		}
	}
	object, _ := value().(pairs)
	return object
}

// cleanReplies are replies with our field and without.
var cleanReplies = []struct {
	name, request, reply, want string
	openSearch                 string // where it differs
}{
	{name: "the only field extracted", request: "POST /news-1/_mget",
		reply: `{"docs":[{"_id":"1","fields":{"neardup_sketch":["x"]},"found":true}]}`, want: `{"docs":[{"_id":"1","found":true}]}`},
	{name: "a source printed", request: "GET /news-1/_doc/1",
		reply: "{\n  \"_source\" : {\n    \"neardup_sketch\" : \"x\"\n  }\n}\n", want: "{\n  \"_source\" : { }\n}\n"},
	{name: "the client's own, further down", request: "GET /news-1/_doc/1",
		reply: `{"_source":{"a":{"neardup_sketch":1,"_source":{"neardup_sketch":2},"fields":{"neardup_sketch":3}},` +
			`"neardup_sketch":"x"}}`,
		want: `{"_source":{"a":{"neardup_sketch":1,"_source":{"neardup_sketch":2},"fields":{"neardup_sketch":3}}}}`},
	{name: "the only field of an index", request: "GET /news-1/_mapping",
		reply: `{"news-1":{"mappings":{"properties":{` + mappedSketch + `}}}}`, want: `{"news-1":{"mappings":{}}}`},
	{name: "with a type, of an index itself", request: "GET /news-1",
		reply: `{"news-1":{"mappings":{"_doc":{"properties":{` + mappedSketch + `}}}}}`, want: `{"news-1":{"mappings":{"_doc":{}}}}`},
	{name: "a field called so in an object", request: "GET /_mapping",
		reply: `{"mappings":{"mappings":{"properties":{"o":{"properties":{` + mappedSketch + `}},` + mappedSketch + `}}}}`,
		want:  `{"mappings":{"mappings":{"properties":{"o":{"properties":{` + mappedSketch + `}}}}}}`},
	{name: "in a list of fields", request: "GET /news-1/_mapping/field/*",
		reply: `{"news-1":{"mappings":{"neardup_sketch":{"full_name":"neardup_sketch","mapping":{` + mappedSketch + `}}}}}`,
		want:  `{"news-1":{"mappings":{}}}`},
	{name: "in a template", request: "GET /_index_template/x",
		reply: `{"index_templates":[{"name":"x","index_template":{"template":{"mappings":{"properties":{` + mappedSketch + `,` +
			`"a":{}}}}}}]}`,
		want: `{"index_templates":[{"name":"x","index_template":{"template":{"mappings":{"properties":{"a":{}}}}}}]}`},
	{name: "of an index in a simulation", request: "POST /_ingest/news-1/_simulate",
		reply: `{"docs":[{"doc":{"_source":{"neardup_sketch":1},"effective_mapping":{"_doc":{"properties":{` + mappedSketch + `}}}}}]}`,
		want:  `{"docs":[{"doc":{"_source":{"neardup_sketch":1},"effective_mapping":{}}}]}`},
	{name: "of a data stream", request: "GET /_data_stream/x/_mappings",
		reply: `{"data_streams":[{"name":"x","mappings":{},"effective_mappings":{"_doc":{"properties":{` + mappedSketch + `,"a":{}}}}}]}`,
		want:  `{"data_streams":[{"name":"x","mappings":{},"effective_mappings":{"_doc":{"properties":{"a":{}}}}}]}`},
	{name: "documents of a transform", request: "POST /_transform/_preview",
		reply: `{"preview":[{"a":1,"neardup_sketch":"x"},{"o":{"neardup_sketch":"x"}}],"generated_dest_index":{"mappings":{"properties":{` + mappedSketch + `}}}}`,
		want:  `{"preview":[{"a":1},{"o":{"neardup_sketch":"x"}}],"generated_dest_index":{"mappings":{}}}`},
	{name: "features", request: "POST /_ml/data_frame/analytics/x/_preview", reply: `{"feature_values":[{"neardup_bands":"1","a":"2"}]}`, want: `{"feature_values":[{"a":"2"}]}`},
	{name: "a sample", request: "GET /news-1/_sample", reply: `{"sample":[{"index":"news-1","source":{"a":1,"neardup_sketch":"x"}}]}`, want: `{"sample":[{"index":"news-1","source":{"a":1}}]}`},
	{name: "a watch", request: "POST /_watcher/watch/x/_execute",
		reply: `{"watch_record":{"result":{"input":{"payload":{"hits":{"hits":[{"_source":{"a":1,"neardup_sketch":"x"}}]}}}}}}`,
		want:  `{"watch_record":{"result":{"input":{"payload":{"hits":{"hits":[{"_source":{"a":1}}]}}}}}}`},
	{name: "usage", request: "GET /news-1/_field_usage_stats",
		reply: `{"news-1":{"shards":[{"stats":{"all_fields":{},"fields":{"neardup_sketch":{}}}}]}}`,
		want:  `{"news-1":{"shards":[{"stats":{"all_fields":{},"fields":{}}}]}}`},
	{name: "kept in part", request: "GET /news-1/_mget?filter_path=docs._source.n*",
		reply: `{"docs":[{"_source":{"neardup_sketch":"x"}},{"_source":{"neardup_sketch":"x","n":1}}]}`,
		want:  `{"docs":[{"_source":{"n":1}}]}`},
	{name: "kept in part and nothing left", request: "GET /news-1/_mget?filter_path=docs._source.near*",
		reply: `{"docs":[{"_source":{"neardup_sketch":"x"}},{"_source":{"neardup_sketch":"x"}}]}`, want: `{}`},
	{name: "lists in lists and nothing left", request: "GET /news-1/_mget?filter_path=docs._source.near*",
		reply: `{"docs":[[[{"_source":{"neardup_sketch":"x"}}],[{"_source":{"neardup_sketch":"x"}},[],1]],{"_source":{"neardup_sketch":"x"}}]}`,
		want:  `{"docs":[[[[],1]]]}`},
	{name: "printed and nothing left", request: "GET /_mapping?pretty&filter_path=**.near*",
		reply: "{\n  \"a\" : {\n    \"mappings\" : {\n      \"properties\" : {\n        \"neardup_sketch\" : { }\n      }\n    " +
			"}\n  }\n}\n", want: "{ }\n"},
	{name: "a mapping kept whole", request: "GET /_mapping?filter_path=*.mappings",
		reply: `{"a":{"mappings":{"properties":{` + mappedSketch + `}}}}`, want: `{"a":{"mappings":{}}}`},
	{name: "taken out further down", request: "GET /news-1/_doc/1?filter_path=-_source.o.title",
		reply: `{"_id":"1","_source":{"neardup_sketch":"x"}}`, want: `{"_id":"1","_source":{}}`, openSearch: `{"_id":"1"}`},
	{name: "a source that stands alone is not filtered", request: "GET /news-1/_source/1?filter_path=a.b",
		reply: `{"neardup_sketch":"x","a":{"neardup_sketch":1}}`, want: `{"a":{"neardup_sketch":1}}`},
	{name: "quoted", request: "PUT /news-1/_doc/1",
		reply: `{"error":{"reason":"x [Source: (byte[])\"{\"title\":\"a\",\"neardup_sketch\":\"AQ+/=\"}\n\"; line: 1]"}}`,
		want:  `{"error":{"reason":"x [Source: (byte[])\"{\"title\":\"a\"}\n\"; line: 1]"}}`},
	{name: "quoted and set to null", request: "POST /_bulk",
		reply: `{"items":[{"index":{"error":{"reason":"\"{\"title\":\"a\",\"neardup_sketch\":null}\""}}}]}`,
		want:  `{"items":[{"index":{"error":{"reason":"\"{\"title\":\"a\"}\""}}}]}`},
	{name: "quoted in the middle", request: "POST /news-1/_update_by_query",
		reply: `{"failures":[{"reason":"\"{\"a\":1,\"neardup_sketch\":\"AQ\",\"title\":\"a\"}\""}]}`,
		want:  `{"failures":[{"reason":"\"{\"a\":1,\"title\":\"a\"}\""}]}`},
	{name: "quoted to within our field", request: "PUT /news-1/_create/1",
		reply: `{"error":{"reason":"\"{\"a\":1,\"neardup_sketch\":\"AQ\"[truncated 140 bytes]; line: 1"}}`,
		want:  `{"error":{"reason":"\"{\"a\":1}\"; line: 1"}}`},
	{name: "spoken of", request: "PUT /news-1/_doc/1", reply: `{"error":{"reason":"no field [neardup_sketch]"}}`,
		want: `{"error":{"reason":"no field [neardup_sketch]"}}`},
}

const mappedSketch = `"neardup_sketch":{"type":"binary","doc_values":true}`

// TestQuotedShort has an error's text quote a document that ends among our fields, wherever that is.
func TestQuotedShort(t *testing.T) {
	escaped := func(text string) string { return strings.ReplaceAll(text, `"`, `\"`) }
	ours := rule.Ours{Sketch: "AQgq1Zz+/w==", Bands: []int64{-4294967296, -7, -1}, Cluster: "_3k9abcdefghijklm"}
	for what, bare := range map[string]string{"behind": `{"a":"[1]"}`, "alone": `{}`} {
		whole := expect.Value(rule.WithOurs([]byte(bare), ours))(t)
		reply := func(quoted string) []byte { return []byte("(byte[])" + escaped(`"`+quoted) + "; line: 1") }
		expect.Same(t, string(reply(bare+`"`)), string(unquote(reply(string(whole)+`"`))), "%s", what)
		begins := strings.Index(string(whole), rule.FieldPrefix) + len(rule.FieldPrefix)
		for at := begins; at < len(whole); at++ {
			got, want := unquote(reply(string(whole[:at])+`"[truncated 9 bytes]`)), reply(bare+`"`)
			expect.Same(t, string(want), string(got), "%s, cut at %d", what, at)
		}
	}
}

// BenchmarkCleanReply cleans a page in which nothing is cut, as most replies are.
func BenchmarkCleanReply(b *testing.B) {
	reply := []byte(`{"hits":{"hits":[` + strings.Repeat(`{"_id":"1","_source":{"title":"one","text":"`+strings.Repeat("word ", 100)+`"}},`, 20) + `{}]}}`)
	c := adapters.Class{Kind: adapters.KindSearch, Form: formSearch}
	b.ReportAllocs()
	b.SetBytes(int64(len(reply)))
	for b.Loop() {
		if err := (Dialect{}).CleanReply(c, io.Discard, bytes.NewReader(reply)); err != nil {
			b.Fatal(err)
		}
	}
}
