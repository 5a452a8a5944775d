package elastic

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// TestFilterReply filters a reply whose source holds white space, which a filtered reply leaves out.
func TestFilterReply(t *testing.T) {
	const body = `{"took":1,"hits":{"hits":[{"_id":"1","_source":{ "a" : 1e3 , "b":{"c":[ ]}, "l":[ 1 , 2 ] }},{"_id":"2"}]},"empty":{}}`
	for filter, want := range map[string]string{
		"took,nope": `{"took":1}`, "nope": `{}`, "empty": `{"empty":{}}`, "hits.hits._id,-took": `{"hits":{"hits":[{"_id":"1"},{"_id":"2"}]}}`,
		"hits.hits._source.a": `{"hits":{"hits":[{"_source":{"a":1000.0}}]}}`, "**.l,**.c": `{"hits":{"hits":[{"_source":{"b":{"c":[]},"l":[1,2]}}]}}`,
	} {
		if got, ok := filterReply([]byte(body), filter, false); !ok || string(got) != want {
			t.Errorf("%q: %t\n%s\nwant\n%s", filter, ok, got, want)
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

// TestRealFilterReply filters whole replies of the engines as they filter them.
func TestRealFilterReply(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		index := l.name + "f"
		l.drop(index)
		l.must("PUT", "/"+index, `{"settings":{"number_of_replicas":0},"mappings":{"properties":{"n":{"type":"double"}}}}`)
		for i, doc := range []string{
			`{ "title" : "one \u006fne 😀 \/" , "n":[1.10,1e3,-0,-0.0,0.30000000000000004,1e-7], "x.y":{"z":1}, "sub":[{"t":"a","u":[]},{"t":"b"}] }`,
			`{"title":["two one",null],"o":{"e":{},"l":[],"m":[{},[],{"q":{"e":{}}}],"n":null,"b":true},"n":2e-2 /* a comment */ }`,
			`{}`, `{"title":"one","o":{"sub":9007199254740993},"\"q\"":"\u001f\u2028\u007f\t"}`,
		} {
			l.must("PUT", fmt.Sprintf("/%s/_doc/%d?refresh=true", index, i), doc)
		}
		search := `{"query":{"match":{"title":"one"}},"sort":["_score",{"n":{"order":"asc","missing":0}}],"fields":["*"],` +
			`"highlight":{"fields":{"*":{}}},"explain":true,"aggs":{"h":{"top_hits":{"size":1}},"s":{"stats":{"field":"n"}}}}`
		asked, unsure := 0, 0
		for _, request := range []*adapters.Request{
			requestFor("GET", "/"+index+"/_doc/0", "", ""), requestFor("GET", "/"+index+"/_doc/1", "", ""),
			requestFor("GET", "/"+index+"/_mapping", "", ""), requestFor("GET", "/"+index+"/_mget", "", `{"ids":["0","1","2","nope"]}`),
			requestFor("POST", "/"+index+"/_search", "", search),
			requestFor("POST", "/_msearch", "", "{\"index\":\""+index+"\"}\n{\"size\":2}\n{\"index\":\"none\"}\n{}\n"),
		} {
			for _, pretty := range []string{"pretty=false", "pretty"} {
				send := func(filter string) string {
					r := *request
					r.RawQuery = pretty + filter
					return timeTaken.ReplaceAllString(string(l.send(&r).Body), "${1}0")
				}
				whole := send("")
				for _, filter := range []string{
					"took", "nope", "took.nope", "_id,-_id", "-_source,-hits", "**._source", "hits.total,took", "hits.hits._id", "*.*._s*.?", "-**.n",
					"hits.hits._source.o,-**.e", "**.e", "**.sub.t", `**.x\.y`, `**.x.y`, "_source.*,docs.found", "responses.*.hits,-**.hits.hits", "-",
					"aggregations.*.m*,-**.max", "**.title*,-**.highlight", " , ",
				} {
					want := send("&filter_path=" + url.QueryEscape(filter))
					got, ok := filterReply([]byte(whole), filter, l.d.OpenSearch)
					if asked++; !ok {
						unsure++
					} else if string(got) != want {
						t.Errorf("%s by %q: %s", request.Path, filter, cmp.Diff(strings.SplitAfter(want, ","), strings.SplitAfter(string(got), ",")))
					}
				}
			}
		}
		if unsure*10 > asked {
			t.Errorf("%d of %d can't be told", unsure, asked)
		}
	})
}
