package e2e

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/neardup/sidecar/internal/differ"
)

// cases collects cases of one request each.
type cases []differ.Case

// add adds a case. The body is sent as it stands.
func (c *cases) add(name, head, body string, change ...func(*differ.Request)) {
	r := differ.Request{Head: ownNames(head), Body: []byte(body)}
	for _, f := range change {
		f(&r)
	}
	*c = append(*c, differ.Case{Name: name, Requests: []differ.Request{r}})
}

// typesenseCombinations are imports and writes under every combination of their parameters, values of every type in fields of
// every type, and searches whose query string is as long as may be.
func typesenseCombinations() []differ.Case {
	var c cases
	const collection = "/collections/differ-x"
	c.add("setup: drop", "DELETE "+collection, "")
	c.add("setup: collection", "POST /collections", ownNames(`{"name":"differ-x","enable_nested_fields":true,"fields":[`+
		`{"name":"title","type":"string"},{"name":"body","type":"string","optional":true},`+
		`{"name":"n","type":"int32","optional":true},{"name":"big","type":"int64","optional":true},`+
		`{"name":"f","type":"float","optional":true},`+
		`{"name":"b","type":"bool","optional":true},`+
		`{"name":"tags","type":"string[]","optional":true},{"name":"ints","type":"int32[]","optional":true},`+
		`{"name":"place","type":"geopoint","optional":true},{"name":"meta","type":"object","optional":true}]}`))
	var lines strings.Builder
	for i := range 6 {
		fmt.Fprintln(&lines, textual(fmt.Sprint("old", i), i, `"n":1`))
	}
	c.add("setup: documents", "POST "+collection+"/documents/import", lines.String())
	c.imports(collection + "/documents")
	c.values(collection + "/documents")
	c.longQueries(collection + "/documents")
	c.add("export at the end", "GET "+collection+"/documents/export", "")
	c.add("schema at the end", "GET "+collection, "")
	c.add("teardown", "DELETE "+collection, "")
	return c
}

// textual returns a document whose text, other for each seed, is like no other's.
func textual(id string, seed int, more string) string {
	return fmt.Sprintf(`{"id":%q,"title":%q,"body":%q,%s}`, id, words(7000+seed, 40), words(9000+seed, 120), more)
}

var dirtyValues = []string{"", "coerce_or_reject", "coerce_or_drop", "drop", "reject"}

// imports are lines of every kind under every combination of an import's parameters.
func (c *cases) imports(documents string) {
	seed := 10
	for _, action := range []string{"create", "upsert", "update", "emplace"} {
		for _, dirty := range dirtyValues {
			for i := range 8 { // what else there is, bit by bit
				query := "?action=" + action
				if dirty != "" {
					query += "&dirty_values=" + dirty
				}
				if i&1 != 0 {
					query += "&return_id=true"
				}
				if i&2 != 0 {
					query += "&return_doc=true"
				}
				if i&4 != 0 {
					query += "&batch_size=2"
				}
				seed += 10
				own := fmt.Sprint("own", seed)
				lines := []string{
					textual(own, seed, `"n":1`), textual("old0", seed+1, `"n":2`), `{"id":"old1","n":3}`, `{"id":"nope","n":3}`, "",
					fmt.Sprintf(`{"id":"old2","title":%q}`, words(seed, 30)), textual("old3", seed+2, `"n":"word"`),
					textual("old4", seed+3, `"n":"12","f":"1.5"`), textual(own+"x", seed+4, `"n":{},"b":"yes"`), `{"id":"old5","title":`,
					`{"id":"old5","body":null}`, `[]`,
				}
				c.add("import"+query, "POST "+documents+"/import"+query, strings.Join(lines, "\n")+"\n")
			}
		}
	}
}

// values are values of every type in fields of every type, in imports and, of some fields, in single documents.
func (c *cases) values(documents string) {
	values := []string{
		`"word"`, `"12"`, `"1.5"`, `""`, `"true"`, `12`, `-1`, `1.5`, `1e3`, `2147483648`, `9223372036854775808`, `true`, `null`,
		`[]`, `["a"]`, `[1]`, `[1.5,2.5]`, `["1","b",null]`, `[[1,2]]`, `{}`, `{"a":1}`, `[{"a":1}]`,
	}
	seed := 10_000
	for _, field := range []string{"title", "body", "n", "big", "f", "b", "tags", "ints", "place", "meta", "other", "id"} {
		for _, dirty := range dirtyValues {
			query := "?action=upsert&return_doc=true&dirty_values=" + dirty
			var lines strings.Builder
			for i, value := range values {
				seed++
				document := fmt.Sprintf(`{"id":"v%d","title":%q,"body":%q}`, i, words(seed, 30), words(seed+50_000, 90))
				if field == "title" || field == "body" || field == "id" {
					if field == "id" && (value == `""` || value == "null") { // the engine makes up a name
						continue
					}
					var d map[string]json.RawMessage
					if err := json.Unmarshal([]byte(document), &d); err != nil {
						panic(err)
					}
					d[field] = json.RawMessage(value)
					text, _ := json.Marshal(d) // of what was just read
					document = string(text)
				} else {
					document = document[:len(document)-1] + fmt.Sprintf(`,%q:%s}`, field, value)
				}
				fmt.Fprintln(&lines, document)
				if field == "title" || field == "n" && i%3 == 0 {
					c.add("value of "+field+", "+dirty, "POST "+documents+"?action=upsert&dirty_values="+dirty, document)
					c.add("value of "+field+" patched, "+dirty, "PATCH "+documents+"/old1?dirty_values="+dirty,
						fmt.Sprintf(`{%q:%s}`, field, value))
				}
			}
			c.add("values of "+field+", "+dirty, "POST "+documents+"/import"+query, lines.String())
			partial := strings.NewReplacer("upsert", "emplace").Replace(query)
			c.add("values of "+field+" emplaced, "+dirty, "POST "+documents+"/import"+partial, lines.String())
		}
	}
}

