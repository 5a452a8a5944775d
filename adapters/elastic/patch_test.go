package elastic

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// handled answers requests without a network.
type handled func(http.ResponseWriter, *http.Request)

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h(w, r)
	return w.Result(), nil
}

// opened is a store on an engine that answers so.
func opened(h handled) adapters.EngineStore {
	return Dialect{}.Open(h, []*url.URL{{Scheme: "http", Host: "engine"}}, nil)(nil, "")
}

// ready has a store know news-1 as an index that it may write to by its alias.
func ready(store adapters.Store) {
	s, _ := store.(*Store)
	s.shared.destinations["u"] = &destination{index: "news-1", uuid: "u", alias: "alias", compared: true}
}

// TestPatchOfABusyEngine has no room for a bulk, or for one of its documents: it is told so, and nothing is sent again.
func TestPatchOfABusyEngine(t *testing.T) {
	for _, c := range []struct {
		status int
		reply  string
		want   []adapters.Result
	}{
		{429, `{}`, []adapters.Result{adapters.Busy, adapters.Busy}}, {503, ``, []adapters.Result{adapters.Busy, adapters.Busy}},
		{200, `{"items":[{"index":{"status":429}},{"index":{"status":200}}]}`, []adapters.Result{adapters.Busy, adapters.Patched}},
		{200, `{"items":[{"index":{"status":409}},{"index":{"status":400}}]}`, []adapters.Result{adapters.Changed, adapters.Refused}},
	} {
		sent := 0
		store := opened(func(w http.ResponseWriter, _ *http.Request) {
			sent++
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.reply))
		})
		ready(store)
		patch := adapters.Stored{ID: "1", Source: []byte(`{}`), Version: version{uuid: "u"}, Wanted: &rule.Ours{Sketch: "x"}}
		expect.Same(t, c.want, expect.Value(store.Patch(t.Context(), "news-1", nil, []adapters.Stored{patch, patch}))(t), "%d %s", c.status, c.reply)
		expect.Same(t, 1, sent, "%d %s: bulks", c.status, c.reply)
	}
}

// TestPatchOfDocumentsInSeveralLines waits for each of them, as they go one by one.
func TestPatchOfDocumentsInSeveralLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := opened(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			w.WriteHeader(map[string]int{"/alias/_doc/1": 409, "/alias/_doc/2": 404, "/alias/_doc/3": 201}[r.URL.Path])
			_, _ = io.WriteString(w, "{}")
		})
		ready(store)
		var patches []adapters.Stored
		for _, id := range []string{"1", "2", "3"} {
			patches = append(patches, adapters.Stored{ID: id, Source: []byte("{\n}"), Version: version{uuid: "u"}, Wanted: &rule.Ours{}})
		}
		got := expect.Value(store.Patch(t.Context(), "news-1", nil, patches))(t)
		expect.Same(t, []adapters.Result{adapters.Changed, adapters.Gone, adapters.Patched}, got, "")
	})
}

// TestSettledAsOfThePrimaryShard: below its global checkpoint every change is there for a scan.
func TestSettledAsOfThePrimaryShard(t *testing.T) {
	store := opened(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"indices":{"news-1":{"shards":{"0":[{"routing":{"primary":true},"seq_no":{"global_checkpoint":7}},`+
			`{"routing":{"primary":false},"seq_no":{"global_checkpoint":5}}]}}}}`)
	})
	if got := store.(*Store).settled(t.Context(), "news-1"); len(got) != 1 || got[0] != 8 {
		t.Errorf("%v", got)
	}
}

// served answers the requests of a scan of an index with one shard as an engine would, as far as pages does not.
func served(t *testing.T, pages func(r *http.Request, body string) (status int, reply string)) adapters.EngineStore {
	return opened(func(w http.ResponseWriter, r *http.Request) {
		all, err := io.ReadAll(readerOf(r))
		if err != nil {
			t.Error(err)
		}
		body := string(all)
		status, reply := pages(r, body)
		switch {
		case status != 0:
		case r.Method == "GET" && r.URL.Path == "/news-1":
			status, reply = 200, `{"news-1":{"settings":{"index.number_of_shards":"1","index.uuid":"u"},"mappings":{}}}`
		case strings.Contains(body, `"size":0`):
			status, reply = 200, `{"hits":{"total":{"value":5},"hits":[]}}`
		default:
			status, reply = 200, `{}`
		}
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(reply))
	})
}

func hitsFrom(from, n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"_id":"%d","_seq_no":%d,"_primary_term":1,"_source":{"n":"\"]}\\"}}`, from+i, from+i))
	}
	return `"_shards":{"failed":0},"hits":{"total":{"value":5},"hits":[` + strings.Join(list, ",") + `]}}`
}

