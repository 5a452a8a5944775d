package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/differ"
)

// queryPieces are what raw queries are made of: good parameters, and what can stand around and in them.
var queryPieces = []string{
	"&", "&", "&", "&", "&", "&&", "&&&", ";", "=", "%zz", "%26", "%3D", "+", "%20", "?", ",", "q=alpha", "q=*", "q=owls", "q",
	"query_by=title", "query_by=body,title",
	"facet_by=k&&", "sort_by=n:asc&&", "?q=owls",
	"per_page=1", "per_page=2", "per_page=", "per_page=07", "per_page=+1", "per_page=-1", "per_page=1e1", "per_page=251", "page=1",
	"page=2", "page=%31", "page=x", "p%61ge=2", "PAGE=2",
	"filter_by=n:>1", "filter_by=n:<4", "filter_by=k:=a", "filter_by=n:%3E1%26%26n:%3C4", "filter_by=", "include_fields=id",
	"include_fields=title,n", "include_fields=", "include%5Ffields=k",
	"exclude_fields=body", "exclude_fields=id,", "sort_by=n:desc", "sort_by=n:asc", "sort_by=", "facet_by=k", "facet_query=k:a",
	"group_by=k", "group_by=", "limit_hits=3", "limit=1", "offset=1",
	"preset=nope", "prefix=false", "use_cache=false", "union=true", "collection=nope", "id=1", "x", "x=1", "x-typesense-api-key=bad",
	"highlight_full_fields=body", "pinned_hits=3:1", "hidden_hits=2",
}

// TestTypesenseQueriesAtRandom sends raw queries at random over raw connections: through the sidecar they mean what they mean to
// the server.
func TestTypesenseQueriesAtRandom(t *testing.T) {
	p := newDuo(t, factSchema, factDocuments...)
	one := seeded(t)
	r := rand.New(rand.NewPCG(one, 5))
	var cases []differ.Case
	for i := range 300 {
		query := "q=alpha&query_by=title"
		for range 1 + r.IntN(6) {
			query += []string{"&", "&", "&", ""}[r.IntN(4)] + queryPieces[r.IntN(len(queryPieces))]
		}
		target := "/collections/<<NAME>>/documents/search?" + query
		request := get("GET " + target + "\nX-Typesense-Api-Key: <<KEY>>")
		if i%3 == 0 {
			request = with("POST /multi_search?"+query+"\nX-Typesense-Api-Key: <<KEY>>", fmt.Sprintf(`{"searches":[{"collection":"%s"}]}`,
				strings.Repeat("N", len(p.names[0]))))
		}
		cases = append(cases, differ.Case{Name: query, Requests: []differ.Request{{Raw: []byte(request),
			Masks: differ.Masks{Members: []string{"search_time_ms"}}}}})
	}
	var replies [2][]differ.Exchange
	for i := range replies {
		own := make([]differ.Case, len(cases))
		for k, c := range cases {
			c.Requests = []differ.Request{c.Requests[0]}
			c.Requests[0].Raw = []byte(strings.ReplaceAll(string(c.Requests[0].Raw), strings.Repeat("N", len(p.names[i])), p.names[i]))
			own[k] = c
		}
		runner := differ.Runner{Addr: strings.TrimPrefix(p.side(i).base, "http://"), Timeout: 10 * time.Second,
			Vars: map[string]string{"NAME": p.names[i], "KEY": p.direct.e.Key}}
		var err error
		if replies[i], err = runner.Run(own); err != nil {
			t.Fatal(err)
		}
	}
	wrong := 0
	for k, c := range cases {
		one, two := &replies[0][k].Replies[0], &replies[1][k].Replies[0]
		for i, r := range []*differ.Reply{one, two} {
			r.Body = []byte(strings.ReplaceAll(string(r.Body), p.names[i], "NAME"))
		}
		for _, d := range differ.Compare(one, two, c.Requests[0].Masks) {
			if d.Aspect == "header content-length" || knownRaw("", d) {
				continue
			}
			if wrong++; wrong < 8 {
				line, _, _ := strings.Cut(string(c.Requests[0].Raw), "\r\n")
				t.Errorf("%s: %s", line, d)
			}
		}
	}
	if wrong >= 8 {
		t.Errorf("%d differences in all", wrong)
	}
}

// randomLine returns a line of an import: a document, or something that is none.
func randomLine(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	var members []string
	add := func(name string, values ...string) {
		if r.IntN(6) > 0 {
			members = append(members, pick("", "", " ")+`"`+name+`"`+pick(":", ":", " : ")+pick(values...))
		}
	}
	add("id", `"r1"`, `"r2"`, `"r3"`, `"r4"`, `"r 5"`, `"r6/7"`, `7`, `""`, `null`)
	add("title", `"one two three four"`, `"caf\u00e9 \ud83d\ude00 \"quoted\" \\ \/"`, `"say \"neardup_sketch\":null}"`, `7`, `null`,
		`["a"]`, `""`, `"ümlaut"`)
	add("body", `"five words are in here"`, `"six words are not in here"`, `null`, `1.5`, `{"a":1}`, `""`)
	add("n", `1`, `-3`, `1e2`, `"4"`, `"x"`, `null`, `9999999999`, `1.0`)
	add("k", `"a"`, `null`, `true`, `5`)
	add(pick("other", "neardup", "title", "Title", "t.u"), `1`, `{"neardup_sketch":"inner"}`, `[[],{}]`, `"x"`, `1e3`)
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	line := "{" + strings.Join(members, ",") + "}"
	switch r.IntN(16) {
	case 0:
		return ""
	case 1:
		return pick(" ", "\r", "\t", "null", "[]", "7", `"text"`, "nonsense", "{", "}", "{}", "{,}", "\ufeff{}")
	case 2:
		return line[:r.IntN(len(line))]
	case 3:
		return pick(" ", "\t") + line + pick(" ", "\r", " x", ",", line)
	}
	return line
}

