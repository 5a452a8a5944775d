package elastic

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/engines"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

func TestFilterReply(t *testing.T) {
	const body = `{"took":1,"hits":{"total":2,"hits":[{"_id":"1","_source":{ "a" : 1e3, "b":{"c":[]}, "x.y":"\u00e9😀" }},` +
		`{"_id":"2","_source":{}}]},"empty":{}}`
	for _, c := range []struct{ filter, want, openSearch string }{
		{"", body, ""},
		{" , ", body, ""},
		{"took", `{"took":1}`, ""},
		{"took,nope", `{"took":1}`, ""},
		{"nope", `{}`, ""},
		{"took.nope", `{}`, ""},
		{"empty", `{"empty":{}}`, ""},
		{"empty.*", `{}`, ""},
		{"hits.total,took", `{"took":1,"hits":{"total":2}}`, ""},
		{"hits.hits._id", `{"hits":{"hits":[{"_id":"1"},{"_id":"2"}]}}`, ""},
		{"hits.hits._source.a", `{"hits":{"hits":[{"_source":{"a":1000.0}}]}}`, ""},
		{"*.*._s*.?", `{}`, ""},
		{"**.c", `{"hits":{"hits":[{"_source":{"b":{"c":[]}}}]}}`, ""},
		{"**.took", `{}`, ""},
		{`**.x\.y`, `{"hits":{"hits":[{"_source":{"x.y":"é\uD83D\uDE00"}}]}}`, ""},
		{`**.x\-y,**.x.y`, `{}`, `{"hits":{"hits":[{"_source":{"x.y":"é\uD83D\uDE00"}}]}}`},
		{"hits.hits._source,-**.a,-**.x*", `{"hits":{"hits":[{"_source":{"b":{"c":[]}}},{"_source":{}}]}}`, `{}`},
		{"-hits,-empty.z", `{"took":1,"empty":{}}`, `{"took":1}`},
		{"-hits,-empty", `{"took":1}`, ""},
		{"took,-took", `{}`, ""},
		{"-took,-hits.hits", `{"hits":{"total":2},"empty":{}}`, ""},
		{"-", `{"took":1,"hits":{"total":2,"hits":[{"_id":"1","_source":{"a":1000.0,"b":{"c":[]},"x.y":"é\uD83D\uDE00"}},` +
			`{"_id":"2","_source":{}}]},"empty":{}}`, "?"},
	} {
		for _, openSearch := range []bool{false, true} {
			want := c.want
			if openSearch && c.openSearch != "" {
				want = c.openSearch
			}
			if got, ok := filterReply([]byte(body), c.filter, openSearch); ok == (want == "?") || ok && string(got) != want {
				t.Errorf("%q, OpenSearch %t: %t\n%s\nwant\n%s", c.filter, openSearch, ok, got, want)
			}
		}
	}
	for _, body := range []string{`[]`, ``, `{`, `{"_source":{"a":1e400}}`, `{"_source":{"a":1e17}}`, `{"_source":{"a":"\ud800"}}`} {
		if got, ok := filterReply([]byte(body), "_source", false); ok {
			t.Errorf("%s became %s", body, got)
		}
	}
}

// FuzzFilterReply holds any filter of any body to ending well, in JSON, and to being the same when it is done twice.
func FuzzFilterReply(f *testing.F) {
	f.Add(`{"a":[{"b":1},2,[],{}],"_source":{"n":1e3 /* x */}}`, "a.b,**.n,-a")
	f.Add("{\n  \"a\" : { }\n}\n", `*\.x.`)
	f.Fuzz(func(t *testing.T, body, filter string) {
		for _, openSearch := range []bool{false, true} {
			got, ok := filterReply([]byte(body), filter, openSearch)
			if f, _ := parseFilter(filter, openSearch); f == nil || !ok {
				continue
			}
			if _, err := adapters.Members(got); err != nil {
				t.Fatalf("%q by %q became %q", body, filter, got)
			}
			if again, ok := filterReply(got, filter, openSearch); !ok || string(again) != string(got) {
				t.Fatalf("%q by %q became %q and then %q", body, filter, got, again)
			}
		}
	})
}