// TestScanThatBreaksOff loses its shards on the second page of an index that grants no point in time.
func TestScanThatBreaksOff(t *testing.T) {
	store := served(t, func(r *http.Request, body string) (int, string) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/_pit"):
			return 403, `{"error":{"type":"security_exception","reason":"no"}}`
		case strings.Contains(body, "search_after"):
			return 200, `{"_shards":{"failed":1},"hits":{"total":{"value":5},"hits":[]}}`
		case strings.Contains(body, `"sort"`):
			return 200, `{` + hitsFrom(0, scanFirst)
		}
		return 0, ""
	})
	seen := 0
	err := store.Scan(t.Context(), "news-1", nil, adapters.Selection{}, func(p adapters.Page) error { seen += len(p.Documents); return nil })
	if err == nil || seen != scanFirst {
		t.Errorf("a scan that broke off after %d of 5 documents ended with %v", seen, err)
	}
}

// TestScanLosesItsPoint has a point in time expire between two pages: a new one goes on behind the last.
func TestScanLosesItsPoint(t *testing.T) {
	opened, asked := 0, []string{}
	const gone = `{"error":{"type":"search_phase_execution_exception","reason":"all shards failed"}}`
	store := served(t, func(r *http.Request, body string) (int, string) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/_pit") && r.Method == "POST":
			opened++
			return 200, fmt.Sprintf(`{"id":"p%d"}`, opened)
		case r.URL.Path == "/_search":
			_, after, _ := strings.Cut(body, `"search_after":[`)
			after, _, _ = strings.Cut(after, "]")
			if asked = append(asked, fmt.Sprintf("p%d after %s", opened, after)); len(asked) == 2 {
				return 404, gone
			}
			if after == "" {
				return 200, "{" + hitsFrom(0, 100)
			}
			return 200, "{" + hitsFrom(100, 5)
		}
		return 0, ""
	})
	var ids []string
	last := ""
	err := store.Scan(t.Context(), "news-1", nil, adapters.Selection{}, func(p adapters.Page) error {
		for _, d := range p.Documents {
			ids = append(ids, d.ID)
		}
		last = p.After
		return nil
	})
	if err != nil || len(ids) != 105 || ids[104] != "104" || last != "105" {
		t.Errorf("%d documents, then %s, and %v", len(ids), last, err)
	}
	expect.Same(t, []string{"p1 after ", "p1 after 99", "p2 after 99"}, asked, "what was asked")
}

// TestSurvives tells the documents whose numbers an update writes as they are, whatever stands in their texts.
func TestSurvives(t *testing.T) {
	for source, want := range map[string]bool{
		`{"a":1.5,"b":[-2,1e3,12345678901234567890]}`: true, `{"a":"1.23456789012345678901 \" 1.23456789012345678901","b\\":1}`: true,
		`{"a":1.23456789012345678901}`: false, `{"a":"\\","b":[{"c":-0}]}`: false, `{"a":1e400}`: false, `{"a":"\"","b":0.1234567890123456789}`: false,
	} {
		expect.Same(t, want, survives([]byte(source)), "%s", source)
	}
}
