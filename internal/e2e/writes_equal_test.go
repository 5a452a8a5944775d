package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// written is a sequence of requests that write, as lines "METHOD path | body" in which INDEX stands for the index and ¶ for a
// line end, and in a body \xNN for a byte. Flags may follow the method: gzip, mislabelled (as gzip), chunked, expect (100-continue), ndjson,
// cbor, accepting (compressed replies).
type written struct {
	name  string
	steps []string
	// Of the documents that stand there at the end, lacks are those without a sketch.
	lacks []string
	kind  string // of the one engine that takes it, or both
	// refused names the engine that refuses what would leave documents without a sketch: none lacks it there.
	refused string
}

const (
	wordsA = `"title":"a report of some length","body":"the river rose again last night and the ferry stays at its pier"`
	wordsB = `"title":"an answer to it","body":"nobody in town had expected so much water in so short a time"`
)

// writes are the ways to write of Elasticsearch and OpenSearch.
var writes = []written{
	{name: "documents", steps: []string{
		"PUT /INDEX/_doc/1 | {" + wordsA + "}", "POST /INDEX/_doc/2?refresh=true | {" + wordsB + "}", "PUT /INDEX/_create/3 | {" + wordsA + "}",
		"PUT /INDEX/_create/3 | {" + wordsB + "}", "PUT /INDEX/_doc/4?op_type=create | {" + wordsB + "}", "PUT /INDEX/_doc/4?op_type=create | {}",
		"PUT /INDEX/_doc/1?version=7&version_type=external | {" + wordsB + "}", "PUT /INDEX/_doc/5?routing=x | {" + wordsA + "}",
		"PUT /INDEX/_doc/6 | {}", "PUT /INDEX/_doc/7 | {\"title\":\"\",\"n\":1}", "DELETE /INDEX/_doc/2 |", "PUT /INDEX/_doc/1?if_seq_no=99&if_primary_term=1 | {}",
		"PUT /INDEX/_doc/8?pipeline=_none | {" + wordsA + "}", "PUT /INDEX/_doc/9?require_alias=true | {" + wordsA + "}",
	}, lacks: []string{"6", "7"}},
	{name: "forms of JSON", steps: []string{
		"PUT /INDEX | {\"mappings\":{\"dynamic\":false}}",
		"PUT /INDEX/_doc/1 | {\n  \"title\" : \"pretty\" ,\n  \"n\" : 1.50\n}\n", "PUT /INDEX/_doc/2 | \uFEFF{" + wordsA + "}", "PUT /INDEX/_doc/3 | {/* c */\"title\":\"a b\"/* c */}// c\n",
		"PUT /INDEX/_doc/4 | {\"title\":\"x\\ud800y\",\"z\":-0,\"e\":1e400,\"f\":1E+2}", "PUT /INDEX/_doc/5 | {\"title\":\"caf\\u00e9\",\"deep\":" + strings.Repeat(`{"a":`, 90) + "1" + strings.Repeat("}", 90) + "}",
		"PUT /INDEX/_doc/6 | {\"title\":\"a\",\"title\":\"b\"}", "PUT /INDEX/_doc/7 | {\"title\":\"a\"} x", "PUT /INDEX/_doc/8 | [1]", "PUT /INDEX/_doc/9 | {\"title\":NaN}", "PUT /INDEX/_doc/9 | ",
		"PUT /INDEX/_doc/10 | {\"title\":\"a\xc0\x80\"}", "PUT /INDEX/_doc/11 | {\"neardup_sketch_of_mine\":1," + wordsA + "}", "PUT /INDEX/_doc/12 | {\"title\":[\"a b\",\"c d\"],\"body\":null}",
		"PUT /INDEX/_doc/13 | {\"title\":{\"a\":1},\"body\":\"b c\"}", "PUT /INDEX/_doc/14 | {\"t\\u0069tle\":\"by an escape\"}",
	}, lacks: []string{"10", "13"}},
	{name: "updates", steps: []string{
		"PUT /INDEX/_doc/1 | {" + wordsA + ",\"n\":1}", "POST /INDEX/_update/1 | {\"doc\":{" + wordsA + "}}", "POST /INDEX/_update/1 | {\"doc\":{" + wordsB + "},\"_source\":true}",
		"POST /INDEX/_update/1?_source=n | {\"doc\":{\"n\":2}}", "POST /INDEX/_update/1 | {\"doc\":{\"n\":2}}", "POST /INDEX/_update/1 | {\"doc\":{\"n\":2},\"detect_noop\":false}",
		"PUT /INDEX/_doc/2 | {" + wordsA + "}", "POST /INDEX/_update/2 | {\"doc\":{\"title\":\"another\"}}", "POST /INDEX/_update/3 | {\"doc\":{" + wordsA + "}}",
		"POST /INDEX/_update/3 | {\"doc\":{" + wordsA + "},\"doc_as_upsert\":true}", "POST /INDEX/_update/3 | {\"doc\":{" + wordsA + "},\"doc_as_upsert\":true}",
		"POST /INDEX/_update/4 | {\"doc\":{\"n\":1},\"doc_as_upsert\":\"true\"}", "POST /INDEX/_update/5 | {\"doc\":{\"title\":\"a part\"},\"doc_as_upsert\":true}",
		"POST /INDEX/_update/6 | {\"doc\":{\"n\":1},\"upsert\":{" + wordsA + "}}", "POST /INDEX/_update/6 | {\"doc\":{\"n\":1},\"upsert\":{" + wordsB + "}}",
		"POST /INDEX/_update/7 | {\"doc\":{" + wordsB + "},\"upsert\":{" + wordsA + "},\"doc_as_upsert\":true}", "POST /INDEX/_update/8?retry_on_conflict=3 | {\"doc\":{},\"upsert\":{}}",
		"PUT /INDEX/_doc/9 | {" + wordsA + "}", "POST /INDEX/_update/9 | {\"doc\":{\"title\":null,\"body\":\"\"}}",
		"PUT /INDEX/_doc/10 | {" + wordsA + "}", "POST /INDEX/_update/10 | {\"doc\":{\"title\":\"another\"}} and more", "PUT /INDEX/_doc/11 | {" + wordsA + "}", "POST /INDEX/_update/11 | {\"doc\":{" + wordsB + "}}}",
		"POST /INDEX/_update/1 | {\"doc\":{\"title\":\"a\"},\"doc\":{\"title\":\"b\"}}", "POST /INDEX/_update/1 | {\"doc\":null}", "POST /INDEX/_update/1 | {\"doc\":[]}", "POST /INDEX/_update/1 | {\"doc\":{\"title\":\"a\",\"title\":\"b\"}}",
		"POST /INDEX/_update/1 | {\"doc\":{},\"doc_as_upsert\":1}", "POST /INDEX/_update/1 | {\"upsert\":{}}", "POST /INDEX/_update/1 | {\"title\":\"a\"}", "POST /INDEX/_update/1 | {}", "POST /INDEX/_update/1 |",
		"PUT /INDEX/_doc/12 | {\"title\":{\"x\":\"an object\"},\"body\":\"b\"}", "POST /INDEX/_update/12 | {\"doc\":{\"title\":{\"y\":\"merged\"},\"body\":\"c\"}}",
	}, lacks: []string{"12", "2", "4", "5", "8", "9", "10"}},
	{name: "scripts", steps: []string{
		"POST /INDEX/_update/1 | {\"script\":{\"source\":\"ctx._source.n=1\"},\"upsert\":{" + wordsA + "}}", "POST /INDEX/_update/1 | {\"script\":\"ctx._source.n=2\",\"upsert\":{" + wordsB + "}}",
		"POST /INDEX/_update/2 | {\"script\":\"ctx._source.title='by a script'\",\"upsert\":{" + wordsA + "},\"scripted_upsert\":true}",
		"POST /INDEX/_update/3 | {\"scripted_upsert\":\"true\",\"script\":\"ctx._source.title='by a script'\",\"upsert\":{" + wordsA + "}}",
		"POST /INDEX/_update/4 | {\"scripted_upsert\":false,\"script\":\"ctx._source.n=1\",\"upsert\":{" + wordsA + "}}", "POST /INDEX/_update/5 | {\"script\":\"ctx.op='none'\",\"upsert\":{}}",
		"POST /INDEX/_update/4 | {\"script\":\"ctx.op='none'\"}", "POST /INDEX/_update/4 | {\"script\":\"nonsense(\"}", "POST /INDEX/_update/4 | {\"script\":\"ctx._source.n=1\",\"doc\":{}}",
		"POST /INDEX/_update/6 | {\"script\":\"ctx._source.n=1\",\"upsert\":{\"title\":\"a b\"},\"scripted_upsert\":true,\"scripted_upsert\":false}", "POST /INDEX/_update/1 | {\"script\":\"ctx.op='delete'\"}",
	}, lacks: []string{"2", "3", "5"}},
	{name: "bulks", steps: []string{
		"POST /_bulk?refresh=true | {\"index\":{\"_index\":\"INDEX\",\"_id\":\"1\"}}¶{" + wordsA + "}¶{\"create\":{\"_index\":\"INDEX\",\"_id\":\"1\"}}¶{" + wordsB + "}¶{\"create\":{\"_index\":\"INDEX\",\"_id\":\"2\"}}¶{" + wordsB + "}¶",
		"PUT /INDEX/_bulk | {\"update\":{\"_id\":\"1\"}}¶{\"doc\":{" + wordsA + "}}¶{\"update\":{\"_id\":\"2\"}}¶{\"doc\":{\"title\":\"a part\"}}¶{\"update\":{\"_id\":\"3\",\"retry_on_conflict\":2}}¶{\"doc\":{" + wordsA + "},\"doc_as_upsert\":true}¶{\"delete\":{\"_id\":\"none\"}}¶",
		"POST /INDEX/_bulk | {\"update\":{\"_id\":\"1\",\"_source\":true}}¶{\"doc\":{\"n\":1}}¶{\"update\":{\"_id\":\"1\"}}¶{\"doc\":{\"n\":1},\"_source\":[\"title\"]}¶{\"update\":{\"_id\":\"3\"}}¶{\"doc\":{" + wordsA + "}}¶",
		"POST /INDEX/_bulk | {\"update\":{\"_id\":\"4\"}}¶{\"script\":\"ctx._source.n=1\",\"upsert\":{" + wordsA + "}}¶{\"update\":{\"_id\":\"5\"}}¶{\"script\":\"ctx._source.title='x'\",\"upsert\":{" + wordsA + "},\"scripted_upsert\":true}¶",
		"POST /INDEX/_bulk | {\"index\":{\"_id\":\"6\"}}\r¶{" + wordsA + "}\r¶", "POST /INDEX/_bulk | {\"index\":{\"_id\":\"7\"}}¶{" + wordsA + "}", "POST /INDEX/_bulk | ¶ ¶{\"index\":{\"_id\":\"8\"}}¶{" + wordsA + "}¶¶",
		"POST /INDEX/_bulk | {\"index\":{\"_id\":\"9\"}}¶¶{\"index\":{\"_id\":\"10\"}}¶{" + wordsA + "}¶", "POST /INDEX/_bulk | \uFEFF{\"index\":{\"_id\":\"11\"}}¶{" + wordsA + "}¶",
		"POST /INDEX/_bulk | /* c */¶{\"index\":{\"_id\":\"12\"}} // c¶{/* c */" + wordsA + "}¶", "POST /INDEX/_bulk?routing=a&require_alias=false | {\"index\":{\"_id\":\"13\",\"routing\":\"b\"}}¶{" + wordsA + "}¶",
		"POST /INDEX/_bulk | {\"index\":{\"_id\":\"14\",\"require_alias\":true}}¶{" + wordsA + "}¶{\"index\":{\"_id\":\"14\",\"require_alias\":\"true\"}}¶{" + wordsA + "}¶",
		"POST /INDEX/_bulk | {\"index\":{\"_id\":15,\"pipeline\":\"_none\"}}¶{" + wordsA + "}¶{\"index\":{\"_id\":\"16\",\"version\":3,\"version_type\":\"external\"}}¶{" + wordsA + "}¶{\"index\":{\"op_type\":\"create\",\"_id\":\"1\"}}¶{" + wordsA + "}¶",
		"POST /INDEX/_bulk | {\"index\":{\"_id\":\"18\"},\"create\":{}}¶{" + wordsA + "}¶",
		"POST /INDEX/_bulk | {\"indx\":{}}¶{}¶", "POST /INDEX/_bulk | {}¶{}¶", "POST /INDEX/_bulk | {\"index\":null}¶{}¶", "POST /INDEX/_bulk |", "POST /INDEX/_bulk | {\"index\":{\"_index\":[\"INDEX\"]}}¶{}¶",
	}, lacks: []string{"2", "5"}},
	{name: "broken actions", steps: []string{
		"PUT /INDEX/_doc/6 | {" + wordsA + "}", "PUT /INDEX/_doc/8 | {" + wordsA + "}",
		"POST /INDEX/_bulk | {\"index\":{\"_id\":\"17\"}¶{" + wordsA + "}¶{\"update\":{\"_id\":\"6\"}}¶{\"doc\":{\"title\":\"a part\"}}¶",
		"POST /INDEX/_bulk | {\"index\":{\"_id\":\"19\"}}{\"x\":1}¶{" + wordsA + "}¶{\"update\":{\"_id\":\"8\"}}¶{\"doc\":{\"title\":\"a part\"}} x¶",
	}, lacks: []string{"6", "8"}, refused: engines.Elasticsearch},
	{name: "lenient actions", kind: engines.OpenSearch, steps: []string{
		"POST /INDEX/_bulk | {\"index\":{\"_id\":\"1\"}} x¶{" + wordsA + "}¶{\"index\":{\"_id\":\"2\"} x¶{" + wordsA + "}¶{\"index\":{\"_id\":\"3\"},\"index\":{\"_index\":\"other\"}}¶{" + wordsA + "}¶{\"update\":{\"_id\":\"1\"}}}¶{\"doc\":{\"title\":\"x\"}}¶",
	}, lacks: []string{"1"}},
	{name: "transfers", steps: []string{
		"POST gzip /INDEX/_bulk | {\"index\":{\"_id\":\"1\"}}¶{" + wordsA + "}¶", "POST chunked /INDEX/_bulk | {\"index\":{\"_id\":\"2\"}}¶{" + wordsA + "}¶", "POST gzip chunked /INDEX/_bulk | {\"index\":{\"_id\":\"3\"}}¶{" + wordsA + "}¶",
		"POST expect /INDEX/_bulk | {\"index\":{\"_id\":\"4\"}}¶{" + wordsA + "}¶", "POST expect gzip chunked /INDEX/_bulk | {\"index\":{\"_id\":\"5\"}}¶{" + wordsA + "}¶", "POST ndjson /INDEX/_bulk | {\"index\":{\"_id\":\"6\"}}¶{" + wordsA + "}¶",
		"PUT gzip /INDEX/_doc/7 | {" + wordsA + "}", "PUT chunked /INDEX/_doc/8 | {" + wordsB + "}", "POST gzip /INDEX/_update/8 | {\"doc\":{\"title\":\"a part\"}}", "PUT expect /INDEX/_doc/9 | {" + wordsA + "}",
	}, lacks: []string{"8"}},
	{name: "large", steps: []string{
		"POST /INDEX/_bulk | " + manyLines(300), "POST chunked /INDEX/_bulk | " + manyLines(300), "POST gzip /INDEX/_bulk | " + manyLines(300),
	}},
	{name: "executed pipelines", kind: engines.Elasticsearch, steps: []string{
		"POST /INDEX/_bulk?list_executed_pipelines=true | {\"index\":{\"_id\":\"1\"}}¶{" + wordsA + "}¶", "POST /INDEX/_bulk?require_data_stream=false | {\"index\":{\"_id\":\"2\"}}¶{" + wordsA + "}¶",
		"POST /INDEX/_bulk?require_data_stream=true | {\"index\":{\"_id\":\"3\"}}¶{" + wordsA + "}¶", "POST /INDEX/_bulk?include_source_on_error=false | {\"index\":{\"_id\":\"4\"}}¶{" + wordsA + "}¶",
	}},
}

