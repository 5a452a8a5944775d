package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// heldReply is how much of a reply, as sent, is held while it is searched for our fields. One that ends within it goes out with its length, and
	// with its own bytes where it has none of our fields. A longer one streams.
	heldReply = 8 << 20
	// streamAhead is how much is held of a reply of unknown length that has a field of ours.
	streamAhead = 1 << 20
)

// cleansReply reports whether our fields are cut out of the reply: it may hold them, and the client named none.
func (u *underway) cleansReply() bool {
	holds := u.class.Kind == adapters.KindRead || u.class.Kind == adapters.KindSearch || u.class.ReplyMayHoldOurs
	return holds && !u.class.NamesOurs && !u.unconfigured
}

// clean cuts our fields out of a reply. One without any goes out with the bytes and headers that it came with.
func (h *Handler) clean(u *underway, resp *http.Response) {
	coding, readable := codingOf(resp)
	if resp.Request.Method == http.MethodHead || !textual(resp.Header.Get("Content-Type")) || !readable {
		return
	}
	u.class.ReplyHeader = adapters.Header(resp.Header)
	plain, whole, found := u.hold.lookAhead(resp, coding, u.class.Always)
	if coding != "" { // what was decoded only serves to look through
		defer u.hold.reuse(plain)
	}
	switch {
	case !found, !u.class.Always && !h.mayConcern(u):
	case whole && u.hold.take(int64(len(plain))):
		h.cleanWhole(u.class, resp, coding, plain)
	default:
		h.cleanStream(u.class, resp, coding)
	}
}

// lookAhead reads a reply before any of it is sent on. It ends at a field of ours, at the reply's end, or when no more can be held. What was read
// stays in the body. It returns the reply, decoded, and whether that is all of it. found says that the reply has to be cleaned: because it may hold a
// field of ours, or because the caller said always.
func (t *hold) lookAhead(resp *http.Response, coding string, always bool) (plain []byte, whole, found bool) {
	body, length, most := resp.Body, resp.ContentLength, int64(heldReply)
	switch {
	case length > most: // it can't be held
		return nil, false, true
	case length < 0:
		most = streamAhead
	}
	raw, ended, err := t.readUsual(body, most, length)
	if ended && coding == "" { // as nearly every one
		resp.Body = reusedBody(raw, body)
		return raw, true, always || mayHoldOurs(raw)
	}
	// The rest is for a reply that is encoded, longer than what was read, or broken off.
	for {
		broken, rest := err != nil && !errors.Is(err, errBusy), io.Reader(body)
		if ended || broken {
			rest = failing{cmp.Or(err, io.EOF)}
		}
		resp.Body = readCloser{io.MultiReader(bytes.NewReader(raw), rest), body}
		plain, err = raw, nil
		if coding != "" && len(raw) > 0 {
			plain, err = t.decode(coding, raw, plainAhead)
		}
		tooLong := errors.Is(err, errTooLarge) || errors.Is(err, errBusy) // to be held decoded
		moreToCome := errors.Is(err, io.ErrUnexpectedEOF) && !ended
		switch {
		case err != nil && !tooLong && !moreToCome: // it is not of its coding
			return nil, false, false
		case always || mayHoldOurs(plain):
			return plain, ended && err == nil, true
		case ended || broken:
			return plain, ended && !tooLong, tooLong
		case most == heldReply:
			return nil, false, true
		}
		most = heldReply
		var more []byte
		more, ended, err = t.readUsual(body, most-int64(len(raw)), length)
		raw = append(raw, more...)
	}
}

// mayHoldOurs reports whether a text has anything of the form of our fields' names.
func mayHoldOurs(plain []byte) bool { return bytes.Contains(plain, []byte(rule.FieldPrefix)) }

// mayConcern reports whether the reply to a request may hold documents of a configured index. Where the request names none it may.
func (h *Handler) mayConcern(u *underway) bool {
	target := u.class.Target
	if target == "" || signed(u.sender.request) { // a look-up under another request's signature would be refused
		return len(h.Rules) > 0
	}
	if u.class.Elsewhere {
		target = ""
	}
	if target != "" && h.catalog.mayName(target) {
		return true
	}
	e := h.catalog.lookup(u, u.sender.client(), target)
	return target != "" && e.err != nil || h.catalog.ruled(target, e)
}

// cleanWhole replaces a reply that was read whole by the same without our fields, unless it has none.
func (h *Handler) cleanWhole(class adapters.Class, resp *http.Response, coding string, plain []byte) {
	clean := bytes.NewBuffer(newBuffer(int64(len(plain))))
	err := h.Dialect.CleanReply(class, clean, bytes.NewReader(plain))
	if err != nil || bytes.Equal(clean.Bytes(), plain) {
		reuseBuffer(clean.Bytes())
		return
	}
	out := coded(coding, clean.Bytes())
	if coding != "" {
		reuseBuffer(clean.Bytes())
	}
	resp.Body = reusedBody(out, resp.Body)
	if resp.ContentLength >= 0 {
		resp.ContentLength = int64(len(out))
		resp.Header.Set("Content-Length", strconv.Itoa(len(out)))
	}
}

// cleanStream cuts our fields out of a reply while it streams.
func (h *Handler) cleanStream(class adapters.Class, resp *http.Response, coding string) {
	body := resp.Body
	pipe, into := io.Pipe()
	resp.Body = readCloser{pipe, closers{pipe, body}}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	go func() {
		plain, err := decoder(coding, 0, body)
		dst := io.WriteCloser(into)
		if coding != "" {
			dst = encoder(coding, into)
		}
		if err == nil {
			err = h.Dialect.CleanReply(class, dst, plain)
		}
		if err == nil && coding != "" {
			err = dst.Close()
		}
		into.CloseWithError(err)
	}()
}

// textual reports whether a reply of the type can hold documents.
func textual(contentType string) bool {
	types := []string{"json", "yaml", "cbor", "smile", "text/plain", "plain/text", "csv", "tab-separated", "octet-stream"}
	return slices.ContainsFunc(types, func(part string) bool { return strings.Contains(contentType, part) })
}

type closers []io.Closer

func (c closers) Close() error {
	for _, each := range c {
		_ = each.Close()
	}
	return nil
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
