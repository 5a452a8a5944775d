package proxy

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// headWaits is how long the head of a reply waits for the first bytes behind it, and these for more. Most come together, and go out together;
// an engine that takes its time over them is not to keep a client from knowing that it answers.
const headWaits = time.Millisecond

// errSwitched: the engine speaks another protocol from here on, which nobody asked it for.
var errSwitched = errors.New("the engine switched protocols")

// send sends a request on and answers with what comes back. change, if not nil, gets the response before the client does. Headers that
// concern one connection stay on it, 1xx replies and trailers go through, and where a reply breaks off the client's connection is cut.
//
// It does what httputil.ReverseProxy does, by which a request took us twice the time and 45 allocations in place of 27: that
// one copies it several times, takes headers through their canonical form once more, and writes the head of a reply apart from its body.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, change func(*http.Response)) {
	s := &sent{w: w}
	defer s.body.end()
	resp, err := h.nodes.RoundTrip(s.request(r))
	s.answered()
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close() // and with it the connection
		err = errSwitched
	}
	if err != nil {
		h.unreachable(w, r, err)
		return
	}
	defer resp.Body.Close()
	dropHops(resp.Header)
	begun := begun(resp.Body)
	if change != nil {
		change(resp)
	}
	announce(w.Header(), resp)
	w.WriteHeader(resp.StatusCode)
	if err := pour(w, resp, begun); err != nil {
		if r.Context().Value(http.ServerContextKey) != nil { // whoever else calls us has no connection to cut
			panic(http.ErrAbortHandler)
		}
		return
	}
	_ = resp.Body.Close() // now its trailers are known
	trail(w, resp)
}

// sent is a request of a client on its way to the engine.
type sent struct {
	w     http.ResponseWriter
	trace httptrace.ClientTrace
	body  lent

	mu   sync.Mutex
	done bool // there is a reply: what comes before one is too late
}

// request returns the request as it goes on, which is the engine's to change.
func (s *sent) request(r *http.Request) *http.Request {
	s.trace.Got1xxResponse = s.early
	out := r.WithContext(httptrace.WithClientTrace(r.Context(), &s.trace))
	out.Close = false
	out.Header = onwards(r.Header)
	out.Body = nil // so that net/http sends it again where a connection turns out to be closed
	if r.ContentLength != 0 && r.Body != nil {
		s.body.Reader = r.Body
		out.Body = &s.body
	}
	return out
}

// early passes a 1xx reply on.
func (s *sent) early(status int, header textproto.MIMEHeader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return nil
	}
	to := s.w.Header()
	kept := maps.Clone(to)
	clear(to)
	maps.Copy(to, header)
	s.w.WriteHeader(status)
	clear(to)
	maps.Copy(to, kept)
	return nil
}

func (s *sent) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
}

// lent is a client's body, until the client is answered: a transport may go on reading it after that, which is not allowed, and closes it
// where it can't connect, which would wait for the client to send all of it.
type lent struct {
	io.Reader // nil for none
	ended     atomic.Bool
}

// Read implements io.Reader.
func (l *lent) Read(p []byte) (int, error) {
	if l.ended.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	return l.Reader.Read(p)
}

// Close implements io.Closer.
func (l *lent) Close() error {
	l.end()
	return nil
}

func (l *lent) end() { l.ended.Store(true) }

// hopHeaders are the headers, in their canonical form, that concern one connection alone: those that RFC 9110, section 7.6.1, has every
// intermediary leave out. No request and no reply goes on with them, whichever way it goes.
//
// Proxy-Authorization and Proxy-Authenticate are not among them. They are between a client and a proxy that it was told to use (section
// 11.7.2). To its clients a sidecar is the engine (a gateway, section 3.7), asks for no such credentials and uses none: what comes in goes on
// to where the client meant it to go, as it does through nginx's proxy_pass.
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// hop reports whether a header, in its canonical form, concerns one connection alone.
func hop(key string) bool { return slices.Contains(hopHeaders, key) }

