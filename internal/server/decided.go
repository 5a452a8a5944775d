package server

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/upstream"
)

// firstDecided is how long the start of a backend waits for the decided pairs.
const firstDecided = 5 * time.Second

// readDecided has a backend obey the decided pairs that the engine keeps. It begins to read them, with the operator's credentials, and reads again after
// each interval. Until that succeeds, it obeys those of the backend that it replaces, if that read them from the same engine with the same credentials.
func (s *process) readDecided(u *backend, e *config.Engine, old *backend) {
	metrics, log := s.meters.engine(e.Name), s.log.With("engine", e.Name)
	engine := upstream.OpenOn(e, u.transport, u.urls, u.rules)
	var before *decided.Set
	if old != nil && old.decided != nil && sameSource(&old.section, e) {
		before = old.decided()
	}
	live := decided.NewLive(engine.Store.Journal(), before)
	u.decided = live.Set
	r := readings{log: log, pairs: before.Len()}
	report := func(err error) {
		if err != nil {
			err = engine.Explain(err)
		}
		metrics.ReadDecided(live.Set().Len(), err)
		r.note(live.Set().Len(), err)
	}
	ctx, stop := context.WithCancel(context.Background())
	u.stop = stop
	u.begun.Add(1)
	go func() {
		first, cancel := context.WithTimeout(ctx, firstDecided)
		report(live.Read(first))
		cancel()
		u.begun.Done()
		live.Run(ctx, time.Duration(e.Decided.Refresh), report)
	}()
}

// sameSource reports whether two sections read the same decided pairs, with the same rights.
func sameSource(a, b *config.Engine) bool {
	return a.Kind == b.Kind && reflect.DeepEqual(a.Credentials, b.Credentials) && reflect.DeepEqual(a.URLs, b.URLs)
}

// readings logs how decided pairs are read: what changes, once.
type readings struct {
	log     *slog.Logger
	pairs   int // at the last reading
	failing bool
}

func (r *readings) note(pairs int, err error) {
	switch {
	case err != nil && r.failing:
	case err != nil && pairs > 0:
		r.log.Error("the decided pairs can't be read; searches obey those that were read before", "pairs", pairs, "error", err)
	case err != nil:
		r.log.Error("the decided pairs can't be read; until then searches obey none", "error", err)
	case r.pairs > 0 && pairs == 0:
		r.log.Warn("no decided pairs are left: they were taken back, or the index or collection that held them was deleted", "before", r.pairs)
	case r.failing:
		r.log.Info("the decided pairs can be read again", "pairs", pairs)
	}
	r.failing, r.pairs = err != nil, pairs
}
