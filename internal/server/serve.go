// Package server serves a configuration: it listens, terminates TLS, reloads the configuration without refusing a connection, and serves
// readiness, metrics, profiles and the playground on the admin listener.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/neardup/sidecar/internal/buildinfo"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/playground"
)

const (
	// DefaultDrain is how long requests in progress may take to end after a signal.
	DefaultDrain = 30 * time.Second
	// linger is how long the connections of a closed endpoint stay open for one more request, whose reply tells the client to reconnect.
	// Closing an idle connection could cut off a request that has just been sent.
	linger = 5 * time.Second
)

// Options say how to serve.
type Options struct {
	// Drain is how long requests in progress may take to end after a signal. For DrainDelay before that new connections are still accepted.
	Drain, DrainDelay time.Duration
	// PProf serves profiles on the admin listener.
	PProf bool
	// Greeting is written to Greet, if that is not nil, once all addresses listen.
	Greet    io.Writer
	Greeting string
}

// process is everything that one process serves.
type process struct {
	Options
	state
	retiring
	log     *slog.Logger
	logs    *reloadableLog // writes the lines of log
	systemd systemd
	passed  sockets

	status  status
	meters  *meters
	tracing *tracing
	failed  chan error
}

// retiring is what a reload or the shutdown has closed and what still serves its last requests.
type retiring struct {
	leaving sync.WaitGroup // servers with requests in progress
	hurry   chan struct{}  // closed when those need not linger any more
	linger  time.Duration
	cut     atomic.Int64 // requests that were cut off
}

// Run serves a configuration file until ctx ends or a listener fails. The log goes to out.
func Run(ctx context.Context, file string, out io.Writer, o Options) error {
	watch := config.NewWatch(file)
	c, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return err
	}
	return serve(ctx, c, watch, out, o)
}

// Serve serves a configuration that is in no file, as [Run] does. It is never reloaded.
func Serve(ctx context.Context, c *config.Config, out io.Writer, o Options) error {
	return serve(ctx, c, nil, out, o)
}

func serve(ctx context.Context, c *config.Config, watch *config.Watch, out io.Writer, o Options) error {
	s := process{Options: o}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	signal.Ignore(syscall.SIGPIPE) // keep serving if the reader of the log ends
	s.setUp(c, out)
	defer s.close()
	err := s.serveAll(ctx, c, watch, hangup)
	if err != nil && s.config.Log.Format == "json" {
		s.log.Error("ended", "error", oneLine(err))
		return ErrLogged
	}
	return err
}

// serveAll serves until ctx ends or a listener fails, and then drains.
func (s *process) serveAll(ctx context.Context, c *config.Config, watch *config.Watch, hangup <-chan os.Signal) (err error) {
	if s.passed, err = passedSockets(); err != nil {
		return err
	}
	if err := s.start(c); err != nil {
		return err
	}
	s.systemd.ready(s.config)
	if s.Greet != nil {
		_, _ = io.WriteString(s.Greet, s.Greeting) // its reader may be gone
	}
	failure := s.loop(ctx, watch, hangup)
	return errors.Join(failure, s.shutDown(failure == nil))
}

// setUp sets up the log, metrics and traces.
func (s *process) setUp(c *config.Config, out io.Writer) {
	s.logs = newReloadableLog(out, c.Log)
	s.log = slog.New(s.logs)
	slog.SetDefault(s.log)
	quietStandardLog(s.log)
	s.systemd = systemd{s.log}
	s.meters = newMeters(&s.status)
	s.status.meters, s.status.pprof, s.status.playground = s.meters, s.PProf, playground.New()
	s.tracing = newTracing(s.log)
	s.failed, s.hurry, s.linger = make(chan error, 1), make(chan struct{}), linger
	s.state = newState(c)
}

// start serves the first configuration.
func (s *process) start(c *config.Config) error {
	p, err := s.plan(c)
	if err != nil {
		return err
	}
	if err := s.checkPassed(p); err != nil {
		s.retire(p.state, s.state)
		return err
	}
	s.log.Info("starting", "version", buildinfo.Of().String(), "pid", os.Getpid(), "config", c.File,
		"engines", len(c.Engines), "rules", c.RuleCount())
	s.testStart(c)
	s.commit(p)
	return nil
}