// manyLines is a bulk of more than a megabyte.
func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"index\":{\"_id\":\"%d\"}}¶{\"title\":\"number %d\",\"body\":\"%s\"}¶", i, i, strings.Repeat("so many words are here ", 200))
	}
	return b.String()
}

var hexed = regexp.MustCompile(`\\x[0-9a-f]{2}`)

// send sends one step of a sequence and returns its answer.
func (a api) send(t *testing.T, step, index string) reply {
	t.Helper()
	line, body, _ := strings.Cut(step, "|")
	words := strings.Fields(strings.ReplaceAll(line, "INDEX", index))
	body = strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(body, " "), "INDEX", index), "¶", "\n")
	is := func(flag string) bool { return slices.Contains(words[1:len(words)-1], flag) }
	data := hexed.ReplaceAllFunc([]byte(body), func(x []byte) []byte { return must(hex.DecodeString(string(x[2:])))(t) })
	if is("gzip") {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, _ = w.Write(data)
		_ = w.Close()
		data = z.Bytes()
	}
	var reader io.Reader = bytes.NewReader(data)
	if is("chunked") {
		reader = struct{ io.Reader }{reader}
	}
	var headers []string
	if a.typesense() {
		headers = []string{"Content-Type", ""}
	}
	for flag, header := range map[string][2]string{
		"gzip": {"Content-Encoding", "gzip"}, "mislabelled": {"Content-Encoding", "gzip"}, "expect": {"Expect", "100-continue"}, "accepting": {"Accept-Encoding", "gzip, br"},
		"ndjson": {"Content-Type", "application/x-ndjson"}, "cbor": {"Content-Type", "application/cbor"},
	} {
		if is(flag) {
			headers = append(headers, header[:]...)
		}
	}
	got, err := exchange(http.DefaultClient, must(requestOf(t.Context(), a.e, words[0], a.base+words[len(words)-1], reader, headers...))(t))
	if err != nil {
		t.Fatalf("%.300s: %v", step, err)
	}
	return got
}

