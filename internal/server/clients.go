package server

import (
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// onlyHTTP1 is what is spoken to clients and to engines. The engines listen with HTTP/1.1, and what one side may send the other
// may not in another version: a path or a header as sent, a reply cut short, an answer before the body's end would all have to be
// translated. So there is one grammar on both sides, and what passes passes as it is.
func onlyHTTP1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// handshakePause is for how long after a line about a handshake that failed the next ones are only counted: who likes can make
// any number of them.
const handshakePause = 10 * time.Second

// serverErrors returns where a server of clients writes what goes wrong on connections.
func serverErrors(to *slog.Logger) *log.Logger {
	e := &connectionErrors{log: to}
	return log.New(lineWriter(e.write), "", 0)
}

// connectionErrors are what a server says of connections.
type connectionErrors struct {
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time
	more int // handshakes that failed since, without a line
}

func (e *connectionErrors) write(line string) {
	const handshake = "http: TLS handshake error from "
	rest, found := strings.CutPrefix(line, handshake)
	switch {
	case !found:
		e.log.Warn(line)
		return
	case strings.HasSuffix(rest, ": EOF") || strings.HasSuffix(rest, "connection reset by peer"):
		e.log.Debug(line) // who looks whether the port is open
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.last) < handshakePause {
		e.more++
		return
	}
	client, reason, _ := strings.Cut(rest, ": ")
	e.log.Warn("client not let in", "client", client, "error", reason+hintForClient(reason), "others_since_the_last_line", e.more)
	e.last, e.more = time.Now(), 0
}

// hintForClient says what to do about a handshake with a client that failed.
func hintForClient(reason string) string {
	for _, h := range []struct{ in, hint string }{
		{"didn't provide a certificate", "listen_tls.client_ca_file asks for one: give the client a certificate of that authority"},
		{"failed to verify certificate", "the client's certificate is not of an authority in listen_tls.client_ca_file, or has expired"},
		{"client offered only unsupported versions", "the sidecar takes TLS 1.2 or newer"},
		{"unsupported application protocols", "the sidecar speaks HTTP/1.1 only"},
		{"does not look like a TLS handshake", "the client speaks plain HTTP: have it write https://"},
		{"remote error: tls: unknown certificate authority", "have the client trust the authority of listen_tls.cert_file"},
		{"remote error: tls: bad certificate", "the client does not take the certificate in listen_tls.cert_file"},
		{"remote error: tls: expired certificate", "renew the certificate in listen_tls.cert_file"},
		{"bad record MAC", "most clients that break off so do not trust the authority of listen_tls.cert_file"}, // in TLS 1.3 their alert comes in clear
		{"i/o timeout", "the client did not end the handshake in time"},
	} {
		if strings.Contains(reason, h.in) {
			return fmt.Sprintf(": %s", h.hint)
		}
	}
	return ""
}
