package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/sketch"
)

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v: %.300s", err, data)
	}
}

// ownRule is the rule of the tests' configuration, as far as it concerns sketches.
func ownRule(t *testing.T) *adapters.Rule {
	t.Helper()
	scheme := sketch.DefaultScheme()
	scheme.Seed = seed
	sketcher, err := sketch.New(scheme)
	if err != nil {
		t.Fatal(err)
	}
	return &adapters.Rule{Fields: []string{"title", "body"}, Sketcher: sketcher}
}

func TestTypesenseFactsImport(t *testing.T) {
	const imported = "POST /collections/NAME/documents/import"
	fit := `{"id":"9","title":"nine of many","body":"a body of some words that are its own"}`
	checkFacts(t, factSchema, factDocuments, []fact{
		{name: "a line for each line that is not empty, errors with the raw line", steps: []step{{
			request: imported + "?action=create&return_id=true&return_doc=true", status: 200,
			body: ` {"id":"1" , "title":"dup"}` + "\n\n" + fit + "\n\r\n  \nnonsense\n" + `{"id":"8","title":"eight","body":"a body"}` +
				"\r\n" + `{"id":"7","title":7}` + "\n",
			exact: `{"code":409,"document":" {\"id\":\"1\" , \"title\":\"dup\"}","error":"A document with id 1 already exists.",` +
				`"success":false}` + "\n" +
				`{"document":{"body":"a body of some words that are its own","id":"9","title":"nine of many"},"id":"9","success":true}` +
				"\n" +
				`{"code":400,"document":"\r","error":"Bad JSON: [json.exception.parse_error.101] parse error at line 1, column 2: syntax ` +
				`error while parsing value - ` +
				`unexpected end of input; expected '[', '{', or a literal","success":false}` + "\n" +
				`{"code":400,"document":"  ","error":"Bad JSON: [json.exception.parse_error.101] parse error at line 1, column 3: syntax ` +
				`error while parsing value - ` +
				`unexpected end of input; expected '[', '{', or a literal","success":false}` + "\n" +
				`{"code":400,"document":"nonsense","error":"Bad JSON: [json.exception.parse_error.101] parse error at line 1, column 2: ` +
				`syntax error while parsing value - ` +
				`invalid literal; last read: 'no'","success":false}` + "\n" +
				`{"document":{"body":"a body","id":"8","title":"eight"},"id":"8","success":true}` + "\n" +
				`{"code":400,"document":"{\"id\":\"7\",\"title\":7}","error":"Field ` + "`title`" + ` must be a string.","success":false}`,
		}}, after: func(t *testing.T, p *duo) { p.sketched(t, "9", "8", "1") }},
		{name: "a line that is an error shows the client's own words", steps: []step{
			{request: imported, body: `{"neardup_sketch":"mine","id":"1","title":"one"}`, status: 200,
				has:   `\"id\":\"1\",\"title\":\"one\"}`,
				apart: "a value of our field is taken out of what is written"},
			{request: imported, body: `{"id":"1","title":"a \"quoted\" \\ \u00e9 one", "body":"}"}  `, status: 200,
				has: `\\u00e9 one\", \"body\":\"}\"}  "`},
			{request: imported, body: `[1]` + "\n" + `"text"` + "\n" + `{"id":"1","title":"one"} trailing` + "\n" + `{"id":"x"`,
				status: 200, has: "Bad JSON"},
		}},
		{name: "every action, ids and documents on request", steps: []step{
			{request: imported + "?action=upsert&return_id=true", body: fit, status: 200, exact: `{"id":"9","success":true}`},
			{request: imported + "?action=update&return_doc=true", body: `{"id":"9","n":5}`, status: 200, has: `"n":5`},
			{request: imported + "?action=emplace", body: `{"id":"9","n":6}` + "\n" + `{"id":"10","title":"ten"}`, status: 200,
				exact: `{"success":true}` + "\n" + `{"success":true}`},
			{request: imported + "?action=update", body: `{"id":"nope","n":5}`, status: 200, has: `"code":404`},
			{request: imported + "?action=nope", body: fit, status: 400, has: "Parameter `action` must be"},
			{request: imported, body: "", status: 200},
		}, after: func(t *testing.T, p *duo) { p.sketched(t, "9") }},
		{name: "the reply is text without a line's end behind it", after: func(t *testing.T, p *duo) {
			r := p.both(t, imported, fit)
			if got := r.header.Get("Content-Type"); got != "text/plain; charset=utf8" || string(r.body) != `{"success":true}` {
				t.Errorf("%s %q", got, r.body)
			}
		}},
		{name: "values that do not fit", steps: []step{
			{request: imported + "?dirty_values=coerce_or_reject", body: `{"id":"c","title":7,"n":"x"}`, status: 200,
				has: "must be an int32"},
			{request: imported + "?dirty_values=coerce_or_drop", body: `{"id":"c","title":7,"n":"x"}`, status: 200,
				exact: `{"success":true}`},
			{request: "GET /collections/NAME/documents/c", status: 200, exact: `{"id":"c","title":"7"}`},
			{request: imported + "?dirty_values=drop", body: `{"id":"d","title":"words that fit","body":7}`, status: 200,
				exact: `{"success":true}`},
			{request: "GET /collections/NAME/documents/d", status: 200, exact: `{"id":"d","title":"words that fit"}`},
			{request: imported + "?dirty_values=reject", body: `{"id":"e","title":7}`, status: 200, has: "must be a string"},
			{request: imported, body: `{"id":"e","title":7}`, status: 200, has: "must be a string"},
		}, after: func(t *testing.T, p *duo) { p.rightOrAbsent(t, "c", "d") }},
		{name: "a compressed body is not decoded", after: func(t *testing.T, p *duo) {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write([]byte(fit)) // a Buffer takes every write
			_ = z.Close()
			p.take(t, step{request: imported, body: b.String(), header: []string{"Content-Encoding", "gzip"}, status: 200, has: "Bad JSON",
				apart: "what is not enriched goes on as it came, what is goes on decoded"})
		}},
		{name: "a bad key and a missing collection", steps: []step{
			{request: imported, body: fit, header: []string{"X-Typesense-Api-Key", "bad"}, status: 401, has: "Forbidden"},
			{request: "POST /collections/NAME-nope/documents/import", body: fit, status: 404, has: "Not Found"},
		}},
	})
}

