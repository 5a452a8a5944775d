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
	// serviceName is the service's name in spans, unless OTEL_SERVICE_NAME is set.
	serviceName = "neardup-sidecar"
	// flushTimeout is how long sending the last spans may take.
	flushTimeout = 5 * time.Second
	// errorInterval is how often errors of sending spans are logged.
	errorInterval = time.Minute
	// otlpPath is the path of OTLP over HTTP.
	otlpPath = "/v1/traces"
)

// tracing sends spans to a receiver, if one is configured.
type tracing struct {
	log    *slog.Logger
	tracer atomic.Pointer[trace.Tracer]

	// Only the goroutine that reloads and shuts down uses these.
	config   config.Traces
	provider *sdk.TracerProvider // nil for none

	errors rate.Sometimes
}

func newTracing(log *slog.Logger) *tracing {
	t := &tracing{log: log, errors: rate.Sometimes{Interval: errorInterval}}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(t.logError)) // by default it writes lines in another format
	return t
}

// of returns the traces of an engine's requests.
func (t *tracing) of(e *config.Engine) *proxy.Traces {
	return &proxy.Traces{Engine: e.Name, System: e.Kind, Tracer: &t.tracer}
}

// logError logs an error of sending spans.
func (t *tracing) logError(err error) {
	t.errors.Do(func() { t.log.Warn("traces can't be sent", "error", err.Error()) })
}

// apply applies a configuration. Spans of requests in progress still go to the previous receiver.
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

// close sends the spans that are left.
func (t *tracing) close() {
	t.tracer.Store(nil)
	if t.provider != nil {
		t.flush(t.provider)
	}
}

func (t *tracing) flush(provider *sdk.TracerProvider) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := provider.Shutdown(ctx); err != nil {
		t.logError(errors.Join(errors.New("some were not sent at the end"), err))
	}
}

// newProvider returns a provider that sends spans in batches. The OTEL_* variables of OpenTelemetry count for everything that the
// configuration does not set.
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
