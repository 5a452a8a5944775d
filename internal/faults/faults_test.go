package faults_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/faults"
)

// server is an HTTP server that notes what it got.
type server struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string // bodies, with the error of reading them
	want []byte   // the body of its replies
}

// serve starts a server whose replies are chunked if the query says so.
func serve(t *testing.T) *server {
	s := &server{want: []byte(strings.Repeat("some words of a reply ", 2000))}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		s.got = append(s.got, fmt.Sprint(string(body), err))
		s.mu.Unlock()
		if r.URL.RawQuery != "chunked" {
			w.Header().Set("Content-Length", fmt.Sprint(len(s.want)))
		}
		_, _ = w.Write(s.want)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.got...)
}

// ask sends a body, chunked or with its length, and returns what of the reply came, and the error that ended it.
func ask(c *http.Client, url, text string) (status int, data []byte, err error) {
	body := io.Reader(strings.NewReader(text))
	if strings.HasSuffix(url, "?chunked") {
		body = struct{ io.Reader }{body}
	}
	resp, err := c.Post(url, "text/plain", body)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	return resp.StatusCode, data, err
}

func client(t *testing.T) *http.Client {
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

// TestPlaces cuts at every place, and tells by what each side got that it was there; what follows passes unharmed.
func TestPlaces(t *testing.T) {
	s := serve(t)
	text := strings.Repeat("a document ", 500)
	for _, do := range []faults.Harm{faults.Cut, faults.Reset} {
		for _, at := range faults.Places {
			for _, form := range []string{"", "?chunked"} {
				t.Run(fmt.Sprint(do, at, form), func(t *testing.T) {
					relay, c := faults.Start(t, s.URL), client(t)
					relay.Script(faults.First(1, faults.Fault{At: at, Do: do}))
					_, data, err := ask(c, relay.URL()+"/x"+form, text)
					x := relay.Seen()[0]
					exists := form != "" || at != faults.ReplyLastChunk && at != faults.RequestLastChunk
					if x.Bit != exists || (err != nil) != (exists && at != faults.ReplyWhole) {
						t.Errorf("bit: %t, error: %v", x.Bit, err)
					}
					if x.Whole != (!exists || at >= faults.RequestWhole) {
						t.Errorf("whole: %t", x.Whole)
					}
					if at == faults.ReplyBodyMiddle && do == faults.Cut && (len(data) == 0 || len(data) >= len(s.want)) {
						t.Errorf("%d bytes came", len(data))
					}
					c.CloseIdleConnections() // or the next request could cross with its connection's end
					if _, data, err := ask(c, relay.URL()+"/x"+form, text); err != nil || !bytes.Equal(data, s.want) {
						t.Errorf("the next request: %v", err)
					}
					if !slices.Contains(s.bodies(), text+"<nil>") {
						t.Error("it did not reach the server as it was sent")
					}
				})
			}
		}
	}
}

// TestHarms has the other harms: what is held back or slow comes whole and late, what is replaced does not come.
func TestHarms(t *testing.T) {
	s := serve(t)
	relay, c := faults.Start(t, s.URL), client(t)
	const pause = 20 * time.Millisecond
	for _, at := range faults.Places[:len(faults.Places)-1] {
		relay.Script(faults.First(1, faults.Fault{At: at, Do: faults.Stall, For: pause}))
		began := time.Now()
		_, data, err := ask(c, relay.URL()+"/x?chunked", "text")
		if took := time.Since(began); err != nil || !bytes.Equal(data, s.want) || took < pause {
			t.Errorf("stall at %v: %v, %d bytes, took %v", at, err, len(data), took)
		}
	}
	relay.Script(faults.First(1, faults.Fault{At: faults.ReplyBodyMiddle, Do: faults.Drip, For: time.Millisecond, Size: 1000}))
	if _, data, err := ask(c, relay.URL(), ""); err != nil || !bytes.Equal(data, s.want) {
		t.Errorf("drip: %v, %d bytes", err, len(data))
	}
	expect.Same(t, 1, relay.Open(), "connections for requests that ended well")
	before := len(s.bodies())
	relay.Script(faults.First(1, faults.Fault{Do: faults.Answer, Reply: faults.Made(429, `{"no":1}`)}))
	if status, data, err := ask(c, relay.URL(), "text"); err != nil || status != 429 || string(data) != `{"no":1}` {
		t.Errorf("answer: %d %s %v", status, data, err)
	}
	if len(s.bodies()) != before {
		t.Error("the request that was answered reached the server")
	}
	for name, change := range faults.Garbage {
		relay.Script(faults.First(1, faults.Fault{Do: faults.Alter, Change: change}))
		if _, data, err := ask(c, relay.URL(), ""); err == nil && bytes.Equal(data, s.want) {
			t.Errorf("%s: the reply came unharmed", name)
		}
	}
	expect.Same(t, len(faults.Places)-1+1+1+len(faults.Garbage), relay.Bites(), "bites")
}
