package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// engineText returns a configuration with one entry in front of the engine for each pair of name and rule.
func engineText(e *engines.Engine, listen map[string]string, match string, entries ...[2]string) string {
	var b strings.Builder
	b.WriteString("log: {format: json}\nadmin: 127.0.0.1:0\nsketch: {seed: " + seed + "}\nengines:\n")
	for _, entry := range entries {
		fmt.Fprintf(&b, "  - name: %s\n    listen: %q\n    kind: %s\n    urls: [%q]\n    limits: %s\n    indices: [{match: %q, fields: [title, body], window: 1000, %s}]\n",
			entry[0], listen[entry[0]], e.Kind, e.URL, patient(""), match, entry[1])
	}
	return b.String()
}

// hammer is a client that goes on asking over connections it keeps.
type hammer struct {
	e    *engines.Engine
	base string
	http *http.Client

	asked, wrote atomic.Int64
	mu           sync.Mutex
	failures     []string
	acknowledged []string // ids
}

func (h *hammer) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures = append(h.failures, fmt.Sprintf(format, args...))
}

// do sends a request once: nothing is tried again.
func (h *hammer) do(ctx context.Context, method, path, body string) (int, []byte, error) {
	r, err := requestOf(ctx, h.e, method, h.base+path, io.NopCloser(strings.NewReader(body))) // no GetBody: the transport can't repeat it
	if err != nil {
		return 0, nil, err
	}
	r.ContentLength = int64(len(body))
	if body == "" {
		r.Body = nil
	}
	got, err := exchange(h.http, r)
	return got.status, got.body, err
}

// page searches once and returns the ids of the hits, or what went wrong.
func (h *hammer) page(index string) string {
	method, path, body := "POST", "/"+index+"/_search", `{"size":50,"query":{"match_all":{}},"sort":[{"id":"asc"}],"_source":false}`
	if h.e.Kind == engines.Typesense {
		method, path, body = "GET", "/collections/"+index+"/documents/search?q=*&query_by=title,body&per_page=50&include_fields=id", ""
	}
	status, data, err := h.do(context.Background(), method, path, body)
	if err != nil || status != 200 {
		return fmt.Sprint(status, err, string(data))
	}
	return idsInReply(data)
}

// search asks until ctx ends; each answer must be one of those known.
func (h *hammer) search(ctx context.Context, index string, known map[string]bool) {
	for ctx.Err() == nil {
		if got := h.page(index); !known[got] {
			h.fail("search: %s", got)
		}
		h.asked.Add(1)
	}
}

// idsInReply returns the ids of a reply's hits.
func idsInReply(data []byte) string {
	var body struct {
		Hits json.RawMessage
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return err.Error()
	}
	var elastic struct {
		Hits []struct {
			ID string `json:"_id"`
		}
	}
	var typesense []struct{ Document struct{ ID string } }
	var ids []string
	if json.Unmarshal(body.Hits, &elastic) == nil {
		for _, hit := range elastic.Hits {
			ids = append(ids, hit.ID)
		}
	} else if json.Unmarshal(body.Hits, &typesense) == nil {
		for _, hit := range typesense {
			ids = append(ids, hit.Document.ID)
		}
	}
	return strings.Join(ids, " ")
}

// write writes documents until ctx ends, one by one and in bulk.
func (h *hammer) write(ctx context.Context, index, prefix string) {
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(2 * time.Millisecond) // the engine has other clients
		ids := []string{fmt.Sprintf("%s%d", prefix, i)}
		method, path, body := "PUT", "/"+index+"/_doc/"+ids[0], `{"id":"`+ids[0]+`","title":"a title","body":"some words of it"}`
		if h.e.Kind == engines.Typesense {
			method, path = "POST", "/collections/"+index+"/documents"
		}
		if i%2 == 1 {
			body = ""
			for n := range 20 {
				id := fmt.Sprintf("%s%d-%d", prefix, i, n)
				ids = append(ids[:n], id)
				if h.e.Kind != engines.Typesense {
					body += `{"index":{"_index":"` + index + `","_id":"` + id + `"}}` + "\n"
				}
				body += `{"id":"` + id + `","title":"title ` + id + `","body":"some words of it"}` + "\n"
			}
			method, path = "POST", "/_bulk"
			if h.e.Kind == engines.Typesense {
				path = "/collections/" + index + "/documents/import"
			}
		}
		status, data, err := h.do(context.Background(), method, path, body)
		h.wrote.Add(1)
		if err != nil || status != 200 && status != 201 || strings.Contains(string(data), `"errors":true`) || strings.Contains(string(data), `"success":false`) {
			h.fail("write: %d %v %.200s", status, err, data)
			continue
		}
		h.mu.Lock()
		h.acknowledged = append(h.acknowledged, ids...)
		h.mu.Unlock()
	}
}

