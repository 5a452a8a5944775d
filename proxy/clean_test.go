package proxy

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestLookAhead: what is known of a reply before any of it is sent on, and that all of it can still be read.
func TestLookAhead(t *testing.T) {
	broke := errors.New("it broke off")
	text := func(n int) []byte { // that hardly compresses, so that lengths are alike in a coding
		source, list := rand.NewChaCha8([32]byte{1}), make([]byte, n)
		_, _ = source.Read(list)
		return list
	}
	zeros := func(n int) []byte { return make([]byte, n) } // a long text that is short in a coding
	with := func(list []byte, at int) []byte {
		return append(list[:at:at], append([]byte(`"neardup_sketch"`), list[at:]...)...)
	}
	for _, c := range []struct {
		name         string
		sent         []byte
		known        bool // its length is
		coding       string
		room         int64 // that may be held
		broken       bool
		always       bool
		whole, found bool
	}{
		{name: "short", sent: text(1000), known: true, whole: true},
		{name: "short with a field", sent: with(text(1000), 900), known: true, whole: true, found: true},
		{name: "short, always", sent: text(1000), known: true, always: true, whole: true, found: true},
		{name: "of unknown length", sent: text(1000), whole: true},
		{name: "beyond streamAhead", sent: text(streamAhead + 1000), whole: true},
		{name: "beyond streamAhead with a field", sent: with(text(streamAhead+1000), 900), found: true},
		{name: "with a field beyond streamAhead", sent: with(text(streamAhead+1000), streamAhead+900), whole: true, found: true},
		{name: "too long", sent: text(heldReply + 1), known: true, found: true},
		{name: "too long, of unknown length", sent: text(heldReply + 1), found: true},
		{name: "no room", sent: text(1 << 20), known: true, room: 1 << 19, found: true},
		{name: "no room, of unknown length", sent: text(1 << 20), room: 1 << 19, found: true},
		{name: "broken", sent: text(1000), known: true, broken: true},
		{name: "broken with a field", sent: with(text(1000), 900), broken: true, found: true},
		{name: "coded", sent: text(1000), known: true, coding: "gzip", whole: true},
		{name: "coded with a field", sent: with(text(1000), 900), known: true, coding: "gzip", whole: true, found: true},
		{name: "coded, too long decoded", sent: zeros(plainAhead + 1), known: true, coding: "gzip", found: true},
		{name: "coded and broken", sent: text(100_000), coding: "gzip", broken: true},
		{name: "coded and broken, too long decoded", sent: with(zeros(3*plainAhead), 2*plainAhead), coding: "gzip", broken: true, found: true},
		{name: "not of its coding", sent: nil, coding: "gzip", known: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := coded(c.coding, c.sent)
			if c.sent == nil {
				raw = []byte("no gzip")
			}
			resp := &http.Response{ContentLength: -1, Header: http.Header{}}
			if c.known {
				resp.ContentLength = int64(len(raw))
			}
			var end error = io.EOF
			if c.broken {
				raw, end = raw[:len(raw)-10], broke
			}
			resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(raw), failing{end}))
			h := &hold{all: &holds{most: 1 << 30, held: NewMetrics(nil).held}}
			if c.room > 0 {
				h.all.most = c.room
			}
			plain, whole, found := h.lookAhead(resp, c.coding, c.always)
			expect.Same(t, [2]bool{c.whole, c.found}, [2]bool{whole, found}, "whole, and found")
			if whole && !bytes.Equal(plain, c.sent) {
				t.Errorf("%d bytes are not what was sent", len(plain))
			}
			rest, err := io.ReadAll(resp.Body)
			if !bytes.Equal(rest, raw) || c.broken != errors.Is(err, broke) {
				t.Errorf("%d bytes of %d can still be read, until %v", len(rest), len(raw), err)
			}
		})
	}
}
