package elastic

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// TestFilterReply filters a reply: what is kept whole keeps its bytes, and of what is kept in part no white space stays.
func TestFilterReply(t *testing.T) {
	const body = `{"took":1,"hits":{"hits":[{"_id":"1","_source":{ "a" : 1e3 , "b":{"c":[ ]}, "l":[ 1 , 2 ] }},{"_id":"2"}]},"empty":{}}`
	for filter, want := range map[string]string{
		"took,nope": `{"took":1}`, "nope": `{}`, "empty": `{"empty":{}}`, "hits.hits._id,-took": `{"hits":{"hits":[{"_id":"1"},{"_id":"2"}]}}`,
		"hits.hits._source.a": `{"hits":{"hits":[{"_source":{"a":1e3}}]}}`, "**.l,**.c": `{"hits":{"hits":[{"_source":{"b":{"c":[ ]},"l":[ 1 , 2 ]}}]}}`,
	} {
		if got, ok := filterReply(body, filter, false); !ok || string(got) != want {
			t.Errorf("%q: %t\n%s\nwant\n%s", filter, ok, got, want)
		}
	}
}

// FuzzFilterReply holds any filter of any body to ending well, in JSON, in memory linear in the two, and to being the same when it is
// done twice.
func FuzzFilterReply(f *testing.F) {
	f.Add(`{"a":[{"b":1},2,[],{}],"_source":{"n":1e3 /* x */}}`, "a.b,**.n,-a")
	f.Add("{\n  \"a\" : { }\n}\n", `*\.x.`)
	f.Add(nested(24, `1`), strings.Repeat("**.", 30)+"qq,-"+strings.Repeat("**.", 30)+"qq")
	f.Fuzz(func(t *testing.T, body, filter string) {
		for _, openSearch := range []bool{false, true} {
			var got []byte
			var ok bool
			if used := allocated(func() { got, ok = filterReply(body, filter, openSearch) }); used > linear(body, filter) {
				t.Fatalf("%q by %q took %d bytes", body, filter, used)
			}
			if f, _ := parseFilter(filter, openSearch); f == nil || !ok {
				continue
			}
			if _, err := jsonedit.Members(got); err != nil {
				t.Fatalf("%q by %q became %q", body, filter, got)
			}
			if again, ok := filterReply(string(got), filter, openSearch); !ok || string(again) != string(got) {
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
		asked, left := 0, 0
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
					got, ok := filterReply(whole, filter, l.d.OpenSearch)
					if asked++; !ok {
						left++
					} else if diff := cmp.Diff(parsed(t, want), parsed(t, string(got))); diff != "" {
						t.Errorf("%s by %q: %s", request.Path, filter, diff)
					}
				}
			}
		}
		if left*10 > asked {
			t.Errorf("%d of %d are left to the engine", left, asked)
		}
	})
}

// decoded returns a reply as it reads: the engine writes the sources that it filters anew.
func parsed(t *testing.T, reply string) (value any) {
	t.Helper()
	expect.JSON(t, blankComments(reply), &value)
	return value
}

var comments = regexp.MustCompile(`/\*.*?\*/`)

func blankComments(reply string) []byte { return comments.ReplaceAll([]byte(reply), nil) }

// filterReply filters a reply. It returns false if the engine's own result can't be predicted.
func filterReply(body, filter string, openSearch bool) ([]byte, bool) {
	f, ok := parseFilter(filter, openSearch)
	if !ok {
		return nil, false
	}
	got, err := f.filter([]byte(body), nil)
	return got, err == nil
}

