package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/engines"
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
	return listen(t, answerHastily)
}

func answerHastily(conn net.Conn, number int) {
	in := bufio.NewReader(conn)
	for {
		lines, err := readHead(in)
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
		r, err := http.NewRequest(method, f.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
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

// TestHeadsThatAreTooLong sends heads to an engine that closes the connection once it finds one too long, the rest of it unread: its
// answer reaches the client, by TLS too, which is dialled in the transport's own way.
func TestHeadsThatAreTooLong(t *testing.T) {
	authority := engines.NewAuthority(t, "a")
	pair, err := tls.X509KeyPair(authority.Issue(t, engines.Certificate{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"http", "https"} {
		addr := listen(t, func(conn net.Conn, _ int) {
			if scheme == "https" {
				conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}})
				defer conn.Close()
			}
			if _, err := io.ReadFull(conn, make([]byte, 4<<10)); err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 8\r\n\r\ntoo long")
			}
		})
		var dialled atomic.Int64
		f := serveNodes(t, []string{scheme + "://" + addr}, func(e *proxy.Engine) {
			transport := proxy.NewTransport()
			transport.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dialled.Add(1)
				return (&tls.Dialer{Config: &tls.Config{RootCAs: authority.Pool()}}).DialContext(ctx, network, addr)
			}
			e.Transport = transport
		})
		rounds := effort.Rounds(10)
		for _, size := range []int{5_000, 20_000, 50_000, 100_000} {
			for range rounds {
				for _, body := range []string{"", "{}"} {
					got := do(t, "POST", f.url+"/_cat/x?"+strings.Repeat("a", size), body)
					if got.status != 400 || got.body != "too long" {
						t.Fatalf("%s: a head of %d bytes and a body of %d: %d %s", scheme, size, len(body), got.status, got.body)
					}
				}
			}
		}
		if n := int(dialled.Load()); scheme == "https" && n != 8*rounds {
			t.Errorf("dialled %d times in its own way, want %d", n, 8*rounds)
		}
	}
}
