package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/neardup/sidecar/internal/certs"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/proxy"
)

// pemAge is how old what was read of the files may be when the engine is dialled: in jobs nothing else reads them again. It is a variable for tests.
var pemAge = 10 * time.Second

// Transport returns what carries requests to the engine, and what it is shown and trusted by: nil where no file is named.
func Transport(e *config.Engine, log *slog.Logger) (*proxy.Transport, *certs.Certificates, error) {
	log = log.With("engine", e.Name)
	c, err := certs.New(e.TLS.Files(), log)
	if err != nil {
		return nil, nil, err
	}
	if e.TLS.InsecureSkipVerify {
		log.Warn("any certificate of the engine is trusted: drop tls.insecure_skip_verify, and name its authority in tls.ca_file")
	}
	t := proxy.NewTransport()
	d := &engineDialer{certificates: c, trusting: e.TLS.InsecureSkipVerify, transport: t, log: log, warnings: rate.Sometimes{Interval: certs.WarnAgain}}
	t.DialTLSContext = d.dial
	if c != nil {
		c.Idle = t // no new request goes out as before; those under way end
	}
	return t, c, nil
}

// engineDialer connects to an engine by TLS. Each connection is made by what the files hold at the moment, where a transport's
// own TLSClientConfig would trust the same authorities for ever.
type engineDialer struct {
	certificates *certs.Certificates // nil: the system's authorities, and nothing to show
	trusting     bool
	transport    *proxy.Transport
	log          *slog.Logger
	warnings     rate.Sometimes // of the engine's certificate
}

// dial returns a connection whose handshake is done. A handshake that fails is a failed dial: nothing of a request was sent, so
// that another node may be tried.
func (d *engineDialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d.certificates.ReloadAfter(pemAge)
	raw, err := d.transport.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	ctx, cancel := context.WithTimeout(ctx, d.transport.TLSHandshakeTimeout)
	defer cancel()
	conn := tls.Client(raw, d.config(host))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // there is an error to tell already
		return nil, &net.OpError{Op: "dial", Net: network, Addr: raw.RemoteAddr(), Err: d.explain(err)}
	}
	d.look(addr, conn.ConnectionState().PeerCertificates)
	return &engineConn{Conn: conn, dialer: d, alert: make(chan error, 1)}, nil
}

// config returns the configuration of one connection. No protocol is named, and so HTTP/1.1 it is: see proxy.OnlyHTTP1.
func (d *engineDialer) config(host string) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, InsecureSkipVerify: d.trusting}
	if d.certificates == nil {
		return config
	}
	pair, pool := d.certificates.Current()
	config.RootCAs = pool
	if pair != nil {
		// Not Certificates: of these one is left out whose authority the engine does not name, and the engine would only say that
		// there was none.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	return config
}

// look warns of an engine's certificate that ends soon, once a day.
func (d *engineDialer) look(addr string, chain []*x509.Certificate) {
	if len(chain) == 0 || time.Until(chain[0].NotAfter) > certs.Soon {
		return
	}
	d.warnings.Do(func() {
		d.log.Warn("the engine's certificate ends soon: renew it there", "addr", addr, "until", certs.FormatTime(chain[0].NotAfter))
	})
}

// maxReason is how many bytes of a failed handshake's reason are shown, so that the hint after it is seen.
const maxReason = 200

// handshakeError is why there is no connection by TLS, and what to do about it.
type handshakeError struct {
	err  error
	hint string
}

func (e *handshakeError) Error() string {
	text := strings.ReplaceAll(e.err.Error(), `"`, "'") // the log leaves out what is quoted, and a quote may be cut off
	if len(text) > maxReason {                          // a certificate may be for any number of names
		text = text[:maxReason] + "…"
	}
	return "TLS: " + text + ": " + e.hint
}

func (e *handshakeError) Unwrap() error { return e.err }

// explain adds to an error what to do about it.
func (d *engineDialer) explain(err error) error {
	if hint := d.hint(err); hint != "" {
		return &handshakeError{err, hint}
	}
	return fmt.Errorf("TLS: %w", err)
}

func (d *engineDialer) hint(err error) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "renew the engine's certificate, or set the clock of this machine"
	}
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return "write in urls a name that the engine's certificate is for, or have one made for " + wrong.Host
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "name the certificate of the authority that signed the engine's in tls.ca_file"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "what answers there speaks no TLS: write http:// in urls if that is meant"
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("the handshake did not end within %v: see whether the engine is overloaded, or speaks no TLS there", d.transport.TLSHandshakeTimeout)
	case errors.Is(err, io.EOF):
		return "the engine closed the connection in the handshake: see its log"
	case mentions(err, "unsupported protocol version", "protocol version not supported"):
		return "TLS 1.2 is the oldest that the sidecar speaks: allow it in the engine"
	}
	return d.hintOfAlert(err)
}

// hintOfAlert returns what to do about an alert of the engine.
func (d *engineDialer) hintOfAlert(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "remote error" {
		return ""
	}
	if !mentions(err, "certificate", "access denied", "handshake failure") {
		return ""
	}
	if pair, _ := d.certificates.Current(); pair == nil {
		return "the engine may ask for a certificate of ours: set tls.cert_file and tls.key_file"
	}
	return "the engine does not take the certificate in tls.cert_file: see that it has not expired, is made for clients, " +
		"and is of an authority that the engine trusts"
}

// mentions reports whether an error's text has one of the words in it: crypto/tls has no types for these.
func mentions(err error, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(err.Error(), w) })
}

// engineConn is a connection to an engine by TLS. In TLS 1.3 an engine that does not take our certificate says so only where its
// first reply would be. A request that is being written then only finds the connection closed, so its error is what was read.
type engineConn struct {
	net.Conn
	dialer *engineDialer
	alert  chan error // why reading failed first, nil where the engine said nothing as it hung up
}

// lastWord is how long a write that failed waits for what reading finds: it is there already, or is not coming.
const lastWord = 100 * time.Millisecond

// Read implements net.Conn.
func (c *engineConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil {
		return n, nil
	}
	var alert error
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		err = c.dialer.explain(err)
		alert = err
	}
	select {
	case c.alert <- alert:
	default:
	}
	return n, err
}

// Write implements net.Conn.
func (c *engineConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err == nil {
		return n, nil
	}
	select {
	case alert := <-c.alert:
		err = cmp.Or(alert, err)
	case <-time.After(lastWord):
	}
	return n, err
}
