package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// held is what a sidecar has open and in memory.
type held struct{ memory, goroutines, descriptors, processor, bytes, requests float64 }

func heldBy(t *testing.T, w *monitored) held {
	t.Helper()
	_, series := scraped(t, w.admin)
	h := held{series["process_resident_memory_bytes"], series["go_goroutines"], series["process_open_fds"], series["process_cpu_seconds_total"], 0, 0}
	for name, n := range series {
		switch {
		case strings.HasPrefix(name, "neardup_held_bytes"):
			h.bytes += n
		case strings.HasPrefix(name, "neardup_requests_in_flight"):
			h.requests += n
		}
	}
	return h
}

// leftOver waits until a sidecar holds hardly more than before, once its connections to the engine are cut, and fails the test if it never does. So
// many connections to the engine may be idle: it sees that one was cut when it uses it, or closes it after 90 seconds.
func leftOver(t *testing.T, w *monitored, relay interface{ CutAll(bool) }, before held, idle float64) {
	t.Helper()
	var now held
	if !until(func() bool {
		relay.CutAll(false)
		now = heldBy(t, w)
		return now.goroutines < before.goroutines+20 && now.descriptors < before.descriptors+20+idle && now.bytes == 0 && now.requests == 0
	}) {
		t.Errorf("before: %+v, afterwards: %+v", before, now)
	}
	t.Logf("memory %.0f MB before, %.0f MB afterwards; goroutines %v, %v; descriptors %v, %v", before.memory/1e6, now.memory/1e6, before.goroutines, now.goroutines, before.descriptors, now.descriptors)
}

// busyAs fails the test unless ordinary searches are answered and collapsed.
func busyAs(t *testing.T, through api, index, while string) {
	t.Helper()
	for range 5 {
		p := through.search(t, index, "*", 0, 10, "")
		if !strings.HasPrefix(p.outcome, "collapsed") || len(p.ids) != 10 {
			t.Errorf("a search %s: %s, %d hits", while, p.outcome, len(p.ids))
		}
	}
}

// dripping sends a text, and what is behind its header a piece at a time, until it is out, the server ends the connection, or the test ends. It
// returns what came back.
func dripping(ctx context.Context, conn net.Conn, text string, pieces int, pause time.Duration) string {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if head, body, whole := strings.Cut(text, "\r\n\r\n"); whole {
		_, _ = io.WriteString(conn, head+"\r\n\r\n")
		text = body
	}
	size := (len(text) + pieces - 1) / pieces
	for len(text) > 0 {
		n := min(size, len(text))
		if _, err := io.WriteString(conn, text[:n]); err != nil {
			break
		}
		text = text[n:]
		time.Sleep(pause)
	}
	back, _ := io.ReadAll(conn)
	return string(back)
}

