package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/neardup/sidecar/demo/embedded"
	"github.com/neardup/sidecar/internal/certs"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
)

// adminName is the admin listener's name among those of the engines.
const adminName = "admin"

// certificateInterval is how often certificates are read again, and checked for their expiry.
const certificateInterval = time.Minute

// startEmbedded starts an embedded engine on a free loopback port.
func startEmbedded() (*http.Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the embedded engine: %w", err)
	}
	engine := &http.Server{
		Addr: l.Addr().String(), Handler: embedded.New(), ReadHeaderTimeout: config.ReadHeaderTimeout, DisableGeneralOptionsHandler: true,
	}
	go func() { _ = engine.Serve(l) }() // until Close
	return engine, nil
}

// state is what serves a configuration. Backends, TLS to clients and embedded engines are by the engine's name, endpoints by their key.
type state struct {
	config    *config.Config
	backends  map[string]*backend
	clientTLS map[string]*certs.Certificates // nil without TLS
	endpoints map[string]*endpoint
	embedded  map[string]*http.Server // they keep their documents when rules change
	probes    map[bool]*probeCache    // true: of all nodes; false: until one answers
}

func newState(c *config.Config) state {
	return state{
		config: c, backends: map[string]*backend{}, clientTLS: map[string]*certs.Certificates{}, endpoints: map[string]*endpoint{}, embedded: map[string]*http.Server{},
		probes: map[bool]*probeCache{true: {}, false: {}},
	}
}

// plan is the state for a new configuration. Everything that can fail has been done, and the current state is unchanged.
type plan struct {
	state
	list []*endpoint // of the engines, in their order, and then the admin listener
}

// plan makes the parts of a configuration that the current state does not have, or reports all errors.
func (s *process) plan(c *config.Config) (*plan, error) {
	p := &plan{state: newState(c)}
	var errs []error
	for i := range c.Engines {
		e := &c.Engines[i]
		err := errors.Join(s.planClientTLS(p, e), s.planBackend(p, e))
		if err != nil {
			errs = append(errs, fmt.Errorf("engines[%d].%w", i, err))
		}
		options := connOptions{time.Duration(e.Limits.HeaderTimeout), time.Duration(e.Limits.IdleTimeout), p.clientTLS[e.Name].ServerConfig()}
		errs = append(errs, s.planEndpoint(p, fmt.Sprintf("engines[%d].listen", i), e.Name, e.Listen, options))
	}
	if c.Admin != "" {
		options := connOptions{header: config.ReadHeaderTimeout, idle: config.IdleTimeout}
		errs = append(errs, s.planEndpoint(p, adminName, adminName, c.Admin, options))
	}
	if err := errors.Join(errs...); err != nil {
		s.retire(p.state, s.state)
		return nil, err
	}
	for _, u := range p.backends {
		u.begun.Wait()
	}
	return p, nil
}

// planBackend keeps the engine's backend if its section did not change, and makes a new one otherwise.
func (s *process) planBackend(p *plan, e *config.Engine) error {
	if e.Kind == kind.Embedded {
		if p.embedded[e.Name] = s.embedded[e.Name]; p.embedded[e.Name] == nil {
			engine, err := startEmbedded()
			if err != nil {
				return err
			}
			p.embedded[e.Name] = engine
		}
	}
	if old := s.backends[e.Name]; old != nil && reflect.DeepEqual(old.section, servedSection(e)) {
		p.backends[e.Name] = old
		return nil
	}
	u, err := s.newBackend(e, p.embedded[e.Name], s.backends[e.Name])
	if err == nil {
		p.backends[e.Name] = u
	}
	return err
}

// planClientTLS keeps the certificates of an engine's listener, or reads them if other files are named.
func (s *process) planClientTLS(p *plan, e *config.Engine) (err error) {
	certificates, files := s.clientTLS[e.Name], e.ListenTLS.Files()
	if !certificates.Of(files) {
		certificates, err = certs.New(files, s.log.With("engine", e.Name))
	}
	p.clientTLS[e.Name] = certificates
	return err
}

