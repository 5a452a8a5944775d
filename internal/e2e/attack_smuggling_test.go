package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// smuggled is what one client sends on one connection. What is hidden in it only a receiver sees who reads the
// bytes in another way than they are to be read.
type smuggled struct {
	name, raw string
	// want are the requests that an engine may see: method, the path's last part and body.
	want []string
}

// smugglings are requests whose end, length or number receivers are known to disagree about (RFC 9112, sections 2, 6, 7 and 11).
func smugglings(path, key string) []smuggled {
	const chunks = "Transfer-Encoding: chunked\r\n"
	host := "Host: h\r\n" + key
	hidden := "DELETE " + path + "hidden HTTP/1.1\r\n" + host + "\r\n"
	post := "POST " + path + "post HTTP/1.1\r\n" + host
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
	return []smuggled{
		{"CL and TE", post + length(len("0\r\n\r\n"+hidden)) + chunks + "\r\n0\r\n\r\n" + hidden, []string{"POST post ",
			"DELETE hidden "}},
		{"TE and CL", post + chunks + length(3) + "\r\n" + "8\r\nSMUGGLED\r\n0\r\n\r\n", []string{"POST post SMUGGLED"}},
		{"CL twice", post + length(0) + length(len(hidden)) + "\r\n" + hidden, nil},
		{"CL in a list", post + "Content-Length: 0, 5\r\n\r\n" + hidden, nil},
		{"CL signed", post + "Content-Length: +5\r\n\r\nabcde", nil},
		{"CL below zero", post + "Content-Length: -1\r\n\r\n" + hidden, nil},
		{"space before colon", post + "Content-Length : 5\r\n\r\nabcde", nil},
		{"space before TE colon", post + "Transfer-Encoding : chunked\r\n" + length(4) + "\r\n0\r\n\r\n" + hidden, nil},
		{"folded TE", post + "Transfer-Encoding:\r\n chunked\r\n" + length(4) + "\r\n0\r\n\r\n", []string{"POST post "}},
		{"TE unknown", post + "Transfer-Encoding: xchunked\r\n" + length(0) + "\r\n" + hidden, nil},
		{"TE twice", post + chunks + "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden, nil},
		{"TE in a list", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + hidden, nil},
		{"TE with a vertical tab", post + "Transfer-Encoding: \x0bchunked\r\n" + length(4) + "\r\n0\r\n\r\n" + hidden, nil},
		{"chunk extension", post + chunks + "\r\n2;a=b\r\nab\r\n0;x\r\n\r\n", []string{"POST post ab"}},
		{"chunk extension with a line end", post + chunks + "\r\n2;a\nb\r\nab\r\n0\r\n\r\n" + hidden, nil},
		{"chunk size with a prefix", post + chunks + "\r\n0x2\r\nab\r\n0\r\n\r\n" + hidden, nil},
		{"chunk longer than said", post + chunks + "\r\n1\r\nabc\r\n0\r\n\r\n" + hidden, nil},
		{"chunk ended by a bare LF", post + chunks + "\r\n2\nab\r\n0\r\n\r\n" + hidden, nil},
		{"trailer of a length", post + chunks + "Trailer: Content-Length\r\n\r\n2\r\nab\r\n0\r\nContent-Length: 99\r\n\r\n", nil},
		{"trailer that was not told", post + chunks + "\r\n2\r\nab\r\n0\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n",
			[]string{"POST post ab"}},
		{"bare LF", "GET " + path + "get HTTP/1.1\nHost: h\n\n", []string{"GET get "}},
		{"bare CR in a value", "GET " + path + "get HTTP/1.1\r\n" + host + "X: a\rTransfer-Encoding: chunked\r\n\r\n", nil},
		{"space in front", "GET " + path + "get HTTP/1.1\r\n X: a\r\n" + host + "\r\n", nil},
		{"body of a GET", "GET " + path + "get HTTP/1.1\r\n" + host + length(len(hidden)) + "\r\n" + hidden, []string{"GET get " +
			strings.Replace(hidden, path, "", 1)}},
		{"1.0 with chunks", "POST " + path + "post HTTP/1.0\r\n" + host + chunks + "\r\n0\r\n\r\n" + hidden, []string{"POST post "}},
		{"1.0 kept alive", "GET " + path + "a HTTP/1.0\r\n" + host + "Connection: keep-alive\r\n\r\nGET " + path + "b HTTP/1.0\r\n" +
			host + "\r\n", []string{"GET a ", "GET b "}},
		{"closed by the client", "GET " + path + "a HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n" + hidden, []string{"GET a "}},
		{"prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", []string{"PRI * "}},
		{"upgrade to h2c", "GET " + path + "get HTTP/1.1\r\n" + host +
			"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n",
			[]string{"GET get "}},
		{"upgrade to a websocket", "GET " + path + "get HTTP/1.1\r\n" + host +
			"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n", []string{"GET get "}},
		{"pipelined", "GET " + path + "a HTTP/1.1\r\n" + host + "\r\n" + post + length(2) + "\r\nabGET " + path + "b HTTP/1.1\r\n" +
			host + "Connection: close\r\n\r\n", []string{"GET a ", "POST post ab", "GET b "}},
		{"expect", post + "Expect: 100-continue\r\n" + length(2) + "\r\nab", []string{"POST post ab"}},
		{"absolute form", "GET http://other" + path + "get HTTP/1.1\r\n" + host + "\r\n", []string{"GET get "}},
		{"a line in the path", "GET " + path + "get%0d%0aX:%20y HTTP/1.1\r\n" + host + "\r\n", []string{"GET get%0d%0aX:%20y "}},
		{"lines in front", "\r\n\r\nGET PATHget HTTP/1.1\r\n" + host + "\r\n", nil},
	}
}

// sendAll sends each of the requests on a connection of its own, all at once, and returns what comes back on each.
func sendAll(t *testing.T, base string, list []smuggled) []string {
	answers := make([]string, len(list))
	var all sync.WaitGroup
	for i, c := range list {
		all.Go(func() { answers[i] = onTheWire(t, strings.TrimPrefix(base, "http://"), c.raw) })
	}
	all.Wait()
	for i, c := range list {
		if strings.Contains(answers[i], " 101 ") {
			t.Errorf("%s: the connection became another protocol's: %.200q", c.name, answers[i])
		}
	}
	return answers
}

// TestAttackSmuggling sends such requests over bare connections to a sidecar in front of an engine that tells what it sees. It sees
// the requests that the client made and no other, or none where the sidecar refuses; and whoever asks next gets their own answer.
func TestAttackSmuggling(t *testing.T) {
	for kind, path := range map[string]string{engines.Elasticsearch: "/_cat/", engines.Typesense: "/presets/"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // it is waiting
			w := &witness{seen: map[string][]string{}}
			server := httptest.NewServer(w)
			t.Cleanup(server.Close)
			e := &engines.Engine{Kind: kind, URL: server.URL, Key: "k"}
			base := serve(t, e, setup{match: "satk-*"})
			var list []smuggled
			for i := range smugglings(path, "") { // each with a path of its own, which says by whom the engine is asked
				list = append(list, smugglings(fmt.Sprintf("%s%d~", path, i), "")[i])
			}
			answers := sendAll(t, base, list)
			for j := range 30 { // the next ones on the connections to the engine
				mark := fmt.Sprintf("%sown-%d", path, j)
				expect.Must(t, "GET "+mark, string(call(t, e, "GET", base+mark, "").body), "what the next client gets")
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			for i, c := range list {
				mine := fmt.Sprintf("%s%d~", path, i)
				seen := w.seen[mine]
				if c.name == "prior knowledge" { // which has no path
					seen = w.seen[""]
				}
				for k := range seen {
					seen[k] = strings.ReplaceAll(seen[k], mine, "")
				}
				refusals := len(refused.FindAllString(answers[i], -1))
				if len(seen) == 0 && refusals == 1 { // always good
					continue
				}
				same(t, c.want, seen, "%s: what the engine saw, and the client got %.200q", c.name, answers[i])
				if got := strings.Count(answers[i], "HTTP/1.") - strings.Count(answers[i], " 100 Continue") - refusals; got > len(c.want) {
					t.Errorf("%s: %d answers to %d requests: %.300q", c.name, got, len(c.want), answers[i])
				}
			}
			if others := w.seen[""]; len(others) > 1 {
				t.Errorf("the engine saw %q", others)
			}
		})
	}
}

