package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
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

// clientTLS holds the certificates that the clients of one engine see.
type clientTLS struct {
	section      config.ListenTLS
	certificates *certs.Certificates // nil without TLS
}

// embeddedEngine is an embedded engine, on a loopback address of its own.
type embeddedEngine struct {
	server *http.Server
	addr   net.Addr
}

func startEmbedded() (*embeddedEngine, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the embedded engine: %w", err)
	}
	i := &embeddedEngine{addr: l.Addr()}
	i.server = &http.Server{Handler: embedded.New(), ReadHeaderTimeout: config.ReadHeaderTimeout, DisableGeneralOptionsHandler: true}
	go func() { _ = i.server.Serve(l) }() // it ends with close
	return i, nil
}

func (i *embeddedEngine) close() error { return i.server.Close() }

// state is what serves a configuration: backends, the TLS of clients and embedded engines by the engine's name, endpoints by their key.
type state struct {
	config    *config.Config
	backends  map[string]*backend
	clientTLS map[string]*clientTLS
	endpoints map[string]*endpoint
	embedded  map[string]*embeddedEngine // which keep their documents while their rules change
}

func newState(c *config.Config) state {
	return state{
		config: c, backends: map[string]*backend{}, clientTLS: map[string]*clientTLS{}, endpoints: map[string]*endpoint{}, embedded: map[string]*embeddedEngine{},
	}
}

// plan is a configuration that can be served: all that can fail has been done, and nothing that serves has been touched.
type plan struct {
	state
	keys    []string              // of the engines' endpoints, in their order
	servers map[*endpoint]*server // new ones
	undo    []func()
}

// drop frees what was made for a plan that is not carried out.
func (p *plan) drop() {
	for _, undo := range p.undo {
		undo()
	}
}

// plan makes whatever of a configuration is not there yet, or reports all that can't be made.
func (s *process) plan(c *config.Config) (*plan, error) {
	p := &plan{state: newState(c), servers: map[*endpoint]*server{}}
	var errs []error
	for i := range c.Engines {
		e := &c.Engines[i]
		d, err := s.planEndpoint(p, fmt.Sprintf("engines[%d].listen", i), e.Name, e.Listen)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.keys = append(p.keys, d.key)
		if err := errors.Join(s.planClientTLS(p, e), s.planBackend(p, e), s.planServer(p, d, e)); err != nil {
			errs = append(errs, fmt.Errorf("engines[%d].%w", i, err))
		}
	}
	if c.Admin != "" {
		d, err := s.planEndpoint(p, adminName, adminName, c.Admin)
		if err == nil {
			err = s.planServer(p, d, nil)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		p.drop()
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
			p.undo = append(p.undo, func() { _ = engine.close() }) // nobody used it
		}
	}
	if old := s.backends[e.Name]; old != nil && reflect.DeepEqual(old.made, essence(e)) {
		p.backends[e.Name] = old
		return nil
	}
	u, err := s.newBackend(e, p.embedded[e.Name])
	if err != nil {
		return err
	}
	p.undo = append(p.undo, u.retire)
	p.backends[e.Name] = u
	return nil
}

// planClientTLS keeps the certificates of an engine's listener, or reads them if other files are named.
func (s *process) planClientTLS(p *plan, e *config.Engine) error {
	if old := s.clientTLS[e.Name]; old != nil && old.section == e.ListenTLS {
		p.clientTLS[e.Name] = old
		return nil
	}
	certificates, err := certs.New(e.ListenTLS.Files(), s.log.With("engine", e.Name))
	p.clientTLS[e.Name] = &clientTLS{e.ListenTLS, certificates}
	return err
}

// planEndpoint finds the endpoint of an address, or opens its socket.
func (s *process) planEndpoint(p *plan, config, name, address string) (*endpoint, error) {
	passed := slices.Clone(s.passed.of(name, address))
	d := &endpoint{key: address, admin: config == adminName, log: s.log, failed: s.failed, sockets: passed}
	switch {
	case d.sockets != nil:
		d.key = "passed " + d.addr().String()
	case d.admin || strings.HasSuffix(address, ":0"):
		d.key = name + " " + address
	}
	if p.endpoints[d.key] != nil {
		return nil, fmt.Errorf("%s: the socket %s was passed for another: name each after its engine", config, d.addr())
	}
	if old := s.endpoints[d.key]; old != nil {
		p.endpoints[d.key] = old
		return old, nil
	}
	if d.sockets == nil {
		socket, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", config, err, s.addressHint(address, err))
		}
		d.sockets = []net.Listener{socket}
	}
	p.endpoints[d.key] = d
	p.undo = append(p.undo, d.shut)
	return d, nil
}

