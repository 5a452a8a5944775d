package proxy

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/neardup/sidecar/adapters"
)

// This file has an engine that is near asked for uncompressed replies where we read them whole. Else the engine would compress what we decompress
// at once, cut and compress again for the client. A first page of 22 kB with gzip, one client, two cores: 1.19 ms instead of 2.02 on Elasticsearch,
// 1.36 instead of 2.24 on OpenSearch, 3.32 instead of 4.04 on Typesense. See docs/decisions/043.

const (
	// nearWithin is how long it takes at most to connect to an engine that is near. A connect takes one round trip: 0.1 ms on one machine, up to 0.5
	// within a data center, more between data centers, where lines are slower and traffic may be paid for.
	nearWithin = 500 * time.Microsecond
	// choiceTTL is how long a choice of the engine is remembered. Then one search is sent as the client accepts it, and shows the choice again.
	choiceTTL = time.Minute
	// mostChoices bounds how many choices are remembered, and longestAccepted for how long an Accept-Encoding. Clients have a few short ones.
	mostChoices, longestAccepted = 64, 128
)

// choice is how the engine codes a successful reply to those who accept certain codings.
type choice struct {
	coding string   // the Content-Encoding
	varies bool     // the reply says that it varies by Accept-Encoding
	ranges []string // the Accept-Ranges, which Typesense gives to what it codes
}

// choices are those choices of the engine that are codings, by Accept-Encoding. They are safe for concurrent use.
type choices struct {
	*ttlcache.Cache[string, choice]
}

func newChoices() choices {
	return choices{ttlcache.New(
		ttlcache.WithCapacity[string, choice](mostChoices), ttlcache.WithTTL[string, choice](choiceTTL), ttlcache.WithDisableTouchOnHit[string, choice](),
	)}
}

// plainly asks a near engine for an uncompressed reply, if it is known how it would have coded a reply to this header. It returns what finishes the
// reply: either that gets the header which the engine's choice would have given it, or the choice is noted.
func (h *Handler) plainly(header http.Header) (finish func(*adapters.Reply)) {
	accepted := header["Accept-Encoding"]
	if len(accepted) != 1 || len(accepted[0]) > longestAccepted || !h.isNear() {
		return func(*adapters.Reply) {}
	}
	if known := h.choices.Get(accepted[0]); known != nil {
		header["Accept-Encoding"] = identity
		return known.Value().onto
	}
	return func(reply *adapters.Reply) { h.choices.note(accepted[0], reply) }
}

var identity = []string{"identity"}

// isNear reports whether the engine is near.
func (h *Handler) isNear() bool {
	t, ok := h.Transport.(*Transport)
	return ok && t.near.Load()
}

// note notes how the engine coded a reply. It may leave an error uncoded, so those say nothing.
func (c choices) note(accepted string, reply *adapters.Reply) {
	if coding := reply.Header["Content-Encoding"]; len(coding) == 1 && codings[strings.ToLower(coding[0])] && reply.Status/100 == 2 {
		c.Set(accepted, choice{coding[0], lists(reply.Header["Vary"], "accept-encoding"), reply.Header["Accept-Ranges"]}, ttlcache.DefaultTTL)
	}
}

// onto puts the choice into the header of a reply that came uncoded. An error stays as it is.
func (c choice) onto(reply *adapters.Reply) {
	if len(reply.Header["Content-Encoding"]) > 0 || reply.Status/100 != 2 {
		return
	}
	reply.Header["Content-Encoding"] = []string{c.coding}
	if c.varies && !lists(reply.Header["Vary"], "accept-encoding") {
		reply.Header["Vary"] = append(reply.Header["Vary"], "accept-encoding")
	}
	if len(c.ranges) > 0 {
		reply.Header["Accept-Ranges"] = c.ranges
	}
}

// dial connects to a node of the engine. The engine is near once a connect was that quick: a busy machine makes it look slower, never quicker.
func (t *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var start atomic.Int64 // after the name was resolved
	d := net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	d.Control = func(string, string, syscall.RawConn) error {
		start.Store(int64(clock()))
		return nil
	}
	c, err := d.DialContext(ctx, network, address)
	if err == nil && clock()-time.Duration(start.Load()) <= nearWithin {
		t.near.Store(true)
	}
	return c, err
}
