package proxy

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// This file holds what the flows share: requests of ours, and replies that were read whole.

// signed reports whether a request is signed over what it is, so that nothing of it may change.
func signed(r *http.Request) bool { return adapters.Signed(adapters.Header(r.Header), r.URL.RawQuery) }

// guarded runs a step of the dialect and turns its panic, a bug of ours that no client is to pay for, into an error.
func guarded(step func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	return step()
}

// careful is a dialect whose panics in what copies a body are errors.
type careful struct{ adapters.Dialect }

// EnrichWrite implements adapters.Dialect.
func (d careful) EnrichWrite(c adapters.Class, dst io.Writer, src io.Reader, w rule.Writing, growth int64) (replies adapters.Replies, err error) {
	err = guarded(func() (err error) {
		replies, err = d.Dialect.EnrichWrite(c, dst, src, w, growth)
		return err
	})
	return replies, err
}

// CleanReply implements adapters.Dialect.
func (d careful) CleanReply(c adapters.Class, dst io.Writer, src io.Reader) error {
	return guarded(func() error { return d.Dialect.CleanReply(c, dst, src) })
}

// errPanicked: a step of the dialect panicked.
var errPanicked = errors.New("a bug in the adapter")

// writeReply writes a reply that was read whole, compressed if its header says so.
func writeReply(w http.ResponseWriter, reply *adapters.Reply) {
	body := reply.Body
	if coding := reply.Header["Content-Encoding"]; len(coding) == 1 {
		body = coded(coding[0], body)
	}
	writePieces(w, reply, adapters.Pieces{body})
}

// writePieces writes a reply with a body in pieces.
func writePieces(w http.ResponseWriter, reply *adapters.Reply, body adapters.Pieces) {
	header := http.Header(maps.Clone(reply.Header))
	dropHops(header)
	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(reply.Status)
	buffer := pieces.Get() // net/http would hand the kernel 4 kB at a time: on page 1 that took a tenth of the processor time
	defer pieces.Put(buffer)
	rest := net.Buffers(body)
	// A client that went away has its answer.
	_, _ = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{&rest}, buffer)
}