// longQueries are searches whose query string is about as long as the engine takes.
func (c *cases) longQueries(documents string) {
	for length := 3990; length <= 4010; length++ {
		query := "q=*&sort_by=n:asc&per_page=2&include_fields=id,n&filter_by=id:!=["
		query += strings.Repeat("x,", (length-len(query)-1)/2) + strings.Repeat("y", (length-len(query)-1)%2) + "]"
		c.add(fmt.Sprintf("a query of %d bytes", len(query)), "GET "+documents+"/search?"+query, "")
		c.add(fmt.Sprintf("an export with a query of %d bytes", len(query)), "GET "+documents+"/export?"+query, "")
		c.add(fmt.Sprintf("a document with a query of %d bytes", len(query)), "GET "+documents+"/old0?"+query, "")
		multi := fmt.Sprintf(`{"searches":[{"collection":%q},{"collection":%[1]q,"page":2}]}`, ownNames("differ-x"))
		c.add(fmt.Sprintf("a multi-search with a query of %d bytes", len(query)), "POST /multi_search?"+query, multi)
	}
}

// pagesTypesense are 560 documents, more than two pages at their largest, and the pages of several lists of them.
func pagesTypesense() []differ.Case {
	var c cases
	const collection = "/collections/differ-p"
	var lines strings.Builder
	for i := range 560 {
		fmt.Fprintf(&lines, "{\"id\":\"%d\",\"n\":%d,\"even\":\"%t\",\"title\":%q,\"body\":%q}\n", i, i, i%2 == 0,
			"common "+words(i, 40), strings.Repeat("common ", 1+i%3)+words(800+i, 200))
	}
	c.add("setup: drop", "DELETE "+collection, "")
	c.add("setup: collection", "POST /collections", ownNames(`{"name":"differ-p","fields":[{"name":"title","type":"string"},`+
		`{"name":"body","type":"string"},{"name":"n","type":"int32"},{"name":"even","type":"string","facet":true}]}`))
	c.add("setup: documents", "POST "+collection+"/documents/import", lines.String())
	search := "GET " + collection + "/documents/search?"
	name := ownNames("differ-p")
	for _, perPage := range []int{7, 50, 249, 250} {
		for page := 1; page <= 560/perPage+2; page++ {
			if perPage == 7 && page > 12 && page < 75 {
				continue
			}
			of := fmt.Sprintf("&per_page=%d&page=%d&include_fields=n", perPage, page)
			c.add("the order of writing", search+"q=*"+of, "")
			c.add("scores", search+"q=common&query_by=body"+of, "")
			c.add("scores, in two fields", search+"q=common&query_by=title,body&facet_by=even"+of, "")
			c.add("a field", search+"q=*&sort_by=n:desc&facet_by=even"+of, "")
			c.add("a half", search+"q=*&filter_by=even:true&sort_by=n:asc"+of, "")
			c.add("several in one", "POST /multi_search", fmt.Sprintf(`{"searches":[{"collection":%q,"q":"*","per_page":%d,"page":%d},`+
				`{"collection":%[1]q,"q":"common","query_by":"title","sort_by":"n:desc","exclude_fields":"body",`+
				`"per_page":%[2]d,"page":%[3]d},`+
				`{"collection":%[1]q,"q":"*","filter_by":"n:<9","per_page":%[2]d,"page":%[3]d}]}`, name, perPage, page))
		}
	}
	for _, page := range []int{1, 2, 3, 4, 1000, 1 << 20} {
		c.add("whole documents", search+fmt.Sprintf("q=*&per_page=250&page=%d", page), "")
		c.add("whole documents by scores", search+fmt.Sprintf("q=common&query_by=title,body&per_page=250&page=%d", page), "")
	}
	c.add("nothing of much", search+"q=*&per_page=0&page=7", "")
	c.add("teardown", "DELETE "+collection, "")
	return c
}