// checkPassed returns an error if sockets were passed that the configuration does not use: clients that connect to them would wait forever.
func (s *process) checkPassed(p *plan) error {
	var left, names []string
	for _, name := range slices.Sorted(maps.Keys(s.passed)) {
		for _, socket := range s.passed[name] {
			if !slices.ContainsFunc(p.list, func(d *endpoint) bool { return d.has(socket) }) {
				left = append(left, fmt.Sprintf("%s (%s)", name, socket.Addr()))
			}
		}
	}
	if left == nil {
		return nil
	}
	for _, e := range p.config.Engines {
		names = append(names, e.Name)
	}
	return fmt.Errorf("sockets were passed that nothing listens on: %s: set FileDescriptorName= to one of %s",
		strings.Join(left, ", "), strings.Join(append(names, adminName), ", "))
}

// loop reloads the configuration, if there is a watch of its file, and the certificates, and answers the watchdog, until ctx ends or a listener fails.
func (s *process) loop(ctx context.Context, watch *config.Watch, hangup <-chan os.Signal) error {
	poll, certificates := time.NewTicker(config.PollInterval), time.NewTicker(certificateInterval)
	defer poll.Stop()
	defer certificates.Stop()
	watched, stop := s.systemd.watched()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.failed:
			return err
		case <-hangup:
			if watch == nil {
				s.log.Warn("nothing to reload: the configuration is in no file")
				continue
			}
			watch.Read()
			s.reload("signal")
		case <-poll.C:
			if watch != nil && watch.Changed() {
				s.reload("file")
			}
		case <-certificates.C:
			s.reloadCertificates()
		case <-watched:
			s.systemd.alive()
		}
	}
}

// shutDown lets the requests in progress end, and cuts off those that take longer than the drain. In an orderly shutdown it first waits for
// the drain delay, so that clients can move to another sidecar.
func (s *process) shutDown(orderly bool) error {
	s.status.draining.Store(true)
	s.systemd.stopping()
	busy, cut := s.busy(), s.cut.Load()
	s.log.Info("draining", "requests", busy, "delay", s.DrainDelay.String(), "at_most", s.Drain.String())
	for _, d := range s.endpoints {
		d.closing.Store(!d.admin)
	}
	drained, stop := context.WithCancel(context.Background())
	defer stop()
	go s.keepAlive(drained)
	if orderly {
		time.Sleep(s.DrainDelay)
	}
	began := time.Now()
	close(s.hurry)
	for _, d := range s.endpoints {
		if !d.admin {
			s.closeEndpoint(d)
		}
	}
	s.leaving.Wait()
	for _, u := range s.backends {
		u.stop()
	}
	if n := s.cut.Load() - cut; n > 0 {
		return fmt.Errorf("requests were cut off at the end of the drain of %v: %d: give them longer with --drain", s.Drain, n)
	}
	s.log.Info("drained", "took", time.Since(began).Round(time.Millisecond).String())
	return nil
}

// keepAlive answers the watchdog until ctx ends.
func (s *process) keepAlive(ctx context.Context) {
	watched, stop := s.systemd.watched()
	defer stop()
	for {
		select {
		case <-watched:
			s.systemd.alive()
		case <-ctx.Done():
			return
		}
	}
}

// busy returns how many requests are in progress.
func (s *process) busy() (n int64) {
	for _, d := range s.endpoints {
		if !d.admin {
			n += d.busy.Load()
		}
	}
	return n
}

// close closes everything at once.
func (s *process) close() {
	for _, d := range s.endpoints {
		d.shut()
		_ = d.Close() // an error does not matter any more
	}
	for name, engine := range s.embedded {
		if err := engine.Close(); err != nil {
			s.log.Warn("embedded engine", "engine", name, "error", err.Error())
		}
	}
	for _, u := range s.backends {
		u.release()
	}
	s.tracing.close()
	for _, list := range s.passed {
		for _, socket := range list {
			_ = socket.Close() // most are closed already
		}
	}
}

// urlsOf returns an engine's URLs for a log line.
func urlsOf(u *backend) string {
	var urls []string
	for _, node := range u.urls {
		urls = append(urls, node.String())
	}
	return strings.Join(urls, ",")
}

// ErrLogged is returned if the error is already in the log.
var ErrLogged = errors.New("it is in the log")
