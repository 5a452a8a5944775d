// Package localpage serves the page of a command to a browser on the same machine.
//
// The address that the command prints ends in a random key. The page's own script reads it and sends it with each request to the API (assets/local.js).
// The key follows the #, so browsers do not send it by themselves. The script sends it in a header, not in a cookie: cookies of 127.0.0.1 go to every port.
// Requests for another host name are refused, which stops DNS rebinding.
package localpage

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/playground"
)

const (
	// MaxBody is the size limit of a request's body in bytes.
	MaxBody = 1 << 20
	// maxText is how many bytes of a text are shown.
	maxText = 100 << 10
)

// Page is what [Serve] serves.
type Page struct {
	// Files has index.html and the page's own scripts. local.js, sides.js and the playground's files (style.css, dom.js and others) are served too.
	Files fs.FS
	// API answers requests below /api/ that carry the key.
	API http.Handler
	// Browse opens the page in a browser, where this machine has one.
	Browse bool
}

//go:embed assets
var assets embed.FS

// Serve serves a page at a port of 127.0.0.1 until the context ends. Port 0 means any free port. It calls started with the address, key included.
func Serve(ctx context.Context, port int, p Page, started func(address string)) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	key, ticket := rand.Text(), rand.Text()
	server := &http.Server{
		Handler: p.handler(key, ticket), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // for running requests
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close()
		}
	})
	base := "http://" + listener.Addr().String() + "/"
	started(base + "#key=" + key)
	if p.Browse {
		browse(ctx, base+"open/"+ticket)
	}
	err = server.Serve(listener)
	if !stop() {
		<-closed
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the page: %w", err)
	}
	return nil
}

// handler returns the handler of all requests.
func (p Page) handler(key, ticket string) http.Handler {
	own, _ := fs.Sub(assets, "assets") // never fails: the name is valid
	file := func(name string, w http.ResponseWriter) {
		playground.ServeFile(w, name, p.Files, own, playground.Files)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { file("index.html", w) })
	mux.HandleFunc("GET /open/{ticket}", redirect(key, ticket))
	mux.HandleFunc("GET /{file}", func(w http.ResponseWriter, r *http.Request) { file(r.PathValue("file"), w) })
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+key)) != 1 {
			Refuse(w, http.StatusUnauthorized, errNoKey)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
		p.API.ServeHTTP(w, r)
	})
	ownOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": playground.Policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			w.Header().Set(name, value)
		}
		switch {
		case !loopback(r.Host):
			Refuse(w, http.StatusMisdirectedRequest, fmt.Errorf("%.100q is not this page's host: open the address that the command printed", r.Host))
		case ownOrigin.Check(r) != nil:
			Refuse(w, http.StatusForbidden, errors.New("the request comes from another page"))
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// loopback reports whether a Host header names this machine. Its port may differ, as through a tunnel.
func loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return name == "127.0.0.1" || name == "localhost" || name == "::1"
}

// Cut returns as much of a text as a page shows, and whether that is not all of it.
func Cut(text string) (shown string, cut bool) {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], ""), len(text) > maxText
}

// Answer sends a value as JSON.
func Answer(w http.ResponseWriter, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		Refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(text) // an error means that the client has disconnected
}

// Refuse sends an error, which local.js throws in the page.
func Refuse(w http.ResponseWriter, status int, err error) {
	text, _ := json.Marshal(map[string]string{"error": err.Error()})
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text) // as above
}

// Read decodes the JSON body of a POST request into a value. If it can't, it sends an error and returns false.
func Read(w http.ResponseWriter, r *http.Request, value any) bool {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		Refuse(w, http.StatusMethodNotAllowed, errors.New("use POST"))
		return false
	}
	if err := json.NewDecoder(r.Body).Decode(value); err != nil {
		Refuse(w, http.StatusBadRequest, fmt.Errorf("the body: %w", err))
		return false
	}
	return true
}
