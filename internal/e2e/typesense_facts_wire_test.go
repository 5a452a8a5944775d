package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/differ"
	"github.com/neardup/sidecar/internal/engines"
)

// What each client sends, in its own manner. The clients themselves are run by TestOfficialClients and TestClientSessions.
func TestTypesenseFactsClients(t *testing.T) {
	const search = `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title","per_page":2}]}`
	const doc = `{"id":"9","title":"alpha quiet lake","body":"not a boat was out on the lake all day"}`
	none := []string{"X-Typesense-Api-Key", "", "Content-Type", "text/plain"}
	checkFacts(t, factSchema, factDocuments, []fact{
		{name: "Go: parameters of a multi-search in the query, imports as octets", steps: []step{
			{request: multi + "?q=alpha&query_by=title&per_page=1", body: `{"searches":[{"collection":"NAME"}]}`, status: 200,
				has: `"per_page":1`},
			{request: "POST /collections/NAME/documents/import?action=upsert", body: doc, header: []string{"Content-Type",
				"application/octet-stream"}, status: 200, exact: `{"success":true}`},
		}, after: func(t *testing.T, p *duo) { p.sketched(t, "9") }},
		{name: "Python: a slash at the end, union false", steps: []step{
			{request: "POST /collections/NAME/documents/?action=create", body: doc, status: 201, has: `"id":"9"`},
			{request: "GET /collections/NAME/documents/9/", status: 200},
			{request: "GET /collections/NAME/documents/search/?q=lake&query_by=title", status: 200, has: `"found":1`},
			{request: "GET /collections/NAME/", status: 200, has: `"num_documents":5`},
			{request: multi + "/", body: `{"union":false,` + search[1:], status: 200, has: `"found":4`},
		}, after: func(t *testing.T, p *duo) { p.sketched(t, "9") }},
		{name: "JavaScript: text imports with an unknown parameter, use_cache in the query", steps: []step{
			{request: "POST /collections/NAME/documents/import?action=create&throwOnFail=true", body: doc, header: []string{"Content-Type",
				"text/plain"}, status: 200, exact: `{"success":true}`},
			{request: multi + "?use_cache=true", body: search, status: 200, has: `"found":4`},
		}, after: func(t *testing.T, p *duo) { p.sketched(t, "9") }},
		{name: "InstantSearch: the key in the query, a body of text, the page's size read from the reply", steps: []step{
			{request: multi + "?x-typesense-api-key=" + engines.Shared(t, engines.Typesense).Key, body: search, header: none, status: 200,
				has: `"page":1,"request_params":{"collection_name":"NAME","per_page":2,"q":"alpha"}`},
			{request: multi + "?x-typesense-api-key=bad", body: search, header: none, status: 401, has: "Forbidden"},
		}},
	})
}