// largeTypesense are 30 documents of 100 kB, and eleven of 4.5 MB, written and read in ways that reach 1 MB and 50 MB.
func largeTypesense() []differ.Case {
	var c cases
	const zipped = "\nAccept-Encoding: gzip"
	document := func(i, size int) string {
		return fmt.Sprintf("{\"id\":\"%d\",\"n\":%d,\"title\":%q,\"body\":%q,\"blob\":%q}\n",
			i, i, words(i, 60), words(100+i, 300), words(1000+i, size))
	}
	lines := func(from, to, size int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			b.WriteString(document(i, size))
		}
		return b.String()
	}
	inChunks := func(r *differ.Request) { r.Chunk = 64 << 10 }
	for _, name := range []string{"differ-l", "differ-xl"} {
		c.add("setup: drop", "DELETE /collections/"+name, "")
		c.add("setup: collection", "POST /collections", ownNames(`{"name":"`+name+
			`","fields":[{"name":"title","type":"string"},{"name":"body","type":"string"},{"name":"n","type":"int32"}]}`))
	}
	const docs, largest = "/collections/differ-l/documents", "/collections/differ-xl/documents"
	c.add("import of 1 MB", "POST "+docs+"/import", lines(0, 10, 100<<10))
	c.add("import of 1 MB in chunks", "POST "+docs+"/import", lines(10, 30, 100<<10), inChunks)
	c.add("import of 3 MB with errors", "POST "+docs+"/import?return_doc=true",
		lines(20, 40, 100<<10)+"{\"id\":\n\n"+lines(35, 45, 100<<10))
	c.add("import of 3 MB returned", "POST "+docs+"/import?action=upsert&return_doc=true", lines(20, 50, 100<<10))
	c.add("import of 3 MB into nothing", "POST /collections/differ-lnope/documents/import", lines(0, 30, 100<<10))
	c.add("import of 3 MB, wrong key", "POST "+docs+"/import\nX-TYPESENSE-API-KEY: wrong", lines(0, 30, 100<<10))
	c.add("document of 5 MB", "POST "+docs, document(99, 5<<20))
	c.add("document of 2 MB of text", "POST "+docs, fmt.Sprintf(`{"id":"text","n":98,"title":"long","body":%q}`, words(5, 2<<20)))
	c.add("patch of 2 MB", "PATCH "+docs+"/99", fmt.Sprintf(`{"other":%q}`, words(6, 2<<20)))
	c.add("import of 50 MB", "POST "+largest+"/import", lines(0, 11, 4608<<10))
	c.add("import of 10 MB in chunks, returned", "POST "+largest+"/import?action=upsert&return_doc=true",
		lines(0, 2, 4608<<10), inChunks)
	for _, encoding := range []string{"", zipped} {
		as := ""
		if encoding != "" {
			as = ", compressed"
		}
		c.add("get of 7 MB"+as, "GET "+docs+"/99"+encoding, "")
		c.add("get of 2 MB of text"+as, "GET "+docs+"/text"+encoding, "")
		c.add("export of 5 MB"+as, "GET "+docs+"/export?filter_by=n:<50"+encoding, "")
		c.add("export of what is short"+as, "GET "+largest+"/export?include_fields=title"+encoding, "")
		c.add("search of 3 MB"+as, "GET "+docs+"/search?q=*&sort_by=n:asc&per_page=30"+encoding, "")
		c.add("search of 3 MB, left alone"+as, "GET "+docs+"/search?q=*&sort_by=n:asc&per_page=30&limit=500"+encoding, "")
		c.add("multi-search of 5 MB"+as, "POST /multi_search"+encoding, ownNames(`{"searches":[`+
			`{"collection":"differ-l","q":"*","sort_by":"n:asc","per_page":20},`+
			`{"collection":"differ-l","q":"*","sort_by":"n:desc","page":2,"per_page":15}]}`))
		c.add("search of 9 MB"+as, "GET "+largest+"/search?q=*&sort_by=n:asc&per_page=2"+encoding, "")
	}
	c.add("export of 50 MB", "GET "+largest+"/export", "")
	c.add("search of 50 MB", "GET "+largest+"/search?q=*&sort_by=n:asc&per_page=11", "")
	wide := ownNames(`{"searches":[{"collection":"differ-l","q":"*","sort_by":"n:asc","per_page":1,` +
		strings.Repeat(" ", 9<<20) + `"include_fields":"n"}]}`)
	c.add("search body of 9 MB", "POST /multi_search", wide)
	c.add("search body of 1 MB", "POST /multi_search", strings.Replace(wide, strings.Repeat(" ", 8<<20), "", 1))
	c.add("delete of 7 MB", "DELETE "+docs+"/99", "")
	c.add("teardown", "DELETE /collections/differ-l", "")
	c.add("teardown of the largest", "DELETE /collections/differ-xl", "")
	return c
}
