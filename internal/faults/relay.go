package faults

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Relay passes connections on to a server and does harm by a script. It is safe for concurrent use.
type Relay struct {
	addr, target string

	mu       sync.Mutex
	listener net.Listener
	script   Script
	links    map[*link]bool
	seen     []*Exchange
	wait     sync.WaitGroup
}

// Start returns a relay to the server at a URL that ends with the test.
func Start(t testing.TB, target string) *Relay {
	t.Helper()
	r := &Relay{links: map[*link]bool{}, target: strings.TrimPrefix(target, "http://")}
	if err := r.listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	r.addr = r.listener.Addr().String()
	t.Cleanup(func() {
		r.Refuse(false)
		r.wait.Wait()
	})
	return r
}

// URL returns the relay's address as http URL.
func (r *Relay) URL() string { return "http://" + r.addr }

// Script sets what happens to requests from now on; nil lets all pass.
func (r *Relay) Script(s Script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = s
}

// Seen returns what came by since the last Forget, in the order in which it began. What is still under way is in it as far as
// it is.
func (r *Relay) Seen() []Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Exchange, len(r.seen))
	for i, x := range r.seen {
		list[i] = *x
	}
	return list
}

// Forget empties what Seen returns.
func (r *Relay) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = nil
}

// Bites returns how many faults did harm since the last Forget.
func (r *Relay) Bites() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.seen {
		if x.Bit {
			n++
		}
	}
	return n
}

// Open returns how many connections are open.
func (r *Relay) Open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.links)
}

// CutAll ends all connections, by RST or by FIN, and lets new ones in.
func (r *Relay) CutAll(reset bool) {
	r.mu.Lock()
	links := slices.Collect(maps.Keys(r.links))
	r.mu.Unlock()
	for _, l := range links {
		l.close(reset)
	}
}

// Refuse closes the port, so that no new connection can be made, and all connections.
func (r *Relay) Refuse(reset bool) {
	r.mu.Lock()
	if r.listener != nil {
		_ = r.listener.Close()
		r.listener = nil
	}
	r.mu.Unlock()
	r.CutAll(reset)
}

// Restore opens the port again after Refuse.
func (r *Relay) Restore() error {
	for range 50 { // the port may still be on its way out
		if err := r.listen(r.addr); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("faults: %s can't be listened on again", r.addr)
}

func (r *Relay) listen(addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener = listener
	r.wait.Add(1)
	go r.accept(listener)
	return nil
}

func (r *Relay) accept(listener net.Listener) {
	defer r.wait.Done()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		if r.listener != listener { // refused meanwhile
			r.mu.Unlock()
			_ = conn.Close()
			return
		}
		l := &link{relay: r, client: conn, ended: make(chan struct{})}
		r.links[l] = true
		r.wait.Add(1)
		r.mu.Unlock()
		go func() {
			defer r.wait.Done()
			defer func() {
				l.close(false)
				r.mu.Lock()
				delete(r.links, l)
				r.mu.Unlock()
			}()
			l.serve()
		}()
	}
}

// begin notes a request and asks the script.
func (r *Relay) begin(q Request) (*Exchange, *Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := &Exchange{Request: q}
	r.seen = append(r.seen, x)
	if r.script == nil {
		return x, nil
	}
	return x, r.script(q)
}

// note changes what is seen of an exchange.
func (r *Relay) note(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}