// TestReloadUnderLoad reloads 40 times and more, each time with another rule, while clients search and write over connections that they keep,
// without ever trying again. No request fails, each search is answered as one of the rules says, what was acknowledged is stored, and
// the first search after a reload is answered by the rule of the day.
func TestReloadUnderLoad(t *testing.T) {
	onEach(t, true, []string{engines.Elasticsearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		index, written := "o-reload-1", "o-reload-2"
		direct := api{e, e.URL}
		for _, name := range []string{index, written} {
			direct.create(t, name)
		}
		rules := []string{"threshold: 0.7", "threshold: 0.7, dry_run: true", "threshold: 0.95"}
		listen := map[string]string{"one": "127.0.0.1:0"}
		text := func(i int) string { return engineText(e, listen, "o-reload-*", [2]string{"one", rules[i%len(rules)]}) }
		d := daemonOf(t, text(0))
		base := d.base(t, "one")
		few := slices.DeleteFunc(documents(t), func(d corpus.Document) bool { return !strings.HasPrefix(d.ID, "a00") })
		api{e, base}.load(t, index, few)

		h := &hammer{e: e, base: base, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
		known, of := map[string]bool{}, make([]string, len(rules))
		for i := range rules {
			d.reload(t, text(i))
			of[i] = h.page(index)
			known[of[i]] = true
		}
		expect.Must(t, len(rules), len(known), "rules that can be told apart: %v", of)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() { h.search(ctx, index, known) })
			wg.Go(func() { h.write(ctx, written, fmt.Sprintf("w%d-", i)) })
		}
		for i, end := 0, time.Now().Add(time.Minute); i < 40 || (h.asked.Load() < 40 || h.wrote.Load() < 40) && time.Now().Before(end); i++ {
			d.reload(t, text(i+1))
			same(t, of[(i+1)%len(rules)], h.page(index), "the page after reload %d", i)
		}
		cancel()
		wg.Wait()
		for i, failure := range h.failures {
			if i < 10 {
				t.Error(failure)
			}
		}
		if h.asked.Load() < 40 || h.wrote.Load() < 40 {
			t.Errorf("only %d searches and %d writes", h.asked.Load(), h.wrote.Load())
		}
		t.Logf("%d searches and %d writes during the reloads, %d failed", h.asked.Load(), h.wrote.Load(), len(h.failures))
		allStored(t, e, written, h.acknowledged)
		if failed := d.with("configuration not reloaded"); len(failed) > 0 {
			t.Error(failed[0])
		}
		d.signal(t, syscall.SIGTERM)
		same(t, 0, d.ended(t), "exit code")
	})
}

// storedIn returns how many documents an index holds.
func storedIn(t *testing.T, e *engines.Engine, index string) int {
	t.Helper()
	path := "/collections/" + index
	if e.Kind != engines.Typesense {
		call(t, e, "POST", e.URL+"/"+index+"/_refresh", "").want(t, 200)
		path = "/" + index + "/_count"
	}
	var body struct {
		Count     int
		Documents int `json:"num_documents"`
	}
	decode(t, call(t, e, "GET", e.URL+path, "").want(t, 200).body, &body)
	return body.Count + body.Documents
}

// allStored checks directly that an index holds as many documents as were acknowledged, and a share of them one by one.
func allStored(t *testing.T, e *engines.Engine, index string, ids []string) {
	t.Helper()
	direct := api{e, e.URL}
	same(t, len(ids), storedIn(t, e, index), "stored documents, of those acknowledged")
	for i := 0; i < len(ids); i += 1 + len(ids)/50 {
		direct.get(t, index, ids[i])
	}
}

// serviceManager plays the part of one that opens sockets for a service and is told how it does.
type serviceManager struct {
	told *net.UnixConn
	env  []string
}

func newServiceManager(t *testing.T) *serviceManager {
	t.Helper()
	// A short path: that of a socket may have 107 bytes.
	dir := must(os.MkdirTemp("", "n"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	conn := must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))(t)
	t.Cleanup(func() { conn.Close() })
	return &serviceManager{conn, []string{"NOTIFY_SOCKET=" + path}}
}