// planEndpoint keeps the endpoint of an address if its options are the same. Otherwise it makes one on the sockets of the previous endpoint, on
// those that the service manager passed, or on a new one.
func (s *process) planEndpoint(p *plan, config, name, address string, options connOptions) (err error) {
	d := &endpoint{
		key: address, admin: config == adminName, options: options, log: s.log, failed: s.failed, handler: new(atomic.Pointer[http.Handler]),
	}
	passed := s.passed.of(name, address)
	switch {
	case passed != nil:
		d.key = "passed " + passed[0].Addr().String()
	case d.admin || strings.HasSuffix(address, ":0"):
		d.key = name + " " + address
	}
	if other := p.endpoints[d.key]; other != nil {
		return fmt.Errorf("%s: the socket %s was passed for another engine: name each socket after its engine", config, other.addr())
	}
	old := s.endpoints[d.key]
	switch {
	case old != nil && old.options == options:
		d = old
	case old != nil:
		d.handler = old.handler
		d.sockets, err = duplicate(old.sockets)
	case passed != nil:
		d.sockets, err = duplicate(passed)
	default:
		socket, wrong := net.Listen("tcp", address)
		if wrong != nil {
			return fmt.Errorf("%s: %w: %s", config, wrong, s.addressHint(address, wrong))
		}
		d.sockets = []net.Listener{socket}
	}
	if err != nil {
		d.shut() // those that were duplicated
		return fmt.Errorf("%s: %w", config, err)
	}
	if p.endpoints[d.key], p.list = d, append(p.list, d); d != old {
		d.prepare()
	}
	return nil
}

// addressHint says what to do if an address can't be listened on.
func (s *process) addressHint(address string, err error) string {
	if _, port, _ := net.SplitHostPort(address); errors.Is(err, syscall.EADDRINUSE) {
		for _, d := range s.endpoints {
			if _, taken, _ := net.SplitHostPort(d.addr().String()); taken == port {
				return "this sidecar uses the port at " + d.addr().String() + ": choose another port, or restart it"
			}
		}
	}
	return "choose another address, or stop the program that uses this one"
}

// commit replaces the current state by a plan. It can't fail.
func (s *process) commit(p *plan) {
	limitMemory(p.config)
	before := s.state
	s.state = p.state
	s.logs.set(p.config.Log)
	if err := s.tracing.apply(p.config.Traces); err != nil {
		s.log.Error("traces keep their previous configuration", "error", err.Error())
	}
	for i, d := range p.list {
		h := s.status.handler()
		if !d.admin {
			e := &p.config.Engines[i]
			u := s.backends[e.Name]
			h = u
			if before.endpoints[d.key] == nil {
				s.log.Info("listening", "engine", e.Name, "addr", d.addr().String(), "kind", e.Kind, "urls", urlsOf(u), "rules", len(e.Indices))
			}
		}
		d.handler.Store(&h)
	}
	s.status.now.Store(&p.state)
	s.setPlayground(p.config, s.backends)
	s.meters.keep(s.backends)
	for key, d := range s.endpoints {
		if before.endpoints[key] != d {
			d.start()
		}
		if d.admin && before.endpoints[key] == nil {
			s.log.Info("admin listening", "addr", d.addr().String())
			s.status.warnOpen(s.log, d.addr())
		}
	}
	for key, d := range before.endpoints {
		if s.endpoints[key] == nil {
			s.log.Info("not listening any more", "addr", d.addr().String())
		}
	}
	s.retire(before, s.state)
	for name, u := range s.backends {
		if u.decided == nil {
			s.meters.engine(name).ReadDecided(0, nil)
		}
	}
}

// reloadCertificates reads all certificates again, and warns of those that expire soon. If the files are invalid, the previous certificates
// stay.
func (s *process) reloadCertificates() {
	for name, u := range s.backends {
		_ = s.clientTLS[name].Reload() // it logs its errors, as the next
		_ = u.certificates.Reload()
	}
}

