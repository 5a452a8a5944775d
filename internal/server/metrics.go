package server

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/neardup/sidecar/internal/buildinfo"
	"github.com/neardup/sidecar/internal/certs"
	"github.com/neardup/sidecar/proxy"
)

// engineLabel is the label for the name of an engine.
const engineLabel = "engine"

// meters are the metrics of one process. Reloads keep them.
type meters struct {
	registry *prometheus.Registry
	reloads  *prometheus.CounterVec
	// stale says that the last reload failed.
	stale   atomic.Bool
	engines map[string]*proxy.Metrics // only the goroutine that reloads uses it
}

// newMeters registers the metrics of a process.
func newMeters(s *status) *meters {
	m := &meters{registry: newRegistry(), engines: map[string]*proxy.Metrics{}}
	to := promauto.With(m.registry)
	m.reloads = to.NewCounterVec(prometheus.CounterOpts{
		Name: "neardup_config_reloads_total", Help: "Configurations read after the first: ok, or failed and the previous one stays.",
	}, []string{"result"})
	for _, result := range []string{"ok", "failed"} {
		m.reloads.WithLabelValues(result)
	}
	to.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "neardup_config_stale", Help: "1 while the last reload of the configuration has failed and the previous one is in use, else 0.",
	}, func() float64 { return map[bool]float64{true: 1}[m.stale.Load()] })
	m.registry.MustRegister(expiries{s})
	return m
}

// newRegistry returns a registry with the metrics that every command has: version, Go runtime and process.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	v := buildinfo.Of()
	promauto.With(r).NewGauge(prometheus.GaugeOpts{
		Name: "neardup_build_info", Help: "1; the labels say what is running.",
		ConstLabels: prometheus.Labels{"version": v.Version, "revision": v.Revision, "goversion": v.Go},
	}).Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// engine returns the metrics of the engine with the name: the same ones until keep drops them.
func (m *meters) engine(name string) *proxy.Metrics {
	if m.engines[name] == nil {
		m.engines[name] = proxy.NewMetrics(m.labelled(name))
	}
	return m.engines[name]
}

func (m *meters) labelled(name string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{engineLabel: name}, m.registry)
}

// keep drops the metrics of engines that have no backend here.
func (m *meters) keep(backends map[string]*backend) {
	for name, engine := range m.engines {
		if backends[name] == nil {
			m.labelled(name).Unregister(engine)
			delete(m.engines, name)
		}
	}
}

// reloaded counts a reload.
func (m *meters) reloaded(ok bool) {
	m.stale.Store(!ok)
	m.reloads.WithLabelValues(map[bool]string{true: "ok", false: "failed"}[ok]).Inc()
}

// handler serves all metrics.
func (m *meters) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4})
}

// expiries collects when the first certificate in each engine's section expires.
type expiries struct{ *status }

var expiryDesc = prometheus.NewDesc("neardup_certificate_expiry_seconds",
	"When the first certificate in the engine's section expires, in Unix time.", []string{engineLabel}, nil)

// Describe implements prometheus.Collector.
func (expiries) Describe(to chan<- *prometheus.Desc) { to <- expiryDesc }

// Collect implements prometheus.Collector.
func (e expiries) Collect(to chan<- prometheus.Metric) {
	now := e.now.Load()
	if now == nil {
		return
	}
	for _, engine := range now.config.Engines {
		if end := certs.Earliest(now.clientTLS[engine.Name], now.backends[engine.Name].certificates); !end.IsZero() {
			to <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, float64(end.Unix()), engine.Name)
		}
	}
}
