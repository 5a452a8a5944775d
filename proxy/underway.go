package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/neardup/sidecar/adapters"
)

// began is what the clocks count from: reading one is then cheap.
var began = time.Now()

// clock returns the time that has passed since some moment.
func clock() time.Duration { return time.Since(began) }

// spend adds the time since start.
func spend(on *atomic.Int64, start time.Duration) { on.Add(int64(clock() - start)) }

// underway is a request of a client that is being answered: its context, the way back, and what it waited for. A request's time is
// parted in three: it waits for the client (reads its body, writes to it), it waits for the engine (a request to it has no header
// of a reply yet, or a reply's body is read), or it is ours. While a body streams, two of these can go on at once.
type underway struct {
	context.Context // the request's
	http.ResponseWriter
	body   source
	hold   hold // of bodies and replies
	sender sender
	class  adapters.Class
	kind   string
	status int // 0 until it is written

	clocks
	insisted    atomic.Bool // the engine was asked again for names, in vain
	makes       atomic.Bool // a document has come that makes its index; those of a stream come while the reply may
	ended, gone bool        // it was not cut off; the client broke it off
	span        trace.Span  // one that records nothing where the request is not traced
}

// clocks are the times of a request.
type clocks struct {
	start          time.Duration
	client, engine atomic.Int64 // what it waited for them, in nanoseconds
	asked          atomic.Bool  // the engine was
	made           *made        // what is sent to the engine, where it is made meanwhile
}

// alters reports whether the request may make, change or drop an index.
func (u *underway) alters() bool { return u.class.Alters || u.makes.Load() }

type underwayKey struct{}

// Value implements context.Context.
func (u *underway) Value(key any) any {
	if _, ok := key.(underwayKey); ok {
		return u
	}
	return u.Context.Value(key)
}

// underwayOf returns the request on whose behalf something is done; nil for none.
func underwayOf(ctx context.Context) *underway {
	u, _ := ctx.Value(underwayKey{}).(*underway)
	return u
}

// begin takes a request up. What it returns is followed by end.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request) (*underway, *http.Request) {
	u := &underway{Context: r.Context(), ResponseWriter: w, kind: "pass"}
	u.start = clock()
	u.sender.request, u.hold.all, u.hold.sender = r, &h.holds, &u.sender
	h.Metrics.inFlight.Inc()
	u.traced(h.Traces.tracer(), r)
	r = r.WithContext(u)
	u.body.ended.Store(true)
	if r.Body != nil && r.Body != http.NoBody {
		u.body.ReadCloser, u.body.waited = r.Body, &u.client
		u.body.ended.Store(false)
		r.Body = &u.body
	}
	return u, r
}

// Times are how long a request took: waiting for the engine, in our own work, and in all.
type Times struct{ Engine, Own, Total time.Duration }

type timesKey struct{}

// WithTimes returns a context for one request to a Handler, whose times are in t when the Handler has answered it.
func WithTimes(ctx context.Context, t *Times) context.Context {
	return context.WithValue(ctx, timesKey{}, t)
}

// is takes what kind of request it is.
func (h *Handler) is(u *underway, kind string) {
	h.Metrics.requests.WithLabelValues(kind).Inc()
	u.kind = kind
}

// end closes a request, whatever became of it. The times of one that was cut off say nothing.
func (h *Handler) end(u *underway, r *http.Request) {
	if !u.ended && u.status >= 200 {
		_ = u.FlushError() // the client gets what came of a reply that broke off
	}
	h.Metrics.inFlight.Dec()
	t := Times{Engine: time.Duration(u.engine.Load()), Total: clock() - u.start}
	t.Own = max(t.Total-t.Engine-time.Duration(u.client.Load()), 0)
	if u.ended {
		h.Metrics.added.WithLabelValues(u.kind).Observe(t.Own.Seconds())
		if u.asked.Load() {
			h.Metrics.engine.WithLabelValues(u.kind).Observe(t.Engine.Seconds())
		}
	}
	if u.gone || !u.ended && u.Err() != nil { // or while the reply was looked through or copied
		h.Metrics.gone.Inc()
	}
	u.endSpan(h.Traces, r)
	if to, wanted := u.Context.Value(timesKey{}).(*Times); wanted {
		*to = t
	}
	if h.Log.Enabled(context.Background(), slog.LevelDebug) {
		h.Log.Debug("request", "kind", u.kind, "method", methodOf(r), "status", u.status, "whole", u.ended, "took", t.Total.String(),
			"engine_took", t.Engine.String(), "trace_id", u.traceID(r.Header))
	}
}

