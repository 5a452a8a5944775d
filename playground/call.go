package playground

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/neardup/sidecar/adapters"
)

var (
	// errOversized says that a reply is larger than what is held of one, errCut that it did not come to its end.
	errOversized = errors.New("the engine's reply is too large to be shown")
	errCut       = errors.New("the engine's reply was cut off")
)

// call sends a request to the sidecar in front of an engine, in this process, and returns its reply. control is what is asked of
// the sidecar itself.
func call(ctx context.Context, h http.Handler, ask *adapters.Request, control string) (reply *adapters.Reply, err error) {
	target := "http://engine" + ask.Path
	if ask.RawQuery != "" {
		target += "?" + ask.RawQuery
	}
	r, err := http.NewRequestWithContext(ctx, ask.Method, target, bytes.NewReader(ask.Body))
	if err != nil {
		return nil, err
	}
	r.RequestURI = r.URL.RequestURI()
	for key, values := range ask.Header {
		r.Header[key] = append([]string{}, values...)
	}
	r.Header.Set(adapters.ControlHeader, control)
	r.Header.Set("User-Agent", "neardup-playground")
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler: // a reply that was cut off
			reply, err = nil, errCut
		default:
			panic(p) // a bug, which is told as any other one
		}
		if w.over {
			reply, err = nil, errOversized
		}
	}()
	h.ServeHTTP(w, r)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &adapters.Reply{Status: w.status, Header: adapters.Header(w.header), Body: w.body.Bytes()}, nil
}

// recorder holds a reply, up to MaxReply bytes.
type recorder struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
	over   bool
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if status >= http.StatusOK && !w.wrote {
		w.status, w.wrote = status, true
	}
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) {
	w.wrote = true
	if w.over = w.over || w.body.Len()+len(p) > MaxReply; w.over {
		return 0, errOversized
	}
	return w.body.Write(p)
}

// Flush implements http.Flusher.
func (w *recorder) Flush() {}
