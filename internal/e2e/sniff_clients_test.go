// The Go client of Elasticsearch takes minutes to compile: make test-all has this tag, make test does without it.

//go:build goclient

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
)

// cluster is an engine that says it has three nodes, each at an address of its own.
type cluster struct {
	url      string
	nodes    []string     // the addresses of the nodes
	bypassed atomic.Int64 // requests that came to a node, and so past the sidecar
	asked    atomic.Int64 // requests for the nodes' addresses
}

func newCluster(t *testing.T, e *engines.Engine) *cluster {
	t.Helper()
	behind, err := url.Parse(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{}
	forward := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true},
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(behind)
			p.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(r *http.Response) error {
			if strings.HasPrefix(r.Request.URL.Path, "/_nodes") {
				c.asked.Add(1)
				return c.multiply(r)
			}
			return nil
		},
	}
	for range 3 {
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.bypassed.Add(1)
			forward.ServeHTTP(w, r)
		}))
		t.Cleanup(node.Close)
		c.nodes = append(c.nodes, strings.TrimPrefix(node.URL, "http://"))
	}
	whole := httptest.NewServer(forward)
	t.Cleanup(whole.Close)
	c.url = whole.URL
	return c
}

// multiply makes three nodes of one.
func (c *cluster) multiply(r *http.Response) error {
	var reply map[string]any
	if err := json.NewDecoder(r.Body).Decode(&reply); err != nil {
		return err
	}
	nodes := map[string]any{}
	for _, node := range reply["nodes"].(map[string]any) {
		for i, address := range c.nodes {
			node.(map[string]any)["http"] = map[string]any{"bound_address": []string{address}, "publish_address": address}
			text, err := json.Marshal(node)
			if err != nil {
				return err
			}
			nodes[fmt.Sprintf("node-%d", i)] = json.RawMessage(text)
		}
	}
	reply["nodes"] = nodes
	body, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// sniffed is how many documents each client writes: enough that every node it knows gets some.
const sniffed = 12

// sniffers are clients that ask for the nodes and then write documents s-0, s-1, … one by one, by engine.
var sniffers = map[string]map[string]func(t *testing.T, url, index string) (used []string){
	engines.Elasticsearch: {"go": elasticGoSniffs, "python": pythonSniffs(elasticPython)},
	engines.OpenSearch:    {"go": openSearchGoSniffs, "python": pythonSniffs(openSearchPython)},
}

// TestSniffingClients holds the official clients to what they do by default, which is to go past the sidecar, and with
// rewrite_sniffing, which is not to.
func TestSniffingClients(t *testing.T) {
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} {
		for name, sniff := range sniffers[kind] {
			t.Run(kind+" "+name+" by default", func(t *testing.T) {
				s := newSniffing(t, kind, "sniff-default-"+name, "")
				used := sniff(t, s.us, s.index)
				reached := slices.ContainsFunc(used, func(host string) bool { return slices.Contains(s.behind.nodes, host) })
				if sketched := s.sketched(t); !reached || s.behind.bypassed.Load() == 0 || sketched == sniffed {
					t.Errorf("the client should go past us, and used %v: %d requests did, %d of %d documents have a sketch",
						used, s.behind.bypassed.Load(), sketched, sniffed)
				}
			})
			t.Run(kind+" "+name, func(t *testing.T) {
				s := newSniffing(t, kind, "sniff-"+name, "    rewrite_sniffing: true\n")
				used := sniff(t, s.us, s.index)
				ours := []string{strings.TrimPrefix(s.us, "http://"), strings.TrimPrefix(also(s.us), "http://")}
				if strangers := slices.DeleteFunc(used, func(host string) bool { return slices.Contains(ours, host) }); len(strangers) > 0 {
					t.Errorf("the client talks to %v, we are %v", strangers, ours)
				}
				if s.behind.asked.Load() == 0 {
					t.Error("the client never asked for the nodes")
				}
				if past, sketched := s.behind.bypassed.Load(), s.sketched(t); past > 0 || sketched != sniffed {
					t.Errorf("%d requests went past us, %d of %d documents have a sketch", past, sketched, sniffed)
				}
			})
		}
	}
}

// sniffing is a sidecar in front of a cluster, and an index there.
type sniffing struct {
	behind    *cluster
	direct    api
	us, index string
}

