package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// confusion is a way to write a request line that receivers may read differently. ON stands for an index that a rule matches, OFF for one
// that none does, TO for a name of the rule's that leads to OFF, AS for a name of none that leads to ON.
type confusion struct {
	plain, indices, joints, ends, queries, types []string
	// write and search are the endpoints behind an index.
	write, search []string
}

// spellings are ways to write a name in a path.
func spellings(names ...string) (list []string) {
	for _, n := range names {
		list = append(list, n, n, n, strings.ReplaceAll(n, "-", "%2d"), "%"+fmt.Sprintf("%x", n[0])+n[1:], "%25"+fmt.Sprintf("%x",
			n[0])+n[1:], strings.ToUpper(n), n+".", n+"%20", n+"%00",
			n+";x=y", n+"%3Bx", n+"%2f", "%2f"+n, n+"#f", n+"%23", "%c1%b3"+n[1:], "%ef%bd%93"+n[1:], "OFF%2f..%2f"+n, "OFF/../"+n,
			"OFF/%2e%2e/"+n, "./"+n, "%2e/"+n, n+"%0a", n+"%09", "+"+n, n+"%u0061", n+"%")
	}
	return list
}

var elasticConfusion = confusion{
	plain: []string{"ON", "OFF", "TO", "AS"},
	indices: append(spellings("ON", "OFF", "TO", "AS"), "%3CON%3E", "%3COFF%3E", "%3Csatk-on-%7Bnow%2Fd%7D%3E", "ON,OFF",
		"OFF%2cON", "satk-o*", "satk-on*,-ON", "_all", "*,-satk-*,ON", "ON,ON"),
	joints: []string{"/", "/", "/", "/", "//", "/./", "%2f", "/%2e/"},
	ends:   []string{"", "", "", "/", "//", "?", "#x", ";x", "%20", "."},
	write: []string{"_doc/ID", "_create/ID", "%5fdoc/ID", "_DOC/ID", "_doc/%ID", "_update/ID", "type/ID", "_doc/_bulk/ID",
		"_doc;x/ID", "_doc%2fID", "_bulk"},
	search: []string{"_search", "_search", "%5fsearch", "_SEARCH", "_search/", "_search;x", "_search%2f", "_msearch",
		"type/_search", "_search/template", "_search%3fsize=1"},
	queries: []string{"", "", "q=news", "q=news&q=olds", "size=1&size=5", "q=news;size=1", "index=OFF",
		"source=%7B%7D&source_content_type=application/json",
		"source=%7B%22size%22:1%7D&source=%7B%7D&source_content_type=application/json",
		"source=%7B%7D", "method=DELETE", "_method=DELETE", "size=%31", "%73ize=1", "size=1%26from=1", "size=1&&from=0", "?size=1",
		"routing=a", "q=%c1%ae", "filter_path=**._id", "pretty=&human", "size=+1"},
	types: []string{"application/json", "application/json", "application/json", "application/json; charset=UTF-8",
		"APPLICATION/JSON", "application/x-ndjson", "application/vnd.elasticsearch+json;compatible-with=8",
		"application/json;charset=utf-16",
		"application/cbor", "text/plain", "application/json, application/yaml", "application/json;compatible-with=7",
		"application/vnd.elasticsearch+json;compatible-with=7", ""},
}

var typesenseConfusion = confusion{
	plain: []string{"collections/ON", "collections/OFF", "collections/TO", "collections/AS"},
	indices: append(spellings("collections/ON", "collections/OFF", "collections/TO", "collections/AS"), "collections/*",
		"Collections/ON", "%63ollections/ON", "collections//ON", "collections/ON%2fdocuments", "/collections/O%4e"),
	joints: []string{"/", "/", "/", "//", "%2f", "/./"},
	ends:   []string{"", "", "", "/", "//", "?", ";x", "%20", "."},
	write: []string{"documents", "documents", "documents/import", "Documents", "%64ocuments", "documents/", "documents//import",
		"documents/ID", "documents;x"},
	search: []string{"documents/search", "documents/search", "documents/%73earch", "documents//search", "documents/Search",
		"documents/search/", "documents/search;x"},
	queries: []string{"", "", "action=upsert", "action=upsert&action=create", "collection=OFF", "collection=ON",
		"collection=OFF&collection=ON", "Collection=ON", "collection=", "%63ollection=OFF", "collection=%4FFF", "collection=ON;x",
		"&collection=OFF&", "per_page=1&per_page=5",
		"?collection=OFF", "page=1%26x", "use_cache=true", "dirty_values=coerce_or_drop", "action=emplace", "ACTION=update",
		"include_fields=id"},
	types: []string{"application/json", "", "text/plain", "application/x-ndjson", "application/cbor"},
}

