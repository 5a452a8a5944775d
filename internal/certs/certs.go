// Package certs reads the PEM files of a section about TLS, checks that they fit together, and reads them again when they change. A file that is no
// good never replaces a good one.
package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxPEMFile bounds, in bytes, a file of certificates. What systems trust in all is a quarter of it.
	MaxPEMFile = 1 << 20
	// Soon is how long before its end a certificate is warned of, and warnAgain how long until the next time.
	Soon      = 14 * 24 * time.Hour
	WarnAgain = 24 * time.Hour
	// Files may be read while they are replaced, one after the other: what does not fit together is read so often, with a pause.
	pemReads, pemPause = 3, 100 * time.Millisecond
)

// Files are the files of one section about TLS, by name; empty where it has none. The keys are what the section calls them.
type Files struct {
	section       string
	cert, key, CA string
	CAKey         string
	insist        bool // a certificate of the ca must be shown
}

// ListenerFiles returns the files of the section listen_tls: what clients are shown, and by whom theirs must be signed.
func ListenerFiles(cert, key, clientCA string) Files {
	return Files{section: "listen_tls", cert: cert, key: key, CA: clientCA, CAKey: "client_ca_file", insist: clientCA != ""}
}

// EngineFiles returns the files of the section tls: what the engine is shown, and by whom its own must be signed.
func EngineFiles(cert, key, ca string) Files {
	return Files{section: "tls", cert: cert, key: key, CA: ca, CAKey: "ca_file"}
}

// material is what the files hold.
type material struct {
	text  [3]string        // of the files
	pair  *tls.Certificate // nil without one
	pool  *x509.CertPool   // nil without one
	poolT time.Time        // when the last certificate of the pool ends
}

// Check returns what is wrong with the files, each error beginning with the key below the section.
func (f Files) Check() error {
	switch {
	case f.cert == "" && f.key != "":
		return fmt.Errorf("cert_file: is empty, and cert_file and key_file go together: name the other half of %s", f.key)
	case f.cert != "" && f.key == "":
		return fmt.Errorf("key_file: is empty, and cert_file and key_file go together: name the other half of %s", f.cert)
	case f.insist && f.cert == "":
		return fmt.Errorf("client_ca_file: %s is of no use without TLS: set cert_file and key_file too, or drop it", f.CA)
	}
	_, err := f.read()
	return err
}

// read reads the files and checks that they fit together. Errors begin with the key below the section.
func (f Files) read() (*material, error) {
	m := &material{}
	var errs []error
	get := func(key, path string) []byte {
		if path == "" {
			return nil
		}
		text, err := ReadFile(path, MaxPEMFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s %w", key, path, err))
		}
		return text
	}
	cert, key, ca := get("cert_file", f.cert), get("key_file", f.key), get(f.CAKey, f.CA)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	m.text = [3]string{string(cert), string(key), string(ca)}
	if f.cert != "" && f.key != "" {
		pair, err := f.pair(cert, key)
		errs = append(errs, err)
		m.pair = pair
	}
	if f.CA != "" {
		pool, until := poolOf(ca)
		if pool == nil {
			errs = append(errs, fmt.Errorf("%s: %s holds no certificate: name a PEM file", f.CAKey, f.CA))
		}
		m.pool, m.poolT = pool, until
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

// pair puts a certificate and its key together.
func (f Files) pair(cert, key []byte) (*tls.Certificate, error) {
	switch first, _ := pem.Decode(key); {
	case !bytes.Contains(cert, []byte("-----BEGIN CERTIFICATE-----")):
		return nil, fmt.Errorf("cert_file: %s holds no certificate: name a PEM file", f.cert)
	case first == nil || !bytes.Contains(key, []byte("PRIVATE KEY-----")):
		return nil, fmt.Errorf("key_file: %s holds no private key: name a PEM file", f.key)
	case strings.HasPrefix(first.Type, "ENCRYPTED") || first.Headers["DEK-Info"] != "":
		return nil, fmt.Errorf("key_file: %s is encrypted: take the passphrase off, as with openssl pkey -in %s", f.key, f.key)
	}
	pair, err := tls.X509KeyPair(cert, key)
	switch {
	case err == nil:
		return &pair, nil
	case strings.Contains(err.Error(), "does not match"):
		return nil, fmt.Errorf("key_file: %s is not the key of the certificate in %s: put both of one pair in place", f.key, f.cert)
	}
	return nil, fmt.Errorf("cert_file: %s with key_file %s: %s: make the pair anew", f.cert, f.key, strings.TrimPrefix(err.Error(), "tls: "))
}

// poolOf returns the certificates of a PEM file and when the last of them ends; nil if there are none.
func poolOf(text []byte) (*x509.CertPool, time.Time) {
	pool, until, found := x509.NewCertPool(), time.Time{}, false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue // as the system's own bundles are read
		}
		pool.AddCert(c)
		found = true
		if c.NotAfter.After(until) {
			until = c.NotAfter
		}
	}
	if !found {
		return nil, until
	}
	return pool, until
}