// varying is what differs between two replies for other reasons than the sidecar; and in errors, the end of a document that
// Elasticsearch quotes, and the field limit.
var varying = regexp.MustCompile(`,\\"neardup_sketch\\":null|fields \[\d+\]|"(index_uuid|_id)":"[\w-]{20,22}"|"took":\d+|"ingest_took":\d+|\[INDEX/[\w-]{22}\]`)

// TestWritesAreTheEnginesOwn sends the same sequences directly and through the sidecar: statuses, replies and stored documents
// are the same, but for the sketches, which are those of the stored texts or lack where that is said.
func TestWritesAreTheEnginesOwn(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		base := serve(t, e, setup{match: "weq-*"})
		for i, w := range writes {
			if w.kind != "" && w.kind != e.Kind {
				continue
			}
			t.Run(w.name, func(t *testing.T) {
				p := newPair(t, e, base, fmt.Sprintf("weq-%d", i))
				p.send(t, w.steps...)
				if w.refused == e.Name {
					w.lacks = nil
				}
				p.same(t, "INDEX", w.lacks...)
			})
		}
	})
}

// kept returns every document as the engine holds it, with the very bytes of its source, which a search may write anew.
func kept(t *testing.T, direct api, index string) map[string]hit {
	t.Helper()
	direct.refresh(t, index)
	body := call(t, direct.e, "POST", direct.base+"/"+index+"/_search", `{"size":10000,"_source":false,"version":true,"seq_no_primary_term":true}`).want(t, 200).body
	var found struct {
		Hits struct {
			Hits []struct {
				Index   string `json:"_index"`
				ID      string `json:"_id"`
				Routing string `json:"_routing"`
				Version int    `json:"_version"`
				SeqNo   int    `json:"_seq_no"`
			}
		}
	}
	decode(t, body, &found)
	all := map[string]hit{}
	for _, h := range found.Hits.Hits {
		path := "/" + h.Index + "/_source/" + h.ID
		if h.Routing != "" {
			path += "?routing=" + h.Routing
		}
		source := call(t, direct.e, "GET", direct.base+path, "").want(t, 200).body
		all[h.ID] = hit{source, fmt.Sprintf("%d/%d", h.Version, h.SeqNo)}
	}
	return all
}

