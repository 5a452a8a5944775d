package differ

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
)

// Field is one line of a header as it stands, without the white space around its value.
type Field struct{ Name, Value string }

// Reply is what came back for one request.
type Reply struct {
	Interim []string // status lines of replies of status 1xx in front of it
	Line    string   // the status line
	Header  []Field
	Framing string // how the body's end is told: "length", "chunked", "end" of the connection, or "none" where there is no body
	Body    []byte // without its chunks
	Trailer []Field
	Extra   []byte // what follows the last reply on the connection and belongs to none
	Broken  string // how the conversation ended before the reply was whole: "closed", "timeout" or another reason
	// Kept are the values that were kept by then.
	Kept map[string]string
}

// Status returns the three digits of the status, or nothing.
func (r *Reply) Status() string {
	if words := strings.Fields(r.Line); len(words) > 1 {
		return words[1]
	}
	return ""
}

// Values returns a header's values. The name is in lower case.
func (r *Reply) Values(name string) []string {
	var values []string
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			values = append(values, f.Value)
		}
	}
	return values
}

// Plain returns the body decompressed, where it is in gzip or deflate, and whether it could be.
func (r *Reply) Plain() ([]byte, bool) {
	if len(r.Body) == 0 {
		return r.Body, true
	}
	var z io.Reader
	var err error
	switch strings.Join(r.Values("content-encoding"), ",") {
	case "gzip":
		z, err = gzip.NewReader(bytes.NewReader(r.Body))
	case "deflate":
		z, err = zlib.NewReader(bytes.NewReader(r.Body))
	default:
		return r.Body, true
	}
	if err != nil {
		return nil, false
	}
	plain, err := io.ReadAll(z)
	return plain, err == nil
}

// bytes returns the request as it goes over the wire: what comes first, and the body where that is sent apart. every are lines of
// the header that it gets besides.
func (q *Request) bytes(every []string, vars map[string]string) (first, rest []byte) {
	if q.Raw != nil {
		return []byte(fill(string(q.Raw), vars)), nil
	}
	content := []byte(fill(string(q.Body), vars))
	lines := strings.Split(strings.TrimSuffix(fill(q.Head, vars), "\n"), "\n")
	if !strings.Contains(lines[0], " HTTP/") {
		lines[0] += " HTTP/1.1"
	}
	has := func(name string) bool {
		return slices.ContainsFunc(lines[1:], func(line string) bool {
			return len(line) > len(name) && strings.EqualFold(line[:len(name)+1], name+":")
		})
	}
	if !has("Host") {
		lines = slices.Insert(lines, 1, "Host: engine.example")
	}
	for _, line := range every {
		name, _, _ := strings.Cut(line, ":")
		if !has(name) && !slices.ContainsFunc(q.Without, func(w string) bool { return strings.EqualFold(w, name) }) {
			lines = append(lines, fill(line, vars))
		}
	}
	if q.Gzip {
		content = zipped(content)
		lines = append(lines, "Content-Encoding: gzip")
	}
	switch {
	case q.Chunk > 0:
		content = inChunks(content, q.Chunk)
		lines = append(lines, "Transfer-Encoding: chunked")
	case len(content) > 0 && !has("Content-Length") && !has("Transfer-Encoding"):
		lines = append(lines, "Content-Length: "+strconv.Itoa(len(content)))
	}
	if q.Wait {
		lines = append(lines, "Expect: 100-continue")
	}
	first = []byte(strings.Join(lines, "\r\n") + "\r\n\r\n")
	if q.Wait {
		return first, content
	}
	return append(first, content...), nil
}

func fill(text string, vars map[string]string) string {
	for name, value := range vars {
		text = strings.ReplaceAll(text, "<<"+name+">>", value)
	}
	return text
}

func zipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data) // a Buffer takes every write
	_ = z.Close()
	return b.Bytes()
}

func inChunks(data []byte, size int) []byte {
	var b bytes.Buffer
	for chunk := range slices.Chunk(data, size) {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(chunk), chunk)
	}
	b.WriteString("0\r\n\r\n")
	return b.Bytes()
}

// read reads one reply. bodyless says that its request is one whose reply has no body, whatever the header says. Where more is
// to be sent first, untilInterim, a reply of status 1xx ends the reading; Line is then empty.
func (r *Reply) read(in *bufio.Reader, bodyless, untilInterim bool) {
	for {
		r.Line, r.Header = "", nil
		lines, err := ReadHead(in)
		if err != nil {
			r.Broken = reason(err)
			return
		}
		r.Line, r.Header = lines[0], fields(lines[1:])
		if !strings.HasPrefix(r.Status(), "1") {
			break
		}
		r.Interim = append(r.Interim, r.Line)
		if untilInterim {
			r.Line, r.Header = "", nil
			return
		}
	}
	status := r.Status()
	r.readBody(in, bodyless || status == "204" || status == "304")
}

func (r *Reply) readBody(in *bufio.Reader, bodyless bool) {
	var err error
	length := r.Values("content-length")
	switch {
	case bodyless:
		r.Framing = "none"
	case slices.ContainsFunc(r.Values("transfer-encoding"), func(v string) bool { return strings.EqualFold(v, "chunked") }):
		r.Framing = "chunked"
		if r.Body, err = io.ReadAll(httputil.NewChunkedReader(in)); err == nil {
			var lines []string
			lines, err = ReadHead(in)
			r.Trailer = fields(lines)
		}
	case len(length) > 0:
		r.Framing = "length"
		var n int
		if n, err = strconv.Atoi(length[0]); err == nil {
			var b bytes.Buffer
			_, err = io.CopyN(&b, in, int64(n))
			r.Body = b.Bytes()
		}
	default:
		r.Framing = "end"
		r.Body, err = io.ReadAll(in)
	}
	if err != nil {
		r.Broken = reason(err)
	}
}

// ReadHead reads lines up to an empty one.
func ReadHead(in *bufio.Reader) ([]string, error) {
	var list []string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return list, err
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			return list, nil
		}
		list = append(list, line)
	}
}

func fields(lines []string) []Field {
	var list []Field
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		list = append(list, Field{name, strings.TrimSpace(value)})
	}
	return list
}

// reason says how a conversation ended, without what differs from one socket to the next.
func reason(err error) string {
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case ok && timeout.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isReset(err):
		return "closed"
	}
	return err.Error()
}
