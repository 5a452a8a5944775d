package server

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/neardup/sidecar/internal/config"
)

// reloadableLog is where log lines go. Their form and the lowest level that is written can change while it is in use, also for the loggers made
// of it. It implements slog.Handler.
type reloadableLog struct {
	text, json slog.Handler
	*logSettings
}

type logSettings struct {
	level  slog.LevelVar
	asJSON atomic.Bool
}

func newReloadableLog(out io.Writer, l config.Log) *reloadableLog {
	s := &logSettings{}
	options := &slog.HandlerOptions{Level: &s.level}
	b := &reloadableLog{slog.NewTextHandler(out, options), slog.NewJSONHandler(out, options), s}
	b.set(l)
	return b
}

func (b *reloadableLog) set(l config.Log) {
	level, _ := l.MinLevel() // validated
	b.level.Set(level)
	b.asJSON.Store(l.Format == "json")
}

// Enabled implements slog.Handler.
func (b *reloadableLog) Enabled(_ context.Context, level slog.Level) bool {
	return level >= b.level.Level()
}

// Handle implements slog.Handler.
func (b *reloadableLog) Handle(ctx context.Context, r slog.Record) error {
	if b.asJSON.Load() {
		return b.json.Handle(ctx, r)
	}
	return b.text.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (b *reloadableLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &reloadableLog{b.text.WithAttrs(attrs), b.json.WithAttrs(attrs), b.logSettings}
}

// WithGroup implements slog.Handler.
func (b *reloadableLog) WithGroup(name string) slog.Handler {
	return &reloadableLog{b.text.WithGroup(name), b.json.WithGroup(name), b.logSettings}
}
