// Package faults is a relay on loopback that stands between two that speak HTTP/1.1 (a sidecar and its engine, or a client and
// its sidecar) and does harm by a script. Bytes pass as they came; where the script says so they are cut off, held back, slowed
// down, or replaced. For tests.
//
//	relay := faults.Start(t, engine.URL)             // relay.URL() goes into the sidecar's urls
//	relay.Script(faults.Always(faults.Fault{At: faults.ReplyBodyMiddle, Do: faults.Cut}))
//	…
//	relay.Script(nil)                                 // from here on all passes
//	for _, x := range relay.Seen() { … }              // what came by: request, how much of it went on, status, the fault
//
// A script is asked once for each request, with its head, and answers with a fault or nil. It is called by one goroutine at a
// time. [Always], [First], [Where] and [To] are the common ones.
//
// A fault is a place and a harm. Places count along one exchange, see [Place]; harms:
//
//	Cut     both connections end with FIN, once the bytes before the place are out
//	Reset   both end with RST
//	Stall   nothing more for the time For, then all goes on; For 0: until one side closes
//	Drip    from the place on, Size bytes (1 by default) every For
//	Answer  Fault.Reply is sent in place of the engine's reply. At a place of the request the engine never sees that request: up to
//	        RequestHeader it is answered before its body is read (and the connection then closed), later it is read whole first.
//	        At a place of the reply the engine has done what was asked, and its own reply is dropped
//	Alter   the engine's reply is read whole, and what Fault.Change makes of it is sent: see [Garbage]
//
// A place that an exchange does not have (the middle of an empty body, the gap between chunks of a reply with a length) does
// not bite: Exchange.Bit says whether a fault did.
//
// For the whole relay: [Relay.Refuse] closes the port and every connection (Reset or not), [Relay.Restore] opens it again on
// the same port, [Relay.CutAll] ends the connections that are open and lets new ones in, [Relay.Target] leads new connections
// elsewhere. TLS is not looked into.
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
	RequestBodyMiddle              // half of the body is out
	RequestBodyLast                // all but the last byte is out: of the content, or of the framing where it is chunked
	RequestLastChunk               // of a chunked body all is out but the chunk that says it is whole
	RequestWhole                   // the request is out, and nothing of the reply: the engine may have done it
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

// ofRequest reports whether the place is one before the reply.
func (p Place) ofRequest() bool { return p <= RequestWhole }

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
	Name   string // for Exchange.Fault; empty: harm and place
	At     Place
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

// Request is the head of a request as a script sees it.
type Request struct {
	N      int // the how manieth of this relay, from 1
	Method string
	Target string // path and query as they stand in the request line
	Header http.Header
	Length int64 // -1: chunked
}

// Exchange is what the relay saw of one request and its reply.
type Exchange struct {
	Request
	Body   []byte // what of the request's body went on to the engine, less the framing of chunks; up to Relay.Keep bytes
	Sent   int64  // how long that is
	Whole  bool   // the engine got the whole request
	Status int    // of the reply that went back, 0 for none
	Fault  string // the fault that the script chose, if any
	Bit    bool   // the harm was done
	Back   []byte // the reply that was sent in place of the engine's, if any: Answer and Alter
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

// To matches requests of the method, any if it is empty, whose target holds the text.
func To(method, text string) func(Request) bool {
	return func(r Request) bool { return (method == "" || r.Method == method) && strings.Contains(r.Target, text) }
}
