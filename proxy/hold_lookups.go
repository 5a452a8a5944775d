package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/similar"
)

// counted is a store whose scans count in what a request holds: each reply of the engine while it is read, and until its documents are taken up. More
// than most bytes at once are a [similar.ErrRoom]; if others hold too much, it is errBusy.
type counted struct {
	adapters.Store
	hold *hold
	most int64
}

// Scan implements adapters.Store.
func (c counted) Scan(ctx context.Context, index string, r *rule.Rule, s adapters.Selection, yield func(adapters.Page) error) error {
	replies := &replies{counted: c}
	defer replies.drop()
	return c.Store.Scan(context.WithValue(ctx, repliesKey{}, replies), index, r, s, func(p adapters.Page) error {
		defer replies.drop()
		return yield(p)
	})
}

// replies are those of one scan that are in memory. [meter] counts them.
type replies struct {
	counted
	bytes int64
}

type repliesKey struct{}

// repliesOf returns the replies to the scan that a context belongs to; nil if they are not counted.
func repliesOf(ctx context.Context) *replies {
	r, _ := ctx.Value(repliesKey{}).(*replies)
	return r
}

// take takes room for n more bytes.
func (r *replies) take(n int64) error {
	if n > r.most-r.bytes {
		return fmt.Errorf("%w: more than %d bytes at once", similar.ErrRoom, r.most)
	}
	if err := r.hold.reserve(n); err != nil {
		return err
	}
	r.bytes += n
	return nil
}

// drop gives the room back.
func (r *replies) drop() {
	r.hold.give(r.bytes)
	r.bytes = 0
}

// count counts a reply: at once if it says how long it is, else while it is read.
func (r *replies) count(resp *http.Response) {
	length := max(0, resp.ContentLength)
	body := &countedReply{resp.Body, r, length, r.take(length)}
	if body.refused != nil {
		resp.Header.Del("Content-Length") // so that the store makes no buffer of this length
	}
	resp.Body = body
}

// countedReply is the body of a reply that is counted.
type countedReply struct {
	io.ReadCloser
	of      *replies
	ahead   int64 // how much of what is still to be read is counted
	refused error
}

// Read implements io.Reader.
func (c *countedReply) Read(p []byte) (int, error) {
	if c.refused != nil {
		return 0, c.refused
	}
	n, err := c.ReadCloser.Read(p)
	before := min(int64(n), c.ahead) // were counted with the length
	c.ahead -= before
	if c.refused = c.of.take(int64(n) - before); c.refused != nil {
		return 0, c.refused
	}
	return n, err
}