// rawCases are requests of which the bytes on the wire count; the collections are put in by name.
func rawCases() []differ.Case {
	list := func(name string, requests ...string) differ.Case {
		c := differ.Case{Name: name}
		for _, r := range requests {
			c.Requests = append(c.Requests, differ.Request{Raw: []byte(r), Masks: differ.Masks{Members: []string{"search_time_ms",
				"created_at"}}})
		}
		return c
	}
	const key = "\nX-Typesense-Api-Key: <<KEY>>"
	read := func(target string) string { return get("GET " + target + key) }
	const documents, search = "/collections/<<NAME>>/documents", "/collections/<<NAME>>/documents/search?query_by=title&q="
	cases := []differ.Case{
		list("semicolons", read(search+"alpha;per_page=1"), read(search+"alpha&filter_by=n:1;2"),
			read(search+"*&include_fields=title;id")),
		list("broken escapes", read(search+"%zz"), read(search+"a%2"), read(search+"alpha%"), read(search+"alpha&per_page=%zz")),
		list("plus and blank", read(search+"owls+return"), read(search+"owls%20return"), read(search+"owls%2Breturn"),
			read(documents+"/a+b")),
		list("runs of &", read(search+"alpha&&per_page=1"), read(search+"*&filter_by=n:>1&&n:<4"), read(search+"alpha&&&page=2"),
			read(search+"alpha&&"), read(search+"alpha&"), read(search+"alpha&include_fields=id&&page=2")),
		list("escaped names", read(search+"alpha&per%5Fpage=1"), read(search+"alpha&%70age=2"),
			read(search+"alpha&include%5ffields=id")),
		list("names alone and empty values", read(search+"alpha&page"), read(search+"alpha&per_page="), read(search+"alpha&=1"),
			read(search+"alpha&include_fields&exclude_fields=")),
		list("equals in values", read(search+"*&filter_by=k:=a"), read(search+"alpha==&per_page=1")),
		list("repeated", read(search+"x&q=alpha&filter_by=n:>1&filter_by=n:<3"),
			read(search+"alpha&per_page=1&per_page=2&page=9&page=1")),
		list("slashes", read("//collections//<<NAME>>//documents//1"), read(documents+"/1//"),
			read("/collections/<<NAME>>/documents//search?q=alpha&query_by=title"), read(documents+"/a%2Fb"), read(documents+"/a/b"),
			read("/collections/<<NAME>>%2Fdocuments/1")),
		list("dots", read("/collections/../collections/<<NAME>>"), read("/collections/./<<NAME>>"), read(documents+"/../documents/1"),
			read("/collections/<<NAME>>/documents/%2e%2e")),
		list("escaped letters", read("/%63ollections/<<NAME>>/documents/1"), read("/collections/<<NAME>>/%64ocuments/1"),
			read("/collections/<<NAME>>/documents/%31"), read("/collections/<<NAME>>/documents/se%61rch?q=alpha&query_by=title")),
		list("HEAD of a document", get("HEAD "+documents+"/1"+key)), list("HEAD of a search", get("HEAD "+search+"alpha"+key)),
		list("HEAD", get("HEAD /health")), list("other methods", get("OPTIONS "+documents), get("PUT "+documents+"/1"+key),
			get("TRACE /health")),
		list("preflights", get("OPTIONS /multi_search\nOrigin: http://shop.example\nAccess-Control-Request-Method: POST\n"+
			"Access-Control-Request-Headers: content-type,x-typesense-api-key"),
			get("OPTIONS "+documents+"/search\nOrigin: http://shop.example\nAccess-Control-Request-Headers: x-typesense-api-key")),
		list("headers in other letters", get("GET "+documents+"/1\nx-typesense-api-key: <<KEY>>"),
			get("GET "+documents+"/1\nX-TYPESENSE-API-KEY: <<KEY>>"), get("GET "+search+"alpha\nx-TyPeSeNsE-aPi-kEy:<<KEY>>")),
		list("two keys", get("GET "+documents+"/1"+key+"\nX-Typesense-Api-Key: bad"),
			get("GET "+documents+"/1\nX-Typesense-Api-Key: bad"+key), get("GET "+search+"alpha"+key+"\nX-Typesense-Api-Key: bad"),
			get("GET "+search+"alpha\nX-Typesense-Api-Key: bad"+key),
			get("GET "+documents+"/1?x-typesense-api-key=<<KEY>>\nX-Typesense-Api-Key: bad"),
			get("GET "+documents+"/1?X-TYPESENSE-API-KEY=<<KEY>>"),
			get("GET "+documents+"/1?x-typesense-api-key=<<KEY>>\nX-Typesense-Api-Key:")),
		list("a header of 8 kB", get("GET "+search+"alpha"+key+"\nX-Long: "+strings.Repeat("a", 8000)), read(documents+"/1")),
		list("keep-alive", read(search+"alpha"), read(documents+"/1"), read("/nope"), with("POST /multi_search"+key, `{"searches":[]}`),
			read("/health"), read(search+"owls")),
		list("closing", get("GET /health\nConnection: close")),
		list("HTTP/1.0", "GET "+documents+"/1?x-typesense-api-key=<<KEY>> HTTP/1.0\r\n\r\n"),
		list("octets", strings.Replace(with("POST /multi_search"+key, `{"searches":[]}`), "application/json",
			"application/octet-stream", 1)),
	}
	inPieces := cases[0].Requests[0]
	inPieces.Raw, inPieces.Head, inPieces.Chunk = nil, "POST /multi_search"+key+"\nContent-Type: application/json", 7
	inPieces.Body = []byte(`{"searches":[{"collection":"<<NAME>>","q":"alpha","query_by":"title"}]}`)
	return append(cases, differ.Case{Name: "in chunks", Requests: []differ.Request{inPieces}})
}

// knownRaw says in what the wire differs, in words that docs/guarantees.md has too.
func knownRaw(c string, d differ.Difference) bool {
	switch {
	case d.Minor: // how the end of a body is told, the order and letters of headers
		return true
	case d.Aspect == "connection": // each side's own
		return true
	case d.Aspect == "header date", d.Aspect == "header neardup":
		return d.Direct == "none"
	case d.Aspect == "header access-control-expose-headers":
		return d.Direct == "none" && d.Through == `["Neardup"]`
	case d.Aspect == "extra": // to HEAD this server sends a body, which is none of the reply
		return strings.HasPrefix(c, "HEAD")
	}
	return false
}

func TestTypesenseFactsOnTheWire(t *testing.T) {
	p := newDuo(t, factSchema, append([]string{`{"id":"a b","title":"gamma"}`, `{"id":"..","title":"delta"}`}, factDocuments...)...)
	var runs [2][]differ.Exchange
	for i := range runs {
		runner := differ.Runner{Addr: strings.TrimPrefix(p.side(i).base, "http://"), Timeout: 5 * time.Second,
			Vars: map[string]string{"NAME": p.names[i], "KEY": p.direct.e.Key}}
		var err error
		if runs[i], err = runner.Run(rawCases()); err != nil {
			t.Fatal(err)
		}
	}
	for k, x := range runs[0] {
		t.Run(x.Case.Name, func(t *testing.T) {
			for n, q := range x.Case.Requests {
				one, two := &x.Replies[n], &runs[1][k].Replies[n]
				for i, r := range []*differ.Reply{one, two} {
					r.Body = []byte(strings.ReplaceAll(string(r.Body), p.names[i], "NAME"))
				}
				line, _, _ := strings.Cut(string(q.Raw), "\r\n")
				for _, d := range differ.Compare(one, two, q.Masks) {
					if d.Aspect == "header content-length" || knownRaw(x.Case.Name, d) {
						continue
					}
					t.Errorf("%s: %s", line, d)
				}
				if strings.Contains(string(two.Body), adapters.SketchField) {
					t.Errorf("%s shows our field", line)
				}
			}
		})
	}
}
