package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"golang.org/x/time/rate"

	"github.com/neardup/sidecar/internal/buildinfo"
	"github.com/neardup/sidecar/internal/config"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/neardup/sidecar/proxy"
)

const (
	// serviceName is how spans call the sidecar where OTEL_SERVICE_NAME does not say otherwise.
	serviceName = "neardup-sidecar"
	// flushing bounds how long spans that are left at the end may take to be sent.
	flushing = 5 * time.Second
	// complainEvery is how often it is logged that spans can't be sent.
	complainEvery = time.Minute
	// otlpPath is where a receiver of OTLP over HTTP takes spans, below its address.
	otlpPath = "/v1/traces"
)

// tracing sends spans to a receiver, or makes none.
type tracing struct {
	log    *slog.Logger
	tracer atomic.Pointer[trace.Tracer]

	// Of the one goroutine that reloads and ends.
	config   config.Traces
	provider *sdk.TracerProvider // nil for none

	complaints rate.Sometimes
}

func newTracing(log *slog.Logger) *tracing {
	t := &tracing{log: log, complaints: rate.Sometimes{Interval: complainEvery}}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(t.complain)) // or it would write lines of its own form
	return t
}

// of returns where the spans of an engine go.
func (t *tracing) of(e *config.Engine) *proxy.Traces {
	return &proxy.Traces{Engine: e.Name, System: e.Kind, Tracer: &t.tracer}
}

// complain takes the errors of sending spans.
func (t *tracing) complain(err error) {
	t.complaints.Do(func() { t.log.Warn("traces can't be sent", "error", err.Error()) })
}

// apply takes a configuration; spans of requests under way go where those of the one before went.
func (t *tracing) apply(c config.Traces) error {
	if t.config == c {
		return nil
	}
	var provider *sdk.TracerProvider
	if c.Endpoint != "" && !strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		var err error
		if provider, err = newProvider(c); err != nil {
			return fmt.Errorf("traces: %w", err)
		}
		tracer := provider.Tracer("github.com/neardup/sidecar", trace.WithInstrumentationVersion(buildinfo.Of().Version))
		t.tracer.Store(&tracer)
	} else {
		t.tracer.Store(nil)
	}
	if t.provider != nil {
		go t.flush(t.provider)
	}
	t.provider, t.config = provider, c
	return nil
}

// close sends what is left, and ends.
func (t *tracing) close() {
	t.tracer.Store(nil)
	if t.provider != nil {
		t.flush(t.provider)
	}
}

func (t *tracing) flush(provider *sdk.TracerProvider) {
	ctx, cancel := context.WithTimeout(context.Background(), flushing)
	defer cancel()
	if err := provider.Shutdown(ctx); err != nil {
		t.complain(errors.Join(errors.New("some were not sent at the end"), err))
	}
}

// newProvider returns what makes spans and sends them in batches. What the configuration does not say, the environment does:
// OTEL_* as OpenTelemetry has it.
func newProvider(c config.Traces) (*sdk.TracerProvider, error) {
	endpoint := strings.TrimSuffix(c.Endpoint, "/")
	if !strings.HasSuffix(endpoint, otlpPath) {
		endpoint += otlpPath
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, err
	}
	v := buildinfo.Of()
	about, err := resource.New(context.Background(),
		resource.WithAttributes(semconv.ServiceName(serviceName), semconv.ServiceVersion(v.Version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, err
	}
	options := []sdk.TracerProviderOption{sdk.WithBatcher(exporter), sdk.WithResource(about)}
	if cmp.Or(os.Getenv("OTEL_TRACES_SAMPLER"), os.Getenv("OTEL_TRACES_SAMPLER_ARG")) == "" {
		options = append(options, sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(c.Sample))))
	}
	return sdk.NewTracerProvider(options...), nil
}