// Unwrap is for http.ResponseController.
func (u *underway) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (u *underway) WriteHeader(status int) {
	if status == http.StatusContinue {
		return // net/http says so itself when the body is asked for, which the engine's word has just led to
	}
	if status >= 200 && u.status == 0 {
		u.status = status
		header := u.Header()
		for _, key := range []string{"Content-Type", "Date"} { // net/http adds them to a reply that lacks them
			if _, ok := header[key]; !ok {
				header[key] = nil
			}
		}
		if !u.body.ended.Load() {
			// An answer before the body was read: the client is to have it while it still sends, where net/http would wait for more
			// of the body; and what it still sends is no next request.
			_ = http.NewResponseController(u.ResponseWriter).EnableFullDuplex() // a protocol without it needs no leave
			header.Set("Connection", "close")
		}
	}
	u.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (u *underway) Write(p []byte) (int, error) {
	defer spend(&u.client, clock())
	return u.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController.
func (u *underway) FlushError() error {
	defer spend(&u.client, clock())
	return http.NewResponseController(u.ResponseWriter).Flush()
}

// meter takes the times of what is sent to the engine, and writes the spans of it.
type meter struct {
	metrics   *Metrics
	traces    *Traces
	operation string // what its requests are for; those of a client are of the client's kind where it is empty
}

// storeTransport is the transport of a [adapters.Store] that acts for clients.
type storeTransport struct {
	http.RoundTripper
	meter
}

// Transport returns a transport whose requests are of our own making, for a [adapters.Store] that acts for clients: while the
// engine answers them, the client's request waits for the engine.
func (m *Metrics) Transport(next http.RoundTripper, traces *Traces) http.RoundTripper {
	return storeTransport{next, meter{m, traces, "look_up"}}
}

// RoundTrip implements http.RoundTripper.
func (t storeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.measure(r, t.RoundTripper.RoundTrip)
}

// measure sends a request to the engine and takes its time, until the reply's body has ended.
func (m meter) measure(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	u := underwayOf(r.Context())
	if u == nil { // no client's request is under way
		resp, err := send(r)
		m.metrics.failed(r, err)
		return resp, err
	}
	r, span := u.asking(m.traces, r, m.operation)
	u.asked.Store(true)
	start, waited := clock(), u.waited()
	resp, err := send(r)
	u.engine.Add(int64(max(clock()-start-(u.waited()-waited), 0)))
	answeredBy(span, resp, err)
	m.metrics.failed(r, err)
	if err == nil && m.operation == "" {
		u.hold.known(u.kind != "pass" && resp.StatusCode/100 == 2, resp.StatusCode == http.StatusUnauthorized)
	}
	if err != nil || resp.Body == nil || resp.Body == http.NoBody || resp.StatusCode == http.StatusSwitchingProtocols {
		span.End()
		return resp, err
	}
	resp.Body = &answer{ReadCloser: resp.Body, ctx: r.Context(), u: u, metrics: m.metrics, span: span}
	return resp, nil
}

// waited returns how long there has been nothing to send to the engine: for want of the client, or of our own work between the two.
func (u *underway) waited() time.Duration {
	if u.made != nil {
		return time.Duration(u.made.waited.Load())
	}
	return time.Duration(u.client.Load())
}

// made is a body that is made while it is sent. It takes how long there was nothing to send.
type made struct {
	io.ReadCloser
	waited atomic.Int64 // nanoseconds
}

// Read implements io.Reader.
func (m *made) Read(p []byte) (int, error) {
	defer spend(&m.waited, clock())
	return m.ReadCloser.Read(p)
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
	spend(&a.u.engine, start)
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
	refused := adapters.Refusal("")
	if err == nil || r.Context().Err() != nil || errors.Is(err, errBrokenOff) || errors.Is(err, errEncoding) || errors.As(err, &refused) {
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
