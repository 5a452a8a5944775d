package elastic

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

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
			answer, err := adaptertest.Run(Dialect{OpenSearch: true}.ParseSearch(class, r, plan), func(*adapters.Request) *adapters.Reply {
				return &adapters.Reply{Status: status, Header: adapters.Header{}, Body: slices.Clone(body)}
			})
			_, alone := errors.AsType[adapters.Alone](err)
			if err != nil && !alone && !slices.ContainsFunc([]error{adapters.ErrRefused, adapters.ErrWidened, adapters.ErrNotUnderstood},
				func(is error) bool { return errors.Is(err, is) }) {
				t.Fatalf("%q: %v", body, err)
			}
			if answer != nil && !json.Valid(answer.Body) && json.Valid(body) {
				t.Fatalf("%q: the answer is no JSON: %q", body, answer.Body)
			}
		}
	})
}
