package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxPEMFile bounds, in bytes, a file of certificates. What systems trust in all is a quarter of it.
	maxPEMFile = 1 << 20
	// soon is how long before its end a certificate is warned of, and warnAgain how long until the next time.
	soon      = 14 * 24 * time.Hour
	warnAgain = 24 * time.Hour
	// Files may be read while they are replaced, one after the other: what does not fit together is read so often, with a pause.
	pemReads, pemPause = 3, 100 * time.Millisecond
)

// pemFiles are the files of one section about TLS, by name; empty where it has none. The keys are what the section calls them.
type pemFiles struct {
	section        string
	cert, key, ca  string
	caKey          string
	server, insist bool // what the pair is for, and whether a certificate of the ca must be shown
}

func (t ListenTLSConfig) files() pemFiles {
	return pemFiles{
		section: "listen_tls", cert: t.CertFile, key: t.KeyFile, ca: t.ClientCAFile, caKey: "client_ca_file",
		server: true, insist: t.ClientCAFile != "",
	}
}

func (t TLSConfig) files() pemFiles {
	return pemFiles{section: "tls", cert: t.CertFile, key: t.KeyFile, ca: t.CAFile, caKey: "ca_file"}
}

// none reports whether no file is named.
func (f pemFiles) none() bool { return f.cert == "" && f.key == "" && f.ca == "" }

// material is what the files hold.
type material struct {
	sum   [sha256.Size]byte
	pair  *tls.Certificate // nil without one
	pool  *x509.CertPool   // nil without one
	poolT time.Time        // when the last certificate of the pool ends
}

