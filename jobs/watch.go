package jobs

import (
	"context"
	"errors"
	"time"
)

// Watch goes on where a run of the same job ended, or first helps it to its end. Then it looks again and again, with a pause between, and
// gives documents that changed their fields where they lack them. Of several workers that watch one does, and another takes
// its place when it ends. It returns when ctx ends, which is no error.
func Watch(ctx context.Context, job Job, o Options, every time.Duration, progress func(Progress)) (Report, error) {
	o.MaxDocs = 0
	r := newRun(job, o, progress)
	defer job.Store.Release(ctx, job.Index)
	look := func(ctx context.Context, l *lease) error {
		for {
			err := r.readSketchWrite(ctx, l)
			if err == nil {
				err = sleep(ctx, every)
			}
			if err == nil {
				err = r.sameIndex(ctx)
			}
			if err != nil {
				return err
			}
		}
	}
	for {
		err := r.untilDone(ctx, true)
		var l *lease
		if err == nil {
			l, err = r.board.claim(ctx, theWatch, r.show)
		}
		if err == nil {
			err = l.whileHeld(ctx, look)
		}
		switch {
		case ctx.Err() != nil:
			return r.report(nil)
		case err != nil && !errors.Is(err, errLost) && !begunAnew(err):
			return r.report(err)
		}
	}
}