// lines returns a request line at random, and the body and type that go with it.
func (c *confusion) request(r *rand.Rand, e *engines.Engine, write bool, id string) (method, target, kind, body string) {
	pick := func(list []string) string { // the plain one, which is the first, mostly
		if r.IntN(10) < 7 {
			return list[0]
		}
		return list[r.IntN(len(list))]
	}
	endpoint, method := pick(c.search), "POST"
	if write {
		endpoint, method = pick(c.write), []string{"PUT", "POST"}[r.IntN(2)]
	}
	query := pick(c.queries)
	document := fmt.Sprintf(`{"id":%q,"title":"news","body":%q,"neardup_sketch":"FORGED"}`, id, craftedText)
	body = `{"query":{"match_all":{}},"size":50}`
	switch {
	case e.Kind == engines.Typesense && write:
		method, body = "POST", document
	case e.Kind == engines.Typesense:
		method, body = "GET", ""
		query = strings.Trim(query+"&q=*&query_by=body&per_page=50", "&")
		if strings.HasPrefix(query, "action") || r.IntN(4) == 0 {
			query = "q=*&query_by=body&per_page=50"
		}
	case write && strings.Contains(endpoint, "_bulk"):
		body = fmt.Sprintf(`{"index":{"_id":%q}}`, id) + "\n" + document + "\n"
	case write && strings.Contains(endpoint, "_update"):
		body = `{"doc":` + document + `,"doc_as_upsert":true}`
	case write:
		body = document
	case strings.Contains(endpoint, "_msearch"):
		body = pick([]string{"{}", `{"index":"ON"}`, `{"index":["OFF"]}`, `{"index":"TO"}`, "{\"index\":\"\xc1\xafN\"}"}) + "\n" +
			`{"size":50}` + "\n"
	case strings.Contains(endpoint, "template"):
		body = `{"source":"{\"size\":50}"}`
	}
	index := c.indices[r.IntN(len(c.indices))]
	if r.IntN(3) > 0 {
		index = c.plain[r.IntN(len(c.plain))]
	}
	target = "/" + index + pick(c.joints) + endpoint + pick(c.ends)
	if query != "" {
		target += "?" + query
	}
	return method, target, pick(c.types), body
}

// TestAttackPaths sends request lines that receivers may read differently, at random, directly and through a sidecar. What the engine takes for
// a write is stored in the same index either way, with no forged value in an index of the rule and nothing of ours in another one; what it
// takes for a search is answered alike, less what folds among hits of the rule's index.
func TestAttackPaths(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		on, off := "satk-on", "satk-off"
		base := serve(t, e, setup{match: on + "*"})
		direct, through := api{e, e.URL}, api{e, base}
		names := strings.NewReplacer("ON", on, "OFF", off, "TO", "satk-onto", "AS", "satk-as", "FORGED", stolen(t))
		for _, index := range []string{on, off} {
			through.create(t, index)
			for _, id := range []string{"one", "two"} {
				through.loadLines(t, index, strings.Replace(lineFor(e, index, index+id), "some words", victimText, 1))
			}
		}
		if !direct.typesense() { // which makes no index by itself
			t.Cleanup(func() { direct.tidy(t, "satk-o", "satk-as") })
		}
		direct.named(t, "satk-onto", off)
		direct.named(t, "satk-as", on)
		c, rounds := &elasticConfusion, 70 // each index that one of them makes costs the engine time
		if direct.typesense() {
			c, rounds = &typesenseConfusion, 200
		}
		if soaking() {
			rounds = 2000
		}
		sent, broken := map[string]string{}, map[string]bool{}
		random, accepted, collapsed := rand.New(rand.NewPCG(9, uint64(len(e.Kind)))), 0, 0
		for i := range rounds {
			write := i%2 == 0
			state := random.Uint64()
			var replies [2]reply
			var line string
			for side, at := range []string{e.URL, base} {
				method, target, kind, body := c.request(rand.New(rand.NewPCG(state, 1)), e, write, fmt.Sprintf("id%d-%d", i, side))
				target = strings.ReplaceAll(target, "ID", fmt.Sprintf("id%d-%d", i, side))
				line = method + " " + names.Replace(target) + " " + kind
				sent[fmt.Sprintf("id%d-%d", i, side)] = line
				head, body := "Host: h\r\nConnection: close\r\nX-HTTP-Method-Override: DELETE\r\n", names.Replace(body)
				if e.Key != "" {
					head += "X-Typesense-Api-Key: " + e.Key + "\r\n"
				}
				if kind != "" {
					head += "Content-Type: " + kind + "\r\n"
				}
				replies[side] = onTheLine(t, at, fmt.Sprintf("%s %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", method, names.Replace(target), head, len(body), body))
			}
			if replies[0].status != replies[1].status {
				if replies[1].status == 400 && bytes.HasPrefix(replies[1].body, []byte("400 Bad Request")) { // no path: a broken escape
					broken[fmt.Sprintf("id%d-0", i)] = true
					continue
				}
				t.Errorf("%s: status %d, directly %d: %.300s", line, replies[1].status, replies[0].status, replies[1].body)
				continue
			}
			if replies[0].status >= 300 {
				continue
			}
			accepted++
			if !write {
				collapsed += compareHits(t, e, line, on, replies)
			}
		}
		direct.refresh(t, on)
		direct.refresh(t, off)
		landed, held := heldIn(t, direct, on, off)
		for id, where := range landed {
			if other, ok := strings.CutSuffix(id, "-0"); ok && !broken[id] && strings.Join(landed[other+"-1"],
				",") != strings.Join(where, ",") {
				t.Errorf("%s: %s went to %s directly and to %s through us", sent[id], id, where, landed[other+"-1"])
			}
			if !strings.HasSuffix(id, "-1") {
				continue
			}
			for _, index := range where {
				values := string(held[id].source)
				if index == on && e.Kind != engines.Typesense {
					values, _ = oursStored(t, direct, index, id)
				}
				has := strings.Contains(values, `"neardup_sketch"`)
				if forgedValue := strings.Contains(values, stolen(t)); index == on && forgedValue || index == off && has && !forgedValue {
					t.Errorf("%s: %s in %s: %.200s", sent[id], id, index, values)
				}
			}
		}
		t.Logf("%d requests, %d accepted, %d documents stored by them, %d searches collapsed", rounds, accepted, len(landed), collapsed)
		if accepted < rounds/8 || len(landed) < 6 || collapsed < 1 {
			t.Error("too few were accepted to say anything")
		}
	})
}

