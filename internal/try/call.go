package try

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/neardup/sidecar/adapters"
)

// MaxReply is the size limit of an engine's reply in bytes.
const MaxReply = 32 << 20

// Errors of [Call].
var (
	ErrOversized = errors.New("the engine's reply is too large to be shown")
	ErrCutOff    = errors.New("the engine's reply was cut off")
)

// Call sends a request through a sidecar's handler, in this process, and returns the reply. control is the header that controls the sidecar.
func Call(ctx context.Context, h http.Handler, ask *adapters.Request, control string) (reply *adapters.Reply, err error) {
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
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler: // a reply that was cut off
			reply, err = nil, ErrCutOff
		default:
			panic(p) // a bug: the server logs it
		}
		if w.oversized {
			reply, err = nil, ErrOversized
		}
	}()
	h.ServeHTTP(w, r)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &adapters.Reply{Status: w.status, Header: adapters.Header(w.header), Body: w.body.Bytes()}, nil
}

// recorder records a reply, up to MaxReply bytes.
type recorder struct {
	header    http.Header
	status    int
	wrote     bool
	body      bytes.Buffer
	oversized bool
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
	if w.oversized = w.oversized || w.body.Len()+len(p) > MaxReply; w.oversized {
		return 0, ErrOversized
	}
	return w.body.Write(p)
}

// Flush implements http.Flusher.
func (w *recorder) Flush() {}