// refused is the beginning of an answer by which a server takes no request.
var refused = regexp.MustCompile(`HTTP/1\.[01] (4|501|505)`)

// witness is an engine that remembers what it sees, by the beginning of the path, and says which request it answers.
type witness struct {
	mu   sync.Mutex
	seen map[string][]string
}

// ServeHTTP implements http.Handler.
func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if path, _, own := strings.Cut(r.RequestURI, "own-"); err == nil && !own { // one that broke off is no request
		mine, _, ok := strings.Cut(path, "~")
		if ok {
			mine += "~"
		} else {
			mine = ""
		}
		w.mu.Lock()
		w.seen[mine] = append(w.seen[mine], r.Method+" "+r.RequestURI+" "+string(body))
		w.mu.Unlock()
	}
	if up := r.Header.Get("Upgrade"); up != "" { // as an engine that would take it up
		if conn, buffer, err := http.NewResponseController(out).Hijack(); err == nil {
			fmt.Fprintf(buffer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", up)
			_ = buffer.Flush()
			_ = conn.Close()
			return
		}
	}
	fmt.Fprint(out, r.Method+" "+r.RequestURI)
}

// onTheWire sends bytes as they stand over one connection and returns all that comes back until the other side closes, or is silent for so
// long that no further answer is on its way.
func onTheWire(t *testing.T, addr, raw string) string {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, raw) // a server that refuses early may reset the connection
	var b strings.Builder
	in := bufio.NewReader(conn)
	for wait := 6 * time.Second; ; wait = 2 * time.Second {
		_ = conn.SetReadDeadline(time.Now().Add(wait))
		piece := make([]byte, 4096)
		n, err := in.Read(piece)
		b.Write(piece[:n])
		if err != nil {
			return b.String()
		}
	}
}

