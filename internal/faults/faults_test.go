package faults_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/faults"
)

// server is an HTTP server that notes what it got.
type server struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string // bodies, with the error of reading them
	want []byte   // the body of its replies
}

// serve starts a server whose replies are of the form that the query says: plain, chunked, gzip, none.
func serve(t *testing.T) *server {
	s := &server{want: []byte(strings.Repeat("some words of a reply ", 2000))}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		s.got = append(s.got, fmt.Sprint(string(body), err))
		s.mu.Unlock()
		if err != nil {
			return
		}
		switch r.URL.Query().Get("form") {
		case "none":
			w.WriteHeader(http.StatusNoContent)
		case "chunked":
			for part := range 4 {
				_, _ = w.Write(s.want[part*len(s.want)/4 : (part+1)*len(s.want)/4])
				_ = http.NewResponseController(w).Flush()
			}
		case "gzip":
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write(s.want)
			_ = z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
			_, _ = w.Write(b.Bytes())
		default:
			w.Header().Set("Content-Length", strconv.Itoa(len(s.want)))
			_, _ = w.Write(s.want)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.got...)
}

func client(t *testing.T) *http.Client {
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

// ask sends a request and returns what of the reply came, and the error that ended it.
func ask(c *http.Client, method, url string, body io.Reader) (int, []byte, error) {
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		return 0, nil, err
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, data, err
}

// unsized hides a body's length, so that it goes chunked.
type unsized struct{ io.Reader }

// TestPasses sends requests of each form directly and through a relay: both sides get the same bytes, over one connection.
func TestPasses(t *testing.T) {
	s := serve(t)
	relay, c := faults.Start(t, s.URL), client(t)
	text := strings.Repeat("a document ", 5000)
	for i := range 16 {
		method, form := []string{"POST", "GET", "HEAD", "PUT"}[i%4], []string{"", "chunked", "gzip", "none"}[i/4]
		send := func(base string) (int, []byte, error) {
			bodies := []io.Reader{strings.NewReader(text), nil, nil, unsized{strings.NewReader(text)}}
			return ask(c, method, base+"/x?form="+form, bodies[i%4])
		}
		want, a, err1 := send(s.URL)
		status, b, err2 := send(relay.URL())
		if err1 != nil || err2 != nil || status != want || !bytes.Equal(a, b) {
			t.Fatalf("%s %s: %d %d %v %v, %d and %d bytes", method, form, want, status, err1, err2, len(a), len(b))
		}
	}
	seen, got := relay.Seen(), s.bodies()
	if len(seen) != 16 || relay.Bites() != 0 || relay.Open() != 1 {
		t.Fatalf("%d exchanges seen, %d bites, %d connections", len(seen), relay.Bites(), relay.Open())
	}
	for i, x := range seen {
		if direct, through := got[2*i], got[2*i+1]; direct != through || string(x.Body)+"<nil>" != through || !x.Whole || x.N != i+1 {
			t.Errorf("exchange %d (%s): %d bytes noted, %d arrived, directly %d", i, x.Method, len(x.Body), len(through), len(direct))
		}
	}
}

// TestPlaces cuts at every place, and tells by what each side got that it was there.
func TestPlaces(t *testing.T) {
	s := serve(t)
	text := strings.Repeat("a document ", 500)
	for _, do := range []faults.Harm{faults.Cut, faults.Reset} {
		for _, at := range faults.Places {
			for _, form := range []string{"", "chunked", "gzip"} {
				t.Run(fmt.Sprint(do, at, form), func(t *testing.T) {
					relay, c := faults.Start(t, s.URL), client(t)
					relay.Script(faults.First(1, faults.Fault{At: at, Do: do}))
					before := len(s.bodies())
					body := io.Reader(strings.NewReader(text))
					if form == "chunked" {
						body = unsized{body}
					}
					_, data, err := ask(c, "POST", relay.URL()+"/x?form="+form, body)
					x := relay.Seen()[0]
					exists := form == "chunked" || at != faults.ReplyLastChunk && at != faults.RequestLastChunk
					if x.Bit != exists || (err != nil) != (exists && at != faults.ReplyWhole) {
						t.Errorf("bit: %t, error: %v", x.Bit, err)
					}
					if x.Whole != (!exists || at >= faults.RequestWhole) {
						t.Errorf("whole: %t", x.Whole)
					}
					if at == faults.RequestBodyMiddle && form == "" && x.Sent != int64(len(text)/2) {
						t.Errorf("%d bytes of %d sent", x.Sent, len(text))
					}
					if at == faults.ReplyBodyMiddle && do == faults.Cut && (len(data) == 0 || len(data) >= len(s.want)) {
						t.Errorf("%d bytes came", len(data))
					}
					if form == "" && at == faults.ReplyBodyLast && do == faults.Cut && len(data) != len(s.want)-1 {
						t.Errorf("%d bytes came of %d", len(data), len(s.want))
					}
					if reached := at > faults.RequestHeader || !exists; reached {
						checkReached(t, s, before, text, x.Whole)
					}
					if _, data, err := ask(c, "GET", relay.URL()+"/x", nil); err != nil || !bytes.Equal(data, s.want) {
						t.Errorf("the next request: %v", err)
					}
				})
			}
		}
	}
}

// checkReached waits for the server to have read a request, which it does after the client knows that it broke off.
func checkReached(t *testing.T, s *server, before int, text string, whole bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if got := s.bodies(); len(got) > before {
			if all := got[before] == text+"<nil>"; all != whole {
				t.Errorf("the server got %d bytes ending in %.40q", len(got[before]), got[before][max(len(got[before])-40, 0):])
			}
			return
		}
	}
	t.Error("the request did not reach the server")
}