// next returns what the service says next, leaving out that it is alive unless that is waited for.
func (m *serviceManager) next(t *testing.T, alive bool) string {
	t.Helper()
	buffer := make([]byte, 4096)
	for {
		check(t, m.told.SetReadDeadline(time.Now().Add(20*time.Second)))
		n := must(m.told.Read(buffer))(t)
		if said := string(buffer[:n]); alive == (said == "WATCHDOG=1") {
			return said
		}
	}
}

// run starts a sidecar as a service, with sockets by the names given.
func (m *serviceManager) run(t *testing.T, text string, sockets map[string]net.Listener) *daemon {
	t.Helper()
	d := &daemon{file: filepath.Join(t.TempDir(), "config.yaml")}
	d.write(t, text)
	path := must(binary())(t)
	// The pid must be known before the program runs.
	d.cmd = exec.CommandContext(context.Background(), "sh", "-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0" "$@"`, path, "serve", "--config", d.file)
	var names []string
	for name, l := range sockets {
		file := must(l.(*net.TCPListener).File())(t)
		defer file.Close()
		names = append(names, name)
		d.cmd.ExtraFiles = append(d.cmd.ExtraFiles, file)
	}
	d.cmd.Env = append(os.Environ(), m.env...)
	if len(names) > 0 {
		d.cmd.Env = append(d.cmd.Env, fmt.Sprintf("LISTEN_FDS=%d", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	}
	d.start(t)
	return d
}

func passable(t *testing.T) net.Listener {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

var reloadingAt = regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=([0-9]+)$`)

// TestReloadTellsTheServiceManager walks through what a service of Type=notify-reload has to say: ready with all sockets open, reloading
// with the time and ready again, alive, stopping.
func TestReloadTellsTheServiceManager(t *testing.T) {
	m := newServiceManager(t)
	m.env = append(m.env, "WATCHDOG_USEC=200000")
	at := port(t)
	d := m.run(t, embeddedText("one", at, ""), nil)
	if said := m.next(t, false); !strings.HasPrefix(said, "READY=1\nSTATUS=serving 1 engine") {
		t.Errorf("at first it says %q", said)
	}
	if !listens("http://" + at) {
		t.Error("ready, and it does not listen")
	}
	for _, text := range []string{embeddedText("one", at, ", threshold: 0.8"), "engines: ["} {
		d.reload(t, text)
		said := reloadingAt.FindStringSubmatch(m.next(t, false))
		if said == nil {
			t.Fatal("it does not say when it reloads")
		}
		if said := m.next(t, false); !strings.HasPrefix(said, "READY=1\n") {
			t.Errorf("behind a reload it says %q", said)
		}
	}
	m.next(t, true)
	d.signal(t, syscall.SIGTERM)
	if said := m.next(t, false); !strings.HasPrefix(said, "STOPPING=1") {
		t.Errorf("at the end it says %q", said)
	}
	same(t, 0, d.ended(t), "exit code")
}

// TestReloadKeepsPassedSockets passes sockets, by the engine's name and by address: the sidecar takes connections that came before it did,
// goes on with the sockets through reloads, and the next sidecar takes them over without a connection refused.
func TestReloadKeepsPassedSockets(t *testing.T) {
	m := newServiceManager(t)
	named, matched := passable(t), passable(t)
	// By name the configured address does not count; the other has it.
	text := func(rule string) string {
		return embeddedText("one", port(t), rule) +
			fmt.Sprintf("  - {kind: embedded, name: two, listen: %q, indices: [{match: a, fields: [t]}]}\n", matched.Addr())
	}
	one, two := "http://"+named.Addr().String(), "http://"+matched.Addr().String()
	early := make(chan int, 1)
	go func() { status, _ := statusAt(t, one+"/"); early <- status }()
	sockets := map[string]net.Listener{"one": named, "neardup.socket": matched}
	for range 2 {
		d := m.run(t, text(""), sockets)
		m.next(t, false)
		select {
		case status := <-early:
			same(t, 200, status, "the status of who came before the sidecar")
			early <- status
		case <-time.After(10 * time.Second):
			t.Fatal("who came before the sidecar waits")
		}
		d.reload(t, text(", threshold: 0.8"))
		for _, base := range []string{one, two} {
			if status, _ := statusAt(t, base+"/"); status != 200 {
				t.Errorf("%s answers %d", base, status)
			}
		}
		d.signal(t, syscall.SIGTERM)
		same(t, 0, d.ended(t), "exit code")
		if !listens(one) || !listens(two) {
			t.Error("between two sidecars a connection is refused")
		}
		for said := ""; !strings.HasPrefix(said, "STOPPING=1"); {
			said = m.next(t, false)
		}
	}
}
