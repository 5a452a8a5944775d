package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/neardup/sidecar/internal/engines"
)

// faultKind is a kind of request, as the table of failures has it.
type faultKind struct {
	name string
	// ask returns the request. Each has a number of its own, by which writes are told from one another.
	ask func(n int) sending
	// documents is how many such a request writes, to index.
	documents int
	index     string
	// own says that the engine knows no such request.
	own bool
	// counted is the kind as neardup_requests_total has it.
	counted string
	// path of the requests to the engine that are the client's own; any other is a look-up of ours.
	path string

	healthy, through gotten // what comes when nothing is wrong: from the engine, and through us
}

// search reports whether what comes may be collapsed.
func (k *faultKind) search() bool { return k.counted == "search" }

// asks reports whether a request to the engine with this target may be the client's own.
func (k *faultKind) asks(target string) bool {
	path, _, _ := strings.Cut(k.path, "?")
	return strings.HasPrefix(target, path) || k.search() && strings.HasPrefix(target, "/multi_search") // a search of ours in its place
}

func (k *faultKind) writes() bool { return k.documents > 0 }

// lonely is a document that no other is like, of size bytes or some more.
func lonely(id string, size int) string {
	words := make([]string, 0, 16)
	for i := range cap(words) {
		words = append(words, fmt.Sprintf("w%s%d", id, i))
	}
	text := strings.Join(words, " ")
	body, _ := json.Marshal(map[string]string{"id": id, "title": "title of " + id, "body": strings.Repeat(text+" ", size/100+1)})
	return string(body)
}

func idsFrom(n, count int) (ids []string) {
	for i := range count {
		ids = append(ids, fmt.Sprintf("n%dd%d", n, i))
	}
	return ids
}

// faultKinds are all kinds of request; id is that of a document which is there.
func faultKinds(e *engines.Engine, id string) []*faultKind {
	fixed := func(name, counted string, r sending) *faultKind {
		return &faultKind{name: name, counted: counted, ask: func(int) sending { return r }, path: r.path}
	}
	typesense := e.Kind == engines.Typesense
	bulky := func(name, index string, count, size int) *faultKind {
		path := "/_bulk"
		if typesense {
			path = "/collections/" + index + "/documents/import?action=create"
		}
		ask := func(n int) sending {
			var b strings.Builder
			for _, id := range idsFrom(n, count) {
				if !typesense {
					fmt.Fprintf(&b, `{"create":{"_index":%q,"_id":%q}}`+"\n", index, id)
				}
				b.WriteString(lonely(id, size) + "\n")
			}
			return sending{"POST", path, b.String(), nil}
		}
		return &faultKind{name: name, counted: "write", index: index, path: path, documents: count, ask: ask}
	}
	write := &faultKind{name: "write", counted: "write", index: faultNew, path: "/" + faultNew + "/_doc/", documents: 1}
	write.ask = func(n int) sending {
		id := idsFrom(n, 1)[0]
		if typesense {
			return sending{"POST", write.path, lonely(id, 200), nil}
		}
		return sending{"PUT", write.path + id, lonely(id, 200), nil}
	}
	question := fixed("question", "similar", sending{"GET", "/_neardup/" + faultSkip + "/similar/" + id, "", nil})
	question.own, question.path = true, ""
	kinds := []*faultKind{
		write, bulky("bulk", faultNew, 10, 300), bulky("long bulk", faultNew, 40, 30_000), bulky("bulk with skip", faultSkip, 10, 300), question,
	}
	zipped := []string{"Accept-Encoding", "gzip"}
	if typesense {
		write.path = "/collections/" + faultNew + "/documents"
		one, of := `{"collection":"`+faultIndex+`","q":"the","query_by":"body"}`, "/collections/"+faultIndex+"/documents/"
		search := of + "search?q=the&query_by=title,body&per_page=10"
		return append(kinds,
			fixed("pass", "pass", sending{"PUT", "/collections/" + faultIndex + "/synonyms/one", `{"synonyms":["zig","zag"]}`, nil}),
			fixed("read", "read", sending{"GET", of + id, "", nil}),
			fixed("search", "search", sending{"GET", search, "", nil}),
			fixed("search, compressed", "search", sending{"GET", search, "", zipped}),
			fixed("search of several", "search", sending{"POST", "/multi_search", `{"searches":[` + one + `,` + one + `]}`, nil}),
			fixed("cursor page", "search", sending{"GET", search + "&page=2", "", nil}))
	}
	query := `{"size":10,"query":{"match":{"body":"the"}},"sort":["_score",{"id":"asc"}]}`
	after := `{"size":10,"query":{"match":{"body":"the"}},"sort":[{"id":"asc"}],"search_after":["` + id + `"]}`
	return append(kinds,
		fixed("pass", "pass", sending{"POST", "/_analyze", `{"analyzer":"standard","text":"a text of some words"}`, nil}),
		fixed("read", "read", sending{"GET", "/" + faultIndex + "/_doc/" + id, "", nil}),
		fixed("search", "search", sending{"POST", "/" + faultIndex + "/_search", query, nil}),
		fixed("search, compressed", "search", sending{"POST", "/" + faultIndex + "/_search", query, zipped}),
		fixed("search of several", "search", sending{"POST", "/" + faultIndex + "/_msearch", "{}\n" + query + "\n{}\n" + query + "\n", nil}),
		fixed("cursor page", "search", sending{"POST", "/" + faultIndex + "/_search", after, nil}))
}

