package cases

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/upstream"
)

const (
	leaflet = "Take one tablet of the medicine every morning with a glass of water, and do not lie down for half an hour after that."
	long    = "The council of Saltmere voted on Tuesday evening to bring back the late ferry across the river, eleven years after the last one sailed, " +
		"because the bridge will be closed for repairs from spring until the end of next year, and nobody wants to drive around the bay at night."
)

// ran returns what the cases of a rule with these keys say, each behind its line.
func ran(t *testing.T, keys, cases, urls string) (lines []string) {
	t.Helper()
	fields := "title, body"
	if strings.Contains(keys, "vectors") { // which are in one field
		fields = "body"
	}
	text := "engines:\n- listen: ':0'\n  kind: elasticsearch\n  urls: [" + urls + "]\n  indices:\n  - match: news-*\n    fields: [" + fields + "]\n    " +
		keys + "\n    cases:\n" + cases
	c, err := config.Parse([]byte(text), os.LookupEnv)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	var opened *upstream.Engine
	if urls != unasked {
		opened = expect.Value(upstream.Open(&c.Engines[0]))(t)
	}
	for _, r := range expect.Value(Run(t.Context(), &c.Engines[0], opened))(t) {
		lines = append(lines, strings.TrimPrefix(r.In("f"), "f:"))
	}
	return lines
}

// unasked is an engine that no case needs.
const unasked = "'http://127.0.0.1:1'"

func TestCasesOfTexts(t *testing.T) {
	dose := func(n string) string { return "Dose " + n + " mg daily. " + long }
	pair := func(want, a, b string) string { return fmt.Sprintf("    - %s: [%q, %q]\n", want, a, b) }
	for _, c := range []struct{ keys, cases, want string }{
		{"preset: default", pair("same", long, strings.ToUpper(long)), "10: rule news-*, cases[0]: fold: it is the same text, except perhaps for case and white space"},
		{"preset: default", pair("different", long, leaflet), "10: rule news-*, cases[0]: do not fold: the agreement 0.0… is below 0.64"},
		{"preset: default", pair("same", long, leaflet), "10: rule news-*, cases[0]: must fold, and do not: the agreement 0.0… is below 0.64"},
		{"preset: default", pair("different", dose("1.5"), dose("15")),
			"10: rule news-*, cases[0]: must not fold, and do: the agreement 0.9… reaches 0.64; numbers differ: 1.5 only in the first; 15 only in the second"},
		{"numbers: decide", pair("different", dose("1.5"), dose("15")),
			"10: rule news-*, cases[0]: do not fold: other numbers, signs or versions, and by this rule they decide (agreement 0.9…, threshold 0.64); " +
				"numbers differ: 1.5 only in the first; 15 only in the second"},
		{"preset: default", pair("same", leaflet, strings.Replace(leaflet, "one", "two", 1)),
			"10: rule news-*, cases[0]: must fold, and do not: too short to fold by agreement: 24 words, 50 needed (agreement 0.8…, threshold 0.64)"},
		{"same: [host]", pair("same", long, long+" So be it."),
			"10: rule news-*, cases[0]: fold: the agreement 0.9… reaches 0.64; not checked for texts: only with the same host"},
		{"missing: alone", pair("same", long, long+" So be it."), "10: rule news-*, cases[0]: fold: the agreement 0.9… reaches 0.64"},
		{"preset: default", pair("same", "...", long), `10: rule news-*, cases[0]: is not judged: the text "..." has no word`},
		{"sketch: {features: tags}", pair("same", "red\nblue\ngreen", "green\nred\nblue"), "10: rule news-*, cases[0]: fold: it is the same text, except perhaps for case and white space"},
		{"preset: vectors", pair("different", "[1, 0, 0]", "[1, 0.1, 0]"), "10: rule news-*, cases[0]: must not fold, and do: the agreement 0.9… reaches 0.9"},
		{"preset: vectors", pair("same", "[1, 0, 0]", "[0, 1, 0]"), "10: rule news-*, cases[0]: must fold, and do not: the agreement 0.0… is below 0.9"},
		{"preset: default", pair("same", "a", "a") + "    - same: [{id: x}, a]\n" + pair("different", "a", "a"),
			"10: rule news-*, cases[0]: fold: it is the same text, except perhaps for case and white space\n" +
				"12: rule news-*, cases[2]: must not fold, and do: it is the same text, except perhaps for case and white space"},
	} {
		got := strings.Join(ran(t, c.keys, c.cases, unasked), "\n")
		for _, part := range strings.Split(c.want, "…") {
			if !strings.Contains(got, part) || strings.Count(got, "\n") != strings.Count(c.want, "\n") {
				t.Errorf("%s: got  %s\nwant %s", c.keys, got, c.want)
			}
		}
	}
}

