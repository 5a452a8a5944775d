package server

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/neardup/sidecar/internal/config"
)

// logHandler returns what writes lines as the section says.
func logHandler(l config.Log, w io.Writer) slog.Handler {
	level, _ := l.MinLevel() // validated
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}

// reloadableLog is where log lines go; how they look, and which of them are written, can change while it is in use. It implements
// slog.Handler.
type reloadableLog struct {
	out  io.Writer
	kept *atomic.Pointer[slog.Handler]
	// with is what a logger that was made of this one says in each line.
	with []func(slog.Handler) slog.Handler
}

func newReloadableLog(out io.Writer, l config.Log) *reloadableLog {
	b := &reloadableLog{out: out, kept: new(atomic.Pointer[slog.Handler])}
	b.set(l)
	return b
}

func (b *reloadableLog) set(l config.Log) {
	h := logHandler(l, b.out)
	b.kept.Store(&h)
}

// json reports whether machines are to read the lines.
func (b *reloadableLog) json() bool {
	_, json := (*b.kept.Load()).(*slog.JSONHandler)
	return json
}

// Enabled implements slog.Handler.
func (b *reloadableLog) Enabled(ctx context.Context, level slog.Level) bool {
	return (*b.kept.Load()).Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (b *reloadableLog) Handle(ctx context.Context, r slog.Record) error {
	h := *b.kept.Load()
	for _, with := range b.with {
		h = with(h)
	}
	return h.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (b *reloadableLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return b.plus(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (b *reloadableLog) WithGroup(name string) slog.Handler {
	return b.plus(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (b *reloadableLog) plus(with func(slog.Handler) slog.Handler) *reloadableLog {
	// A copy: two loggers made of one must not share the place behind its last.
	return &reloadableLog{b.out, b.kept, append(b.with[:len(b.with):len(b.with)], with)}
}
