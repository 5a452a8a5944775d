package e2e

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// oddDocuments are documents in forms that no encoder of ours would write, by their ids.
var oddDocuments = map[string]string{
	"plain":    `{"title":"the ferry was late again on the way to Saltmere","body":"one two three four five six seven eight nine"}`,
	"spaced":   `{ "title" : "the ferry was late" , "body":"again"  ,"n" : 1.10e0 }`,
	"order":    `{"z":1,"body":"in an order of its own","a":{"c":[{"y":null}, {"y":2}],"b":true},"title":"zulu first"}`,
	"escapes":  `{"title":"\u0065scaped \/ \ud83d\ude00 \"quoted\" \\ \t","body":"caf\u00e9 and café, \u003cb\u003e<b>"}`,
	"numbers":  `{"title":"large and small","body":"numbers","big":9007199254740993,"tiny":1e-7,"minus":-0.0}`,
	"list":     `{"title":"a list","body":"of texts and of nothing","tags":[],"none":null,"empty":{}}`,
	"wordless": `{"title":"…","body":"—"}`,
	"prefixed": `{"title":"a field that looks like ours","body":"and is not","neardup_like":"the client's own"}`,
	"nested":   `{"title":"ours but not at the top","body":"stays","deep":{"neardup_sketch":"the client's own"}}`,
}

// brokenLines are documents of several lines, which no bulk takes.
var brokenLines = map[string]string{
	"lines": "{\n  \"title\": \"over several\",\r\n\t\"body\": \"lines of text, each with its own end\"\n}",
	"ahead": "  \n{\"title\":\"blanks ahead\",\"body\":\"and behind of it all\" }\n ",
}

// put writes documents one by one.
func (f *fixture) put(t *testing.T, a api, index string, list map[string]string) {
	t.Helper()
	for id, document := range list {
		if a.typesense() {
			with := must(jsonedit.Set([]byte(strings.TrimSpace(document)), "id", jsonedit.AppendString(nil, id)))(t)
			call(t, a.e, "POST", a.base+"/collections/"+index+"/documents?action=upsert", string(with)).want(t, 201)
			continue
		}
		call(t, a.e, "PUT", a.base+"/"+index+"/_doc/"+url.PathEscape(id), document).want(t, 201)
	}
}

func sources(all map[string]hit) map[string]string {
	out := map[string]string{}
	for id, h := range all {
		out[id] = string(h.source)
	}
	return out
}

// TestRemove enriches odd documents, some on their way in and some by a repair, and takes our fields out again: each has to be what the
// engine made of the same bytes without us.
func TestRemove(t *testing.T) {
	onEach(t, true, []string{engines.OpenSearch, engines.Typesense}, removeAfter)
}

func removeAfter(t *testing.T, e *engines.Engine) {
	const plain, index = "removed-plain", "removed-1"
	direct := api{e, e.URL}
	f := &fixture{direct: direct}
	for _, name := range []string{plain, index} {
		direct.create(t, name)
	}
	file := config(t, e, setup{match: index, threshold: 0.64, rule: "bands: auto\nnative: true"})
	f.put(t, direct, plain, oddDocuments)
	f.put(t, direct, plain, brokenLines)
	succeed(t, "setup", "--config", file)
	ways, through := [2]map[string]string{{}, {}}, api{e, serveFile(t, file)}
	for n, id := range slices.Sorted(maps.Keys(oddDocuments)) {
		ways[n%2][id] = oddDocuments[id]
	}
	ways[0]["lines"], ways[1]["ahead"] = brokenLines["lines"], brokenLines["ahead"]
	f.put(t, through, index, ways[0])
	f.put(t, direct, index, ways[1])
	succeed(t, "verify", "--config", file, "--repair")
	before := stored(t, direct, index)
	for id, h := range before {
		if o := rule.OursOf(h.source); o.Cluster == "" || id != "wordless" && (o.Sketch == "" || len(o.Bands) == 0) {
			t.Fatalf("%s was not enriched: %s", id, h.source)
		}
	}
	foreign := config(t, e, setup{match: "elsewhere", fields: "title"}) // no rule for the index any more
	out, code := sidecar(t, "remove", "--config", foreign, "--index", index, "--dry-run")
	if code != 0 || number(t, out, "hold something") != len(before) {
		t.Errorf("a dry run ended with %d: %s", code, out)
	}
	if out, code = sidecar(t, "remove", "--config", foreign, "--index", index); code != 1 || !strings.Contains(out, "--yes") {
		t.Errorf("without --yes it ended with %d: %s", code, out)
	}
	expect.Must(t, versions(before), versions(stored(t, direct, index)), "versions after it")
	out, code = sidecar(t, "remove", "--config", foreign, "--index", index, "--yes")
	if code != 0 || number(t, out, "cleaned") != len(before) {
		t.Fatalf("remove ended with %d: %s", code, out)
	}
	same(t, sources(stored(t, direct, plain)), sources(stored(t, direct, index)), "the documents are not what they were")
	checkDeclarations(t, direct, index, out)
	after := versions(stored(t, direct, index))
	if out, code = sidecar(t, "remove", "--config", foreign, "--index", index, "--yes"); code != 0 || number(t, out,
		"held something") != 0 {
		t.Errorf("again it ended with %d: %s", code, out)
	}
	same(t, after, versions(stored(t, direct, index)), "again it wrote")
}

// checkDeclarations holds what the engine declares against what remove said of it.
func checkDeclarations(t *testing.T, direct api, index, out string) {
	t.Helper()
	path := "/" + index + "/_mapping"
	if direct.typesense() {
		path = "/collections/" + index
	}
	declared := string(call(t, direct.e, "GET", direct.base+path, "").want(t, 200).body)
	for _, field := range []string{rule.SketchField, rule.BandsField, rule.ClusterField} {
		same(t, strings.Contains(out, field), strings.Contains(declared, `"`+field+`"`), "%s: that it is declared; remove said %s, and the engine %s", field, out, declared)
	}
}