// TestRealFilterReply asks real engines for replies of many kinds with random filters, and without them, to be filtered by us.
func TestRealFilterReply(t *testing.T) {
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			index := fmt.Sprintf("filterpath-%d", os.Getpid())
			prepareFilters(t, e, index)
			unsure, asked := 0, 0
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			for _, request := range filterRequests(index) {
				for _, pretty := range []string{"", "&pretty"} {
					whole := sendFiltered(t, e, request, pretty)
					names := namesIn(whole)
					for range effort.Rounds(20) {
						asked++
						filter := randomFilter(r, names)
						want := sendFiltered(t, e, request, pretty+"&filter_path="+url.QueryEscape(filter))
						got, ok := filterReply([]byte(whole), filter, kind == engines.OpenSearch)
						if !ok {
							unsure++
							continue
						}
						if string(got) != want {
							t.Fatalf("%s with %q: %s", request, filter, cmp.Diff(broken(want), broken(string(got))))
						}
					}
				}
			}
			t.Logf("%d asked, %d can't be told", asked, unsure)
			if unsure*10 > asked {
				t.Errorf("%d of %d can't be told", unsure, asked)
			}
		})
	}
}

// broken puts a reply on lines, so that a difference can be read.
func broken(reply string) []string {
	return strings.SplitAfter(strings.ReplaceAll(reply, `,"`, ",\n\""), "\n")
}

var took = regexp.MustCompile(`("took" ?: ?)\d+`)

// sendFiltered sends "METHOD path body" with more parameters and returns the reply less its time.
func sendFiltered(t *testing.T, e *engines.Engine, request, params string) string {
	t.Helper()
	method, rest, _ := strings.Cut(request, " ")
	path, body, _ := strings.Cut(rest, " ")
	if !strings.Contains(path, "?") {
		path += "?"
	}
	q, err := http.NewRequestWithContext(t.Context(), method, e.URL+path+params, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode >= 400 && resp.StatusCode != 404 {
		t.Fatalf("%s: %d %s", request, resp.StatusCode, reply)
	}
	return took.ReplaceAllString(string(reply), "${1}0")
}

func prepareFilters(t *testing.T, e *engines.Engine, index string) {
	t.Helper()
	t.Cleanup(func() {
		q, _ := http.NewRequest("DELETE", e.URL+"/"+index, nil)
		if resp, err := http.DefaultClient.Do(q); err == nil {
			resp.Body.Close()
		}
	})
	sendFiltered(t, e, "PUT /"+index+` {"settings":{"number_of_replicas":0},"mappings":{"_meta":{"f":1.0e-7,"s":"😀"},
		"properties":{"title":{"type":"text","fields":{"raw":{"type":"keyword"}}},"n":{"type":"double"},
		"sub":{"type":"nested"},"o":{"dynamic":true,"type":"object"},
		"s":{"type":"completion"}}}}`, "")
	for i, doc := range []string{
		`{ "title" : "one \u006fne 😀 \/" , "n":[1.10,1e3,-0,-0.0,0.30000000000000004,12345678.0,1e-7], "x.y":{"z":1}, ` +
			`"sub":[{"t":"a","u":[]},{"t":"b"}], "s":"one" }`,
		`{"title":["two one",null],"o":{"e":{},"l":[],"m":[{},[],{"q":{"e":{}}}],"n":null,"b":true},"n":2e-2 /* a comment */ }`,
		`{}`, `{"title":"one","o":{"sub":9007199254740993},"\"q\"":"\u001f\u2028\u007f\t"}`,
	} {
		sendFiltered(t, e, fmt.Sprintf("PUT /%s/_doc/%d %s", index, i, doc), "&refresh=true")
	}
}

func filterRequests(index string) []string {
	search := `{"query":{"match":{"title":"one"}},"sort":["_score",{"n":{"order":"asc","missing":0}}],` +
		`"highlight":{"fields":{"*":{}}},"fields":["*"],"explain":true,` +
		`"aggs":{"a":{"terms":{"field":"title.raw"},"aggs":{"h":{"top_hits":{"size":1}},"s":{"stats":{"field":"n"}}}}},` +
		`"suggest":{"g":{"prefix":"o","completion":{"field":"s"}},"t":{"text":"onne","term":{"field":"title"}}}}`
	nested := `{"query":{"bool":{"should":[{"nested":{"path":"sub","query":{"match_all":{}},"inner_hits":{}}},` +
		`{"match_all":{}}]}},"_source":["o.*","sub"]}`
	return []string{
		"GET /" + index + "/_doc/0", "GET /" + index + "/_doc/1", "GET /" + index + "/_doc/2", "GET /" + index + "/_doc/nope",
		"GET /" + index + "/_mapping", "GET /" + index, "GET /" + index + "/_mapping/field/*",
		"GET /" + index + "/_field_caps?fields=*",
		"GET /" + index + `/_mget {"ids":["0","1","2","nope"]}`, "POST /" + index + "/_search " + search,
		"POST /" + index + "/_search " + nested,
		"POST /" + index + "/_search?size=0", "POST /" + index + "/_search?rest_total_hits_as_int=true",
		"POST /_msearch {\"index\":\"" + index + "\"}\n{\"size\":2}\n{\"index\":\"" + index + "-none\"}\n{}\n" +
			"{\"index\":\"" + index + "\"}\n" + search + "\n",
		"GET /" + index + `/_explain/0 {"query":{"match":{"title":"one"}}}`, "GET /" + index + "/_termvectors/0?fields=*",
		"GET /" + index + "/_count", "GET /" + index + "/_settings",
	}
}

// namesIn returns the paths of names in a reply.
func namesIn(body string) (list [][]string) {
	var value any
	if json.Unmarshal([]byte(body), &value) != nil {
		return nil
	}
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				longer := append(path[:len(path):len(path)], strings.ReplaceAll(name, ".", `\.`))
				list = append(list, longer)
				walk(inner, longer)
			}
		case []any:
			for _, inner := range v {
				walk(inner, path)
			}
		}
	}
	walk(value, nil)
	return list
}

