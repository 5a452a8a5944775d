package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
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

// underway is a client's request that is being answered. It is also the context of what is done for it, so that what is sent to the engine
// finds it (underwayOf), and the writer of the reply, so that it knows what was written.
//
// Its time has three parts: it waits for the client (reads its body, writes to it), it waits for the engine (for the header of a reply, or the
// reply's body), or the time is ours. While a body streams, two of these can go on at once.
type underway struct {
	context.Context // the request's
	http.ResponseWriter
	body   source
	hold   hold // what it holds in memory of bodies and replies, given back at its end
	sender sender
	class  adapters.Class
	kind   string
	status int // 0 until it is written

	clocks
	unconfigured bool        // no rule matches its index
	insisted     atomic.Bool // the engine was asked again for names, in vain
	newIndex     atomic.Bool // a document creates its index; in a stream it may come after the reply
	ended, gone  bool        // it was not cut off; the client cut it off
	span         trace.Span  // one that records nothing where the request is not traced
}

// clocks are the times of a request.
type clocks struct {
	start              time.Duration
	client, engineTime atomic.Int64 // what it waited for them, in nanoseconds
	engineAsked        atomic.Bool  // at least once
	streamed           *streamed    // the body that goes to the engine while it is enriched
}

// alters reports whether the request may make, change or drop an index.
func (u *underway) alters() bool { return u.class.Alters || u.newIndex.Load() }

type underwayKey struct{}

// Value implements context.Context.
func (u *underway) Value(key any) any {
	if _, ok := key.(underwayKey); ok {
		return u
	}
	return u.Context.Value(key)
}

// underwayOf returns the client's request that a context belongs to; nil for none.
func underwayOf(ctx context.Context) *underway {
	u, _ := ctx.Value(underwayKey{}).(*underway)
	return u
}

// begin returns a client's request as one under way: counted, traced, and with its times measured. end must follow.
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

// countAs counts a request under its kind; its times will be counted under that too.
func (h *Handler) countAs(u *underway, kind string) {
	h.Metrics.requests.WithLabelValues(kind).Inc()
	u.kind = kind
}

// end counts a request and its times, and logs it. The times of one that was cut off are not counted.
func (h *Handler) end(u *underway, r *http.Request) {
	if !u.ended && u.status >= 200 {
		_ = u.FlushError() // the client gets the part of a reply that came before it broke off
	}
	h.Metrics.inFlight.Dec()
	t := Times{Engine: time.Duration(u.engineTime.Load()), Total: clock() - u.start}
	t.Own = max(t.Total-t.Engine-time.Duration(u.client.Load()), 0)
	if u.ended {
		h.Metrics.added.WithLabelValues(u.kind).Observe(t.Own.Seconds())
		if u.engineAsked.Load() {
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
