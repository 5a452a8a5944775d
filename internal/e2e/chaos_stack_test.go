package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/chaos"
	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Ways by which a client comes to the engine.
const (
	byPort  = "port"  // the sidecar's own
	byFront = "front" // a relay in front of the sidecar
	byHand  = "hand"  // past the sidecar: what happens there the engine did
)

// chaosStack is one engine with a sidecar in front of it, relays on both sides of that, and what is done to them.
type chaosStack struct {
	t    *testing.T
	e    *engines.Engine
	run  *chaos.Run
	rand *rand.Rand

	front, back *inject.Relay
	indices     map[chaos.Index]string
	addr        string // where the sidecar listens
	file        string // its configuration
	revision    int    // of that

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	logs  []string

	job *exec.Cmd // that of watch
}

const chaosPlain, chaosSkip, chaosTag, chaosHand = "chaos-plain", "chaos-skip", "chaos-tag", "nochaos-hand"

// Indices with fields that the engine hides. A job writes the documents of the first again and again; the source of the second is made
// of the fields.
const chaosHidden, chaosSynthetic = "chaos-hidden", "chaos-synthetic"

// chaosIndices are the indices of a stack, with the way on which their writers come.
func chaosIndices(e *engines.Engine, inference string) map[chaos.Index]string {
	list := map[chaos.Index]string{}
	for name, way := range map[string]string{chaosPlain: byPort, chaosSkip: byPort, chaosTag: byPort, chaosHand: byHand} {
		list[chaos.Index{Name: name}] = way
	}
	hidden, synthetic := chaos.Index{Name: chaosHidden}, chaos.Index{Name: chaosSynthetic, Settings: `,"index.mapping.source.mode":"synthetic"`}
	switch e.Name {
	case engines.Typesense:
		list[chaos.HideTypesense(hidden)] = byPort
	case engines.OpenSearchVectors:
		hidden.Settings = `,"index.knn":true`
		list[chaos.Hide(hidden, `{"type":"knn_vector","dimension":4,"space_type":"l2","method":{"name":"hnsw","engine":"lucene"}}`, "")] = byPort
	case engines.Elasticsearch:
		hidden.Params, synthetic.Params = "&_source_exclude_vectors=false", "&_source_exclude_vectors=false"
		const vector = `{"type":"dense_vector","dims":4,"similarity":"l2_norm","index_options":{"type":"hnsw"}}`
		list[chaos.Hide(hidden, vector, inference)] = byPort
		list[chaos.Hide(synthetic, vector, "")] = byFront
	default: // it has no vectors, or no way to hide them
		list[chaos.Hide(hidden, `{"type":"float","index":false}`, "")] = byPort
	}
	return list
}

// newChaosStack starts sidecar and relays, and makes the indices.
func newChaosStack(t *testing.T, e *engines.Engine, start uint64) *chaosStack {
	t.Helper()
	s := &chaosStack{t: t, e: e, rand: rand.New(rand.NewPCG(start, 5)), indices: chaosIndices(e, embeddingsOf(t, e))}
	rule := chaos.Rule{Sketcher: sketcherOf(t, seed), Fields: []string{"title", "body"}, Exact: e.Kind != engines.Typesense, Inside: e.Kind == engines.Typesense}
	s.run = chaos.NewRun(start, rule, e.Kind == engines.Typesense, func(a, b *sketch.Sketch) bool {
		is, _ := (&rerank.Profile{Threshold: 0.7, MinShingles: 8, MinWords: 50}).NearDuplicates(a, b)
		return is
	})
	s.back = inject.Start(t, e.URL)

	s.addr = freeAddress(t)
	s.front = inject.Start(t, "http://"+s.addr)

	s.file = filepath.Join(t.TempDir(), "config.yaml")
	s.configure()
	s.start()
	t.Cleanup(func() { s.end(syscall.SIGTERM) })
	for index, way := range s.indices {
		check(t, s.server(way).Make(t.Context(), index))
		api{e, e.URL}.drop(t, index.Name)
	}
	return s
}

// embeddingsOf returns the name of an inference service by which an Elasticsearch makes embeddings, empty on another engine.
func embeddingsOf(t *testing.T, e *engines.Engine) string {
	t.Helper()
	if e.Name != engines.Elasticsearch || os.Getenv("NEARDUP_OLDER") != "" {
		return ""
	}
	service := httptest.NewServer(http.HandlerFunc(chaos.Embed))
	t.Cleanup(service.Close)
	call(t, e, "POST", e.URL+"/_license/start_trial?acknowledge=true", "") // once; then it runs
	name := fmt.Sprintf("chaos-%d", rand.Uint32())
	const form = `{"service":"openai","service_settings":{"api_key":"key","model_id":"m","url":%q,"similarity":"cosine"}}`
	call(t, e, "PUT", e.URL+"/_inference/text_embedding/"+name, fmt.Sprintf(form, service.URL)).want(t, 200)
	t.Cleanup(func() {
		r, _ := requestOf(context.Background(), e, "DELETE", e.URL+"/_inference/text_embedding/"+name+"?force=true", nil)
		_, _ = exchange(http.DefaultClient, r)
	})
	return name
}