// lineFor returns a document in the form in which several are written.
func lineFor(e *engines.Engine, index, id string) string {
	line := fmt.Sprintf(`{"id":%q,"title":"news","body":"of some words"}`+"\n", id)
	if e.Kind == engines.Typesense {
		return line
	}
	return fmt.Sprintf(`{"index":{"_index":%q,"_id":%q}}`+"\n", index, id) + line
}

// TestAttackHops names headers in Connection that are none of one connection: a proxy that took them away would make another request of it,
// one without its key, its length or its type. Status and answer are the engine's own, and a search is collapsed as it is without.
func TestAttackHops(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index := "satk-hops"
		direct := api{e, e.URL}
		base := serve(t, e, setup{match: index})
		api{e, base}.create(t, index)
		for _, id := range []string{"a", "b"} {
			direct.loadLines(t, index, strings.Replace(lineFor(e, index, id), "some words", victimText, 1))
		}
		write, search, body := "POST /"+index+"/_doc/c", "POST /"+index+"/_search", `{"size":5}`
		key := ""
		if e.Kind == engines.Typesense {
			write, search, body = "POST /collections/"+index+"/documents?action=upsert",
				"GET /collections/"+index+"/documents/search?q=*&query_by=body", ""
			key = "X-Typesense-Api-Key: " + e.Key + "\r\n"
		}
		ask := func(base, request, connection, body string) reply {
			return onTheLine(t, base, fmt.Sprintf("%s HTTP/1.1\r\nHost: h\r\n%sContent-Type: application/json\r\nNeardup-Control: threshold=0.5\r\n"+
				"Accept: application/json\r\nAuthorization: Basic eDp5\r\nX-Opaque-Id: 7\r\nConnection: %s\r\nContent-Length: %d\r\n\r\n%s", request, key, connection, len(body), body))
		}
		document := fmt.Sprintf(`{"id":"c","title":"news","body":%q}`, craftedText)
		for _, connection := range []string{
			"close", "keep-alive, Authorization", "X-Typesense-Api-Key", "close, x-typesense-api-key", "Content-Length", "Content-Type", "Accept",
			"Neardup-Control", "Host", "X-Opaque-Id, Authorization, Content-Type", "Transfer-Encoding", "Neardup", "TE, Trailer",
			",,close", "\"Content-Type\"", "Connection",
		} {
			for _, r := range [][2]string{{write, document}, {search, body}} {
				one, two := ask(e.URL, r[0], connection, r[1]), ask(base, r[0], connection, r[1])
				if made := one.status == 201 && two.status == 200; one.status != two.status && !made {
					t.Errorf("Connection: %s, %s: status %d, directly %d: %.300s", connection, r[0], two.status, one.status, two.body)
				}
				if outcome := two.header.Get("Neardup"); r[0] == search && !strings.Contains(outcome, "folded=1") {
					t.Errorf("Connection: %s, the search is not collapsed: %s", connection, outcome)
				}
			}
			direct.refresh(t, index)
			values, found := oursStored(t, direct, index, "c")
			if !found || !strings.Contains(values, "neardup_sketch") {
				t.Errorf("Connection: %s: what is written has no sketch: %.300s", connection, values)
			}
		}
	})
}