// answer answers as an engine with the indices news-1 and news-2 and a few documents.
func answer(w http.ResponseWriter, r *http.Request) {
	hosts := map[string]string{"a": "one", "b": "two", "c": "one", "twice": "one"}
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	w.Header().Set("Content-Type", "application/json")
	index, search := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/_search")
	if !search {
		_, _ = fmt.Fprint(w, `{"news-1":{"mappings":{},"aliases":{},"settings":{}},"news-2":{"mappings":{},"aliases":{},"settings":{}}}`)
		return
	}
	var asked struct {
		Query struct{ IDs struct{ Values []string } }
	}
	_ = json.NewDecoder(r.Body).Decode(&asked)
	var hits []string
	for _, id := range asked.Query.IDs.Values {
		if host, has := hosts[id]; has && (index == "news-1" || id == "twice") {
			hits = append(hits, fmt.Sprintf(`{"_index":%q,"_id":%q,"_source":{"body":%q},"fields":{"host":[%q]}}`, index, id, long, host))
		}
	}
	_, _ = fmt.Fprintf(w, `{"hits":{"total":{"value":%d,"relation":"eq"},"hits":[%s]}}`, len(hits), strings.Join(hits, ","))
}

// TestCasesOfStoredDocuments: documents are read as a search reads them, with the fields of conditions.
func TestCasesOfStoredDocuments(t *testing.T) {
	engine := httptest.NewServer(http.HandlerFunc(answer))
	defer engine.Close()
	const cases = `
    - same: [{id: a}, {id: c}]
    - different: [{id: a}, {id: b}]
    - same: [{id: a}, {id: b}]
    - same: [{id: a}, {id: twice}]
    - same: [{id: a}, {id: twice, index: news-2}]
    - same: [{id: a}, {id: gone}]
`
	const equal = "it is the same text, except perhaps for case and white space"
	want := []string{
		"10: rule news-*, cases[0]: fold: " + equal,
		"11: rule news-*, cases[1]: do not fold: " + equal + ", but hits fold only with the same host",
		"12: rule news-*, cases[2]: must fold, and do not: " + equal + ", but hits fold only with the same host",
		"13: rule news-*, cases[3]: is not judged: document twice is in news-1 and news-2: name one of them, as in {id: …, index: news-1}",
		"14: rule news-*, cases[4]: fold: " + equal,
		"15: rule news-*, cases[5]: is not judged: document gone is not in news-*",
	}
	expect.Same(t, want, ran(t, "same: [host]", cases[1:], "'"+engine.URL+"'"), "")
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer broken.Close()
	if got := ran(t, "window: 7", "    - same: [{id: a}, {id: c}]\n", "'"+broken.URL+"'"); len(got) != 1 || !strings.Contains(got[0], "can't be read: engine elasticsearch:") {
		t.Errorf("%q", got)
	}
}

// slowly takes 10 seconds for each request, and for a search of news-2 forever.
type slowly struct{}

func (slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	took := time.After(10 * time.Second)
	if strings.HasPrefix(r.URL.Path, "/news-2/") {
		took = nil
	}
	select {
	case <-took:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	answer(w, r)
	return w.Result(), nil
}

// TestEachRequestHasItsTime: the time of one request is not taken from the others, and the cases say which had no answer.
func TestEachRequestHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := expect.Value(config.Parse([]byte(`engines: [{listen: ":0", kind: elasticsearch, urls: ["http://engine"], indices: [{match: news-*, fields: [body], cases: [
			{same: [{id: a}, {id: c}]}, {same: [{id: a}, {id: c, index: news-1}]}, {same: [{id: a}, {id: gone}]}, {same: [{id: b}, {id: x, index: news-1}]}]}]}]`), os.LookupEnv))(t)
		e := expect.Value(upstream.Open(&c.Engines[0]))(t)
		e.Transport = slowly{}
		e.Store = e.Kind.Open(slowly{}, expect.Value(e.Config.Nodes())(t), e.Rules)(nil, "")
		var got []string
		for _, r := range expect.Value(Run(t.Context(), e.Config, e))(t) {
			got = append(got, r.outcome())
		}
		const equal = "fold: it is the same text, except perhaps for case and white space"
		expect.Same(t, []string{equal, equal,
			"is not judged: document gone can't be read: index news-2: engine elasticsearch: no answer within 15s: " +
				"check that it runs and that its urls in the configuration are right, or run sidecar doctor",
			"is not judged: document x is not in news-1",
		}, got, "")
	})
}
