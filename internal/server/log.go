package server

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/neardup/sidecar/internal/config"
)

// reloadableLog writes log lines. Their format and level can change while it is in use, also for loggers derived from it: one of its two
// handlers is silent.
type reloadableLog struct {
	slog.Handler
	text, json *slog.LevelVar
}

func newReloadableLog(out io.Writer, l config.Log) *reloadableLog {
	b := &reloadableLog{text: &slog.LevelVar{}, json: &slog.LevelVar{}}
	b.Handler = slog.NewMultiHandler(
		slog.NewTextHandler(out, &slog.HandlerOptions{Level: b.text}), slog.NewJSONHandler(out, &slog.HandlerOptions{Level: b.json}))
	b.set(l)
	return b
}

func (b *reloadableLog) set(l config.Log) {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // validated
	used, silent := b.text, b.json
	if l.Format == "json" {
		used, silent = silent, used
	}
	used.Set(level)
	silent.Set(math.MaxInt)
}

// logPanics returns a handler whose panics are logged without their values, which may contain parts of a request. Only the messages of
// runtime errors are shown. The client's connection is cut, as net/http does.
func logPanics(h http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			raised := recover()
			if raised == nil {
				return
			}
			if raised != http.ErrAbortHandler {
				what := fmt.Sprintf("%T", raised)
				if e, ok := raised.(runtime.Error); ok {
					what = e.Error()
				}
				log.Error("panic: report this as a bug", "error", what, "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}()
		h.ServeHTTP(w, r)
	})
}

// quietStandardLog redirects the standard logger, which libraries use, to ours. Lines are cut before the first quote: net/http quotes what
// an engine sent.
func quietStandardLog(to *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(lineWriter(func(line string) {
		before, _, _ := strings.Cut(line, `"`)
		to.Warn("library", "error", strings.TrimSpace(before))
	}))
}

// lineWriter is the output of a standard logger, which writes a line each time.
type lineWriter func(line string)

// Write implements io.Writer.
func (w lineWriter) Write(p []byte) (int, error) {
	w(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// handshakePause is the time after a log line about a failed handshake in which further ones are only counted: anyone can cause any number
// of them.
const handshakePause = 10 * time.Second

// serverErrors returns a logger for the errors that an http.Server has with connections.
func serverErrors(to *slog.Logger) *log.Logger {
	e := &connectionErrors{log: to, lines: rate.Sometimes{Interval: handshakePause}}
	return log.New(lineWriter(e.write), "", 0)
}

// connectionErrors logs the errors of connections.
type connectionErrors struct {
	log    *slog.Logger
	lines  rate.Sometimes
	failed atomic.Int64 // handshakes since the last line
}

func (e *connectionErrors) write(line string) {
	const handshake = "http: TLS handshake error from "
	rest, found := strings.CutPrefix(line, handshake)
	switch {
	case !found:
		e.log.Warn(line)
		return
	case strings.HasSuffix(rest, ": EOF") || strings.HasSuffix(rest, "connection reset by peer"):
		e.log.Debug(line) // a port check
		return
	}
	e.failed.Add(1)
	e.lines.Do(func() {
		client, reason, _ := strings.Cut(rest, ": ")
		e.log.Warn("client not let in", "client", client, "error", reason+hintForClient(reason), "others_since_the_last_line", e.failed.Swap(0)-1)
	})
}

// hintForClient says what to do about a failed handshake with a client.
func hintForClient(reason string) string {
	for _, h := range []struct{ in, hint string }{
		{"didn't provide a certificate", "listen_tls.client_ca_file asks for one: give the client a certificate of that authority"},
		{"failed to verify certificate", "the client's certificate is not of an authority in listen_tls.client_ca_file, or has expired"},
		{"client offered only unsupported versions", "the sidecar accepts TLS 1.2 or newer"},
		{"unsupported application protocols", "the sidecar speaks HTTP/1.1 only"},
		{"does not look like a TLS handshake", "the client speaks plain HTTP: have it write https://"},
		{"remote error: tls: unknown certificate authority", "have the client trust the authority of listen_tls.cert_file"},
		{"remote error: tls: bad certificate", "the client does not accept the certificate in listen_tls.cert_file"},
		{"remote error: tls: expired certificate", "renew the certificate in listen_tls.cert_file"},
		{"bad record MAC", "most likely the client does not trust the authority of listen_tls.cert_file"}, // in TLS 1.3 its alert comes unencrypted
		{"i/o timeout", "the client did not finish the handshake in time"},
	} {
		if strings.Contains(reason, h.in) {
			return ": " + h.hint
		}
	}
	return ""
}