// sight is what a client sees.
type sight int

const (
	asEver   sight = iota // what it sees when nothing is wrong: a search may come without being collapsed
	engines_              // the engine's reply to the client's own request, byte for byte but for our fields, whatever it says
	badGate               // 502 in the engine's shape
	cutOff                // the connection ends before the reply is whole
	other                 // anything else: never right
)

// String implements fmt.Stringer.
func (s sight) String() string {
	return [...]string{"as ever", "the engine's reply", "502", "cut off", "something else"}[s]
}

// sees says what the client of a kind of request got. back is the reply that was given in place of the engine's, if any.
func (k *faultKind) sees(g gotten, back []byte) sight {
	switch {
	case g.err != nil:
		return cutOff
	case k.sameAsEver(g):
		return asEver
	case len(back) > 0 && k.sameAs(back, g):
		return engines_
	case g.status == http.StatusBadGateway && inShape(g):
		return badGate
	}
	return other
}

// sameAsEver compares a reply with the one that comes when nothing is wrong.
func (k *faultKind) sameAsEver(g gotten) bool {
	for _, well := range []gotten{k.through, k.healthy} {
		a, b := plainOf(unzipped(g)), plainOf(unzipped(well))
		if g.status == well.status && (a == b || lessOurs([]byte(b)) == a) {
			return true
		}
	}
	return false
}

// unzipped returns a reply's body decompressed, as far as it can be.
func unzipped(g gotten) []byte {
	if g.header.Get("Content-Encoding") != "gzip" {
		return g.body
	}
	z, err := gzip.NewReader(bytes.NewReader(g.body))
	if err != nil {
		return g.body
	}
	data, _ := io.ReadAll(z)
	return data
}

// sameAs reports whether a client got the reply that was given, less our fields, or the answer to a question its status.
func (k *faultKind) sameAs(back []byte, g gotten) bool {
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(back)), nil)
	if err != nil {
		return false
	}
	body, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == g.status && (k.own || bytes.Equal(body, g.body) || lessOurs(body) == string(g.body))
}

// inShape reports whether an error of ours looks as the engine's do.
func inShape(g gotten) bool {
	var shape struct {
		Message string // of Typesense
		Error   struct{ Reason string }
		Status  int
	}
	err := json.Unmarshal(g.body, &shape)
	return err == nil && (shape.Message != "" || shape.Error.Reason != "" && shape.Status == g.status)
}