// randomFilter returns a filter that leads to some of the names, or to what resembles them.
func randomFilter(r *rand.Rand, names [][]string) string {
	var filter []string
	for range 1 + r.IntN(3) {
		path := []string{"nope"}
		if len(names) > 0 {
			path = append([]string{}, names[r.IntN(len(names))]...)
		}
		for range r.IntN(3) {
			i := r.IntN(len(path))
			name := path[i]
			cut := r.IntN(len(name) + 1)
			for !utf8.ValidString(name[cut:]) {
				cut--
			}
			switch r.IntN(12) {
			case 0, 1, 2:
				path[i] = "*"
			case 3, 4:
				path[i] = "**"
			case 5:
				path[i] = name[:cut] + "*"
			case 6:
				path[i] = "*" + name[cut:]
			case 7:
				path[i] = name[:cut] + "*" + name[cut:] + "**"
			case 8:
				path = append(path[:i:i], append([]string{"**"}, path[i+1:]...)...)
			case 9:
				path = append(path, []string{"more", "", "*", "**"}[r.IntN(4)])
			case 10:
				path[i] = strings.ReplaceAll(name, `\.`, []string{".", `\x`, `\\.`, "*"}[r.IntN(4)])
			case 11:
				path = path[:i+1]
			}
		}
		text := strings.Join(path, ".")
		switch r.IntN(8) {
		case 0, 1, 2:
			text = "-" + text
		case 3:
			text = []string{" ", ".", "- ", "-", "\t", ".."}[r.IntN(6)] + text + []string{"", " ", ".", ".."}[r.IntN(4)]
		}
		filter = append(filter, text)
	}
	return strings.Join(filter, []string{",", ", ", ",,"}[r.IntN(3)])
}
