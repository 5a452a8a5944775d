package server

import (
	"context"
	"time"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/upstream"
)

// firstDecided is how long the start of a backend waits for the decided pairs.
const firstDecided = 5 * time.Second

// readDecided has a backend obey the decided pairs that the engine keeps. It reads them now, with the operator's credentials, and again after each interval. If
// that fails, the last ones stay.
func (s *process) readDecided(u *backend, e *config.Engine) {
	metrics, log := s.meters.engine(e.Name), s.log.With("engine", e.Name)
	engine := upstream.OpenOn(e, u.transport, u.urls, u.rules)
	live := decided.NewLive(engine.Store.Journal())
	failing := false
	report := func(err error) {
		metrics.ReadDecided(live.Set().Len(), err)
		switch {
		case err != nil && !failing:
			log.Error("the decided pairs can't be read, the last ones stay", "pairs", live.Set().Len(), "error", engine.Explain(err))
		case err == nil && failing:
			log.Info("the decided pairs can be read again", "pairs", live.Set().Len())
		}
		failing = err != nil
	}
	u.decided = live.Set
	ctx, stop := context.WithCancel(context.Background())
	u.stop = stop
	first, cancel := context.WithTimeout(ctx, firstDecided)
	report(live.Read(first))
	cancel()
	go live.Run(ctx, time.Duration(e.Decided.Refresh), report)
}