func plain(r reply, index string) string {
	return varying.ReplaceAllString(strings.ReplaceAll(string(r.body), index, "INDEX"), "")
}

// ruleOfTests is the rule of the configuration that the tests write.
func ruleOfTests(t *testing.T) *rule.Rule {
	t.Helper()
	return &rule.Rule{Match: "*", Fields: []string{"title", "body"}, Profile: rerank.Default(), Window: 1000, Sketcher: sketcherOf(t, seed)}
}

// sameStored holds what is stored through the sidecar against what is stored directly: the same but for sketches, which are
// right, and lack nowhere but in the documents named.
func sameStored(t *testing.T, r *rule.Rule, direct, through map[string]hit, lacks []string) {
	t.Helper()
	if len(direct) != len(through) || len(direct) == 0 {
		t.Errorf("%d documents are stored, directly %d", len(through), len(direct))
	}
	for id, want := range direct {
		got, there := through[id]
		bare, err := jsonedit.Cut(got.source, rule.Our)
		if !there || err != nil || !bytes.Equal(bare, want.source) {
			t.Errorf("%s is stored as %q, directly %q", id, got.source, want.source)
		}
		if there && got.version != want.version {
			t.Errorf("%s is of version %s, directly %s", id, got.version, want.version)
		}
		if why := wrong(r, got.source); why != "" {
			t.Errorf("%s: %s: %.300s", id, why, got.source)
		}
		if lack := slices.Contains(lacks, id); rule.HasSketch(got.source) == lack {
			t.Errorf("%s lacks its sketch: %v, want %v: %.300s", id, !lack, lack, got.source)
		}
	}
}

