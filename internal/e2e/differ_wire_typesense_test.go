package e2e

import (
	"strings"

	"github.com/neardup/sidecar/internal/differ"
)

// typesenseWire are the wire cases for Typesense.
func typesenseWire() []differ.Case {
	setup := func(name, head, body string) differ.Case {
		return differ.Case{Name: name, Requests: []differ.Request{{Head: ownNames(head), Body: []byte(ownNames(body))}}}
	}
	const documents = "/collections/differ-h/documents"
	w := wired{
		setup: []differ.Case{
			setup("setup: drop", "DELETE /collections/differ-h", ""),
			setup("setup: collection", "POST /collections", `{"name":"differ-h","fields":[{"name":"title","type":"string"},`+
				`{"name":"body","type":"string"},{"name":"n","type":"int32"}]}`),
			setup("setup: document", "POST "+documents,
				`{"id":"1","title":"Harbour wall gives way","body":"A stretch of the old harbour wall fell into the water.","n":1}`),
			setup("setup: slash", "POST "+documents,
				`{"id":"a/b","title":"Bakers win a race","body":"Nine bakers from the upper town rowed a borrowed boat.","n":2}`),
		},
		targets: typesenseTargets,
		other: strings.NewReplacer(
			"/differ-h/_search?size=1&sort=n", documents+"/search?q=*&per_page=1&sort_by=n:asc", "/differ-h/_count", documents+"/1",
			"/differ-h/_source/a%2Fb?_source=n", documents+"/search?q=*&sort_by=n:asc", "/differ-h/_doc/", documents+"/",
			"/differ-h/_search", documents+"/search", "OPTIONS /differ-h", "OPTIONS /collections/differ-h",
		),
		raw:   keyed,
		count: "GET " + documents + "/1",
		// The query counts over the body, which must not hold a collection's name, of which the length is not known here.
		search: "POST /multi_search?collection=differ-h&q=*&sort_by=n:asc", body: `{"searches":[{"per_page":1}]}`,
		more: `{"searches":[{"per_page":2},{"per_page":1,"page":2}]}`, write: "PATCH " + documents + "/1",
		one: "GET " + documents + "/a%2Fb", none: "GET " + documents + "/nope",
		nothing: "GET /collections/differ-hnope/documents/search?q=*",
		drop:    "DELETE /collections/differ-h",
	}
	search := "GET " + documents + "/search?q=*&sort_by=n:asc"
	w.mixed = []string{get("GET /health"), get(w.one), with(w.search, w.body), get(search), get(w.none), get(w.count)}
	w.writes = []string{ // the engine may work on them at once
		with("POST "+documents+"?action=upsert",
			`{"id":"p1","title":"first of the pipe","body":"words about copper and about tin","n":7}`),
		with("PATCH "+documents+"/1", `{"n":1}`), with("POST "+documents+"/import?action=upsert",
			"{\"id\":\"p2\",\"title\":\"second of the pipe\",\"body\":\"other words about lead and gold\",\"n\":8}\n"),
		get(w.one), get("DELETE " + documents + "/nope"),
	}
	wait := func(name, head, body string) {
		r := differ.Request{Head: ownNames(head), Body: []byte(body), Wait: true}
		w.waiting = append(w.waiting, differ.Case{Name: name, Requests: []differ.Request{r}})
	}
	wait("leave: a search", w.search, w.body)
	wait("leave: a write", w.write, `{"n":1}`)
	wait("leave: an import", "POST "+documents+"/import?action=update", "{\"id\":\"1\",\"n\":1}\n")
	wait("leave: no path", "POST /nonsense", `{}`)
	wait("leave: an import into nothing", "POST /collections/differ-hnope/documents/import", "{}\n")
	wait("leave: a body beyond the limit", "POST "+documents+"/import\nContent-Length: 200000000000", "")
	wait("leave: a search beyond the limit", w.search+"\nContent-Length: 200000000000", "")
	return wireCases(w)
}

