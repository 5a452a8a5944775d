package server

import (
	"context"
	"errors"
	"fmt"
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

// adminName is the admin listener's name beside those of engines.
const adminName = "admin"

// ageEvery is how often certificates are looked at for their age.
const ageEvery = time.Minute

// startEmbedded starts an embedded engine on a loopback address of its own.
func startEmbedded() (*http.Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the embedded engine: %w", err)
	}
	engine := &http.Server{
		Addr: l.Addr().String(), Handler: embedded.New(), ReadHeaderTimeout: config.ReadHeaderTimeout, DisableGeneralOptionsHandler: true,
	}
	go func() { _ = engine.Serve(l) }() // it ends with Close
	return engine, nil
}

// state is what serves a configuration: backends, the TLS of clients and embedded engines by the engine's name, endpoints by their key.
type state struct {
	config    *config.Config
	backends  map[string]*backend
	clientTLS map[string]*certs.Certificates // nil without TLS
	endpoints map[string]*endpoint
	embedded  map[string]*http.Server // which keep their documents while their rules change
	probes    map[bool]*probeCache    // of all nodes, and of as many as it took
}

func newState(c *config.Config) state {
	return state{
		config: c, backends: map[string]*backend{}, clientTLS: map[string]*certs.Certificates{}, endpoints: map[string]*endpoint{}, embedded: map[string]*http.Server{},
		probes: map[bool]*probeCache{true: {}, false: {}},
	}
}

// plan is a configuration that can be served: all that can fail has been done, and nothing that serves has been touched.
type plan struct {
	state
	list []*endpoint // of the engines, in their order, and then the admin listener
}

// plan makes whatever of a configuration is not there yet, or reports all that can't be made.
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
		s.giveUp(p.state, s.state)
		return nil, err
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
	if old := s.backends[e.Name]; old != nil && reflect.DeepEqual(old.made, essence(e)) {
		p.backends[e.Name] = old
		return nil
	}
	u, err := s.newBackend(e, p.embedded[e.Name])
	if err == nil {
		p.backends[e.Name] = u
	}
	return err
}

// planClientTLS keeps the certificates of an engine's listener, or reads them if other files are named.
func (s *process) planClientTLS(p *plan, e *config.Engine) (err error) {
	held, files := s.clientTLS[e.Name], e.ListenTLS.Files()
	if !held.Of(files) {
		held, err = certs.New(files, s.log.With("engine", e.Name))
	}
	p.clientTLS[e.Name] = held
	return err
}

// planEndpoint keeps the endpoint of an address if its options are the same. Otherwise it makes one on the sockets of the one before, or that were
// passed, or on a new one.
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
		return fmt.Errorf("%s: the socket %s was passed for another: name each after its engine", config, other.addr())
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

// addressHint says what can be done where an address can't be listened on.
func (s *process) addressHint(address string, err error) string {
	if _, port, _ := net.SplitHostPort(address); errors.Is(err, syscall.EADDRINUSE) {
		for _, d := range s.endpoints {
			if _, taken, _ := net.SplitHostPort(d.addr().String()); taken == port {
				return "this sidecar holds the port at " + d.addr().String() + ": choose another port, or restart it"
			}
		}
	}
	return "choose another address, or stop what holds this one"
}

// commit carries out a plan: nothing can fail from here on.
func (s *process) commit(p *plan) {
	limitMemory(p.config)
	before := s.state
	s.state = p.state
	s.logs.set(p.config.Log)
	if err := s.tracing.apply(p.config.Traces); err != nil {
		s.log.Error("traces go on as before", "error", err.Error())
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
	s.play(p.config, s.backends)
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
	s.giveUp(before, s.state)
}

// refresh reads all certificates again, and warns of those that expire soon. A certificate whose files are not sound stays as it is.
func (s *process) refresh() {
	for name, u := range s.backends {
		_ = s.clientTLS[name].Reload() // it says so itself, as the next
		_ = u.certificates.Reload()
	}
}

// giveUp ends what one state has and the other has not: what is not served any more, or what was made for a plan that is not carried out.
func (s *process) giveUp(from, kept state) {
	for key, d := range from.endpoints {
		if kept.endpoints[key] != d {
			s.closeEndpoint(d)
		}
	}
	for name, u := range from.backends {
		if kept.backends[name] != u {
			u.gone.Store(true)
			u.release()
		}
	}
	for name, engine := range from.embedded {
		if kept.embedded[name] != engine {
			s.leaving.Go(func() {
				s.wait()
				_ = engine.Close() // nobody asks it any more
			})
		}
	}
}

// closeEndpoint closes an endpoint and ends it with the last of its requests, or when the drain is over: that begins now or, where another one has the
// address, when everything ends.
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
		_ = d.Close() // nothing is left to be done about it
	})
}

// wait lets what is given up linger, unless everything ends.
func (s *process) wait() {
	timer := time.NewTimer(s.linger)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.hurry:
	}
}

// reload serves what the configuration says now; or goes on as before, if it can't be served.
func (s *process) reload(why string) {
	s.systemd.reloading()
	defer func() { s.systemd.ready(s.config) }()
	began := time.Now()
	s.refresh()
	c, err := config.Load(s.config.File, os.LookupEnv)
	var p *plan
	if err == nil {
		p, err = s.plan(c)
	}
	if err != nil {
		s.meters.keep(s.backends) // and none of engines that were not taken
		s.meters.reloaded(false)
		s.log.Error("configuration not reloaded, the one before stays", "why", why, "config", s.config.File, "error", oneLine(err))
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

// limitMemory has the garbage collector keep what config.yaml promises: three times max_held for each engine, and some 20 MB. It begins to work
// harder at two times. GOMEMLIMIT and GOGC, where set, count in its place.
func limitMemory(c *config.Config) {
	if os.Getenv("GOGC") == "" {
		_ = ballast()
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := int64(ballastSize + 16<<20)
	for _, e := range c.Engines {
		limit += 2 * int64(e.Limits.MaxHeld)
	}
	debug.SetMemoryLimit(limit)
}

// ballastSize is four times what is allocated at least between two collections. Go's own pace, as much as is in use, has a sidecar with little in use
// collect every few megabytes, which took a third of its processor time.
const ballastSize = 32 << 20

// ballast is never written, so that it takes addresses and no memory.
var ballast = sync.OnceValue(func() []byte {
	debug.SetGCPercent(25)
	return make([]byte, ballastSize)
})