// planServer makes a server for an endpoint where its connection options change. Without an engine it is the admin listener's.
func (s *process) planServer(p *plan, d *endpoint, e *config.Engine) error {
	options := connOptions{header: config.ReadHeaderTimeout, idle: config.IdleTimeout}
	if e != nil {
		options = connOptions{time.Duration(e.Limits.HeaderTimeout), time.Duration(e.Limits.IdleTimeout), p.clientTLS[e.Name].certificates.ServerConfig()}
	}
	next, err := d.newServer(options)
	if next != nil {
		p.servers[d] = next
		p.undo = append(p.undo, next.stopAccepting)
	}
	return err
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
	var probes []probe
	var names []string
	shown := certificatesOf{}
	for i := range p.config.Engines {
		e := &p.config.Engines[i]
		d, u := p.endpoints[p.keys[i]], p.backends[e.Name]
		s.endServer(true, d.put(u, p.servers[d]))
		names = append(names, e.Name)
		shown[e.Name] = []*certs.Certificates{s.clientTLS[e.Name].certificates, u.certificates}
		probes = append(probes, probe{name: e.Name, urls: u.urls, transport: u.transport})
		if before.endpoints[d.key] == nil {
			s.log.Info("listening", "engine", e.Name, "addr", d.addr().String(), "kind", e.Kind, "urls", urlsOf(u),
				"rules", len(e.Indices))
		}
	}
	host, _, _ := net.SplitHostPort(p.config.Admin) // validated
	s.status.host.Store(&host)
	s.status.set(probes)
	s.play(p.config, p.backends)
	s.meters.keep(names)
	s.meters.certified.Store(&shown)
	for key, d := range p.endpoints {
		if d.admin && before.endpoints[key] == nil {
			s.putAdmin(d, p.servers[d])
		}
	}
	s.closeOld(before)
}

// putAdmin has an endpoint answer for the process itself.
func (s *process) putAdmin(d *endpoint, next *server) {
	d.put(s.status.handler(), next)
	s.log.Info("admin listening", "addr", d.addr().String())
	s.status.warnOpen(s.log, d.addr())
}

// refresh reads all certificates again, and warns of those that expire soon. A certificate whose files are not sound stays as it is.
func (s *process) refresh() {
	for _, list := range *s.meters.certified.Load() {
		for _, c := range list {
			_ = c.Reload() // it says so itself
		}
	}
}

// closeOld gives up what is not served any more.
func (s *process) closeOld(before state) {
	for key, d := range before.endpoints {
		if s.endpoints[key] == nil {
			s.log.Info("not listening any more", "addr", d.addr().String())
			s.closeEndpoint(d)
		}
	}
	for name, u := range before.backends {
		if s.backends[name] != u {
			u.retire()
		}
	}
	for name, engine := range before.embedded {
		if s.embedded[name] == nil {
			s.leaving.Go(func() {
				s.wait()
				_ = engine.close() // nobody asks it any more
			})
		}
	}
}

// closeEndpoint closes an endpoint.
func (s *process) closeEndpoint(d *endpoint) {
	d.shut()
	for name, list := range s.passed {
		s.passed[name] = slices.DeleteFunc(list, func(socket net.Listener) bool { return slices.Contains(d.sockets, socket) })
	}
	s.endServer(false, d.server.Load())
}

// endServer ends a server that gets no new connections, if there is one, with the last of its requests or when the drain is over.
func (s *process) endServer(stays bool, server *server) {
	if server == nil {
		return
	}
	s.leaving.Go(func() {
		s.wait()
		ctx, cancel := s.drainContext(stays)
		defer cancel()
		if n := server.quit(ctx); n > 0 {
			s.cut.Add(n)
			s.log.Warn("requests cut off", "addr", server.endpoint.addr().String(), "requests", n)
		}
	})
}

// drainContext bounds how long requests under way at a server that gets no new connections may take: to the drain, from now on or, where the address
// stays and only how clients come in has changed, from when everything ends.
func (s *process) drainContext(stays bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	drain := func() { time.AfterFunc(s.Drain, cancel) }
	if !stays {
		drain()
		return ctx, cancel
	}
	hurry := s.hurry
	go func() {
		select {
		case <-hurry:
			drain()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
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
	defer func() { s.systemd.ready(s.summary()) }()
	began := time.Now()
	s.refresh()
	c, err := config.Load(s.config.File, os.LookupEnv)
	var p *plan
	if err == nil {
		p, err = s.plan(c)
	}
	if err != nil {
		s.meters.keep(slices.Collect(maps.Keys(s.backends))) // and none of engines that were not taken
		s.meters.reloaded(false)
		s.log.Error("configuration not reloaded, the one before stays", "why", why, "config", s.config.File, "error", oneLine(err))
		return
	}
	made := s.replaced(p)
	s.commit(p)
	s.meters.reloaded(true)
	s.log.Info("configuration reloaded", "why", why, "config", c.File, "engines", len(c.Engines), "rules", c.RuleCount(),
		"made_anew", strings.Join(made, ","), "took", time.Since(began).Round(time.Microsecond).String())
}

// replaced returns the names of the engines whose backends a plan replaces.
func (s *process) replaced(p *plan) (names []string) {
	for _, e := range p.config.Engines {
		if p.backends[e.Name] != s.backends[e.Name] {
			names = append(names, e.Name)
		}
	}
	return names
}

// oneLine returns joined errors as one line.
func oneLine(err error) string {
	var all []string
	for _, e := range config.Flatten(err) {
		all = append(all, e.Error())
	}
	return strings.Join(all, "; ")
}