// named makes another name for an index.
func (a api) named(t *testing.T, name, index string) {
	t.Helper()
	if a.typesense() {
		call(t, a.e, "PUT", a.e.URL+"/aliases/"+name, `{"collection_name":"`+index+`"}`).want(t, 200)
		t.Cleanup(func() { a.clear(t, "/aliases/"+name) })
		return
	}
	call(t, a.e, "POST", a.e.URL+"/_aliases", `{"actions":[{"add":{"index":"`+index+`","alias":"`+name+`"}}]}`).want(t, 200)
}

// tidy drops the indices that an engine made for names that contain one of the parts.
func (a api) tidy(t *testing.T, parts ...string) {
	got := must(exchange(http.DefaultClient, must(http.NewRequest("GET", a.e.URL+"/_cat/indices?h=index&format=json&expand_wildcards=all", nil))(t)))(t)
	var list []struct{ Index string }
	decode(t, got.body, &list)
	for _, i := range list {
		if slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(i.Index, part) }) {
			a.clear(t, "/"+url.PathEscape(i.Index))
		}
	}
}

// onTheLine sends a request as it stands and reads the answer to it. One that can't be read counts as a refusal.
func onTheLine(t *testing.T, base, raw string) reply {
	t.Helper()
	conn := must(net.Dial("tcp", strings.TrimPrefix(base, "http://")))(t)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	must(io.WriteString(conn, raw))(t)
	method, _, _ := strings.Cut(raw, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return reply{status: 400, body: []byte("400 Bad Request: " + err.Error())}
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body) // a body that is cut short is told by its status
	return reply{resp.StatusCode, resp.Header, data}
}

// compareHits compares two answers to a search hit by hit, and reports 1 if the second is collapsed.
func compareHits(t *testing.T, e *engines.Engine, line, on string, replies [2]reply) int {
	t.Helper()
	one, two := ownHits(replies[0].body), ownHits(replies[1].body)
	at := 0
	for _, hit := range two {
		i := slices.Index(one[at:], hit)
		if i < 0 {
			if !strings.Contains(replies[1].header.Get("Neardup"), "folded") || !slices.Contains(one, hit) {
				t.Errorf("%s: the hit %s is none of the engine's %v", line, hit, one)
			}
			continue
		}
		at += i + 1
	}
	for _, hit := range one {
		if !slices.Contains(two, hit) && !strings.HasPrefix(hit, on) && !strings.Contains(hit, "id") {
			t.Errorf("%s: the hit %s is folded, which is of no index of the rule's: %s", line, hit, replies[1].header.Get("Neardup"))
		}
	}
	if strings.Contains(replies[1].header.Get("Neardup"), "collapsed") {
		return 1
	}
	return 0
}

// ownHits returns the ids of all hits in an answer that are not of the requests here.
func ownHits(body []byte) (ids []string) {
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, each := range v {
				walk(each)
			}
		case map[string]any:
			for _, name := range []string{"_id", "id"} {
				if id, ok := v[name].(string); ok && strings.HasPrefix(id, "satk-") {
					ids = append(ids, id)
					return
				}
			}
			for _, key := range []string{"hits", "responses", "document", "results"} {
				walk(v[key])
			}
		}
	}
	var parsed any
	if json.Unmarshal(body, &parsed) == nil {
		walk(parsed)
	}
	return ids
}

// heldIn returns in which of the indices each document of these requests is, and the documents.
func heldIn(t *testing.T, direct api, indices ...string) (where map[string][]string, held map[string]hit) {
	t.Helper()
	where, held = map[string][]string{}, map[string]hit{}
	for _, index := range indices {
		for id, h := range stored(t, direct, index) {
			if strings.HasPrefix(id, "id") {
				where[id], held[id] = append(where[id], index), h
			}
		}
	}
	return where, held
}
