package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
)

const (
	// patience is how long an engine may take to answer.
	patience = 15 * time.Second
	// maxReply is the longest reply that is read.
	maxReply = 64 << 20
)

// noAnswer is the error of an engine that took longer than patience.
type noAnswer struct{}

func (noAnswer) Error() string { return fmt.Sprintf("no answer within %s", patience) }

func (noAnswer) Unwrap() error { return context.DeadlineExceeded }

// Within asks an engine, and gives up after 15 seconds.
func Within[Answer any](ctx context.Context, ask func(context.Context) (Answer, error)) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := ask(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = noAnswer{}
	}
	return answer, err
}

// Send sends a request to the engine at an address, and returns the whole reply. It gives up after 15 seconds.
func Send(ctx context.Context, transport http.RoundTripper, at string, request *adapters.Request) (*adapters.Reply, error) {
	return Within(ctx, func(ctx context.Context) (*adapters.Reply, error) {
		r, err := http.NewRequestWithContext(ctx, request.Method, strings.TrimSuffix(at, "/")+request.Path, bytes.NewReader(request.Body))
		if err != nil {
			return nil, err
		}
		r.URL.RawQuery, r.Header = request.RawQuery, http.Header(request.Header).Clone()
		resp, err := transport.RoundTrip(r) // it follows no redirect: the credentials are for this address alone
		if err != nil {
			return nil, err
		}
		defer func() { _ = resp.Body.Close() }() // it was read
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
		if err == nil && len(body) > maxReply {
			err = fmt.Errorf("the reply is larger than %d MB", maxReply>>20)
		}
		return &adapters.Reply{Status: resp.StatusCode, Header: adapters.Header(resp.Header), Body: body}, err
	})
}
