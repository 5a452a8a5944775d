package server

import (
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
)

// guarded returns a handler whose panics are logged without what they were raised with, which may hold anything of a request;
// only the runtime's own words are shown. The client's connection is cut, as net/http does.
func guarded(h http.Handler, log *slog.Logger) http.Handler {
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

// quietStandardLog has what libraries write to the standard logger go to ours, cut before the first quote: net/http quotes there
// what an engine sent unasked.
func quietStandardLog(to *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(lineWriter(func(line string) {
		before, _, _ := strings.Cut(line, `"`)
		to.Warn("library", "error", strings.TrimSpace(before))
	}))
}

// lineWriter takes lines from a standard logger, one each time.
type lineWriter func(line string)

// Write implements io.Writer.
func (w lineWriter) Write(p []byte) (int, error) {
	w(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