// out returns why a certificate of the pair is not valid at a moment.
func (m *material) out(f Files, now time.Time) error {
	if m.pair == nil {
		return nil
	}
	leaf := m.pair.Leaf
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("cert_file: the certificate in %s has expired at %s: renew it", f.cert, FormatTime(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("cert_file: the certificate in %s is valid from %s on: wait, or set the clock", f.cert, FormatTime(leaf.NotBefore))
	}
	return nil
}

// ends returns what of the material ends first, and when: a certificate of the pair, or the whole of the pool. The zero time is
// none.
func (m *material) ends(f Files) (file string, at time.Time) {
	file, at = f.CA, m.poolT
	if m.pair == nil {
		return file, at
	}
	for _, der := range m.pair.Certificate {
		if c, err := x509.ParseCertificate(der); err == nil && (at.IsZero() || c.NotAfter.Before(at)) {
			file, at = f.cert, c.NotAfter
		}
	}
	return file, at
}

// FormatTime returns a time as errors and logs show it.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Certificates are what the files of one section about TLS hold, as far as they were read last. A nil one has no files.
type Certificates struct {
	files Files
	log   *slog.Logger
	// Idle, if set, has its idle connections closed when others were taken.
	Idle   interface{ CloseIdleConnections() }
	inward *tls.Config // for clients

	holding atomic.Pointer[material]
	read    atomic.Int64 // when the files were, in nanoseconds since 1970
	mu      sync.Mutex   // of reading
	refused string       // why what was read last was not taken
	warned  time.Time
}

// New reads the files for the first time. A pair that has expired is taken with a warning: there is no better one.
func New(files Files, log *slog.Logger) (*Certificates, error) {
	if files.cert == "" && files.key == "" && files.CA == "" {
		return nil, nil
	}
	c := &Certificates{files: files, log: log.With("section", files.section)}
	m, err := files.read()
	if err != nil {
		return nil, fmt.Errorf("%s.%w", files.section, err)
	}
	c.take(m)
	c.inward = &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.holding.Load().pair, nil },
		// A ticket would let in, for days, who once showed a certificate of an authority that is trusted no more.
		SessionTicketsDisabled: files.insist,
	}
	if files.insist {
		c.inward.ClientAuth = tls.RequireAndVerifyClientCert
		c.inward.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := c.inward.Clone()
			now.ClientCAs = c.holding.Load().pool
			return now, nil
		}
	}
	if err := m.out(files, time.Now()); err != nil {
		c.log.Error("certificate not valid: it is used all the same, there is no better one", "error", err.Error())
		c.warned = time.Now()
	}
	c.warn()
	return c, nil
}

// Of reports whether these are the certificates of the files.
func (c *Certificates) Of(files Files) bool { return c != nil && c.files == files }