// retire closes the parts of one state that another does not have: those of the previous configuration, or of a plan that failed.
func (s *process) retire(from, kept state) {
	for key, d := range from.endpoints {
		if kept.endpoints[key] != d {
			s.closeEndpoint(d)
		}
	}
	for name, u := range from.backends {
		if kept.backends[name] != u {
			u.retired.Store(true)
			u.release()
		}
	}
	for name, engine := range from.embedded {
		if kept.embedded[name] != engine {
			s.leaving.Go(func() {
				s.wait()
				_ = engine.Close() // nobody uses it any more
			})
		}
	}
}

// closeEndpoint stops an endpoint from accepting connections, and ends it after its last request, or when the drain is over. The drain begins now.
// If another endpoint has the address, it begins when the sidecar shuts down.
func (s *process) closeEndpoint(d *endpoint) {
	now := s.endpoints[d.key]
	stays := now != nil && now != d
	if !stays {
		s.passed.drop(d)
	}
	d.shut()
	hurry := s.hurry
	s.leaving.Go(func() {
		s.wait()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			if stays {
				select {
				case <-hurry:
				case <-ctx.Done():
				}
			}
			time.AfterFunc(s.Drain, cancel)
		}()
		if d.Shutdown(ctx) == nil {
			return
		}
		if n := d.busy.Load(); n > 0 {
			s.cut.Add(n)
			s.log.Warn("requests cut off", "addr", d.addr().String(), "requests", n)
		}
		_ = d.Close() // an error does not matter any more
	})
}

// wait returns after the time to linger, or at once when the sidecar shuts down.
func (s *process) wait() {
	timer := time.NewTimer(s.linger)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.hurry:
	}
}

// reload reads the configuration again and serves it. If that fails, it keeps the previous one.
func (s *process) reload(why string) {
	s.systemd.reloading()
	defer func() { s.systemd.ready(s.config) }()
	began := time.Now()
	s.reloadCertificates()
	c, err := config.Load(s.config.File, os.LookupEnv)
	var p *plan
	if err == nil {
		err = s.testReload(c)
	}
	if err == nil {
		p, err = s.plan(c)
	}
	if err != nil {
		s.meters.keep(s.backends) // drop those of engines in the failed plan
		s.meters.reloaded(false)
		s.log.Error("configuration not reloaded, the previous one stays", "why", why, "config", s.config.File, "error", oneLine(err))
		return
	}
	var made []string // engines whose backends are replaced
	for _, e := range c.Engines {
		if p.backends[e.Name] != s.backends[e.Name] {
			made = append(made, e.Name)
		}
	}
	s.commit(p)
	s.meters.reloaded(true)
	s.log.Info("configuration reloaded", "why", why, "config", c.File, "engines", len(c.Engines), "rules", c.RuleCount(),
		"made_anew", strings.Join(made, ","), "took", time.Since(began).Round(time.Microsecond).String())
}

// oneLine returns joined errors as one line.
func oneLine(err error) string {
	var all []string
	for _, e := range config.Flatten(err) {
		all = append(all, e.Error())
	}
	return strings.Join(all, "; ")
}

// limitMemory sets up the garbage collector for the memory that config.yaml promises: three times max_held for each engine, and about 20 MB. It
// begins to work harder at two times. GOMEMLIMIT and GOGC take precedence.
func limitMemory(c *config.Config) {
	limit := int64(16 << 20)
	if os.Getenv("GOGC") == "" {
		limit += int64(len(ballast()))
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	for _, e := range c.Engines {
		limit += 2 * int64(e.Limits.MaxHeld)
	}
	debug.SetMemoryLimit(limit)
}

// ballastSize and ballastPercent have at least 14 MB allocated between two garbage collections, and little more where much is in use. By default
// Go collects when the memory in use has doubled. A sidecar that uses little would collect every few megabytes, which took a third of its
// processor time. Every 8 MB still took a tenth.
const (
	ballastSize    = 128 << 20
	ballastPercent = 11
)

// ballast is never written to, so it takes up addresses but no memory. It comes on top of GOMEMLIMIT.
var ballast = sync.OnceValue(func() []byte {
	debug.SetGCPercent(ballastPercent)
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit + ballastSize)
	}
	return make([]byte, ballastSize)
})
