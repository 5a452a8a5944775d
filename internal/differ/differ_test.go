package differ

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

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
		expect.Same(t, c.want, string((Masks{Members: []string{"took", "<<id>>", "cpu*_x"}}).masked(reply(c.contentType, c.body))), "%s", c.body)
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
			expect.Same(t, c.want, got, "")
		})
	}
}
