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

// pemAge is the age from which certificates are reloaded when the engine is dialled: in jobs nothing else reloads them. It is a variable for tests.
var pemAge = 10 * time.Second

// Transport returns a transport to the engine, and the certificates of the section tls: nil if it names no file.
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
	d := &engineDialer{certificates: c, insecure: e.TLS.InsecureSkipVerify, transport: t, log: log, warnings: rate.Sometimes{Interval: certs.WarnAgain}}
	t.DialTLSContext = d.dial
	if c != nil {
		c.Idle = t // new requests use the new certificates
	}
	return t, c, nil
}

// engineDialer connects to an engine by TLS. Each connection uses the current certificates; a transport's TLSClientConfig could not change.
type engineDialer struct {
	certificates *certs.Certificates // nil: the system's authorities, and no client certificate
	insecure     bool
	transport    *proxy.Transport
	log          *slog.Logger
	warnings     rate.Sometimes // of the engine's certificate
}

// dial returns a connection after the handshake. If the handshake fails, the dial fails: no request was sent, so another node can be tried.
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
		_ = raw.Close() // there is an error to return already
		return nil, &net.OpError{Op: "dial", Net: network, Addr: raw.RemoteAddr(), Err: d.explain(err)}
	}
	d.warnExpiry(addr, conn.ConnectionState().PeerCertificates)
	return &engineConn{Conn: conn, dialer: d, alert: make(chan error, 1)}, nil
}

// config returns the configuration of one connection. It names no protocol, which means HTTP/1.1: see proxy.OnlyHTTP1.
func (d *engineDialer) config(host string) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, InsecureSkipVerify: d.insecure}
	if d.certificates == nil {
		return config
	}
	pair, pool := d.certificates.Current()
	config.RootCAs = pool
	if pair != nil {
		// Not Certificates: crypto/tls would send none if the engine does not name its authority, and the engine's error would not say why.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	return config
}

// warnExpiry warns, once a day, of an engine's certificate that expires soon.
func (d *engineDialer) warnExpiry(addr string, chain []*x509.Certificate) {
	if len(chain) == 0 || time.Until(chain[0].NotAfter) > certs.Soon {
		return
	}
	d.warnings.Do(func() {
		d.log.Warn("the engine's certificate expires soon: renew it there", "addr", addr, "until", certs.FormatTime(chain[0].NotAfter))
	})
}

// maxReason is how many bytes of a handshake's error are shown, so that the hint after it is not lost.
const maxReason = 200

// handshakeError is an error of a TLS handshake, and what to do about it.
type handshakeError struct {
	err  error
	hint string
}

func (e *handshakeError) Error() string {
	text := strings.ReplaceAll(e.err.Error(), `"`, "'") // the log drops everything after a quotation mark
	if len(text) > maxReason {                          // a certificate may have any number of names
		text = text[:maxReason] + "…"
	}
	return "TLS: " + text + ": " + e.hint
}

func (e *handshakeError) Unwrap() error { return e.err }

// explain adds a hint to an error.
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
		return "the server there does not speak TLS: write http:// in urls if that is meant"
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("the handshake did not end within %v: check whether the engine is overloaded, or does not speak TLS there", d.transport.TLSHandshakeTimeout)
	case errors.Is(err, io.EOF):
		return "the engine closed the connection in the handshake: see its log"
	case mentions(err, "unsupported protocol version", "protocol version not supported"):
		return "the sidecar needs TLS 1.2 or newer: allow it in the engine"
	}
	return d.hintOfAlert(err)
}

// hintOfAlert returns the hint for an alert of the engine.
func (d *engineDialer) hintOfAlert(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "remote error" {
		return ""
	}
	if !mentions(err, "certificate", "access denied", "handshake failure") {
		return ""
	}
	if pair, _ := d.certificates.Current(); pair == nil {
		return "the engine may ask for a client certificate: set tls.cert_file and tls.key_file"
	}
	return "the engine does not accept the certificate in tls.cert_file: check that it has not expired, is for clients, " +
		"and is signed by an authority that the engine trusts"
}

// mentions reports whether an error's text contains one of the words: crypto/tls has no types for these.
func mentions(err error, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(err.Error(), w) })
}

// engineConn is a connection to an engine by TLS. In TLS 1.3 an engine that does not accept our certificate sends an alert in place of its first
// reply. A request that is being written then finds the connection closed, so its error is replaced by the alert.
type engineConn struct {
	net.Conn
	dialer *engineDialer
	alert  chan error // the first error of reading if that was an alert, else nil
}

// alertWait is how long a failed write waits for an alert: it is there already, or does not come.
const alertWait = 100 * time.Millisecond

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
	case <-time.After(alertWait):
	}
	return n, err
}