// onwards returns the headers of a request that go on: all but those of its connection. What a client names in Connection and is no such
// header goes on: no engine obeys that, and without its key, its type or the user that it acts for, a request is another one. No other
// protocol is spoken past us: Typesense would take up HTTP/2 on the connection. The lists of values are the request's own.
func onwards(header http.Header) http.Header {
	out := make(http.Header, len(header)+1)
	for key, values := range header {
		if !hop(key) {
			out[key] = values
		}
	}
	if te, ok := header["Te"]; ok && lists(te, "trailers") {
		out["Te"] = []string{"trailers"}
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = noAgent
	}
	return out
}

// lists reports whether the values of a header list a word, in whichever case.
func lists(values []string, word string) bool {
	for _, line := range values {
		for each := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(textproto.TrimString(each), word) {
				return true
			}
		}
	}
	return false
}

// noAgent is what keeps net/http from naming an agent of its own. It is never written to.
var noAgent = []string{""}

// dropHops takes the headers of its connection out of a reply, and those that it says are such.
func dropHops(header http.Header) {
	for _, line := range header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			header.Del(textproto.TrimString(name))
		}
	}
	maps.DeleteFunc(header, func(key string, _ []string) bool { return hop(key) })
}

// announce puts the headers of a reply into those that go to the client. One without a length keeps having none.
func announce(to http.Header, resp *http.Response) {
	maps.Copy(to, resp.Header)
	if len(resp.Trailer) > 0 {
		to.Add("Trailer", strings.Join(slices.Collect(maps.Keys(resp.Trailer)), ", "))
	}
	if resp.ContentLength < 0 && len(to["Content-Length"]) == 0 {
		to["Transfer-Encoding"] = chunked // or net/http would count a short one
	}
}

var chunked = []string{"chunked"}

// trail adds what a reply said behind its body. Trailers that it had not announced go by the prefix that net/http has for them.
func trail(w http.ResponseWriter, resp *http.Response) {
	announced := w.Header()["Trailer"]
	for key, values := range resp.Trailer {
		if !lists(announced, key) {
			key = http.TrailerPrefix + key
		}
		w.Header()[key] = values
	}
}

// pour copies a reply's body. What came of it goes out where what follows takes a while, and each piece of one whose length is not known at
// once: who makes it may take any time for the next. Of one that breaks off the client has what came. begun says that some of it is there: to
// set a timer for each reply took 0.08 of 0.58 ms of processor time at 430 requests a second.
func pour(w http.ResponseWriter, resp *http.Response, begun bool) error {
	if resp.Body == http.NoBody {
		return nil
	}
	piece := pieces.Get()
	defer pieces.Put(piece)
	out := &outlet{to: http.NewResponseController(w), body: resp.Body, each: resp.ContentLength >= 0}
	for waits, left := !begun, resp.ContentLength; ; {
		var n int
		var err error
		if waits {
			n, err = out.announcing(piece)
		} else {
			n, err = resp.Body.Read(piece)
		}
		left -= int64(n)
		if n > 0 {
			if _, err := w.Write(piece[:n]); err != nil {
				return err
			}
		}
		switch waits = left != 0; { // or all that can come is the end
		case err == io.EOF:
			return nil
		case err != nil:
			_ = out.to.Flush() // the client's side can have gone as well
			return err
		case n > 0 && resp.ContentLength < 0:
			if err := out.to.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return err
			}
		}
	}
}

// outlet is a body on its way from an engine to a client.
type outlet struct {
	to   *http.ResponseController
	body io.Reader
	each bool // a reading that takes long has what was written go out, and not the first alone

	late  *time.Timer
	mu    sync.Mutex
	waits bool
}

// announcing is the body's Read, but that what was written so far goes out where a reading takes long: the first, before which that is the
// head of the reply, and with each every one.
func (o *outlet) announcing(piece []byte) (int, error) {
	switch {
	case o.late == nil:
		o.waits = true
		o.late = time.AfterFunc(headWaits, o.announce)
	case !o.each:
		return o.body.Read(piece)
	default:
		o.wait(true)
		o.late.Reset(headWaits)
	}
	n, err := o.body.Read(piece)
	o.late.Stop()
	o.wait(false)
	return n, err
}

func (o *outlet) wait(waits bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits = waits
}

// announce has what was written go out.
func (o *outlet) announce() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits {
		_ = o.to.Flush() // the writing that follows fails too
	}
}
