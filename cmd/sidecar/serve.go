package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/certs"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/playground"
)

const (
	// defaultDrain is how long requests under way may take to end after a signal.
	defaultDrain = 30 * time.Second
	// linger is how long the connections of an address that is given up stay open for the next request, whose reply tells the
	// client to come elsewhere. Closing an idle one can cross with a request on its way.
	linger = 5 * time.Second
)

func serveCommand() *cobra.Command {
	s := servers{}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Stand in front of the engines and serve until a signal comes",
		Long: `Serve listens at every engine's address and passes requests on to the engine.

SIGHUP, and a change of the configuration or of a file it names (certificates, secrets), loads it anew. What did not change
goes on as it is; a configuration that is wrong is not taken, and one line of the log says why.

On SIGINT or SIGTERM /readyz says so at once, the listeners close after --drain-delay, the requests under way end within
--drain, and serve ends. A second signal ends it at once. Exit code 0: all requests ended; 1: it could not start, or requests
were cut off.

Under systemd it tells when it is ready, reloading and stopping, answers to a watchdog, and takes over sockets that are called
as an engine is (or admin). It prints nothing: its log goes to standard error, as text or as JSON (log.format in the configuration).`,
		Example: `  sidecar serve
  sidecar serve --config /etc/neardup/config.yaml --drain 60s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for flag, span := range map[string]time.Duration{"--drain": s.drain, "--drain-delay": s.delay} {
				if span < 0 {
					return fmt.Errorf("%s: %v is out of range: use a span such as 30s, or 0s for none", flag, span)
				}
			}
			file, err := cmd.Flags().GetString("config")
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), file, cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.DurationVar(&s.drain, "drain", defaultDrain, "at the end, give requests under way this `span` to end")
	flags.BoolVar(&s.pprof, "pprof", false, "show profiles on the admin listener, at /debug/pprof/")
	flags.DurationVar(&s.delay, "drain-delay", 0, "at the end, take connections for this `span` more, while /readyz says that it drains")
	return command
}

// servers are what one process serves.
type servers struct {
	drain, delay time.Duration
	log          *slog.Logger
	book         *logbook // where the log's lines go
	manager      manager
	passed       sockets
	pprof        bool
	listening    func() // told once all listen; nil: nobody is

	status  status
	meters  *meters
	tracing *tracing
	failed  chan error

	config    *config.Config
	units     map[string]*unit     // by the engine's name
	entrances map[string]*entrance // by the engine's name
	doors     map[string]*door     // by key
	embedded  map[string]*inside   // by the engine's name: one keeps its documents while its rules change
	// certified are the certificates of each engine, some of them nil.
	certified atomic.Pointer[map[string][]*certs.Certificates]

	leaving sync.WaitGroup // servers that are given up
	hurry   chan struct{}  // closed when those need not linger
	linger  time.Duration  // how long they do
	cut     atomic.Int64   // requests that were cut off
}

// run serves what a configuration file says until ctx ends or a listener fails.
func (s *servers) run(ctx context.Context, file string, out io.Writer) error {
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
	err = s.all(ctx, c, watch, hangup)
	if err != nil && s.book.json() {
		s.log.Error("ended", "error", oneLine(err))
		return errTold
	}
	return err
}

// all serves from beginning to end.
func (s *servers) all(ctx context.Context, c *config.Config, watch *config.Watch, hangup <-chan os.Signal) (err error) {
	if s.passed, err = passedSockets(); err != nil {
		return err
	}
	if err := s.start(c); err != nil {
		return err
	}
	s.manager.ready(s.summary())
	if s.listening != nil {
		s.listening()
	}
	failure := s.loop(ctx, watch, hangup)
	return errors.Join(failure, s.end(failure == nil))
}

// begin sets up what there is before anything is served.
func (s *servers) begin(c *config.Config, out io.Writer) {
	s.book = newLogbook(out, c.Log)
	s.log = slog.New(s.book)
	slog.SetDefault(s.log)
	quietStandardLog(s.log)
	s.manager = manager{s.log}
	s.meters = newMeters()
	s.meters.certificates(s.expiries)
	s.status.meters, s.status.pprof, s.status.plays = s.meters, s.pprof, playground.New()
	s.tracing = newTracing(s.log)
	s.certified.Store(&map[string][]*certs.Certificates{})
	s.failed, s.hurry, s.linger = make(chan error, 1), make(chan struct{}), linger
	s.units, s.doors, s.embedded = map[string]*unit{}, map[string]*door{}, map[string]*inside{}
}

// start serves the first configuration.
func (s *servers) start(c *config.Config) error {
	p, err := s.plan(c)
	if err != nil {
		return err
	}
	if err := s.unclaimed(p); err != nil {
		p.drop()
		return err
	}
	s.log.Info("starting", "version", versionLine(), "pid", os.Getpid(), "config", c.File,
		"engines", len(c.Engines), "rules", c.RuleCount())
	s.commit(p)
	return nil
}

// unclaimed returns an error if sockets were passed that nothing listens on.
func (s *servers) unclaimed(p *plan) error {
	claimed, names := map[net.Listener]bool{}, []string{}
	for _, d := range p.doors {
		for _, socket := range d.sockets {
			claimed[socket] = true
		}
	}
	for _, e := range p.config.Engines {
		names = append(names, e.Name)
	}
	return s.passed.unclaimed(claimed, append(names, adminName))
}

// summary says in short what is served.
func (s *servers) summary() string {
	return fmt.Sprintf("%d engines by %d rules of %s", len(s.config.Engines), s.config.RuleCount(), s.config.File)
}

// loop does what has to be done while requests are served, until ctx ends or a listener fails.
func (s *servers) loop(ctx context.Context, watch *config.Watch, hangup <-chan os.Signal) error {
	look, aging := time.NewTicker(config.LookEvery), time.NewTicker(ageEvery)
	defer look.Stop()
	defer aging.Stop()
	watched, stop := s.manager.watched()
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
			s.manager.alive()
		}
	}
}

// end lets the requests under way end, and cuts off those that take longer than the drain. In an orderly end clients have the
// delay to find out that they are to go elsewhere.
func (s *servers) end(orderly bool) error {
	s.status.draining.Store(true)
	s.manager.stopping()
	busy, cut := s.busy(), s.cut.Load()
	s.log.Info("draining", "requests", busy, "delay", s.delay.String(), "at_most", s.drain.String())
	for _, d := range s.doors {
		d.server.Load().closing.Store(!d.admin)
	}
	stop := s.keepAlive()
	defer stop()
	if orderly {
		time.Sleep(s.delay)
	}
	began := time.Now()
	close(s.hurry)
	for _, d := range s.doors {
		if !d.admin {
			s.giveUp(d)
		}
	}
	s.leaving.Wait()
	if n := s.cut.Load() - cut; n > 0 {
		return fmt.Errorf("requests were cut off at the end of the drain of %v: %d: give them longer with --drain", s.drain, n)
	}
	s.log.Info("drained", "took", time.Since(began).Round(time.Millisecond).String())
	return nil
}

// keepAlive answers to the watchdog until stop.
func (s *servers) keepAlive() (stop func()) {
	watched, stopTicks := s.manager.watched()
	done := make(chan struct{})
	if watched != nil {
		go func() {
			for {
				select {
				case <-watched:
					s.manager.alive()
				case <-done:
					return
				}
			}
		}()
	}
	return func() {
		stopTicks()
		close(done)
	}
}

// busy returns how many requests are under way.
func (s *servers) busy() (n int64) {
	for _, d := range s.doors {
		if !d.admin {
			n += d.server.Load().busy.Load()
		}
	}
	return n
}

// close frees everything at once.
func (s *servers) close() {
	for _, d := range s.doors {
		d.shut()
		if server := d.server.Load(); server != nil {
			_ = server.Close() // nothing is left to be done about it
		}
	}
	for name, engine := range s.embedded {
		if err := engine.close(); err != nil {
			s.log.Warn("embedded engine", "engine", name, "error", err.Error())
		}
	}
	for _, u := range s.units {
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
func urlsOf(u *unit) string {
	var urls []string
	for _, node := range u.front.urls {
		urls = append(urls, node.String())
	}
	return strings.Join(urls, ",")
}
