package elastic

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

var bulkSeeds = []string{
	"{\"index\":{\"_index\":\"shop-1\"}}\n{\"title\":\"a\"}\n",
	"{\"create\":{}}\r\n{ \"title\" : [\"a\", 1] }\r\n\r\n{\"delete\":{\"_id\":\"1\"}}\n",
	"{\"update\":{}}\n{\"doc\":{\"title\":\"a\"},\"upsert\":{}}\n", "{\"index\":{}}\n{\"neardup_sketch\":1,\"title\":\"a\"}\n",
	"{\"index\":{}\n\n{}", "\n{",
	"{\"update\":{}}\n{\"doc\":{\"title\":null}}", "{\"index\":{}}\n{\"title\":\"a\",\"title\":\"b\"}\n",
	"{\"index\":{\"_index\":\"\\u0000\"}}\n\xff\n",
}

func bulkThrough(t testing.TB, data []byte, rule func(string) *adapters.Rule) []byte {
	t.Helper()
	e := &adapters.Enricher{Rule: func(index string, _ bool) (*adapters.Rule, bool) { return rule(index), true }, Room: 1 << 30}
	var whole, slow bytes.Buffer
	class := adapters.Class{Kind: adapters.Write, Target: "shop-1", Form: formBulk}
	if err := (Dialect{}).EnrichWrite(class, &whole, bytes.NewReader(data), e); err != nil {
		t.Fatal(err)
	}
	if err := (Dialect{}).EnrichWrite(class, &slow, iotest.OneByteReader(bytes.NewReader(data)), e); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(whole.Bytes(), slow.Bytes()) {
		t.Fatalf("chunk size matters:\n%q\n%q", whole.Bytes(), slow.Bytes())
	}
	return whole.Bytes()
}

func FuzzBulkIdentity(f *testing.F) {
	for _, s := range bulkSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if out := bulkThrough(t, data, func(string) *adapters.Rule { return nil }); !bytes.Equal(out, data) {
			t.Fatalf("%q became %q", data, out)
		}
	})
}

func FuzzBulkEnrichOnlyAdds(f *testing.F) {
	for _, s := range bulkSeeds {
		f.Add([]byte(s))
	}
	rules := adaptertest.Rules(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		out := bulkThrough(t, data, func(string) *adapters.Rule { return rules[1] })
		before, after := bytes.Split(data, []byte("\n")), bytes.Split(out, []byte("\n"))
		if len(before) != len(after) {
			t.Fatalf("%d lines became %d:\n%q\n%q", len(before), len(after), data, out)
		}
		for i := range before {
			// A value of the client's own is cut out too, so both sides are compared without.
			if was, is := withoutOurs(before[i]), withoutOurs(after[i]); !bytes.Equal(was, is) {
				t.Fatalf("line %q became %q", before[i], after[i])
			}
			if !bytes.Contains(before[i], []byte("neardup")) && !bytes.Contains(before[i], []byte(`\`)) && len(after[i]) < len(before[i]) {
				t.Fatalf("line %q lost something: %q", before[i], after[i])
			}
		}
	})
}

// withoutOurs cuts our field out of a document, or out of the documents in an update.
func withoutOurs(line []byte) []byte {
	line, err := adapters.Cut(line, adapters.Our)
	if err != nil {
		return nil
	}
	members, _ := adapters.Members(line)
	for _, m := range members {
		if m.Key != "doc" && m.Key != "upsert" {
			continue
		}
		if inner, err := adapters.Cut(m.Value, adapters.Our); err == nil {
			if line, err = adapters.Set(line, m.Key, inner); err != nil {
				return nil
			}
		}
	}
	return line
}

func FuzzExchangeReply(f *testing.F) {
	for _, x := range loadExchanges(f) {
		for _, reply := range x.replies {
			f.Add(reply.Body, reply.Status, strings.HasPrefix(string(reply.Body), `{"took":1,"responses"`))
		}
	}
	f.Add([]byte(`{"hits":{"hits":[{"_index":"news-1","_id":"1","fields":{"neardup_sketch":[]}}],"hits":[]}}`), 200, false)
	f.Add([]byte(`{"responses":[{"error":{},"status":400},{"hits":{"total":1e9,"hits":[ ]}}]}`), 200, true)
	f.Add([]byte(`{"template_output":{"size":2},"hits":{"hits":[]}}`), 200, false)
	plan := searchPlan(f, false)
	known := plan.Scope
	plan.Scope = func(target string) adapters.Scope {
		scope := known(target)
		scope.VectorWindow = 20
		return scope
	}
	asked := []struct{ path, query, body string }{
		{"/news-1/_search", "", `{"size":2}`},
		{"/news-1/_search", "filter_path=hits.hits._id,-took", `{"from":3,"size":2,"_source":false,"docvalue_fields":["n"],"aggs":{}}`},
		{"/news-1/_search", "", `{"from":60}`},
		{"/news-1/_search", "", `{"rescore":{"window_size":12}}`},
		{"/news-1/_search", "", `{"knn":{"query_vector":[1],"k":3},"query":{}}`},
		{"/news-1/_search", "", `{"from":2,"query":{"knn":{"v":{"vector":[1],"k":3}}}}`},
		{"/news-1/_search/template", "filter_path=-**.a", `{"source":"","explain":true}`},
	}
	f.Fuzz(func(t *testing.T, body []byte, status int, multi bool) {
		requests := asked
		if multi {
			requests = []struct{ path, query, body string }{{"/_msearch", "filter_path=**.h*",
				"{\"index\":\"news-1\"}\n{\"size\":2}\n{\"index\":\"logs\"}\n{}\n"}}
		}
		for _, request := range requests {
			class, r := searchFor(request.path, request.query, request.body)
			x := Dialect{OpenSearch: true}.Search(class, r, plan).Exchange
			var reply *adapters.Reply
			for range 64 {
				ask, answer, err := x.Next(reply)
				if err != nil && !slices.ContainsFunc([]error{adapters.ErrRefused, adapters.ErrWidened, adapters.ErrNotUnderstood},
					func(is error) bool { return errors.Is(err, is) }) {
					t.Fatalf("%q: %v", body, err)
				}
				if answer != nil && !json.Valid(answer.Body) && json.Valid(body) {
					t.Fatalf("%q: the answer is no JSON: %q", body, answer.Body)
				}
				if ask == nil {
					break
				}
				reply = &adapters.Reply{Status: status, Header: adapters.Header{}, Body: slices.Clone(body)}
			}
		}
	})
}