func TestHarms(t *testing.T) {
	s := serve(t)
	relay, c := faults.Start(t, s.URL), client(t)
	const pause = 20 * time.Millisecond
	for _, at := range faults.Places[:len(faults.Places)-1] {
		relay.Script(faults.First(1, faults.Fault{At: at, Do: faults.Stall, For: pause}))
		began := time.Now()
		_, data, err := ask(c, "POST", relay.URL()+"/x?form=chunked", unsized{strings.NewReader("text")})
		if took := time.Since(began); err != nil || !bytes.Equal(data, s.want) || took < pause {
			t.Errorf("stall at %v: %v, %d bytes, took %v", at, err, len(data), took)
		}
	}
	relay.Script(faults.First(1, faults.Fault{At: faults.ReplyBodyMiddle, Do: faults.Drip, For: time.Millisecond, Size: 1000}))
	if _, data, err := ask(c, "GET", relay.URL(), nil); err != nil || !bytes.Equal(data, s.want) {
		t.Errorf("drip: %v, %d bytes", err, len(data))
	}
	before := len(s.bodies())
	for _, at := range []faults.Place{faults.RequestHeader, faults.RequestWhole, faults.ReplyLine} {
		relay.Script(faults.First(1, faults.Fault{At: at, Do: faults.Answer, Reply: faults.Made(429, `{"no":1}`, "Retry-After: 1")}))
		status, data, err := ask(c, "POST", relay.URL(), strings.NewReader(strings.Repeat("x", 1<<20)))
		if err != nil || status != 429 || string(data) != `{"no":1}` {
			t.Errorf("answer at %v: %d %s %v", at, status, data, err)
		}
	}
	if n := len(s.bodies()) - before; n != 1 {
		t.Errorf("%d of the answered requests reached the server, want the last one", n)
	}
	if n := relay.Bites(); n != len(faults.Places)-1+1+3 {
		t.Errorf("%d bites", n)
	}
}

func TestGarbage(t *testing.T) {
	s := serve(t)
	relay, c := faults.Start(t, s.URL), client(t)
	for name, change := range faults.Garbage {
		for _, form := range []string{"", "chunked", "gzip"} {
			relay.Forget()
			relay.Script(faults.First(1, faults.Fault{Name: name, Do: faults.Alter, At: faults.ReplyLine, Change: change}))
			_, data, err := ask(c, "GET", relay.URL()+"/?form="+form, nil)
			if err == nil && bytes.Equal(data, s.want) {
				t.Errorf("%s %s: the reply came unharmed", name, form)
			}
			if x := relay.Seen()[0]; !x.Bit || x.Fault != name {
				t.Errorf("%s %s: %+v", name, form, x)
			}
		}
	}
}
