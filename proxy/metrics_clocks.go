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

// underway is a request of a client that is being answered: its context, its body, the way back, and what it waited for. A
// request's time is parted in three: it waits for the client (reads its body, writes to it), it waits for the engine (a request
// to it has no header of a reply yet, or a reply's body is read), or it is ours. While a body streams, two of these can go on
// at once.
type underway struct {
	context.Context // the request's
	reply
	body source

	method, kind   string
	status         int // 0 until it is written
	start          time.Duration
	client, engine atomic.Int64 // nanoseconds
	asked          atomic.Bool  // the engine was
	ended          bool         // and not cut off
	gone           bool         // the client, and that is counted
	made           *made        // what is sent to the engine, where it is made meanwhile
	hold           hold         // of bodies and replies
	sender         sender
	insisted       atomic.Bool // the engine was asked again for names, in vain
	hasty          bool        // see alone
	target         string      // what the request is about, to one that is hasty

	first answer // the engine's first, so that it costs no allocation
	taken atomic.Bool

	span   trace.Span // nil where the request is not traced, and tracer with it
	tracer trace.Tracer
}

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
	u := &underway{Context: r.Context(), reply: reply{ResponseWriter: w}, start: clock()}
	u.method, u.kind = methodOf(r), "pass"
	h.Metrics.inFlight.Inc()
	if tracer := h.Traces.tracer(); tracer != nil {
		u.traced(tracer, r)
	}
	r = r.WithContext(u)
	if r.Body != nil && r.Body != http.NoBody {
		u.body = source{ReadCloser: r.Body, waited: &u.client}
		u.reply.body = &u.body
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
func (h *Handler) is(ctx context.Context, kind string) {
	h.counts.add("requests", kind)
	if u := underwayOf(ctx); u != nil {
		u.kind = kind
	}
}

// end closes a request, whatever became of it. The times of one that was cut off say nothing.
func (h *Handler) end(u *underway, r *http.Request) {
	if !u.ended && u.status >= 200 {
		_ = u.FlushError() // the client gets what came of a reply that broke off
	}
	h.Metrics.inFlight.Dec()
	took := clock() - u.start
	engine, client := time.Duration(u.engine.Load()), time.Duration(u.client.Load())
	if u.ended {
		h.Metrics.observed(u.kind, engine, max(took-engine-client, 0), u.asked.Load())
	}
	if !u.ended && u.Err() != nil && !u.gone {
		h.counts.add("broken_off", "") // while the reply was looked through or copied
	}
	u.endSpan(h.Traces)
	if t, wanted := u.Context.Value(timesKey{}).(*Times); wanted {
		*t = Times{Engine: engine, Own: max(took-engine-client, 0), Total: took}
	}
	if h.Log.Enabled(context.Background(), slog.LevelDebug) {
		h.Log.Debug("request", "kind", u.kind, "method", u.method, "status", u.status, "whole", u.ended, "took", took.String(),
			"engine_took", engine.String(), "trace_id", u.traceID(r.Header))
	}
}

// WriteHeader implements http.ResponseWriter.
func (u *underway) WriteHeader(status int) {
	if u.status < 200 {
		u.status = status
	}
	u.reply.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (u *underway) Write(p []byte) (int, error) {
	start := clock()
	n, err := u.reply.Write(p)
	u.client.Add(int64(clock() - start))
	return n, err
}

// FlushError is for http.ResponseController.
func (u *underway) FlushError() error {
	start := clock()
	err := http.NewResponseController(u.ResponseWriter).Flush()
	u.client.Add(int64(clock() - start))
	return err
}

// RoundTrip implements http.RoundTripper. The request's URL gives path and query alone.
func (n *nodes) RoundTrip(r *http.Request) (*http.Response, error) {
	return n.meter.roundTrip(r, "", n.try)
}

// meter takes the times of what is sent to the engine, and writes the spans of it.
type meter struct {
	metrics *Metrics
	traces  *Traces
}

// Transport returns a transport whose requests are of our own making, for a [adapters.Store] that acts for clients: while the
// engine answers them, the client's request waits for the engine.
func (m *Metrics) Transport(next http.RoundTripper, traces *Traces) http.RoundTripper {
	return looking{meter{m, traces}, next}
}

type looking struct {
	meter meter
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l looking) RoundTrip(r *http.Request) (*http.Response, error) {
	return l.meter.roundTrip(r, "look_up", l.next.RoundTrip)
}

// roundTrip sends a request to the engine by send. What it is for is operation, or the client's own request where that is empty.
func (m meter) roundTrip(
	r *http.Request, operation string, send func(*http.Request) (*http.Response, error),
) (*http.Response, error) {
	u := underwayOf(r.Context())
	if u == nil {
		resp, err := send(r)
		m.metrics.failed(r, err)
		return resp, err
	}
	var span trace.Span
	if u.span != nil {
		if operation == "" {
			operation = u.kind
		}
		r, span = u.asking(m.traces, r, operation)
	}
	u.asked.Store(true)
	start, waited := clock(), u.client.Load()
	resp, err := send(r)
	spent := int64(clock() - start)
	if u.made != nil { // our own work stands between the client and the engine
		spent -= u.made.waited.Load()
	} else {
		spent -= u.client.Load() - waited
	}
	u.engine.Add(max(spent, 0))
	if span != nil {
		answeredBy(span, resp, err)
	}
	if err != nil {
		m.metrics.failed(r, err)
	} else if operation != "look_up" {
		u.hold.known(u.kind != "pass" && resp.StatusCode/100 == 2, resp.StatusCode == http.StatusUnauthorized)
	}
	if err != nil || resp.Body == nil || resp.Body == http.NoBody || resp.StatusCode == http.StatusSwitchingProtocols {
		if span != nil {
			span.End()
		}
		return resp, err
	}
	a := &u.first
	if !u.taken.CompareAndSwap(false, true) {
		a = &answer{}
	}
	a.ReadCloser, a.ctx, a.u, a.metrics, a.span = resp.Body, r.Context(), u, m.metrics, span
	resp.Body = a
	return resp, nil
}

// made is a body that is made while it is sent. It takes how long there was nothing to send.
type made struct {
	io.ReadCloser
	waited atomic.Int64 // nanoseconds
}

// making returns a body as that of a request which is sent once, on behalf of the one under way.
func making(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	m := &made{ReadCloser: body}
	if u := underwayOf(ctx); u != nil {
		u.made = m
	}
	return m
}

// Read implements io.Reader.
func (m *made) Read(p []byte) (int, error) {
	start := clock()
	n, err := m.ReadCloser.Read(p)
	m.waited.Add(int64(clock() - start))
	return n, err
}

// answer is the body of a reply of the engine.
type answer struct {
	io.ReadCloser
	ctx     context.Context // of the request
	u       *underway
	metrics *Metrics
	span    trace.Span // nil for none
	ended   atomic.Bool
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	start := clock()
	n, err := a.ReadCloser.Read(p)
	a.u.engine.Add(int64(clock() - start))
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
		if a.span != nil {
			answeredBy(a.span, nil, err)
		}
	}
	if a.span != nil {
		a.span.End()
	}
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
	if isDial(err) || isHandshake(err) {
		return "dial"
	}
	if errors.Is(err, context.Canceled) { // another request of the same round was refused, or the client has gone
		return "canceled"
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) {
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
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "remote error" || op.Op == "local error") // an alert
}
