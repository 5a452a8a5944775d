package typesense

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// fakeUnion answers a union as the documentation of release 30 does; with names, as the sources of releases 28 to 30 do: then each hit names its search.
// The search with q=N finds every Nth document. The merged list is in the order of the documents, and of the searches for the same one.
type fakeUnion struct {
	documents []map[string]any
	names     bool
	asked     []*adapters.Request
}

func (f *fakeUnion) reply(r *adapters.Request) *adapters.Reply {
	f.asked = append(f.asked, r)
	var body struct {
		Union    bool
		Remove   *bool `json:"remove_duplicates"`
		Searches []map[string]any
	}
	if json.Unmarshal(r.Body, &body) != nil || !body.Union {
		return fakeReply(400, fakeError("Bad JSON."))
	}
	global := fakeSearch(nil, r.RawQuery)
	page, _ := fakeNumber(global, "page", 1)
	perPage, _ := fakeNumber(global, "per_page", defaultPerPage)
	var hits []string
	for i, document := range f.documents {
		for at, search := range body.Searches {
			search = fakeSearch(search, r.RawQuery)
			if every := digits(fmt.Sprint(search["q"])); every < 1 || i%every > 0 {
				continue
			}
			hit := renderHit(document, search)
			if f.names {
				hit = strings.TrimSuffix(hit, "}") + fmt.Sprintf(`,"collection":"news","search_index":%d}`, at)
			}
			hits = append(hits, hit)
			if body.Remove == nil || *body.Remove {
				break
			}
		}
	}
	found, name := len(hits), "collection"
	if f.names {
		name = "collection_name"
	}
	params := make([]string, len(body.Searches))
	for i, search := range body.Searches {
		params[i] = fmt.Sprintf(`{%q:"news","first_q":%q,"per_page":%d,"q":%q}`, name, search["q"], perPage, search["q"])
	}
	from := min((page-1)*perPage, found)
	return fakeReply(200, fmt.Sprintf(`{"found":%d,"hits":[%s],"out_of":%d,"page":%d,"search_cutoff":false,"search_time_ms":0,"union_request_params":[%s]}`,
		found, strings.Join(hits[from:min(from+perPage, found)], ","), len(f.documents), page, strings.Join(params, ",")))
}

// A page of a union is a page of the collapsed list, made of the engine's merged one: in the frame of the engine's own reply, with the hits of the client's fields.
func TestUnion(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 9))
	m, matched := memo{}, newRule(t, "news", "body")
	folded := 0
	for range max(effort.Rounds(200), 20) {
		matched.Window = 1 + r.IntN(400)
		f := &fakeUnion{documents: m.corpus(r, matched, r.IntN(600), r.Float64()), names: r.IntN(2) == 0}
		remove := []string{"", `,"remove_duplicates":true`, `,"remove_duplicates":false`}[r.IntN(3)]
		fields := []string{"", `,"include_fields":"n"`, `,"include_fields":"id,n"`, `,"exclude_fields":"id,body"`}[r.IntN(4)]
		every := []int{2 + r.IntN(3), 1 + r.IntN(3)}
		searches := make([]string, len(every))
		for i, n := range every {
			searches[i] = fmt.Sprintf(`{"collection":"news","q":"%d","per_page":3%s}`, n, fields) // which pages by itself in vain
		}
		page, perPage := 1+r.IntN(6), 1+r.IntN(40)
		request := post("/multi_search", `{"union":true`+remove+`,"searches":[`+strings.Join(searches, ",")+`]}`)
		request.RawQuery = fmt.Sprintf("per_page=%d&page=%d", perPage, page)
		own := f.reply(request)

		var list []map[string]any // the documents of the merged list
		for i, document := range f.documents {
			for _, n := range every {
				if i%n == 0 {
					if list = append(list, document); !strings.HasSuffix(remove, "false") {
						break
					}
				}
			}
		}
		whole := *request
		whole.RawQuery = "per_page=2000"
		all := expect.Value(jsonedit.Elements(member(cleaned(t, string(f.reply(&whole).Body), ""), "hits")))(t)
		var want [][]byte
		for _, rank := range m.oracle(matched, list, matched.Window, page, perPage) {
			want = append(want, all[rank])
		}
		s := search(request, planFor(adapters.Scope{}, matched))
		f.asked = nil
		answer, err := adaptertest.Run(s, f.reply)
		if repeats := len(list) > 0 && strings.HasSuffix(remove, "false") && !f.names; repeats && err != nil {
			expect.Same(t, adapters.ReasonNotUnderstood, adapters.ReasonOf(err), "hits of one document that nothing tells apart: %v", err)
			continue
		}
		expect.OK(t, err)
		expect.Must(t, string(expect.Value(jsonedit.Set(own.Body, "hits", jsonedit.Array(want)))(t)), string(answer.Body), "%s?%s", request.Body, request.RawQuery)
		folded += answer.Outcomes[0].Folded
		if slices.ContainsFunc(f.asked, func(r *adapters.Request) bool { return strings.Count(r.RawQuery, "page=") != 2 }) {
			t.Errorf("%+v", f.asked)
		}
	}
	if folded == 0 {
		t.Error("nothing folded")
	}
}

// Other unions are left alone, each with its reason, and sent as the client wrote them.
func TestUnionLeftAlone(t *testing.T) {
	plan := planFor(adapters.Scope{}, newRule(t, "*", "body"))
	for searches, reason := range map[string]adapters.Reason{
		`{"collection":"news","q":"a"},{"collection":"news","q":"b","page":7}`:                "",
		`{"collection":"news"},{"collection":"other"}`:                                        "union",
		`{"collection":"news"},{"collection":"news","include_fields":"n"}`:                    "union",
		`{"collection":"news"},{"collection":"news","preset":"p"}`:                            "union",
		`{"collection":"news"},{"collection":"news","vector_query":"v:([1])","q":"*"}`:        "union",
		`{"collection":"news"},{"collection":"news","neardup_threshold":0.9}`:                 "union",
		`{"collection":"news","x-typesense-api-key":"a"}`:                                     "union",
		`{"collection":"news","group_by":"n"},{"collection":"news","group_by":"n"}`:           "grouped",
		`{"collection":"news"},{"collection":"news","neardup":"off"}`:                         "off",
		`{"collection":"news","conversation":true},{"collection":"news","conversation":true}`: "conversation",
	} {
		body := `{"searches":[` + searches + `],"union":true}`
		s := search(post("/multi_search", body), plan)
		if s.Reason != reason || s.Left() != (reason != "") {
			t.Errorf("%s: %q, want %q", searches, s.Reason, reason)
		}
		if !strings.Contains(body, "neardup") && string(s.Plain.Body) != body {
			t.Errorf("%s is sent as %s", body, s.Plain.Body)
		}
	}
	paged := post("/multi_search", `{"searches":[{"collection":"news"}],"union":true}`)
	paged.RawQuery = "offset=20"
	expect.Same(t, adapters.Reason("union"), search(paged, plan).Reason, "a union that pages by offset")
}