// keyed puts the key into a request whose first line is one of HTTP/1.
func keyed(request string) string {
	line, rest, ok := strings.Cut(request, "\r\n")
	if !ok || !strings.Contains(line, "HTTP/1") || strings.Contains(line, "OPTIONS *") {
		return request
	}
	return line + "\r\nX-TYPESENSE-API-KEY: <<key>>\r\n" + rest
}

// typesenseTargets are ways to write a request target, and methods.
var typesenseTargets = [][2]string{
	{"root", get("GET /")},
	{"double slash in front", get("GET //collections/differ-h/documents/1")},
	{"double slash in front of a search", get("GET //collections/differ-h/documents/search?q=*&per_page=1")},
	{"double slash within", get("GET /collections/differ-h//documents/1")},
	{"double slash within a search", get("GET /collections/differ-h/documents//search?q=*")},
	{"three slashes", get("GET ///health")},
	{"slash at the end", get("GET /collections/differ-h/documents/1/")},
	{"two slashes at the end", get("GET /collections/differ-h/documents/search//?q=*&per_page=1")},
	{"escaped slash in an id", get("GET /collections/differ-h/documents/a%2Fb")},
	{"escaped slash in small letters", get("GET /collections/differ-h/documents/a%2fb")},
	{"escaped slash in place of one", get("GET /collections/differ-h%2Fdocuments%2F1")},
	{"needless escapes", get("GET /collections/%64iffer-h/documents/%31")},
	{"needless escapes of names", get("GET /%63ollections/differ-h/%64ocuments/1")},
	{"needless escapes of a search", get("GET /collections/differ-h/documents/%73earch?q=*")},
	{"escape of a percent", get("GET /collections/differ-h/documents/100%25")},
	{"broken escape in the path", get("GET /collections/differ-h/documents/%zz")},
	{"cut off escape in the path", get("GET /collections/differ-h/documents/%2")},
	{"percent at the end of the path", get("GET /collections/differ-h/documents/1%")},
	{"broken escape in the query", get("GET /collections/differ-h/documents/search?q=%zz&query_by=title")},
	{"cut off escape in the query", get("GET /collections/differ-h/documents/search?query_by=title&q=a%2")},
	{"broken escape in a page", get("GET /collections/differ-h/documents/search?q=*&page=%zz")},
	{"invalid UTF-8 escaped", get("GET /collections/differ-h/documents/%ff")},
	{"invalid UTF-8 escaped in the query", get("GET /collections/differ-h/documents/search?q=%ff&query_by=title")},
	{"raw bytes in the query", get("GET /collections/differ-h/documents/search?q=\xc3\xbc&query_by=title")},
	{"semicolon in the path", get("GET /collections/differ-h/documents/1;x=y")},
	{"semicolon in the query", get("GET /collections/differ-h/documents/search?q=*;per_page=1")},
	{"semicolons between parameters", get("GET /collections/differ-h/documents/search?per_page=1;q=*")},
	{"plus in the path", get("GET /collections/differ-h/documents/a+b")},
	{"plus in the query", get("GET /collections/differ-h/documents/search?q=harbour+wall&query_by=title")},
	{"dots", get("GET /nope/../collections/differ-h")},
	{"dots within", get("GET /collections/differ-hnope/../differ-h")},
	{"single dot", get("GET /./collections/differ-h")},
	{"escaped dots", get("GET /collections/differ-h/%2e%2e/differ-h")},
	{"hash", get("GET /collections/differ-h/documents/1#x?y")},
	{"pipe, caret, quote, braces", get("GET /collections/differ-h/documents/a|b^c\"d{e}`")},
	{"angle brackets", get("GET /collections/<differ-h>/documents/1")},
	{"backslash", get("GET /collections\\differ-h\\documents\\1")},
	{"at sign and colon", get("GET /collections/differ-h/documents/a@b:c")},
	{"star and dollar", get("GET /collections/differ-h/documents/*$!'()")},
	{"empty query", get("GET /collections/differ-h?")},
	{"empty parameters", get("GET /collections/differ-h/documents/search?&q=*&per_page=1&")},
	{"empty parameters within", get("GET /collections/differ-h/documents/search?q=*&&per_page=1&&page=2")},
	{"empty parameters in front", get("GET /collections/differ-h/documents/search?&&q=*&per_page=1")},
	{"repeated parameters", get("GET /collections/differ-h/documents/search?q=*&per_page=1&per_page=2&sort_by=n:asc")},
	{"parameter without a value", get("GET /collections/differ-h/documents/search?q=*&per_page")},
	{"parameter with an empty value", get("GET /collections/differ-h/documents/search?q=*&per_page=")},
	{"parameter without a name", get("GET /collections/differ-h/documents/search?=1&q=*")},
	{"two question marks", get("GET /collections/differ-h/documents/search?q=*?per_page=1")},
	{"equals in a value", get("GET /collections/differ-h/documents/search?q=n=1=2&query_by=title")},
	{"escaped name of a parameter", get("GET /collections/differ-h/documents/search?%70er_page=1&q=*")},
	{"escaped ampersand and equals", get("GET /collections/differ-h/documents/search?q=*&per_page%3D1%26page=2")},
	{"a target with its host", "GET http://engine.example/collections/differ-h HTTP/1.1\r\nHost: engine.example\r\n\r\n"},
	{
		"a search's target with its host",
		"GET http://engine.example/collections/differ-h/documents/search?q=*&per_page=1 HTTP/1.1\r\nHost: engine.example\r\n\r\n",
	},
	{
		"a target with another host",
		"GET http://other.example:1/collections/differ-h/documents/a%2Fb HTTP/1.1\r\nHost: engine.example\r\n\r\n",
	},
	{"a target without a slash", "GET collections/differ-h HTTP/1.1\r\nHost: engine.example\r\n\r\n"},
	{"a target that is a star", "GET * HTTP/1.1\r\nHost: engine.example\r\n\r\n"},
	{"a long target", get("GET /collections/differ-h/documents/search?q=*&per_page=1&x=" + strings.Repeat("a", 3900))},
	{"a target beyond the limit", get("GET /collections/differ-h/documents/search?q=*&x=" + strings.Repeat("a", 4200))},
	{"a target far beyond the limit", get("GET /collections/differ-h/documents/search?q=" + strings.Repeat("a", 100_000))},
	{"another client's request after a target beyond the limit", get("GET /collections/differ-h/documents/1")},
	{"a long path", get("GET /collections/differ-h/documents/" + strings.Repeat("a", 20_000))},
	{"another client's request after a long path", get("GET /collections/differ-h/documents/1")},
	{"OPTIONS of the server", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"OPTIONS of the root", get("OPTIONS /")},
	{"OPTIONS of a collection", get("OPTIONS /collections/differ-h")},
	{"OPTIONS of a search", get("OPTIONS /collections/differ-h/documents/search")},
	{"OPTIONS of a document", get("OPTIONS /collections/differ-h/documents/1")},
	{"HEAD of a document", get("HEAD /collections/differ-h/documents/1")},
	{"another client's request after HEAD", get("GET /collections/differ-h/documents/1")},
	{"method TRACE", get("TRACE /collections/differ-h/documents/1")},
	{"method PROPFIND", get("PROPFIND /collections/differ-h")},
	{"method BREW", get("BREW /collections/differ-h/documents/search")},
	{"method in small letters", get("get /collections/differ-h/documents/1")},
	{"method CONNECT", "CONNECT engine.example:80 HTTP/1.1\r\nHost: engine.example:80\r\n\r\n"},
	{"method with odd signs", get("G!T /collections/differ-h/documents/1")},
	{"method HEAD of a search", get("HEAD /collections/differ-h/documents/search?q=*")},
	{"method PUT of a search", with("PUT /collections/differ-h/documents/search?q=*", "{}")},
}
