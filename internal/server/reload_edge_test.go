package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/expect"
)

// TestReloadCutsNothingAtAnAddressThatStays changes how long connections of one engine may be idle and removes another, each with a request
// under way that takes longer than the drain: the first ends whole, the second is cut off.
func TestReloadCutsNothingAtAnAddressThatStays(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first ")
		_ = http.NewResponseController(w).Flush()
		arrived <- struct{}{}
		<-answer
		_, _ = io.WriteString(w, "last")
	}))
	defer backend.Close()
	engine := func(name, more string) string {
		return fmt.Sprintf("  - {kind: elasticsearch, name: %s, listen: \"127.0.0.1:0\", urls: [%q], indices: [{match: a, fields: [t]}]%s}\n", name, backend.URL, more)
	}
	const head = "admin: \"\"\nengines:\n"
	r := started(t, head+engine("stays", "")+engine("goes", ""))
	r.Drain, r.linger = 100*time.Millisecond, 10*time.Millisecond
	bodies := map[string]chan string{"stays": make(chan string, 1), "goes": make(chan string, 1)}
	for name, body := range bodies {
		go read(r.base(t, name)+"/slow", body)
		<-arrived
	}
	r.become(t, head+engine("stays", ", limits: {advanced: {idle_timeout: 1m}}"))
	if got := <-bodies["goes"]; !strings.HasSuffix(got, "EOF") {
		t.Errorf("at the address that is given up: %q", got)
	}
	time.Sleep(2 * r.Drain) // longer than the one that stays may drain, if it had to
	close(answer)
	if got := <-bodies["stays"]; got != "first last<nil>" {
		t.Errorf("at the address that stays: %q\n%s", got, r.log)
	}
}

// TestReloadRefusesNobody has clients connect all the time while the time limits of connections change, which takes a new server each time.
func TestReloadRefusesNobody(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer backend.Close()
	at := freePort(t)
	text := func(idle int) string {
		return fmt.Sprintf("admin: \"\"\nengines:\n  - {kind: elasticsearch, listen: %q, urls: [%q], indices: [{match: a, fields: [t]}], limits: {advanced: {idle_timeout: %dm}}}\n",
			at, backend.URL, 1+idle%2)
	}
	r := started(t, text(0))
	var stop atomic.Bool
	var clients sync.WaitGroup
	var asked atomic.Int64
	for range 4 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			for !stop.Load() {
				response, err := client.Get("http://" + at + "/")
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				asked.Add(1)
			}
		})
	}
	for i := range 30 {
		for before := asked.Load(); asked.Load() < before+20 && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		r.become(t, text(i+1))
	}
	stop.Store(true)
	clients.Wait()
	expect.Same(t, 30, strings.Count(r.log.String(), "configuration reloaded"), "reloads\n%s", r.log)
}
