package proxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/differ"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/faults"
)

// message is an HTTP message as it stands on the wire, taken apart by hand so that no library tidies it up.
type message struct {
	first   string
	header  []string // "name: value", the name in lower case
	body    string   // without its chunks
	trailer []string
}

// get returns a header's values, joined.
func (m message) get(name string) string {
	var values []string
	for _, line := range m.header {
		if key, value, _ := strings.Cut(line, ": "); key == name {
			values = append(values, value)
		}
	}
	return strings.Join(values, ", ")
}

func lowerNames(lines []string) []string {
	out := []string{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		out = append(out, strings.ToLower(name)+": "+strings.TrimSpace(value))
	}
	return out
}

// readMessage reads a message. bodyless says that none has a body, whatever its header says; open that one without a length goes on
// until the connection ends.
func readMessage(r *bufio.Reader, bodyless, open bool) (m message, err error) {
	lines, err := differ.ReadHead(r)
	if err != nil || len(lines) == 0 {
		return m, errors.Join(err, fmt.Errorf("head %q", lines))
	}
	m.first, m.header = lines[0], lowerNames(lines[1:])
	var body []byte
	switch length := m.get("content-length"); {
	case bodyless:
	case m.get("transfer-encoding") == "chunked":
		if body, err = io.ReadAll(httputil.NewChunkedReader(r)); err == nil {
			m.trailer, err = differ.ReadHead(r)
			m.trailer = lowerNames(m.trailer)
		}
	case length != "":
		n, _ := strconv.Atoi(length)
		body = make([]byte, n)
		_, err = io.ReadFull(r, body)
	case open:
		body, err = io.ReadAll(r)
	}
	m.body = string(body)
	return m, err
}

// recorder is an engine on a bare socket: it keeps each request as it came and answers the bytes it was given.
type recorder struct {
	addr  string
	mu    sync.Mutex
	got   []message
	reply string
}

func record(t *testing.T) *recorder {
	t.Helper()
	rec := &recorder{}
	rec.addr = faults.Listen(t, nil, rec.talk)
	return rec
}

func (rec *recorder) talk(conn net.Conn, _ int) {
	r := bufio.NewReader(conn)
	for {
		m, err := readMessage(r, false, false)
		if err != nil {
			return
		}
		reply := "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
		if !strings.Contains(m.first, "/_mapping/field/") { // a look-up of ours: there is no such index
			rec.mu.Lock()
			rec.got = append(rec.got, m)
			reply = rec.reply
			rec.mu.Unlock()
		}
		io.WriteString(conn, reply)
		if lower := strings.ToLower(reply); !strings.Contains(lower, "content-length:") && !strings.Contains(lower, "chunked") && !strings.Contains(lower, " 204 ") && !strings.Contains(lower, " 304 ") {
			return
		}
	}
}

func (rec *recorder) take() []message {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	got := rec.got
	rec.got = nil
	return got
}

// send writes bytes to an address and returns the messages that come back, those of status 1xx first.
func send(t *testing.T, addr, request string) []message {
	t.Helper()
	conn := expect.Value(net.Dial("tcp", addr))(t)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	expect.Value(io.WriteString(conn, request))(t)
	r := bufio.NewReader(conn)
	var list []message
	for {
		head, err := r.Peek(12)
		if err != nil {
			t.Fatalf("%q: %v", head, err)
		}
		status := string(head[9:12])
		bodyless := strings.HasPrefix(request, "HEAD ") || status[0] == '1' || status == "204" || status == "304"
		m := expect.Value(readMessage(r, bodyless, true))(t)
		if list = append(list, m); status[0] != '1' {
			return list
		}
	}
}

// hop are the headers of one connection, and Host, which names the node.
var hop = []string{"connection", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length"}

// essence is what must be the same on both sides of a proxy.
func essence(m message) string {
	var b bytes.Buffer
	first := strings.SplitN(m.first, " ", 3)
	if strings.HasPrefix(first[0], "HTTP/") {
		first = first[1:2] // the status; its words are no one's concern
	} else {
		first = first[:2]
	}
	fmt.Fprintln(&b, strings.Join(first, " "))
	lines := slices.DeleteFunc(slices.Clone(m.header), func(line string) bool {
		name, _, _ := strings.Cut(line, ":")
		return slices.Contains(hop, name)
	})
	slices.SortStableFunc(lines, func(a, b string) int { // by name: the order of one name's values counts
		a, _, _ = strings.Cut(a, ":")
		b, _, _ = strings.Cut(b, ":")
		return strings.Compare(a, b)
	})
	fmt.Fprintln(&b, strings.Join(lines, "\n"))
	if length := m.get("content-length"); length != "0" && length != "" {
		fmt.Fprintln(&b, "length", length)
	}
	fmt.Fprintf(&b, "chunked %v\n\n%s\n%s\n", m.get("transfer-encoding") == "chunked", m.body, strings.Join(m.trailer, "\n"))
	return b.String()
}

// inChunks returns a message of a head and a body in one chunk.
func inChunks(head, body string) string {
	return fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", head, len(body), body)
}