// rightOrAbsent fails the test if a document behind the sidecar has the sketch of another text.
func (p *duo) rightOrAbsent(t *testing.T, ids ...string) {
	t.Helper()
	rule := ownRule(t)
	for _, id := range ids {
		stored := p.direct.get(t, p.names[1], id)
		if computed, found := rule.SketchOf(stored); found != nil && (computed == nil || computed.Text != found.Text) {
			t.Errorf("%s has the sketch of another text: %s", id, stored)
		}
	}
}

// upload is an import whose body is written bit by bit.
type upload struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// begin sends the head of an import on one side. A length of -1 stands for chunks.
func (p *duo) begin(t *testing.T, i int, path, key string, length int) *upload {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.side(i).base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	framing := fmt.Sprintf("Content-Length: %d", length)
	if length < 0 {
		framing = "Transfer-Encoding: chunked"
	}
	u := &upload{t, conn, bufio.NewReader(conn)}
	u.write(p.named(i, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nX-Typesense-Api-Key: %s\r\n%s\r\n\r\n", path, key, framing)))
	return u
}

func (u *upload) write(text string) {
	u.t.Helper()
	if _, err := io.WriteString(u.conn, text); err != nil {
		u.t.Fatal(err)
	}
}

// status waits for the status line, none after the time.
func (u *upload) status(within time.Duration) string {
	u.t.Helper()
	if err := u.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		u.t.Fatal(err)
	}
	line, err := u.in.ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(line)
}

func TestTypesenseFactsUploads(t *testing.T) {
	p := newDuo(t, factSchema, factDocuments...)
	e := p.direct.e
	const path = "/collections/NAME/documents/import"
	line := func(id string) string {
		return `{"id":"` + id + `","title":"of many words","body":"of its own"}` + "\n"
	}
	for i, side := range []string{"directly", "through us"} {
		t.Run("nothing is answered before the end, "+side, func(t *testing.T) {
			u := p.begin(t, i, path, e.Key, len(line("u1"))+len(line("u2")))
			u.write(line("u1"))
			if got := u.status(200 * time.Millisecond); got != "" {
				t.Errorf("early: %s", got)
			}
			u.write(line("u2"))
			if got := u.status(10 * time.Second); got != "HTTP/1.1 200 OK" {
				t.Errorf("at the end: %s", got)
			}
		})
		t.Run("a bad key is refused before the end, "+side, func(t *testing.T) {
			u := p.begin(t, i, path, "bad", 4<<20)
			go func() { _, _ = io.WriteString(u.conn, strings.Repeat(line("u3"), 2<<20/len(line("u3")))) }() // nobody need read it
			if got := u.status(10 * time.Second); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
				t.Errorf("before the end: %s", got)
			}
		})
		t.Run("a missing collection is found out at the end, "+side, func(t *testing.T) {
			u := p.begin(t, i, "/collections/NAME-nope/documents/import", e.Key, len(line("u4"))+len(line("u5")))
			u.write(line("u4"))
			if got := u.status(200 * time.Millisecond); got != "" {
				t.Errorf("early: %s", got)
			}
			u.write(line("u5"))
			if got := u.status(10 * time.Second); !strings.HasPrefix(got, "HTTP/1.1 404 ") {
				t.Errorf("at the end: %s", got)
			}
		})
		for name, length := range map[string]int{"with its length": 5 << 20, "in chunks": -1} {
			t.Run("a body that breaks off indexes nothing, "+name+", "+side, func(t *testing.T) {
				before := p.count(t, i)
				u := p.begin(t, i, path, e.Key, length)
				text := line("b1") + line("b2")
				for len(text) < 2<<20 { // beyond what is held before it streams
					text += line(fmt.Sprint("b", len(text)))
					text += text[:min(len(text), 1<<20)]
				}
				if length < 0 {
					text = fmt.Sprintf("%x\r\n%s\r\n", len(text), text)
				}
				u.write(text)
				time.Sleep(50 * time.Millisecond)
				u.conn.Close()
				time.Sleep(150 * time.Millisecond)
				if after := p.count(t, i); after != before {
					t.Errorf("%d documents, %d before", after, before)
				}
			})
		}
	}
}

// count returns how many documents the collection of a side holds.
func (p *duo) count(t *testing.T, i int) int {
	t.Helper()
	var c struct {
		N int `json:"num_documents"`
	}
	decode(t, call(t, p.direct.e, "GET", p.direct.base+"/collections/"+p.names[i], "").want(t, 200).body, &c)
	return c.N
}
