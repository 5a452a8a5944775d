package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

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

// ReadBody implements adapters.Dialect.
func (d careful) ReadBody(c adapters.Class, body []byte) (adapters.Class, []byte) {
	read, out := c, body
	if err := guarded(func() error { read, out = d.Dialect.ReadBody(c, body); return nil }); err != nil {
		return c, body
	}
	return read, out
}

// CleanReply implements adapters.Dialect.
func (d careful) CleanReply(c adapters.Class, dst io.Writer, src io.Reader) error {
	return guarded(func() error { return d.Dialect.CleanReply(c, dst, src) })
}

// errPanicked: a step of the dialect panicked.
var errPanicked = errors.New("a bug in the adapter")
