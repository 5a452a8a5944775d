package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/neardup/sidecar/adapters"
	"go.opentelemetry.io/otel/trace"
)

// meter is a transport to the engine that takes the times of requests, counts their failures and what is held of their
// replies, and writes their spans.
type meter struct {
	http.RoundTripper
	metrics   *Metrics
	traces    *Traces
	operation string // what the requests are for, as spans name it; empty for the kind of the client's request
}

// Transport returns a transport for a [adapters.Store] that acts for clients: while the engine answers the store, the client's request waits for
// the engine.
func (m *Metrics) Transport(next http.RoundTripper, traces *Traces) http.RoundTripper {
	return meter{next, m, traces, "look_up"}
}

// RoundTrip implements http.RoundTripper. It takes the time until the reply's body has ended.
func (m meter) RoundTrip(r *http.Request) (*http.Response, error) {
	u := underwayOf(r.Context())
	if u == nil { // no client waits for it
		resp, err := m.RoundTripper.RoundTrip(r)
		m.metrics.failed(r, err)
		return resp, err
	}
	r, span := u.asking(m.traces, r, m.operation)
	u.engineAsked.Store(true)
	start, waited := clock(), u.waited()
	resp, err := m.RoundTripper.RoundTrip(r)
	u.engineTime.Add(int64(max(clock()-start-(u.waited()-waited), 0)))
	answeredBy(span, resp, err)
	m.metrics.failed(r, err)
	if err == nil && m.operation == "" {
		u.hold.learn(u.kind != "pass" && resp.StatusCode/100 == 2, resp.StatusCode == http.StatusUnauthorized)
	}
	if err != nil || resp.Body == nil || resp.Body == http.NoBody || resp.StatusCode == http.StatusSwitchingProtocols {
		span.End()
		return resp, err
	}
	resp.Body = &answer{ReadCloser: resp.Body, ctx: r.Context(), u: u, metrics: m.metrics, span: span}
	if counts := repliesOf(r.Context()); counts != nil {
		counts.count(resp)
	}
	return resp, nil
}

// waited returns how long there was nothing to send to the engine: the client, or our own work between the two, was slower.
func (u *underway) waited() time.Duration {
	if u.streamed != nil {
		return time.Duration(u.streamed.waited.Load())
	}
	return time.Duration(u.client.Load())
}

// streamed is a body that is enriched while it is sent. It takes how long there was nothing to send.
type streamed struct {
	io.ReadCloser
	waited atomic.Int64 // nanoseconds
}

// Read implements io.Reader.
func (s *streamed) Read(p []byte) (int, error) {
	defer spend(&s.waited, clock())
	return s.ReadCloser.Read(p)
}

// answer is the body of a reply of the engine.
type answer struct {
	io.ReadCloser
	ctx     context.Context // of the request
	u       *underway
	metrics *Metrics
	span    trace.Span
	ended   atomic.Bool
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	start := clock()
	n, err := a.ReadCloser.Read(p)
	spend(&a.u.engineTime, start)
	if err != nil {
		a.end(err)
	}
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	a.end(io.EOF) // whoever has read enough
	return a.ReadCloser.Close()
}

func (a *answer) end(err error) {
	if a.ended.Swap(true) {
		return
	}
	if err != io.EOF {
		if a.ctx.Err() == nil {
			a.metrics.engineErrors.WithLabelValues(harm(err)).Inc()
		}
		answeredBy(a.span, nil, err)
	}
	a.span.End()
}

// failed counts a request to the engine that got no answer, unless that was the client's doing.
func (m *Metrics) failed(r *http.Request, err error) {
	if err == nil {
		return
	}
	refused := adapters.Refusal("")
	if r.Context().Err() != nil || errors.Is(err, errBrokenOff) || errors.Is(err, errEncoding) || errors.As(err, &refused) {
		return
	}
	m.engineErrors.WithLabelValues(harm(err)).Inc()
}

// harm says in a word what kept the engine from answering: dial, it could not be connected to (names that can't be resolved and
// failed handshakes among them); timeout; cut, the connection ended early; garbage, what came was no HTTP.
func harm(err error) string {
	timeout, _ := errors.AsType[net.Error](err)
	switch {
	case isDial(err) || isHandshake(err):
		return "dial"
	case errors.Is(err, context.Canceled): // another request of the same round was refused, or the client has gone
		return "canceled"
	case timeout != nil && timeout.Timeout() || errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	}
	for _, cut := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, cut) {
			return "cut"
		}
	}
	return "garbage"
}

// isHandshake reports whether TLS was not agreed on, or one side did not trust the other.
func isHandshake(err error) bool {
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, other := errors.AsType[tls.RecordHeaderError](err)
	op, ok := errors.AsType[*net.OpError](err)
	return distrusted || other || ok && (op.Op == "remote error" || op.Op == "local error") // an alert
}