func (c *Certificates) take(m *material) {
	c.holding.Store(m)
	c.read.Store(time.Now().UnixNano())
}

// Current returns the pair and the authorities as they are at the moment; nil where there are none.
func (c *Certificates) Current() (*tls.Certificate, *x509.CertPool) {
	if c == nil {
		return nil, nil
	}
	m := c.holding.Load()
	return m.pair, m.pool
}

// Reload reads the files and takes what they hold, if that changed and is sound; otherwise what was taken before stays. It logs
// by itself: a line for each change, one for each new reason to refuse, and one a day for what ends soon. Connections that are
// open go on.
func (c *Certificates) Reload() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.reload()
	switch {
	case err == nil:
		c.refused = ""
	case err.Error() != c.refused:
		c.refused = err.Error()
		c.log.Error("certificates not taken: those before stay", "error", c.refused)
	}
	c.warn()
	return err
}

func (c *Certificates) reload() error {
	c.read.Store(time.Now().UnixNano())
	var m *material
	var err error
	for i := range pemReads {
		if i > 0 {
			time.Sleep(pemPause)
		}
		if m, err = c.files.read(); err == nil {
			break
		}
	}
	if err == nil && m.text == c.holding.Load().text {
		return nil
	}
	if err == nil {
		err = m.out(c.files, time.Now())
	}
	if err != nil {
		return fmt.Errorf("%s.%w", c.files.section, err)
	}
	c.take(m)
	c.warned = time.Time{}
	_, until := m.ends(c.files)
	c.log.Info("certificates taken", "until", FormatTime(until))
	if c.Idle != nil {
		c.Idle.CloseIdleConnections()
	}
	return nil
}

// ReloadAfter has the files read again in the background where nobody did for a while.
func (c *Certificates) ReloadAfter(after time.Duration) {
	if c == nil || time.Since(time.Unix(0, c.read.Load())) < after {
		return
	}
	c.read.Store(time.Now().UnixNano())
	go func() { _ = c.Reload() }() // which logs by itself
}

// warn logs that a certificate ends soon, or has ended, once a day.
func (c *Certificates) warn() {
	file, at := c.holding.Load().ends(c.files)
	now := time.Now()
	if at.IsZero() || at.Sub(now) > Soon || now.Sub(c.warned) < WarnAgain {
		return
	}
	c.warned = now
	if now.After(at) {
		c.log.Error("certificate has expired: renew it", "file", file, "at", FormatTime(at))
		return
	}
	c.log.Warn("certificate ends soon: renew it", "file", file, "until", FormatTime(at), "days", int(at.Sub(now).Hours()/24))
}

// Earliest returns the first of the moments at which certificates end, of a file of authorities the last; the zero time if none does.
func Earliest(all ...*Certificates) (first time.Time) {
	for _, c := range all {
		if c == nil {
			continue
		}
		if _, at := c.holding.Load().ends(c.files); first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// ServerConfig returns the configuration of a listener, nil for one without TLS. It stays the same one: what the files hold at the
// moment is looked up for each connection.
func (c *Certificates) ServerConfig() *tls.Config {
	if c == nil {
		return nil
	}
	return c.inward
}

// ReadFile reads a file of at most so many bytes. The error says what to do, without the path.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, unreadable(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("is no regular file: name a file")
	case info.Size() > limit:
		return nil, fmt.Errorf("is larger than %v: name another file", bytesText(limit))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(err)
	}
	return text, nil
}

// unreadable says why a file can't be read, and what to do.
func unreadable(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("can't be read: %w: give the user that runs the sidecar (uid %d) leave to read it, and its folders", err, os.Getuid())
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("can't be read: %w: name one that is there", err)
	}
	return fmt.Errorf("can't be read: %w", err)
}

// bytesText returns a limit as configurations write it.
func bytesText(limit int64) string {
	if limit%(1<<20) == 0 {
		return fmt.Sprintf("%dMB", limit>>20)
	}
	return fmt.Sprintf("%dKB", limit>>10)
}