// allocated returns how many bytes a function allocates. Nothing else may run beside it. It is 0 under the race detector, which has pools
// lose buffers at random.
func allocated(run func()) uint64 {
	if effort.Race {
		run()
		return 0
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// linear is a bound on what filtering a reply may allocate. A list of places costs as many bytes for each level of a reply as there are steps, at most.
func linear(reply, filter string) uint64 { return uint64(1<<18 + 200*len(reply) + 200*len(filter)) }

// nested returns a value so deep in objects.
func nested(depth int, value string) string {
	return strings.Repeat(`{"a":`, depth) + value + strings.Repeat("}", depth)
}

// TestFilterPathIsBounded filters deep replies by paths with many "**": a stored document, nested aggregations, and one of our fields at
// the bottom, above which all goes. A list of what is left of each path took 4.1 GB at a depth of 20.
func TestFilterPathIsBounded(t *testing.T) {
	many := strings.Repeat("**.", 30)
	for _, filter := range []string{many + "qq", many + "a", "-" + many + "qq", many + "qq,-" + many + "a", strings.Repeat(many+"*a*,", 8)} {
		for _, depth := range []int{14, 16, 18, 20, 22, 100, 900} {
			source := fmt.Sprintf(`{"hits":{"hits":[{"_id":"1","_source":%s}]}}`, nested(depth, `1`))
			aggregations := fmt.Sprintf(`{"aggregations":%s}`, strings.Repeat(`{"a":{"doc_count":3,"b":{"buckets":[{"key":"x"}]},"c":`, depth)+
				`{}`+strings.Repeat("}}", depth))
			ours := fmt.Sprintf(`{"aggregations":%s}`, nested(depth, `{"_source":{"neardup_sketch":"x"},"fields":{"neardup_sketch":["x"]}}`))
			for _, reply := range []string{source, aggregations, ours} {
				for _, openSearch := range []bool{false, true} {
					d := Dialect{OpenSearch: openSearch}
					params := adapters.Params("filter_path=" + url.QueryEscape(filter))
					used := allocated(func() {
						expect.Value(d.filtered(params, adapters.Pieces{[]byte(reply)}, nil))(t)
						var out bytes.Buffer
						c := adapters.Class{Kind: adapters.KindSearch, Form: formSearch, Params: params}
						expect.OK(t, d.CleanReply(c, &out, strings.NewReader(reply)))
					})
					if used > 3*linear(reply, filter) {
						t.Fatalf("%.20s… %d deep: %d bytes for a reply of %d", filter, depth, used, len(reply))
					}
				}
			}
		}
	}
}

// TestFilterPathRuns: a run of stars is one, unless it is a step of two. Else each name of a reply would be compared with all of them.
func TestFilterPathRuns(t *testing.T) {
	f, ok := parseFilter("a.**.***.****b**,**", false)
	if want := (paths{{"a", true, false}, {"**", false, false}, {"*", false, false}, {"*b*", false, true}, {"**", true, true}}); !ok || !slices.Equal(f.keep, want) {
		t.Errorf("the steps are %v, want %v", f.keep, want)
	}
}

// TestFilterPathLate gives up filtering a large reply when the time is over, and finishes a small one.
func TestFilterPathLate(t *testing.T) {
	for members, want := range map[int]error{100: nil, 100000: adapters.ErrLate} {
		clock := &adaptertest.Clock{Call: 1}
		body := `{"hits":[` + strings.Repeat(`{"a":{"b":1}},`, members) + `{}]}`
		for _, filter := range []string{"hits.b,-c", "-hits.b", "-*.c,-d"} {
			_, err := Dialect{}.filtered(adapters.Params("filter_path="+filter), adapters.Pieces{[]byte(body)}, clock)
			if err != want {
				t.Errorf("%d members by %s: %v", members, filter, err)
			}
		}
		if want != nil && clock.Calls != 3 {
			t.Errorf("looked %d times at the time", clock.Calls)
		}
	}
}

// TestFilterPathTooLong has paths with more steps than are followed left to the engine.
func TestFilterPathTooLong(t *testing.T) {
	for steps, want := range map[int]bool{maxSteps: true, maxSteps + 1: false} {
		for _, filter := range []string{strings.Repeat("a.", steps-1) + "a", strings.Repeat("a,", steps), strings.Repeat("-*,", steps)} {
			_, ok := parseFilter(filter, false)
			expect.Same(t, want, ok, "%d steps, %.10s…: followed", steps, filter)
		}
	}
	p, _ := nativePlan(t)
	s := searchNative(t, p, Dialect{}, "filter_path="+strings.Repeat("hits.**,", 200), `{"query":{"match_all":{}}}`)
	if !s.Left() || s.Reason != "filter_path" {
		t.Errorf("left alone for %q", s.Reason)
	}
}

// TestPathsAreFollowed follows paths as their definition says, by a list of what is left of each.
func TestPathsAreFollowed(t *testing.T) {
	seed := effort.Seed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	list := func(most int, from ...string) (list []string) {
		for range 1 + random.IntN(most) {
			list = append(list, from[random.IntN(len(from))])
		}
		return list
	}
	for range effort.Rounds(20000) {
		var f pathFilter
		var kept, dropped [][]string
		for range random.IntN(6) {
			if path := list(8, "a", "b", "*", "**", "**", "a*", "*b", "*a*"); random.IntN(2) == 0 {
				f.keep.add(strings.Join(path, "."))
				kept = append(kept, path)
			} else {
				f.drop.add(strings.Join(path, "."))
				dropped = append(dropped, path)
			}
		}
		f.keepsEmpty = random.IntN(2) == 0
		var names []string
		for range 8 {
			names = append(names[:random.IntN(len(names)+1)], list(5, "a", "b", "ab", "ba", "c", "**")...)
			keep, drop := lead(kept, names), lead(dropped, names)
			want := len(keep) > 0 || len(drop) > 0 && !f.keepsEmpty ||
				slices.ContainsFunc(drop, func(left []string) bool { return len(left) == 1 })
			expect.Must(t, want, f.within(names), "seed %d: keep %q, drop %q: within %q", seed, kept, dropped, names)
			for _, side := range []struct {
				paths paths
				at    places
				want  [][]string
			}{{f.keep, f.keep.follow(names), keep}, {f.drop, f.drop.follow(names), drop}} {
				expect.Must(t, distinct(side.want), left(side.paths, side.at), "seed %d: keep %q, drop %q behind %q", seed, kept, dropped, names)
			}
		}
	}
}

// lead returns the rest of each path after the names, once for each way to get there, and nothing for a path that ends before.
func lead(paths [][]string, names []string) [][]string {
	for _, name := range names {
		var next [][]string
		for _, path := range paths {
			if !rule.Globbed(path[0], name) {
				continue
			}
			if len(path) == 1 {
				return nil
			}
			if next = append(next, path[1:]); path[0] == "**" {
				next = append(next, path)
			}
		}
		paths = next
	}
	return paths
}

// left returns what is left of the paths at the places.
func left(p paths, at places) (all []string) {
	for _, i := range at {
		var rest []string
		for end := int(i); ; end++ {
			if rest = append(rest, p[end].name); p[end].last {
				break
			}
		}
		all = append(all, strings.Join(rest, "."))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// distinct returns the paths, each once.
func distinct(paths [][]string) (all []string) {
	for _, path := range paths {
		all = append(all, strings.Join(path, "."))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
