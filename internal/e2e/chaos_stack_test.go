package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
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
	addr        string // where the sidecar listens
	file        string // its configuration
	revision    int    // of that

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	logs  []string
}

const chaosPlain, chaosSkip, chaosTag, chaosHand = "chaos-plain", "chaos-skip", "chaos-tag", "nochaos-hand"

// newChaosStack starts sidecar and relays, and makes the indices.
func newChaosStack(t *testing.T, e *engines.Engine, start uint64) *chaosStack {
	t.Helper()
	s := &chaosStack{t: t, e: e, rand: rand.New(rand.NewPCG(start, 5))}
	rule := chaos.Rule{Sketcher: sketcherOf(t, seed), Fields: []string{"title", "body"}, Exact: e.Kind != engines.Typesense}
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
	for index, way := range map[string]string{chaosPlain: byPort, chaosSkip: byPort, chaosTag: byPort, chaosHand: byHand} {
		check(t, s.server(way).Make(t.Context(), index))
		api{e, e.URL}.drop(t, index)
	}
	return s
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
