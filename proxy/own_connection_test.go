package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/internal/differ"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/faults"
	"github.com/neardup/sidecar/proxy"
)

// hasty is a dialect of an engine that answers before it has read a body, and in which a query names the index.
type hasty struct{ elastic.Dialect }

func (d hasty) Classify(r *adapters.Request) adapters.Class {
	c := d.Dialect.Classify(r)
	c.Verbatim, c.Hasty = true, true
	if r.RawQuery != "" {
		c.Target = r.RawQuery
	}
	return c
}

// hastyEngine refuses a wrong key as soon as it has read a head, and then never answers on that connection again. It answers HEAD with a
// body. Every answer says on which connection it goes.
func hastyEngine(t *testing.T) (addr string) {
	t.Helper()
	return faults.Listen(t, nil, answerHastily)
}

func answerHastily(conn net.Conn, number int) {
	in := bufio.NewReader(conn)
	for {
		lines, err := differ.ReadHead(in)
		if err != nil {
			return
		}
		m := message{first: lines[0], header: lowerNames(lines[1:])}
		status := "200 OK"
		refused := m.get("x-key") == "wrong" || strings.Contains(m.first, "?secret")
		switch {
		case strings.HasPrefix(m.first, "HEAD"):
			status = "404 Not Found"
		case refused:
			status = "401 Unauthorized"
		default:
			length, _ := strconv.Atoi(m.get("content-length"))
			_, _ = io.CopyN(io.Discard, in, int64(length))
		}
		body := fmt.Sprintf(`{"connection":%d}`, number)
		fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
		if refused {
			_, _ = io.Copy(io.Discard, in)
			return
		}
	}
}

// TestHastyEngine checks that a client which is refused early, or asks with HEAD, does not spoil a connection for the others.
func TestHastyEngine(t *testing.T) {
	f := serveNodes(t, []string{"http://" + hastyEngine(t)}, func(e *proxy.Engine) { e.Dialect = hasty{} })
	client := &http.Client{Timeout: 30 * time.Second}
	ask := func(method, key, path, body string, want int) (connection string) {
		t.Helper()
		r := expect.Value(http.NewRequest(method, f.url+path, strings.NewReader(body)))(t)
		r.Header.Set("X-Key", key)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s %s with the key %s: %v", method, path, key, err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%s %s with the key %s: status %d, %v: %s", method, path, key, resp.StatusCode, err, data)
		}
		return string(data)
	}
	first := ask("PUT", "right", "/x/y/_alias/a", `{"n":1}`, 200)
	second := ask("PUT", "right", "/x/y/_alias/b", `{"n":1}`, 200)
	if third := ask("PUT", "right", "/x/y/_alias/c", `{"n":1}`, 200); first == second || second != third {
		t.Errorf("connections %s, %s, %s: the first request of a kind is to have its own, the others are to share", first, second, third)
	}
	for i := range 20 {
		ask("PUT", "wrong", "/x/y/_alias/a", `{"n":1}`, 401)
		ask("PUT", "wrong", "/x/y/_alias/a", `{"n":"`+strings.Repeat("x", 1<<(i%20))+`"}`, 401)
		ask("HEAD", "right", "/y/_alias/a", "", 404)
		ask("PUT", "right", "/x/y/_alias/a?secret", `{"n":1}`, 401)
		ask("PUT", "right", "/x/y/_alias/a", `{"n":1}`, 200)
		ask("GET", "right", "/x/y/_alias/a", "", 200)
	}
}
