package proxy

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Traces is where the spans of a Handler go: one of kind server for each request of a client, below it one of kind client for
// each request to the engine, by OpenTelemetry's conventions for HTTP and databases. No span holds a path, a query, a header or
// a body. Without a tracer nothing is traced, and a client's trace context passes as it came.
type Traces struct {
	// Engine and System are what the spans say of the engine: its name and its product.
	Engine, System string
	// Tracer holds the tracer, nil for none. It can change at any time, and be that of several Traces.
	Tracer *atomic.Pointer[trace.Tracer]
}

// tracer returns the tracer in use, nil for none.
func (t *Traces) tracer() trace.Tracer {
	if t != nil && t.Tracer != nil {
		if tracer := t.Tracer.Load(); tracer != nil {
			return *tracer
		}
	}
	return nil
}

// traceContext is the W3C trace context. Baggage is the client's and the engine's, and passes as it came.
var traceContext propagation.TraceContext

// noSpan records nothing.
var noSpan = trace.SpanFromContext(context.Background())

// methodOf returns the method of a request as spans name it.
func methodOf(r *http.Request) string {
	switch r.Method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return r.Method
	}
	return "_OTHER"
}

// traced begins the span of a client's request, if its trace is recorded.
func (u *underway) traced(tracer trace.Tracer, r *http.Request) {
	if u.span = noSpan; tracer == nil {
		return
	}
	ctx := traceContext.Extract(u.Context, propagation.HeaderCarrier(r.Header))
	ctx, span := tracer.Start(ctx, methodOf(r), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", methodOf(r))))
	if span.IsRecording() {
		u.Context, u.span = ctx, span
	}
}

// endSpan ends the span of a client's request.
func (u *underway) endSpan(t *Traces, r *http.Request) {
	if !u.span.IsRecording() {
		return
	}
	u.span.SetName(methodOf(r) + " " + u.kind)
	u.span.SetAttributes(attribute.String("neardup.kind", u.kind), attribute.String("neardup.engine", t.Engine))
	if u.status > 0 {
		u.span.SetAttributes(attribute.Int("http.response.status_code", u.status))
	}
	switch {
	case !u.ended:
		failed(u.span, "cut_off")
	case u.status >= 500:
		failed(u.span, strconv.Itoa(u.status))
	}
	u.span.End()
}

// failed says in a span what went wrong.
func failed(span trace.Span, what string) {
	span.SetAttributes(attribute.String("error.type", what))
	span.SetStatus(codes.Error, "")
}

// asking begins the span of a request to the engine on behalf of a client's, and puts it into a copy of the request's header. A
// request that is signed keeps its header.
func (u *underway) asking(t *Traces, r *http.Request, operation string) (*http.Request, trace.Span) {
	tracer := t.tracer()
	if tracer == nil || !u.span.IsRecording() {
		return r, noSpan
	}
	if operation == "" {
		operation = u.kind
	}
	ctx, span := tracer.Start(trace.ContextWithSpan(r.Context(), u.span), operation, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("db.system.name", t.System), attribute.String("db.operation.name", operation),
			attribute.String("http.request.method", methodOf(r)),
		))
	if !signed(r) {
		r = r.WithContext(r.Context())
		r.Header = r.Header.Clone()
		traceContext.Inject(ctx, propagation.HeaderCarrier(r.Header))
	}
	return r, span
}

// answeredBy says in a span what answered, or what kept it from answering.
func answeredBy(span trace.Span, resp *http.Response, err error) {
	if !span.IsRecording() {
		return
	}
	if err != nil {
		failed(span, harm(err))
		return
	}
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	if resp.Request != nil && resp.Request.URL != nil {
		span.SetAttributes(attribute.String("server.address", resp.Request.URL.Hostname()))
		if port, err := strconv.Atoi(resp.Request.URL.Port()); err == nil {
			span.SetAttributes(attribute.Int("server.port", port))
		}
	}
	if resp.StatusCode >= 400 {
		failed(span, strconv.Itoa(resp.StatusCode))
	}
}

// traceID returns the id of the trace that a request belongs to: ours, or else the one that its client names; empty for none.
func (u *underway) traceID(header http.Header) string {
	of := u.span.SpanContext()
	if !of.HasTraceID() {
		of = trace.SpanContextFromContext(traceContext.Extract(context.Background(), propagation.HeaderCarrier(header)))
	}
	if !of.HasTraceID() {
		return ""
	}
	return of.TraceID().String()
}