// watch runs reindex --watch on the index with hidden fields, and again whenever that ends, until it is told to end.
func (s *chaosStack) watch() (stop func()) {
	path, err := binary()
	check(s.t, err)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			cmd := exec.CommandContext(context.Background(), path, "reindex", "--config", s.file, "--index", chaosHidden, "--watch=1s")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				s.t.Error(err)
				return
			}
			s.mu.Lock()
			s.job = cmd
			s.mu.Unlock()
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_ = cmd.Wait() // a fault may end it
			}()
			select {
			case <-gone:
			case <-done:
				_ = cmd.Process.Signal(syscall.SIGTERM)
				<-gone
			}
			if strings.Contains(out.String(), "panic") || strings.Contains(out.String(), "DATA RACE") {
				s.t.Errorf("%s: reindex: %s", s.e.Kind, out.String())
			}
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// freeAddress returns an address on which a server can be started again and again: out of the range of outgoing connections.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(9000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// configure writes the configuration in its next revision, by which one limit differs.
func (s *chaosStack) configure() {
	s.revision++
	var b strings.Builder
	fmt.Fprintf(&b, "log: {format: json}\nadmin: 127.0.0.1:0\nsketch: {seed: %q}\nengines:\n", seed)
	fmt.Fprintf(&b, "  - listen: %s\n    kind: %s\n    urls: [%q]\n", s.addr, s.e.Kind, s.back.URL())
	if s.e.Key != "" {
		fmt.Fprintf(&b, "    credentials: {api_key: %s}\n", s.e.Key)
	}
	fmt.Fprintf(&b, "    limits: {max_reply: %dMB}\n    indices:\n", 32+s.revision%2)
	const bands = ", bands: auto, on_duplicate: "
	for _, rule := range []string{chaosSkip + bands + "skip", chaosTag + bands + "tag", "chaos-*"} {
		fmt.Fprintf(&b, "      - {match: %s, fields: [title, body], threshold: 0.7, min_shingles: 8, window: 1000}\n", rule)
	}
	if err := os.WriteFile(s.file, []byte(b.String()), 0o600); err != nil {
		s.t.Error(err)
	}
}

// server returns the engine as clients of the way see it.
func (s *chaosStack) server(way string) chaos.Server {
	base := map[string]string{byPort: "http://" + s.addr, byFront: s.front.URL(), byHand: s.e.URL}[way]
	return chaos.Server{Typesense: s.e.Kind == engines.Typesense, Key: s.e.Key, Base: base, Client: chaos.NewClient(20 * time.Second)}
}

// start starts the sidecar and waits until it listens.
func (s *chaosStack) start() {
	path, err := binary()
	if err != nil {
		s.t.Error(err)
		return
	}
	cmd := exec.CommandContext(context.Background(), path, "serve", "--config", s.file)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	listening, ended := make(chan struct{}), make(chan struct{})
	s.mu.Lock()
	s.cmd, s.ended = cmd, ended
	s.mu.Unlock()
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if s.note(lines.Text()) == "listening" {
				close(listening)
			}
		}
		_ = cmd.Wait() // how it ended is for whoever ended it
	}()
	select {
	case <-listening:
	case <-ended:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.t.Errorf("%s: the sidecar ended before it listened: %s", s.e.Kind, strings.Join(s.logs[max(0, len(s.logs)-5):], "\n"))
	case <-time.After(time.Minute):
		s.t.Errorf("%s: the sidecar does not listen after a minute", s.e.Kind)
	}
}

// note keeps a line of the sidecar's log and returns its message.
func (s *chaosStack) note(line string) string {
	if strings.Contains(line, "panic") || strings.Contains(line, "DATA RACE") || strings.HasPrefix(line, "goroutine ") {
		s.t.Errorf("%s: %s", s.e.Kind, line)
	}
	s.mu.Lock()
	s.logs = append(s.logs, line)
	s.mu.Unlock()
	var entry struct{ Msg string }
	_ = json.Unmarshal([]byte(line), &entry) // another line has no message
	return entry.Msg
}

// said counts the lines of the sidecar's log with the message.
func (s *chaosStack) said(message string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.logs {
		if strings.Contains(line, `"msg":"`+message) {
			n++
		}
	}
	return n
}

// signal sends the sidecar a signal.
func (s *chaosStack) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Errorf("%s: %v", sig, err)
	}
}

// end sends the sidecar a signal and waits until it has ended.
func (s *chaosStack) end(sig syscall.Signal) {
	s.signal(sig)
	select {
	case <-s.ended:
	case <-time.After(40 * time.Second):
		s.t.Errorf("%s: the sidecar has not ended 40 s after %s", s.e.Kind, sig)
		s.signal(syscall.SIGKILL)
		<-s.ended
	}
}
