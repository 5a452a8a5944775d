// Package faults is a relay on loopback that stands between two that speak HTTP/1.1 (a sidecar and its engine, or a client and
// its sidecar) and does harm by a script. It takes a request whole, then the reply to it, and passes their bytes on as they came;
// where the script says so they are cut off, held back, slowed down, or replaced. For tests.
//
//	relay := faults.Start(t, engine.URL)             // relay.URL() goes into the sidecar's urls
//	relay.Script(faults.Always(faults.Fault{At: faults.ReplyBodyMiddle, Do: faults.Cut}))
//	…
//	relay.Script(nil)                                 // from here on all passes
//	for _, x := range relay.Seen() { … }              // what came by: request, whether it went on whole, the fault
//
// A script is asked once for each request, and answers with a fault or nil. It is called by one goroutine at a time. [Always],
// [First], [Where] and [To] are the common ones.
//
// A fault is a place and a harm. Places count along one exchange, see [Place]; harms:
//
//	Cut     both connections end with FIN, once the bytes before the place are out
//	Reset   both end with RST
//	Stall   nothing more for the time For, then all goes on; For 0: until one side closes
//	Drip    from the place on, Size bytes every For
//	Answer  Fault.Reply is sent in place of the engine's reply. The engine never sees the request
//	Alter   what Fault.Change makes of the engine's reply is sent: see [Garbage]
//
// A place that an exchange does not have (the middle of an empty body, the last chunk of a reply with a length) does not bite:
// Exchange.Bit says whether a fault did.
//
// For the whole relay: [Relay.Refuse] closes the port and every connection (Reset or not), [Relay.Restore] opens it again on
// the same port, [Relay.CutAll] ends the connections that are open and lets new ones in. TLS, pipelining, interim replies and
// Expect are not known to it.
//
// [Listen] is a server whose every byte is the test's.
package faults

import (
	"net/http"
	"strings"
	"time"
)

// Place is where in an exchange a fault strikes.
type Place int

// The places, in the order in which an exchange passes them.
const (
	RequestLine       Place = iota // within the request line, 3 bytes of which are out
	RequestHeader                  // within the header: half of the head is out
	RequestBodyBegin               // the head is out, and nothing of the body
	RequestBodyMiddle              // half of what came of the body is out
	RequestBodyLast                // all but the last byte is out: of the content, or of the framing where it is chunked
	RequestLastChunk               // of a chunked body all is out but the chunk that says it is whole
	RequestWhole                   // the request is out, and nothing of the reply: the engine has done it
	ReplyLine                      // within the status line, 3 bytes of which are out
	ReplyHeader                    // half of the head is out
	ReplyBodyBegin                 // the head is out, and nothing of the body
	ReplyBodyMiddle                // half of the body is out: inside the stream where it is compressed
	ReplyBodyLast                  // all but the last byte is out: of the content, or of the framing where it is chunked
	ReplyLastChunk                 // of a chunked reply all is out but the chunk that says it is whole
	ReplyWhole                     // the reply is out: the connection is not there for the next request
)

var placeNames = [...]string{
	"request line", "request header", "request body begin", "request body middle", "request body last byte", "request last chunk", "request whole",
	"reply line", "reply header", "reply body begin", "reply body middle", "reply body last byte", "reply last chunk", "reply whole",
}

// Places are all of them.
var Places = func() (list []Place) {
	for i := range placeNames {
		list = append(list, Place(i))
	}
	return list
}()

// String implements fmt.Stringer.
func (p Place) String() string { return placeNames[p] }

// Harm is what a fault does.
type Harm int

// The harms, which the package's comment explains.
const (
	Cut Harm = iota
	Reset
	Stall
	Drip
	Answer
	Alter
)

// String implements fmt.Stringer.
func (h Harm) String() string {
	return [...]string{"cut", "reset", "stall", "drip", "answer", "alter"}[h]
}

// Fault is one harm at one place.
type Fault struct {
	Name   string // empty: harm and place
	At     Place  // not of Answer and Alter
	Do     Harm
	For    time.Duration       // Stall, Drip
	Size   int                 // Drip
	Reply  []byte              // Answer: a whole HTTP/1.1 reply, see [Made]
	Change func(*Whole) []byte // Alter
}

// String returns the fault's name.
func (f Fault) String() string {
	if f.Name != "" {
		return f.Name
	}
	return f.Do.String() + " at " + f.At.String()
}

// Whole is a server's reply, read whole.
type Whole struct {
	Head     []byte         // as it came, with the empty line
	Body     []byte         // without the framing of chunks; compressed if it was
	Response *http.Response // what Head says
}

// Request is a request as a script sees it.
type Request struct {
	Method string
	Target string // path and query as they stand in the request line
}

// Exchange is what the relay saw of one request and its reply.
type Exchange struct {
	Request
	Body  []byte // of the request, less the framing of chunks, as far as it came
	Whole bool   // the engine got the whole request
	Bit   bool   // the fault did its harm
	Back  []byte // the reply that was sent in place of the engine's, if any: Answer and Alter
}

// Script chooses the fault of a request, or nil for none.
type Script func(Request) *Fault

// Always does the same harm to every request.
func Always(f Fault) Script { return func(Request) *Fault { return &f } }

// First does harm to the first n requests from now on.
func First(n int, f Fault) Script {
	return func(Request) *Fault {
		if n--; n >= 0 {
			return &f
		}
		return nil
	}
}

// Where asks the script about those requests alone that match.
func Where(match func(Request) bool, then Script) Script {
	return func(r Request) *Fault {
		if match(r) {
			return then(r)
		}
		return nil
	}
}

// To matches requests of the method whose target holds the text.
func To(method, text string) func(Request) bool {
	return func(r Request) bool { return r.Method == method && strings.Contains(r.Target, text) }
}