// TestSlowLoris has hundreds of clients on both listeners send headers, handshakes and bodies a few bytes at a time: headers that take too long end,
// bodies get their answers, and meanwhile others are served as ever, in little memory.
func TestSlowLoris(t *testing.T) {
	const index, each = "loris-1", 100
	e := engines.Shared(t, engines.Elasticsearch)
	relay, direct := inject.Start(t, e.URL), api{e, e.URL}
	w := monitor(t, config(t, e, setup{match: "loris-*", urls: []string{relay.URL()}, limits: "{advanced: {header_timeout: 1s}}"}), nil)
	through := api{e, w.base}
	through.create(t, index, documents(t)[:100]...)
	busyAs(t, through, index, "before")
	before := heldBy(t, w)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	search := `{"size":10,"query":{"match_all":{}},"sort":["_score",{"id":"asc"}]}`
	document := documents(t)[100]
	bulk := func(n int) string {
		return fmt.Sprintf("{\"index\":{\"_index\":%q,\"_id\":\"slow%d\"}}\n{\"title\":%q,\"body\":%q}\n", index, n, document.Title, document.Body)
	}
	post := func(path, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	}
	const header = "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "
	kinds := map[string]struct {
		base, want string
		text       func(int) string
	}{
		"header":       {w.base, "", func(int) string { return header + strings.Repeat("x", 10_000) }},
		"admin header": {w.admin, "", func(int) string { return header + strings.Repeat("x", 10_000) }},
		"search":       {w.base, "Neardup: collapsed", func(int) string { return post("/"+index+"/_search", search) }},
		"bulk":         {w.base, `"errors":false`, func(n int) string { return post("/_bulk", bulk(n)) }},
	}
	var wg, admin sync.WaitGroup
	began := time.Now()
	var longest atomic.Int64
	for name, kind := range kinds {
		for i := range each {
			conn := must(net.Dial("tcp", strings.TrimPrefix(kind.base, "http://")))(t)
			if name == "admin header" { // these may take half a minute
				admin.Go(func() { dripping(ctx, conn, kind.text(i), 10_000, 20*time.Millisecond) })
				continue
			}
			wg.Go(func() {
				back := dripping(ctx, conn, kind.text(i), 100, 30*time.Millisecond)
				if kind.want == "" {
					longest.Store(max(longest.Load(), int64(time.Since(began))))
				}
				if !strings.Contains(back, kind.want) || kind.want == "" && strings.Contains(back, "200 OK") {
					t.Errorf("%s: %.300s", name, back)
				}
			})
		}
	}
	var most held
	for range 4 {
		busyAs(t, through, index, "beside slow clients")
		if status, text := statusAt(t, w.admin+"/readyz"); status != 200 {
			t.Errorf("/readyz: %d %s", status, text)
		}
		if now := heldBy(t, w); now.descriptors > most.descriptors {
			most = now
		}
		time.Sleep(200 * time.Millisecond)
	}
	wg.Wait()
	t.Logf("%v connections, %.0f kB of memory each; the last header ended after %v", most.descriptors-before.descriptors, (most.memory-before.memory)/1e3/(most.descriptors-before.descriptors), time.Duration(longest.Load()))
	if most.descriptors < before.descriptors+each*3 || most.memory > before.memory+64<<20 {
		t.Errorf("before: %+v, at the height: %+v", before, most)
	}
	if soaking() { // the admin listener lets go by itself
		admin.Wait()
	}
	stop()
	admin.Wait()
	if lacking, why := unfit(t, direct, index); lacking > 0 || why != "" {
		t.Errorf("%d lack a sketch, %s", lacking, why)
	}
	if n := len(stored(t, direct, index)); n != 100+each {
		t.Errorf("%d documents are stored, not %d", n, 100+each)
	}
	leftOver(t, w, relay, before, each)
}

// freezer passes connections on to a server. When it is frozen, it reads nothing more from those that are open then, and never closes them, as a
// machine that has vanished. New ones freeze too until it thaws.
type freezer struct {
	addr   string
	mu     sync.Mutex
	frozen bool
	conns  []*frozen
}

// frozen is a connection of the freezer.
type frozen struct {
	in, out net.Conn
	stopped atomic.Bool
}

func newFreezer(t *testing.T, target string) *freezer {
	t.Helper()
	f, host := &freezer{}, must(url.Parse(target))(t).Host
	f.addr = inject.Listen(t, nil, func(conn net.Conn, _ int) {
		out, err := net.Dial("tcp", host)
		if err != nil {
			return
		}
		c := &frozen{in: conn, out: out}
		f.mu.Lock()
		c.stopped.Store(f.frozen)
		f.conns = append(f.conns, c)
		f.mu.Unlock()
		var both sync.WaitGroup
		both.Go(func() { c.copy(out, conn) })
		both.Go(func() { c.copy(conn, out) })
		both.Wait()
	})
	t.Cleanup(func() { f.CutAll(true) })
	return f
}

// copy passes bytes on until one side ends. From the moment that the connection is frozen it does nothing at all, until it is cut.
func (c *frozen) copy(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		for c.stopped.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		_ = from.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) // so that no read takes bytes once it is frozen for long
		n, err := from.Read(buf)
		if _, werr := to.Write(buf[:n]); werr != nil {
			err = werr
		}
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			continue
		}
		if err != nil {
			_, _ = c.in.Close(), c.out.Close()
			return
		}
	}
}

func (f *freezer) freeze(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = on
	for _, c := range f.conns {
		if on {
			c.stopped.Store(true)
		}
	}
}

// CutAll ends all connections.
func (f *freezer) CutAll(reset bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		if tcp, ok := c.in.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0)
		}
		_, _ = c.in.Close(), c.out.Close()
		c.stopped.Store(false)
	}
	f.conns = nil
}

