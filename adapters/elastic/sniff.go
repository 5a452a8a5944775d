package elastic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/neardup/sidecar/adapters"
)

// Sniffing clients ask the cluster where its nodes take HTTP requests (sniff_on_start, DiscoverNodes) and from then on talk to
// these addresses: past the sidecar. Where [Dialect.RewriteSniffing] says so, the nodes' own addresses in such a reply are
// replaced by the one under which the client reached us. Each node then has the same, and whichever a client chooses, it comes
// to us.

// maxHeldNodes bounds what is held of a reply about the nodes: from a text or a list of addresses that is longer on, it is copied
// as it stands.
const maxHeldNodes = 1 << 20

// asksForNodes reports whether the reply to a request can tell the nodes' addresses: GET /_nodes with or without ids and metrics.
// The other pages below it hold figures alone.
func asksForNodes(method string, path []string) bool {
	if method != "GET" || path[0] != "_nodes" {
		return false
	}
	for _, part := range path[1:min(len(path), 3)] {
		switch part {
		case "stats", "usage", "hot_threads", "hotthreads":
			return false
		}
	}
	return true
}

// classifyNodes returns the class of a request for the nodes' addresses. Where there is none to put in their place, it passes.
func (d Dialect) classifyNodes(r *adapters.Request) adapters.Class {
	ours := d.Advertise
	if ours == "" {
		ours = r.Host
	}
	if ours == "" {
		return adapters.Class{}
	}
	return adapters.Class{Kind: adapters.KindRead, Form: formNodes, Params: ours, Rewrites: true}
}

// rewriteNodes copies what the nodes say of themselves with one address in the place of those at which they take HTTP requests:
// the members publish_address and bound_address of nodes.<id>.http. All other bytes stay. From the first byte on that is not
// well-formed the rest is copied as it stands. It returns only errors of src and dst.
func rewriteNodes(dst io.Writer, src io.Reader, address string) error {
	n := nodesCopy{in: &heldReader{src: src}, w: bufio.NewWriterSize(dst, 32<<10), address: adapters.AppendString(nil, address)}
	n.Decoder = json.NewDecoder(n.in)
	n.UseNumber()
	err := n.object(func(key string) error {
		if key != "nodes" {
			return n.skip()
		}
		return n.object(func(string) error { return n.object(n.member) })
	})
	if err == nil || n.in.err == nil { // what is left, or is not what we know
		_, err = n.w.Write(n.in.held)
		if n.in.held = nil; err == nil {
			_, err = io.Copy(n.w, n.in.src)
		}
	} else {
		_, _ = n.w.Write(n.in.held) // a bufio.Writer's error lasts until Flush
		err = n.in.err
	}
	return errors.Join(err, n.w.Flush())
}

// nodesCopy copies a reply about the nodes, token by token.
type nodesCopy struct {
	*json.Decoder
	in      *heldReader
	w       *bufio.Writer
	address []byte // as JSON
}

// heldReader keeps what was read from src until it is taken.
type heldReader struct {
	src  io.Reader
	held []byte
	// taken is how many bytes were taken in all; err the error of src.
	taken int64
	err   error
}

var errHeldTooMuch = errors.New("too much to hold")

func (h *heldReader) Read(p []byte) (int, error) {
	if len(h.held) > maxHeldNodes {
		return 0, errHeldTooMuch
	}
	n, err := h.src.Read(p)
	h.held = append(h.held, p[:n]...)
	if err != nil && err != io.EOF {
		h.err = err
	}
	return n, err
}

// take returns what is held up to an offset of src, and holds it no longer.
func (h *heldReader) take(offset int64) []byte {
	n := offset - h.taken
	out := h.held[:n]
	h.held, h.taken = h.held[n:], offset
	return out
}

// copied writes all up to the last token.
func (n *nodesCopy) copied() error {
	_, err := n.w.Write(n.in.take(n.InputOffset()))
	return err
}

// object copies an object, of whose members each handles the value. A value of another kind is copied.
func (n *nodesCopy) object(each func(key string) error) error {
	open, err := n.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return n.rest(open)
	}
	for n.More() {
		key, err := n.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // the decoder takes nothing else
		if err := errors.Join(n.copied(), each(name)); err != nil {
			return err
		}
	}
	if _, err = n.Token(); err != nil {
		return err
	}
	return n.copied()
}

// skip copies a value.
func (n *nodesCopy) skip() error {
	first, err := n.Token()
	if err != nil {
		return err
	}
	return n.rest(first)
}

// rest copies a value of which the first token was read.
func (n *nodesCopy) rest(token json.Token) (err error) {
	for depth := 0; ; {
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if err := n.copied(); err != nil || depth == 0 {
			return err
		}
		if token, err = n.Token(); err != nil {
			return err
		}
	}
}

// member copies a member of a node.
func (n *nodesCopy) member(key string) error {
	if key != "http" {
		return n.skip()
	}
	return n.object(func(key string) error {
		switch key {
		case "publish_address", "bound_address":
			return n.replace()
		}
		return n.skip()
	})
}

// replace puts our address in the place of a text, or of each text in a list. Any other value is copied.
func (n *nodesCopy) replace() error {
	token, err := n.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('[') {
		return n.put(token)
	}
	for n.More() {
		if err := n.copied(); err != nil {
			return err
		}
		if token, err = n.Token(); err != nil {
			return err
		}
		if err := n.put(token); err != nil {
			return err
		}
	}
	if _, err = n.Token(); err != nil {
		return err
	}
	return n.copied()
}

// put puts our address in the place of the token if that is a text.
func (n *nodesCopy) put(token json.Token) error {
	if _, text := token.(string); !text {
		return n.rest(token)
	}
	value := n.in.take(n.InputOffset())
	_, _ = n.w.Write(value[:bytes.IndexByte(value, '"')]) // what separates it from the token before: no byte of that is a quote
	_, err := n.w.Write(n.address)
	return err
}