func newSniffing(t *testing.T, kind, index, keys string) sniffing {
	t.Helper()
	e := engines.Shared(t, kind)
	s := sniffing{behind: newCluster(t, e), direct: api{e, e.URL}, index: index}
	s.direct.drop(t, index)
	s.direct.create(t, index)
	file := config(t, e, setup{match: "sniff-*", urls: []string{s.behind.url}})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "    indices:\n", keys+"    indices:\n", 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	s.us = serveFile(t, file)
	return s
}

// sketched returns how many of the documents that a client wrote have a sketch.
func (s sniffing) sketched(t *testing.T) (n int) {
	t.Helper()
	for i := range sniffed {
		if adapters.HasSketch(s.direct.get(t, s.index, fmt.Sprintf("s-%d", i))) {
			n++
		}
	}
	return n
}

// also returns another address of ours. A client with two keeps a list of them from the start.
func also(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }

func sniffedDocument(i int) string {
	return fmt.Sprintf(`{"title":"what the ferry number %d brought","body":"%d crates of pears and a letter for the mayor"}`, i, i)
}

func elasticGoSniffs(t *testing.T, url, index string) []string {
	var used hosts
	client, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{url}, Transport: &used})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.DiscoverNodes(); err != nil {
		t.Fatal(err)
	}
	used.forget()
	for i := range sniffed {
		r, err := client.Index(index, strings.NewReader(sniffedDocument(i)), client.Index.WithDocumentID(fmt.Sprintf("s-%d", i)))
		if err != nil || r.IsError() {
			t.Fatal(err, r)
		}
		_ = r.Body.Close()
	}
	return used.list()
}

// openSearchGoSniffs gives the client time: it looks at the nodes it has found before it uses them.
func openSearchGoSniffs(t *testing.T, url, index string) []string {
	var used hosts
	client, err := opensearchapi.NewClient(opensearchapi.Config{
		Client: opensearch.Config{Addresses: []string{url, also(url)}, Transport: &used}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Client.DiscoverNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 4*time.Second && len(used.list()) < 4; time.Sleep(10 * time.Millisecond) {
		if _, err := client.Info(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	used.forget()
	for i := range sniffed {
		_, err := client.Index(t.Context(), opensearchapi.IndexReq{
			Index: index, DocumentID: fmt.Sprintf("s-%d", i), Body: strings.NewReader(sniffedDocument(i))})
		if err != nil {
			t.Fatal(err)
		}
	}
	return used.list()
}

// hosts is a transport that notes the hosts it is used for.
type hosts struct {
	mu   sync.Mutex
	seen []string
}

// RoundTrip implements http.RoundTripper.
func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	if !slices.Contains(h.seen, r.URL.Host) {
		h.seen = append(h.seen, r.URL.Host)
	}
	h.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

func (h *hosts) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = nil
}

func (h *hosts) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen)
}

// The programs take a URL, an index and documents, one in each line of standard input, and print the nodes that they use.
const (
	elasticPython = `
import json, sys
from elasticsearch import Elasticsearch
client = Elasticsearch(sys.argv[1], sniff_on_start=True, sniff_before_requests=True, sniff_on_node_failure=True,
                       min_delay_between_sniffing=0)
for i, line in enumerate(sys.stdin):
    client.index(index=sys.argv[2], id="s-%d" % i, document=json.loads(line))
print(json.dumps(["%s:%d" % (node.host, node.port) for node in client.transport.node_pool.all()]))
`
	openSearchPython = `
import json, sys
from opensearchpy import OpenSearch
client = OpenSearch(sys.argv[1], sniff_on_start=True, sniff_on_connection_fail=True, sniffer_timeout=0.01)
for i, line in enumerate(sys.stdin):
    client.index(index=sys.argv[2], id="s-%d" % i, body=json.loads(line))
print(json.dumps([connection.host.split("//")[1] for connection in client.transport.connection_pool.connections]))
`
)

func pythonSniffs(program string) func(t *testing.T, url, index string) []string {
	return func(t *testing.T, url, index string) []string {
		cmd := exec.CommandContext(t.Context(), clients.Python(t), "-c", program, url, index)
		var lines strings.Builder
		for i := range sniffed {
			lines.WriteString(sniffedDocument(i) + "\n")
		}
		var stderr bytes.Buffer
		cmd.Stdin, cmd.Stderr = strings.NewReader(lines.String()), &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, stderr.Bytes())
		}
		var known []string
		if err := json.Unmarshal(out, &known); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return known
	}
}