// read reads the files and checks that they fit together. Errors begin with the key below the section.
func (f pemFiles) read() (*material, error) {
	m := &material{}
	var errs []error
	get := func(key, path string) []byte {
		if path == "" {
			return nil
		}
		text, err := readBounded(path, maxPEMFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s %w", key, path, err))
		}
		return text
	}
	cert, key, ca := get("cert_file", f.cert), get("key_file", f.key), get(f.caKey, f.ca)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	h := sha256.New()
	for _, text := range [][]byte{cert, key, ca} {
		_, _ = fmt.Fprintf(h, "%d:", len(text)) // a hash takes everything
		_, _ = h.Write(text)
	}
	h.Sum(m.sum[:0])
	if f.cert != "" && f.key != "" {
		pair, err := f.pair(cert, key)
		errs = append(errs, err)
		m.pair = pair
	}
	if f.ca != "" {
		pool, until := poolOf(ca)
		if pool == nil {
			errs = append(errs, fmt.Errorf("%s: %s holds no certificate: name a PEM file", f.caKey, f.ca))
		}
		m.pool, m.poolT = pool, until
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

// pair puts a certificate and its key together.
func (f pemFiles) pair(cert, key []byte) (*tls.Certificate, error) {
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
func (m *material) out(f pemFiles, now time.Time) error {
	if m.pair == nil {
		return nil
	}
	leaf := m.pair.Leaf
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("cert_file: the certificate in %s has expired at %s: renew it", f.cert, moment(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("cert_file: the certificate in %s is valid from %s on: wait, or set the clock", f.cert, moment(leaf.NotBefore))
	}
	return nil
}

// ends returns what of the material ends first, and when: a certificate of the pair, or the whole of the pool. The zero time is
// none.
func (m *material) ends(f pemFiles) (file string, at time.Time) {
	file, at = f.ca, m.poolT
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

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// certificates are what the files of one section about TLS hold, as far as they were read last. A nil one has no files.
type certificates struct {
	files pemFiles
	log   *slog.Logger
	// changed, if set, is called when others were taken.
	changed func()
	inward  *tls.Config // for clients

	now     func() time.Time
	current atomic.Pointer[holding]
	read    atomic.Int64 // when the files were, in nanoseconds since 1970
	mu      sync.Mutex   // of reading
	refused string       // why what was read last was not taken
	warned  time.Time
}

// holding is material that was taken.
type holding struct {
	*material
	inward *tls.Config // for clients
}

// newCertificates reads the files for the first time. A pair that has expired is taken with a warning: there is no better one.
func newCertificates(files pemFiles, log *slog.Logger) (*certificates, error) {
	if files.none() {
		return nil, nil
	}
	c := &certificates{files: files, log: log.With("section", files.section), now: time.Now}
	m, err := files.read()
	if err != nil {
		return nil, fmt.Errorf("%s.%w", files.section, err)
	}
	c.take(m)
	c.inward = &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current.Load().inward, nil
		},
		SessionTicketsDisabled: files.insist,
	}
	if err := m.out(files, c.now()); err != nil {
		c.log.Error("certificate not valid: it is used all the same, there is no better one", "error", err.Error())
		c.warned = c.now()
	}
	c.warn()
	return c, nil
}

func (c *certificates) take(m *material) {
	c.current.Store(&holding{material: m, inward: serverTLS(c.files, m)})
	c.read.Store(c.now().UnixNano())
}

// Reload reads the files and takes what they hold, if that changed and is sound; otherwise what was taken before stays. It logs
// by itself: a line for each change, one for each new reason to refuse, and one a day for what ends soon. Connections that are
// open go on.
func (c *certificates) Reload() error {
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

func (c *certificates) reload() error {
	c.read.Store(c.now().UnixNano())
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
	if err == nil && m.sum == c.current.Load().sum {
		return nil
	}
	if err == nil {
		err = m.out(c.files, c.now())
	}
	if err != nil {
		return fmt.Errorf("%s.%w", c.files.section, err)
	}
	c.take(m)
	c.warned = time.Time{}
	_, until := m.ends(c.files)
	c.log.Info("certificates taken", "until", moment(until))
	if c.changed != nil {
		c.changed()
	}
	return nil
}

// refresh has the files read again in the background where nobody did for a while.
func (c *certificates) refresh(after time.Duration) {
	if c == nil || c.now().Sub(time.Unix(0, c.read.Load())) < after {
		return
	}
	c.read.Store(c.now().UnixNano())
	go func() { _ = c.Reload() }() // which logs by itself
}

// warn logs that a certificate ends soon, or has ended, once a day.
func (c *certificates) warn() {
	file, at := c.current.Load().ends(c.files)
	now := c.now()
	if at.IsZero() || at.Sub(now) > soon || now.Sub(c.warned) < warnAgain {
		return
	}
	c.warned = now
	if now.After(at) {
		c.log.Error("certificate has expired: renew it", "file", file, "at", moment(at))
		return
	}
	c.log.Warn("certificate ends soon: renew it", "file", file, "until", moment(at), "days", int(at.Sub(now).Hours()/24))
}

// Expiry returns when the first of the certificates ends, of a file of authorities the last; the zero time where there is none.
func (c *certificates) Expiry() time.Time {
	if c == nil {
		return time.Time{}
	}
	_, at := c.current.Load().ends(c.files)
	return at
}

// earliest returns the first of the moments at which certificates end, zero if none does.
func earliest(all ...*certificates) time.Time {
	var ends []time.Time
	for _, c := range all {
		if at := c.Expiry(); !at.IsZero() {
			ends = append(ends, at)
		}
	}
	if len(ends) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(ends, time.Time.Compare)
}

// validateTLS checks both sections about TLS.
func (e *EngineConfig) validateTLS(f *faults, key string) {
	e.ListenTLS.files().validate(f, key)
	e.TLS.files().validate(f, key)
	plain := slices.ContainsFunc(e.URLs, func(u string) bool { return strings.HasPrefix(u, "http://") })
	if plain && e.TLS.CertFile != "" {
		f.add(key+".tls.cert_file", "%s is shown to an engine behind https alone: write https:// in urls, or drop it", e.TLS.CertFile)
	}
}

// validate checks that the files of a section go together, can be read and fit.
func (f pemFiles) validate(faults *faults, engine string) {
	section := engine + "." + f.section
	if (f.cert == "") != (f.key == "") {
		lacks, there := "key_file", f.cert
		if f.cert == "" {
			lacks, there = "cert_file", f.key
		}
		faults.add(section+"."+lacks, "is empty, and cert_file and key_file go together: name the other half of %s", there)
		return
	}
	if f.insist && f.cert == "" {
		faults.add(section+".client_ca_file", "%s is of no use without TLS: set cert_file and key_file too, or drop it", f.ca)
		return
	}
	if _, err := f.read(); err != nil {
		faults.addAll(section, err)
	}
}

// describe says in short how clients connect.
func (t ListenTLSConfig) describe() string {
	switch {
	case t.ClientCAFile != "":
		return " by TLS with clients' certificates"
	case t.CertFile != "":
		return " by TLS"
	}
	return ""
}
