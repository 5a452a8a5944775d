// Package certs reads the PEM files of a section about TLS, checks that they match, and reads them again when they change. An invalid file never
// replaces a valid one.
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
	// MaxPEMFile is the size limit of a file of certificates, four times that of a system's bundle.
	MaxPEMFile = 1 << 20
	// Soon is how long before it expires a certificate is warned of, and WarnAgain the time between two warnings.
	Soon      = 14 * 24 * time.Hour
	WarnAgain = 24 * time.Hour
	// Files may be read while they are being replaced one after the other: files that do not match are read this often, with a pause.
	pemReads, pemPause = 3, 100 * time.Millisecond
)

// Files are the names of the files in one section about TLS, empty if not set.
type Files struct {
	section           string
	cert, key, CA     string
	CAKey             string // the key of CA in the section
	requireClientCert bool
}

// ListenerFiles returns the files of the section listen_tls: our certificate, and the authority of clients' certificates.
func ListenerFiles(cert, key, clientCA string) Files {
	return Files{section: "listen_tls", cert: cert, key: key, CA: clientCA, CAKey: "client_ca_file", requireClientCert: clientCA != ""}
}

// EngineFiles returns the files of the section tls: our certificate, and the authority of the engine's certificate.
func EngineFiles(cert, key, ca string) Files {
	return Files{section: "tls", cert: cert, key: key, CA: ca, CAKey: "ca_file"}
}

// material is the content of the files.
type material struct {
	text  [3]string        // of the files
	pair  *tls.Certificate // nil without one
	pool  *x509.CertPool   // nil without one
	poolT time.Time        // when the last certificate of the pool expires
}

// Check reads the files and checks that they match. Each error begins with the key within the section.
func (f Files) Check() error {
	switch {
	case f.cert == "" && f.key != "":
		return fmt.Errorf("cert_file: is empty, and cert_file and key_file go together: name the other half of %s", f.key)
	case f.cert != "" && f.key == "":
		return fmt.Errorf("key_file: is empty, and cert_file and key_file go together: name the other half of %s", f.cert)
	case f.requireClientCert && f.cert == "":
		return fmt.Errorf("client_ca_file: %s is of no use without TLS: set cert_file and key_file too, or drop it", f.CA)
	}
	_, err := f.read()
	return err
}

// read reads the files and checks that they match. Errors begin with the key within the section.
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
			errs = append(errs, fmt.Errorf("%s: %s contains no certificate: name a PEM file", f.CAKey, f.CA))
		}
		m.pool, m.poolT = pool, until
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

// pair parses a certificate and its key.
func (f Files) pair(cert, key []byte) (*tls.Certificate, error) {
	switch first, _ := pem.Decode(key); {
	case !bytes.Contains(cert, []byte("-----BEGIN CERTIFICATE-----")):
		return nil, fmt.Errorf("cert_file: %s contains no certificate: name a PEM file", f.cert)
	case first == nil || !bytes.Contains(key, []byte("PRIVATE KEY-----")):
		return nil, fmt.Errorf("key_file: %s contains no private key: name a PEM file", f.key)
	case strings.HasPrefix(first.Type, "ENCRYPTED") || first.Headers["DEK-Info"] != "":
		return nil, fmt.Errorf("key_file: %s is encrypted: remove the passphrase, as with openssl pkey -in %s", f.key, f.key)
	}
	pair, err := tls.X509KeyPair(cert, key)
	switch {
	case err == nil:
		return &pair, nil
	case strings.Contains(err.Error(), "does not match"):
		return nil, fmt.Errorf("key_file: %s is not the key of the certificate in %s: use the two files of one pair", f.key, f.cert)
	}
	return nil, fmt.Errorf("cert_file: %s with key_file %s: %s: create the pair again", f.cert, f.key, strings.TrimPrefix(err.Error(), "tls: "))
}

// poolOf returns the certificates of a PEM file and when the last of them expires; nil if there are none.
func poolOf(text []byte) (*x509.CertPool, time.Time) {
	pool, until, found := x509.NewCertPool(), time.Time{}, false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue // crypto/x509 skips it in the system's bundle too
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

// checkValid returns an error if the certificate of the pair has expired, or is not valid yet.
func (m *material) checkValid(f Files, now time.Time) error {
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

// expiry returns the file that expires first, and when: with the first certificate of the pair, or the last one of the pool. The time is zero if
// there are none.
func (m *material) expiry(f Files) (file string, at time.Time) {
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

// FormatTime formats a time for errors and logs.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Certificates are the last valid content of the files of one section about TLS. A nil one has no files.
type Certificates struct {
	files Files
	log   *slog.Logger
	// Idle, if set, closes its idle connections when the certificates change.
	Idle   interface{ CloseIdleConnections() }
	server *tls.Config

	current atomic.Pointer[material]
	read    atomic.Pointer[time.Time] // when the files were read; by the monotonic clock, as the other can be set back
	mu      sync.Mutex                // of reading
	failure string                    // why the last reload failed
	warned  time.Time
}

// New reads the files for the first time. It uses an expired pair, with a warning, as there is no better one.
func New(files Files, log *slog.Logger) (*Certificates, error) {
	if files.cert == "" && files.key == "" && files.CA == "" {
		return nil, nil
	}
	c := &Certificates{files: files, log: log.With("section", files.section)}
	m, err := files.read()
	if err != nil {
		return nil, fmt.Errorf("%s.%w", files.section, err)
	}
	c.use(m)
	c.server = &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load().pair, nil },
		// A session ticket would admit a client for days after its authority was removed.
		SessionTicketsDisabled: files.requireClientCert,
	}
	if files.requireClientCert {
		c.server.ClientAuth = tls.RequireAndVerifyClientCert
		c.server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := c.server.Clone()
			now.ClientCAs = c.current.Load().pool
			return now, nil
		}
	}
	if err := m.checkValid(files, time.Now()); err != nil {
		c.log.Error("certificate not valid: it is used anyway, as there is no other", "error", err.Error())
		c.warned = time.Now()
	}
	c.warn()
	return c, nil
}