// TestHalfOpenEngine has the engine's machine vanish: connections stay open, and nothing is read or answered any more. Nobody's request holds
// anything once its client has given up, and when the engine is back, each connection that it had forgotten costs one request at most.
func TestHalfOpenEngine(t *testing.T) {
	const index, atOnce = "halfopen-1", 30
	e := engines.Shared(t, engines.Elasticsearch)
	f, direct := newFreezer(t, e.URL), api{e, e.URL}
	w := monitor(t, config(t, e, setup{match: "halfopen-*", urls: []string{"http://" + f.addr}}), nil)
	through := api{e, w.base}
	through.create(t, index, documents(t)[:100]...)
	method, path, body := through.words(t).search(index, "*", 0, 10, "", "")
	large := string(must(io.ReadAll(newBulkStream(1000)))(t)) // 8 MB: more than the system takes for a connection
	ask := func(patience time.Duration, method, path, body string) gotten {
		return attempt(t, e, w.base, sending{method: method, path: path, body: body}, patience)
	}
	together := func(test func(i int)) {
		var wg sync.WaitGroup
		for i := range atOnce {
			wg.Go(func() { test(i) })
		}
		wg.Wait()
	}
	together(func(int) { ask(within, method, path, body) }) // connections to forget
	busyAs(t, through, index, "before")
	before := heldBy(t, w)

	f.freeze(true)
	together(func(i int) {
		var got gotten
		switch i % 3 {
		case 0:
			got = ask(700*time.Millisecond, method, path, body)
		case 1:
			got = ask(700*time.Millisecond, "POST", "/_bulk", strings.ReplaceAll(large, "soak-1", index))
		default:
			got = ask(700*time.Millisecond, "GET", "/"+index+"/_source/x", "")
		}
		if got.err == nil {
			t.Errorf("an answer of nobody: %v", got)
		}
	})
	f.freeze(false)
	// A body that the engine does not take is not read either, and behind it nobody sees that its client has gone.
	if !until(func() bool { h := heldBy(t, w); return h.bytes == 0 && h.requests <= atOnce/3 }) {
		t.Errorf("the clients have given up, and it holds %+v", heldBy(t, w))
	}
	failed := 0
	until(func() bool {
		if got := ask(300*time.Millisecond, method, path, body); got.ok() {
			return true
		}
		failed++
		return false
	})
	t.Logf("%d searches met a connection that the engine had forgotten", failed)
	if failed > atOnce+1 {
		t.Errorf("%d searches failed when the engine was back", failed)
	}
	busyAs(t, through, index, "once it is back")
	if n := len(stored(t, direct, index)); n != 100 {
		t.Errorf("%d documents are stored, not 100: half a bulk was taken for a whole one", n)
	}
	leftOver(t, w, f, before, 0)
}

// TestHalfOpenClients has clients stop reading in the middle of long replies and keep their connections open: others are served as ever, and what is
// held for them is free when their connections end.
func TestHalfOpenClients(t *testing.T) {
	const index, each = "halfclient-1", 5
	e := engines.Shared(t, engines.Elasticsearch)
	relay, direct := inject.Start(t, e.URL), api{e, e.URL}
	w := monitor(t, config(t, e, setup{match: "halfclient-*", urls: []string{relay.URL()}}), nil)
	through := api{e, w.base}
	through.create(t, index, documents(t)[:60]...)
	pad := strings.Repeat("x", 100<<10)
	var lines strings.Builder
	for i, l := range leaves(rand.New(rand.NewPCG(5, 5)), 80, 0) {
		fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":\"long%d\"}}\n{\"title\":\"long\",\"body\":%q,\"pad\":%q}\n", index, i, l.Body, pad)
	}
	direct.loadLines(t, index, lines.String())
	busyAs(t, through, index, "before")
	before := heldBy(t, w)

	const long = `{"size":80,"query":{"match":{"title":"long"}}}`
	var conns []*net.TCPConn
	for i := range 2 * each {
		dialer := net.Dialer{}
		conn := must(dialer.Dial("tcp", strings.TrimPrefix(w.base, "http://")))(t).(*net.TCPConn)
		check(t, conn.SetReadBuffer(32<<10))
		path := "/" + index + "/_search" // a page, which is held until it is sent; the others pass
		if i%2 == 1 {
			path += "?neardup=off"
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Client: %d\r\nContent-Length: %d\r\n\r\n%s", path, i, len(long), long)
		_, err := io.ReadFull(conn, make([]byte, 1000))
		check(t, err)
		conns = append(conns, conn)
	}
	busyAs(t, through, index, "beside clients that do not read")
	most := heldBy(t, w)
	t.Logf("%d clients that do not read: %.1f MB of memory more, of which %.1f MB are counted as held", len(conns), (most.memory-before.memory)/1e6, most.bytes/1e6)
	if most.requests < 2*each || most.bytes < 1 || most.bytes > 128<<20 {
		t.Errorf("while they do not read: %+v", most)
	}
	for i, conn := range conns {
		if i%3 == 0 {
			check(t, conn.SetLinger(0)) // ends by RST
		}
		check(t, conn.Close())
	}
	leftOver(t, w, relay, before, 0)
}

