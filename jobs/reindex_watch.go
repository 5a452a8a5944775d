package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// Watch goes on where a run of the same job ended, or first helps it to its end: again and again, with so long a pause between,
// it gives documents that changed their fields where they lack them. Of several workers that watch one does, and another takes
// its place when it ends. It returns when ctx ends, which is no error.
func Watch(ctx context.Context, job Job, o Options, every time.Duration, progress func(Progress)) (Report, error) {
	o.MaxDocs = 0
	r := newRun(job, o, progress)
	defer adapters.Release(ctx, job.Store, job.Index)
	err := r.watch(ctx, every)
	if ctx.Err() != nil {
		err = nil
	}
	return r.end(err)
}

func (r *run) watch(ctx context.Context, every time.Duration) error {
	for {
		if err := r.pass(ctx, true); err != nil {
			return err
		}
		err := r.rounds(ctx, every)
		switch {
		case errors.Is(err, errLost):
			r.board.lose()
		case !anew(err):
			return err
		}
	}
}

// rounds holds the watch and reads what changed, round by round.
func (r *run) rounds(ctx context.Context, every time.Duration) error {
	var h *holding
	err := r.retry(ctx, func() (err error) {
		h, err = r.board.claimWatch(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return r.part(ctx, h, func(ctx context.Context) error {
		for {
			if err := r.scan(ctx, h); err != nil {
				return err
			}
			if err := sleep(ctx, every); err != nil {
				return err
			}
			if err := r.same(ctx); err != nil {
				return err
			}
			if _, err := r.board.elsewhere(ctx); errors.Is(err, errSuperseded) {
				return err
			}
		}
	})
}