// Of reports whether these are the certificates of the files.
func (c *Certificates) Of(files Files) bool { return c != nil && c.files == files }

func (c *Certificates) use(m *material) {
	c.current.Store(m)
	c.noteRead()
}

func (c *Certificates) noteRead() {
	now := time.Now()
	c.read.Store(&now)
}

// Current returns the current pair and authorities, nil if there are none.
func (c *Certificates) Current() (*tls.Certificate, *x509.CertPool) {
	if c == nil {
		return nil, nil
	}
	m := c.current.Load()
	return m.pair, m.pool
}

// Reload reads the files again. If they have changed and are invalid, the previous certificates stay. It logs each change, each new error
// and, once a day, certificates that expire soon. Open connections stay open.
func (c *Certificates) Reload() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.reload()
	switch {
	case err == nil:
		c.failure = ""
	case err.Error() != c.failure:
		c.failure = err.Error()
		c.log.Error("certificates not reloaded: the previous ones stay", "error", c.failure)
	}
	c.warn()
	return err
}

func (c *Certificates) reload() error {
	c.noteRead()
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
	if err == nil && m.text == c.current.Load().text {
		return nil
	}
	if err == nil {
		err = m.checkValid(c.files, time.Now())
	}
	if err != nil {
		return fmt.Errorf("%s.%w", c.files.section, err)
	}
	c.use(m)
	c.warned = time.Time{}
	_, until := m.expiry(c.files)
	c.log.Info("certificates reloaded", "until", FormatTime(until))
	if c.Idle != nil {
		c.Idle.CloseIdleConnections()
	}
	return nil
}

// ReloadAfter reloads in the background if the last time was longer ago than this.
func (c *Certificates) ReloadAfter(after time.Duration) {
	if c == nil || time.Since(*c.read.Load()) < after {
		return
	}
	c.noteRead()
	go func() { _ = c.Reload() }() // it logs its errors
}

// warn logs, once a day, that a certificate expires soon or has expired.
func (c *Certificates) warn() {
	file, at := c.current.Load().expiry(c.files)
	now := time.Now()
	if at.IsZero() || at.Sub(now) > Soon || now.Sub(c.warned) < WarnAgain {
		return
	}
	c.warned = now
	if now.After(at) {
		c.log.Error("certificate has expired: renew it", "file", file, "at", FormatTime(at))
		return
	}
	c.log.Warn("certificate expires soon: renew it", "file", file, "until", FormatTime(at), "days", int(at.Sub(now).Hours()/24))
}

// Earliest returns the earliest expiry of these certificates; the zero time if there are none. A file of authorities expires with its last one.
func Earliest(all ...*Certificates) (first time.Time) {
	for _, c := range all {
		if c == nil {
			continue
		}
		if _, at := c.current.Load().expiry(c.files); first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// ServerConfig returns the configuration of a listener, nil for one without TLS. It is always the same one: each connection looks up the current
// certificates.
func (c *Certificates) ServerConfig() *tls.Config {
	if c == nil {
		return nil
	}
	return c.server
}

// ReadFile reads a regular file up to a size limit in bytes. The error says what to do, without the path.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, unreadable(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file: name a file")
	case info.Size() > limit:
		return nil, fmt.Errorf("is larger than %v: name another file", bytesText(limit))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(err)
	}
	return text, nil
}

// unreadable adds to an error what to do about it.
func unreadable(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("can't be read: %w: allow the user that runs the sidecar (uid %d) to read it and its folders", err, os.Getuid())
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("can't be read: %w: name a file that exists", err)
	}
	return fmt.Errorf("can't be read: %w", err)
}

// bytesText formats a limit for an error.
func bytesText(limit int64) string {
	if limit%(1<<20) == 0 {
		return fmt.Sprintf("%dMB", limit>>20)
	}
	return fmt.Sprintf("%dKB", limit>>10)
}