// TestThousandConnections has a thousand clients come by TLS and stay: none is refused, all are served, and nothing of them is left.
func TestThousandConnections(t *testing.T) {
	const index, clients = "thousand-1", 1000
	e, p := engines.Shared(t, engines.Elasticsearch), newPKI(t)
	relay := inject.Start(t, e.URL)
	engine := fmt.Sprintf("listen_tls: {cert_file: %q, key_file: %q}", p.file("tls.crt"), p.file("tls.key"))
	w := monitor(t, config(t, e, setup{match: "thousand-*", urls: []string{relay.URL()}, engine: engine, limits: "{advanced: {idle_timeout: 20m}}"}), nil)
	w.base = strings.Replace(w.base, "http:", "https:", 1)
	everyClient(t, p.client(t, false))
	through := api{e, w.base}
	through.create(t, index, documents(t)[:100]...)
	busyAs(t, through, index, "before")
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	before := heldBy(t, w)

	transports, failed := make([]*http.Transport, clients), atomic.Int64{}
	each := func(atOnce int, test func(i int) error) time.Duration {
		began, turns := time.Now(), make(chan bool, atOnce)
		var wg sync.WaitGroup
		for i := range clients {
			turns <- true
			wg.Go(func() {
				defer func() { <-turns }()
				if err := test(i); err != nil && failed.Add(1) < 5 {
					t.Error(i, err)
				}
			})
		}
		wg.Wait()
		return time.Since(began)
	}
	address := strings.TrimPrefix(w.base, "https://")
	took := each(clients, func(i int) error { // all at the same time
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: p.authority.Pool(), NextProtos: []string{"http/1.1"}})
		if err != nil {
			return err
		}
		var once atomic.Bool
		transports[i] = &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			if once.Swap(true) {
				return nil, errors.New("the connection was not kept")
			}
			return conn, nil
		}}
		return nil
	})
	open := heldBy(t, w)
	path := w.base + through.words(t).document(index, documents(t)[5].ID)
	each(16, func(i int) error {
		r := must(requestOf(t.Context(), e, "GET", path, nil))(t)
		got, err := exchange(&http.Client{Transport: transports[i]}, r)
		if err == nil && got.status != 200 {
			err = fmt.Errorf("%d %.300s", got.status, got.body)
		}
		return err
	})
	busyAs(t, through, index, "beside a thousand connections")
	used := heldBy(t, w)
	t.Logf("%d handshakes in %v, %.0f a second, %.2f ms of the sidecar's processor time each; %.1f kB of memory for a connection, %.1f kB once it was used",
		clients, took.Round(time.Millisecond), clients/took.Seconds(), (open.processor-before.processor)*1e3/clients, (open.memory-before.memory)/1e3/clients, (used.memory-before.memory)/1e3/clients)
	if open.descriptors < before.descriptors+clients-20 || failed.Load() > 0 {
		t.Errorf("%v descriptors are open, %d failed", open.descriptors, failed.Load())
	}
	if used.memory > before.memory+clients*100e3 {
		t.Errorf("memory went from %.0f to %.0f MB", before.memory/1e6, used.memory/1e6)
	}
	for _, transport := range transports {
		transport.CloseIdleConnections()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	leftOver(t, w, relay, before, 0)
}