// TestTypesenseImportsAtRandom imports lines at random: each answers what it answers directly, what is stored is the same less
// our field, and no sketch is of another text.
func TestTypesenseImportsAtRandom(t *testing.T) {
	p := newDuo(t, factSchema)
	one := seeded(t)
	r := rand.New(rand.NewPCG(one, 6))
	for range 60 {
		var lines []string
		for range r.IntN(30) {
			lines = append(lines, randomLine(r))
		}
		request := "POST /collections/NAME/documents/import?action=" + []string{"create", "upsert", "update", "emplace"}[r.IntN(4)]
		for _, extra := range []string{"&return_doc=true", "&return_id=true", "&dirty_values=coerce_or_drop", "&dirty_values=drop",
			"&dirty_values=coerce_or_reject", "&batch_size=3", "&x=y"} {
			if r.IntN(4) == 0 {
				request += extra
			}
		}
		p.both(t, request, strings.Join(lines, "\n")+[]string{"", "\n", "\n\n", "\r\n"}[r.IntN(4)])
		if r.IntN(2) == 0 {
			single := []string{"POST /collections/NAME/documents", "POST /collections/NAME/documents?action=upsert",
				"POST /collections/NAME/documents?action=emplace", "PATCH /collections/NAME/documents/r1",
				"PATCH /collections/NAME/documents/r6%2F7"}
			p.both(t, single[r.IntN(len(single))], randomLine(r))
		}
		p.both(t, "GET /collections/NAME/documents/export", "")
		p.allRightOrAbsent(t)
		if t.Failed() {
			t.Fatalf("%s\n%s", request, strings.Join(lines, "\n"))
		}
	}
}

// allRightOrAbsent fails the test if any document behind the sidecar has the sketch of another text.
func (p *duo) allRightOrAbsent(t *testing.T) {
	t.Helper()
	rule := ownRule(t)
	stored := call(t, p.direct.e, "GET", p.direct.base+"/collections/"+p.names[1]+"/documents/export", "").want(t, 200).body
	for line := range strings.Lines(string(stored)) {
		computed, found := rule.SketchOf([]byte(line))
		if found != nil && (computed == nil || computed.Text != found.Text) {
			t.Errorf("the sketch of another text: %s", line)
		}
	}
}

// TestTypesenseFieldsOfOddNames has fields that are called as something of ours might be. This server never answers a search that
// highlights a field which is not indexed.
func TestTypesenseFieldsOfOddNames(t *testing.T) {
	schema := strings.Replace(factSchema, `{"name":"n"`, `{"name":"none","type":"string","index":false,"optional":true},{"name":"n"`,
		1)
	var documents []string
	for i := range 40 {
		documents = append(documents, fmt.Sprintf(`{"id":"%d","title":"alpha","none":"x","body":"%s","neardup":"y"}`, i,
			strings.Repeat(fmt.Sprintf("w%d ", i), 9)))
	}
	p := newDuo(t, schema, documents...)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	path := p.named(1, "/collections/NAME/documents/search?q=alpha&query_by=title&per_page=5&page=4")
	r, err := http.NewRequestWithContext(ctx, "GET", p.through.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Typesense-Api-Key", p.direct.e.Key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal("page 4: ", err)
	}
	resp.Body.Close()
	for _, request := range []string{searched + "?q=alpha&query_by=title&per_page=5&page=4", searched +
		"?q=alpha&query_by=title&include_fields=none,neardup", "GET /collections/NAME/documents/3"} {
		p.both(t, request, "")
	}
}

// TestTypesensePresetsHideAndName has presets that say which fields are shown. What a preset excludes stays hidden; what it
// includes, the client has not named.
func TestTypesensePresetsHideAndName(t *testing.T) {
	p := newDuo(t, factSchema, factDocuments...)
	t.Cleanup(func() {
		for _, name := range p.names {
			p.direct.clear(t, "/presets/"+name)
		}
	})
	for _, value := range []string{
		`"exclude_fields":"neardup_sketch"`, `"exclude_fields":"neardup_sketch,body"`, `"include_fields":"neardup_sketch"`,
		`"include_fields":"neardup_sketch,n"`, `"include_fields":"n"`,
		`"per_page":1`, `"per_page":1,"page":2`, `"filter_by":"n:>1"`, `"limit_hits":3`, `"group_by":"k"`, `"neardup":"off"`,
	} {
		p.both(t, "PUT /presets/NAME", `{"value":{"q":"alpha","query_by":"title",`+value+`}}`)
		for _, params := range []string{"", "&include_fields=id", "&exclude_fields=title", "&per_page=2", "&page=2"} {
			p.both(t, searched+"?preset=NAME"+params, "")
			p.both(t, multi+"?preset=NAME"+params, `{"searches":[{"collection":"NAME"}]}`)
			p.both(t, multi+"?x=1"+params, `{"searches":[{"collection":"NAME","preset":"NAME"},{"collection":"NAME","q":"owls",`+
				`"query_by":"title"}]}`)
		}
		// Named by the client and excluded by the preset: the server's rule holds.
		r := p.ask(t, 1, searched+"?preset=NAME&include_fields=neardup_sketch,id", "")
		if hides := strings.Contains(value, "exclude"); r.status == 200 && hides == strings.Contains(string(r.body),
			`"neardup_sketch":"`) {
			t.Errorf("%s: %.400s", value, r.body)
		}
	}
	if diff := cmp.Diff(4, p.count(t, 1)); diff != "" {
		t.Error(diff)
	}
}
