// Package server serves a configuration: it listens, terminates TLS, reloads what changed without refusing a connection, and answers on the admin
// listener with readiness, metrics, profiles and the playground.
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
	// DefaultDrain is how long requests under way may take to end after a signal.
	DefaultDrain = 30 * time.Second
	// linger is how long the connections of an address that is given up stay open for the next request, whose reply tells the
	// client to come elsewhere. Closing an idle one can cross with a request on its way.
	linger = 5 * time.Second
)

// Options say how to serve.
type Options struct {
	// Drain is how long requests under way may take to end after a signal. DrainDelay is how long before that new connections are still accepted.
	Drain, DrainDelay time.Duration
	// PProf shows profiles on the admin listener.
	PProf bool
	// Greeting is written to Greet once all addresses listen; nil for none.
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

// retiring is what a reload or the end has closed and what still serves its last requests.
type retiring struct {
	leaving sync.WaitGroup // servers with requests under way
	hurry   chan struct{}  // closed when those need not linger
	linger  time.Duration  // how long they do
	cut     atomic.Int64   // requests that were cut off
}

// Run serves what a configuration file says until ctx ends or a listener fails. The log goes to out.
func Run(ctx context.Context, file string, out io.Writer, o Options) error {
	s := process{Options: o}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	signal.Ignore(syscall.SIGPIPE) // who reads the log may end; what is served goes on
	watch := config.NewWatch(file)
	c, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return err
	}
	s.begin(c, out)
	defer s.close()
	err = s.serveAll(ctx, c, watch, hangup)
	if err != nil && s.config.Log.Format == "json" {
		s.log.Error("ended", "error", oneLine(err))
		return ErrLogged
	}
	return err
}

// serveAll serves from beginning to end.
func (s *process) serveAll(ctx context.Context, c *config.Config, watch *config.Watch, hangup <-chan os.Signal) (err error) {
	if s.passed, err = passedSockets(); err != nil {
		return err
	}
	if err := s.start(c); err != nil {
		return err
	}
	s.systemd.ready(s.config)
	if s.Greet != nil {
		_, _ = io.WriteString(s.Greet, s.Greeting) // who reads it may have gone
	}
	failure := s.loop(ctx, watch, hangup)
	return errors.Join(failure, s.end(failure == nil))
}

// begin sets up what there is before anything is served.
func (s *process) begin(c *config.Config, out io.Writer) {
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
		s.giveUp(p.state, s.state)
		return err
	}
	s.log.Info("starting", "version", buildinfo.Of().String(), "pid", os.Getpid(), "config", c.File,
		"engines", len(c.Engines), "rules", c.RuleCount())
	s.commit(p)
	return nil
}

// checkPassed returns an error that names the passed sockets which the configuration has no use for: clients would wait at them for
// ever.
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

// loop does what has to be done while requests are served, until ctx ends or a listener fails.
func (s *process) loop(ctx context.Context, watch *config.Watch, hangup <-chan os.Signal) error {
	look, aging := time.NewTicker(config.PollInterval), time.NewTicker(ageEvery)
	defer look.Stop()
	defer aging.Stop()
	watched, stop := s.systemd.watched()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.failed:
			return err
		case <-hangup:
			watch.Read()
			s.reload("signal")
		case <-look.C:
			if watch.Changed() {
				s.reload("file")
			}
		case <-aging.C:
			s.refresh()
		case <-watched:
			s.systemd.alive()
		}
	}
}

// end lets the requests under way end, and cuts off those that take longer than the drain. In an orderly end clients have the
// delay to find out that they are to go elsewhere.
func (s *process) end(orderly bool) error {
	s.status.draining.Store(true)
	s.systemd.stopping()
	busy, cut := s.busy(), s.cut.Load()
	s.log.Info("draining", "requests", busy, "delay", s.DrainDelay.String(), "at_most", s.Drain.String())
	for _, d := range s.endpoints {
		d.closing.Store(!d.admin)
	}
	ended, stop := context.WithCancel(context.Background())
	defer stop()
	go s.keepAlive(ended)
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
	if n := s.cut.Load() - cut; n > 0 {
		return fmt.Errorf("requests were cut off at the end of the drain of %v: %d: give them longer with --drain", s.Drain, n)
	}
	s.log.Info("drained", "took", time.Since(began).Round(time.Millisecond).String())
	return nil
}

// keepAlive answers to the watchdog until ctx ends.
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

// busy returns how many requests are under way.
func (s *process) busy() (n int64) {
	for _, d := range s.endpoints {
		if !d.admin {
			n += d.busy.Load()
		}
	}
	return n
}

// close frees everything at once.
func (s *process) close() {
	for _, d := range s.endpoints {
		d.shut()
		_ = d.Close() // nothing is left to be done about it
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
			_ = socket.Close() // most are closed by now
		}
	}
}

// urlsOf returns an engine's nodes for a line of the log.
func urlsOf(u *backend) string {
	var urls []string
	for _, node := range u.urls {
		urls = append(urls, node.String())
	}
	return strings.Join(urls, ",")
}

// ErrLogged ends a command that has said in its log what is wrong.
var ErrLogged = errors.New("it is in the log")
