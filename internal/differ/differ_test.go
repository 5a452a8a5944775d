package differ

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const caseFile = `words in front

=== one
GET /a?b=c

=== two: all directives
@ only x y
@ not side
@ pipelined
@ mask took <<id>>
@ mask-header date
@ keep id _id
@ without x-key
@ gzip
@ chunked 3
@ crlf
POST /b HTTP/1.0
Content-Type: text/plain

line one

line two


---
@ bare
@ wait
PUT /c

text
---
@ body "\xff\n"
PUT /d
`

func TestParse(t *testing.T) {
	got, err := Parse("f", caseFile)
	if err != nil {
		t.Fatal(err)
	}
	want := []Case{
		{Name: "one", Where: "f:3", Requests: []Request{{Head: "GET /a?b=c\n"}}},
		{Name: "two: all directives", Where: "f:6", Only: []string{"x", "y"}, Not: []string{"side"}, Pipelined: true, Requests: []Request{
			{
				Head: "POST /b HTTP/1.0\nContent-Type: text/plain\n", Body: []byte("line one\r\n\r\nline two\r\n"), Gzip: true, Chunk: 3, Without: []string{"x-key"},
				Keep: []Keep{{"id", "_id"}}, Masks: Masks{Members: []string{"took", "<<id>>"}, Headers: []string{"date"}},
			},
			{Head: "PUT /c\n", Body: []byte("text"), Wait: true},
			{Head: "PUT /d\n", Body: []byte("\xff\n")},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"=== a\n\n=== b\nGET /", "=== a\n@ nonsense\nGET /", "=== a\n@ chunked x\nGET /", "=== a\n@ keep x\nGET /", "=== a\n@ body x\nGET /", "=== a\n@ body \"x\"\nGET /\n\ny"} {
		if _, err := Parse("f", bad); err == nil {
			t.Errorf("%q is no case file, and no error", bad)
		}
	}
}

func TestForSide(t *testing.T) {
	c := Case{Only: []string{"x"}, Not: []string{"s"}}
	if c.For("y", "t") || c.For("x", "s") || !c.For("x", "t") {
		t.Error("only and not do not hold")
	}
}

func TestRequestBytes(t *testing.T) {
	for _, c := range []struct {
		q           Request
		first, rest string
	}{
		{Request{Head: "GET /<<v>>"}, "GET /value HTTP/1.1\r\nHost: engine.example\r\n\r\n", ""},
		{Request{Head: "PUT /\nhost: x\nA:b\n", Body: []byte("<<v>>")}, "PUT / HTTP/1.1\r\nhost: x\r\nA:b\r\nContent-Length: 5\r\n\r\nvalue", ""},
		{Request{Head: "PUT /\nHost: x\nContent-Length: 9\n", Body: []byte("abc")}, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", ""},
		{Request{Head: "PUT /\nHost: x\n", Body: []byte("abcde"), Chunk: 3}, "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", ""},
		{Request{Head: "PUT / HTTP/1.0\nHost: x\n", Body: []byte("abc"), Wait: true}, "PUT / HTTP/1.0\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n", "abc"},
		{Request{Raw: []byte("any <<v>>\n")}, "any value\n", ""},
	} {
		first, rest := c.q.bytes(nil, map[string]string{"v": "value"})
		if string(first) != c.first || string(rest) != c.rest {
			t.Errorf("%q: got %q and %q, want %q and %q", c.q.Head, first, rest, c.first, c.rest)
		}
	}
}

func TestHeaderOfEveryRequest(t *testing.T) {
	every := []string{"X-Key: <<v>>"}
	for _, c := range []struct {
		q    Request
		want string
	}{
		{Request{Head: "GET /"}, "Host: engine.example\r\nX-Key: value\r\n\r\n"},
		{Request{Head: "GET /\nx-key: other"}, "Host: engine.example\r\nx-key: other\r\n\r\n"},
		{Request{Head: "GET /", Without: []string{"x-key"}}, "Host: engine.example\r\n\r\n"},
	} {
		if first, _ := c.q.bytes(every, map[string]string{"v": "value"}); string(first) != "GET / HTTP/1.1\r\n"+c.want {
			t.Errorf("%q without %q: got %q", c.q.Head, c.q.Without, first)
		}
	}
}

// server answers each request, a head and a body of the length given, with what reply returns.
func server(t *testing.T, reply func(request string) string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				for {
					lines, err := readHead(r)
					if err != nil {
						return
					}
					in := Reply{Header: fields(lines[1:])}
					if strings.Contains(strings.Join(in.Values("expect"), ""), "100") {
						_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
					}
					if in.readBody(r, len(in.Values("content-length")) == 0); in.Broken != "" {
						return
					}
					answer := reply(lines[0] + "\n" + string(in.Body))
					if _, _ = io.WriteString(conn, answer); strings.Contains(answer, "close") {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func TestRunner(t *testing.T) {
	addr := server(t, func(request string) string {
		switch {
		case strings.HasPrefix(request, "HEAD "):
			return "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"
		case strings.Contains(request, "/chunks"):
			return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX:  y \r\n\r\n3\r\nabc\r\n0\r\nZ: 1\r\n\r\n"
		case strings.Contains(request, "/end"):
			return "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nto the end"
		case strings.Contains(request, "/cut"):
			return "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nabc"
		case strings.Contains(request, "/more"):
			return ok("") + "more"
		}
		return ok(request)
	})
	r := Runner{Addr: addr, Timeout: 5 * time.Second}
	cases, err := Parse("f", `=== kept
@ keep v id
PUT /a

{"x":{"id":"7"},"id":8}

=== used
GET /<<v>>
---
GET /chunks
---
HEAD /
---
GET /end

=== cut
GET /cut
---
GET /never

=== more
GET /more

=== waits
@ wait
PUT /w

body

=== pipelined
@ pipelined
GET /1
---
GET /2

=== other kind
@ only other
GET /
`)
	if err != nil {
		t.Fatal(err)
	}
	exchanges, err := r.Run(cases)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range exchanges {
		for _, reply := range x.Replies {
			got = append(got, fmt.Sprintf("%s: %v %s %s %q %v %q %s", x.Case.Name, reply.Interim, reply.Status(), reply.Framing, reply.Body, reply.Trailer, reply.Extra, reply.Broken))
		}
	}
	want := []string{
		`kept: [] 200 length "PUT /a HTTP/1.1\n{\"x\":{\"id\":\"7\"},\"id\":8}\n" [] "" `,
		`used: [] 200 length "GET /7 HTTP/1.1\n" [] "" `,
		`used: [] 200 chunked "abc" [{Z 1}] "" `,
		`used: [] 200 none "" [] "" `,
		`used: [] 200 end "to the end" [] "" `,
		`cut: [] 200 length "abc" [] "" closed`,
		`cut: []   "" [] "" closed`,
		`more: [] 200 length "" [] "more" `,
		`waits: [HTTP/1.1 100 Continue] 200 length "PUT /w HTTP/1.1\nbody\n" [] "" `,
		`pipelined: [] 200 length "GET /1 HTTP/1.1\n" [] "" `,
		`pipelined: [] 200 length "GET /2 HTTP/1.1\n" [] "" `,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMasks(t *testing.T) {
	kept := map[string]string{"id": "abc"}
	reply := func(contentType, body string) *Reply {
		return &Reply{Header: []Field{{"content-type", contentType}}, Body: []byte(body), Kept: kept}
	}
	for _, c := range []struct{ contentType, body, want string }{
		{"json", `{"took":3,"a":"took","took" : "x\"y", "b":{"took":[1,{"c":"]"}]}}`, `{"took":‹took›,"a":"took","took" : ‹took›, "b":{"took":‹took›}}`},
		{"json", `{"a":"\"took\":3","took":{"took":1},"x":"abc/abc"}`, `{"a":"\"took\":3","took":‹took›,"x":"‹id›/‹id›"}`},
		{"json", `{"took":1}{"took":true}` + "\n" + `{"took":`, `{"took":‹took›}{"took":‹took›}` + "\n" + `{"took":‹took›`},
		{"json", `{"cpu1_x":1,"cpu12_x":2,"cpu1_y":3}`, `{"cpu1_x":‹cpu*_x›,"cpu12_x":‹cpu*_x›,"cpu1_y":3}`},
		{"json", `not JSON "took`, `not JSON "took`},
		{"application/yaml", "---\ntook: 3\nlist:\n- took: \"x\"\n  a: took\n", "---\ntook: ‹took›\nlist:\n- took: ‹took›\n  a: took\n"},
	} {
		if got, _ := (Masks{Members: []string{"took", "<<id>>", "cpu*_x"}}).masked(reply(c.contentType, c.body)); string(got) != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.body, got, c.want)
		}
	}
	m := Masks{Members: []string{"took", "n", "x"}, Headers: []string{"content-type", "date"}}
	if diff := cmp.Diff([]string{"header content-type", "n", "took"}, m.Hidden(reply("p", `{"took":1,"n":2}`))); diff != "" {
		t.Error(diff)
	}
}

func TestCompare(t *testing.T) {
	base := "HTTP/1.1 200 OK\r\ncontent-type: a\r\nX: 1\r\nX: 2\r\ncontent-length: 10\r\n\r\n{\"took\":1}"
	zippedBody := func(body string, level int) string {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, level)
		_, _ = io.WriteString(z, body)
		_ = z.Close()
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", b.Len(), b.String())
	}
	edit := func(old, new string) string { return strings.Replace(base, old, new, 1) }
	for _, c := range []struct {
		name, direct, through string
		want                  []string // minor ones with a tilde in front
	}{
		{"the same", base, base, nil},
		{"masked", base, edit("10\r\n\r\n{\"took\":1}", "11\r\n\r\n{\"took\":12}"), nil},
		{"status", base, edit("200 OK", "201 OK"), []string{"status"}},
		{"phrase and protocol", base, edit("HTTP/1.1 200 OK", "HTTP/1.0 200 Fine"), []string{"~protocol", "~phrase"}},
		{"interim", "HTTP/1.1 100 C\r\n\r\n" + base, base, []string{"interim"}},
		{"value", base, edit("X: 2", "X: 3"), []string{"header x"}},
		{"order of values", base, edit("X: 1\r\nX: 2", "X: 2\r\nX: 1"), []string{"header x"}},
		{"a value less", base, edit("X: 2\r\n", ""), []string{"header x", "~order"}},
		{"case of names", base, edit("content-type", "Content-Type"), []string{"~names"}},
		{"order of names", base, edit("content-type: a\r\nX: 1\r\nX: 2", "X: 1\r\nX: 2\r\ncontent-type: a"), []string{"~order"}},
		{"case of a value", base, edit("content-type: a", "content-type: A"), []string{"header content-type"}},
		{"connection", base, edit("X: 1", "Connection: close\r\nX: 1"), []string{"connection"}},
		{"white space", base, edit("10\r\n\r\n{\"took\":1}", "11\r\n\r\n{\"took\": 1}"), []string{"body"}},
		{"framing", base, edit("content-length: 10\r\n\r\n{\"took\":1}", "transfer-encoding: chunked\r\n\r\na\r\n{\"took\":1}\r\n0\r\n\r\n"), []string{"~framing"}},
		{"broken off", base, edit("content-length: 10", "content-length: 11"), []string{"conversation"}},
		{"other compression", zippedBody("abcabc", 0), zippedBody("abcabc", 9), []string{"compressed"}},
		{"compressed", zippedBody("abcabc", 9), zippedBody("abcabd", 9), []string{"body"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var replies [2]Reply
			for i, text := range []string{c.direct, c.through} {
				replies[i].read(bufio.NewReader(strings.NewReader(text)), false, false)
			}
			var got []string
			for _, d := range Compare(&replies[0], &replies[1], Masks{Members: []string{"took"}}) {
				aspect := d.Aspect
				if d.Minor {
					aspect = "~" + aspect
				}
				got = append(got, aspect)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCompareWithoutBodies compares lengths of bodies that are not there.
func TestCompareWithoutBodies(t *testing.T) {
	var replies [2]Reply
	for i, length := range []string{"5", "6"} {
		text := "HTTP/1.1 200 OK\r\nContent-Length: " + length + "\r\n\r\n"
		replies[i].read(bufio.NewReader(strings.NewReader(text)), true, false)
	}
	got := Compare(&replies[0], &replies[1], Masks{})
	if len(got) != 1 || got[0].Aspect != "header content-length" || got[0].Minor {
		t.Errorf("got %v", got)
	}
}

func TestRearranged(t *testing.T) {
	a, b, c := &Reply{Body: []byte(`{"a":1,"b":2}`)}, &Reply{Body: []byte(`{"b":2,"a":1}`)}, &Reply{Body: []byte(`{"b":2,"a":2}`)}
	if !Rearranged(a, b, Masks{}) || Rearranged(a, c, Masks{}) {
		t.Error("the same bytes in another order are not told from others")
	}
}