// wrong says what is wrong with the sketch in a stored document, if anything is: it is that of the text or there is none.
func wrong(r *rule.Rule, source []byte) string {
	if !rule.HasSketch(source) {
		return ""
	}
	computed, kept := r.SketchOf(source)
	var text struct {
		Sketch json.RawMessage `json:"neardup_sketch"`
	}
	_ = json.Unmarshal(source, &text)
	switch {
	case kept == nil:
		return fmt.Sprintf("%s is no sketch of the rule", text.Sketch)
	case computed == nil:
		return "it has a sketch and no text"
	case computed.Text != kept.Text:
		return fmt.Sprintf("its sketch is %s, that of its text %s", kept.Text, computed.Text)
	}
	return ""
}

// TestEqualUpdates sends updates with the text that is stored already, alone and in a bulk, directly and through the sidecar. With a sketch
// that is a no-op either way; without one the first through the sidecar stores the sketch, and no more than that, and the next is a no-op
// (decision 030).
func TestEqualUpdates(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		base := serve(t, e, setup{match: "noop-*"})
		const text = `"title":"a report of some length","body":"the river rose again last night and the ferry stays at its pier"`
		api{e, base}.create(t, "noop-1")
		document := func(id, from string) {
			call(t, e, "PUT", from+"/noop-1/_doc/"+id+"?refresh=true", `{`+text+`,"n":1}`).want(t, 201)
		}
		document("sketched", base)
		for _, id := range []string{"alone", "bulk", "directly"} {
			document(id, e.URL)
		}
		alone := func(from, id, doc string) string {
			var r struct {
				Result  string
				Version int `json:"_version"`
			}
			decode(t, call(t, e, "POST", from+"/noop-1/_update/"+id, `{"doc":{`+doc+`}}`).want(t, 200).body, &r)
			return fmt.Sprint(r.Result, " ", r.Version)
		}
		bulk := func(from, id, doc string) string {
			lines := fmt.Sprintf("{\"update\":{\"_index\":\"noop-1\",\"_id\":%q}}\n{\"doc\":{%s}}\n", id, doc)
			var r struct {
				Items []struct {
					Update struct {
						Result  string
						Version int `json:"_version"`
					}
				}
			}
			if err := json.Unmarshal(call(t, e, "POST", from+"/_bulk", lines).want(t, 200).body, &r); err != nil || len(r.Items) != 1 {
				t.Fatal(err, r)
			}
			return fmt.Sprint(r.Items[0].Update.Result, " ", r.Items[0].Update.Version)
		}
		for _, c := range []struct {
			name, got, want string
		}{
			{"directly, no sketch", alone(e.URL, "directly", text), "noop 1"},
			{"alone, with a sketch", alone(base, "sketched", text), "noop 1"},
			{"in a bulk, with a sketch", bulk(base, "sketched", text), "noop 1"},
			{"no text, with a sketch", alone(base, "sketched", `"n":1`), "noop 1"},
			{"no text, no sketch", alone(base, "alone", `"n":1`), "noop 1"},
			{"alone, no sketch", alone(base, "alone", text), "updated 2"},
			{"alone, again", alone(base, "alone", text), "noop 2"},
			{"in a bulk, no sketch", bulk(base, "bulk", text), "updated 2"},
			{"in a bulk, again", bulk(base, "bulk", text), "noop 2"},
			{"a part of the text", alone(base, "sketched", `"title":"a report of some length"`), "updated 2"},
			{"a part, again", alone(base, "sketched", `"title":"a report of some length"`), "noop 2"},
			{"all of it after that", alone(base, "sketched", text), "updated 3"},
		} {
			if c.got != c.want {
				t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
			}
		}
		source := func(id string) map[string]any {
			var m map[string]any
			decode(t, call(t, e, "GET", e.URL+"/noop-1/_source/"+id, "").want(t, 200).body, &m)
			return m
		}
		plain, first := source("directly"), source("sketched")
		for _, id := range []string{"alone", "bulk", "sketched"} {
			got := source(id)
			if got[rule.SketchField] == nil || got[rule.SketchField] != first[rule.SketchField] {
				t.Errorf("%s has the sketch %v", id, got[rule.SketchField])
			}
			delete(got, rule.SketchField)
			same(t, plain, got, "%s", id)
		}
	})
	t.Run(engines.Typesense, func(t *testing.T) { // which knows neither versions nor no-ops
		e := engines.Shared(t, engines.Typesense)
		direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "noop-*"})}
		replies := map[bool][]string{}
		for _, ours := range []bool{false, true} {
			a, name := direct, "noop-direct"
			if ours {
				a, name = through, "noop-through"
			}
			a.create(t, name)
			const doc = `{"id":"1","title":"a report of some length","body":"the river rose again last night"}`
			call(t, e, "POST", e.URL+"/collections/"+name+"/documents", doc).want(t, 201)
			for range 2 {
				r := call(t, e, "PATCH", a.base+"/collections/"+name+"/documents/1", `{"title":"a report of some length","body":"the river rose again last night"}`)
				replies[ours] = append(replies[ours], fmt.Sprint(r.status, " ", string(r.body)))
				r = call(t, e, "POST", a.base+"/collections/"+name+"/documents/import?action=update&return_doc=true", doc+"\n")
				replies[ours] = append(replies[ours], fmt.Sprint(r.status, " ", string(r.body)))
			}
			stored := string(call(t, e, "GET", e.URL+"/collections/"+name+"/documents/1", "").want(t, 200).body)
			if strings.Contains(stored, `"neardup_sketch":"`) != ours {
				t.Errorf("stored: %s", stored)
			}
		}
		same(t, replies[false], replies[true], "")
	})
}
