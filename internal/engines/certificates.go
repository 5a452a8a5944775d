package engines

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for tests.
type Authority struct {
	// PEM is its own certificate.
	PEM  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nobody knows yet.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(2, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{PEM: block("CERTIFICATE", der), cert: cert, key: key}
}

// Certificate says what a certificate is for.
type Certificate struct {
	Name string
	// Hosts are names and addresses; none stands for 127.0.0.1 and localhost.
	Hosts []string
	// From and Until, where they are zero, stand for an hour ago and for a year ahead.
	From, Until time.Time
}

// Issue makes a certificate, for servers and clients, and its key, both as PEM.
func (a *Authority) Issue(t testing.TB, c Certificate) (cert, key []byte) {
	t.Helper()
	if c.Hosts == nil {
		c.Hosts = []string{"127.0.0.1", "localhost"}
	}
	if c.From.IsZero() {
		c.From = time.Now().Add(-time.Hour)
	}
	if c.Until.IsZero() {
		c.Until = time.Now().AddDate(1, 0, 0)
	}
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: c.Name}, NotBefore: c.From, NotAfter: c.Until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range c.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	pair := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &pair.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", private)
}

// Pool returns what trusts the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// ServeTLS has a server listen by TLS until the test ends, and returns its address. Without a handler it answers with the protocol.
func ServeTLS(t *testing.T, config *tls.Config, server *http.Server) string {
	t.Helper()
	if server.Handler == nil {
		server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	}
	s := httptest.NewUnstartedServer(nil)
	s.Config, s.Listener = server, tls.NewListener(s.Listener, config)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// NameShown returns the name in the certificate that a client is shown.
func NameShown(address string, config *tls.Config) (string, error) {
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// In TLS 1.3 the server's no comes after the client's end of the handshake.
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"); err != nil {
		return "", err
	}
	if _, err := io.ReadAll(conn); err != nil {
		return "", err
	}
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

// PEMs are the files of a pair and of an authority, in a folder of their own; none of them is there at first, and Gone never.
type PEMs struct {
	t                   *testing.T
	Cert, Key, CA, Gone string
}

// NewPEMs makes the folder.
func NewPEMs(t *testing.T) *PEMs {
	dir := t.TempDir()
	return &PEMs{t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt"), filepath.Join(dir, "none")}
}

// Write writes one of the files.
func (p *PEMs) Write(file string, text []byte) {
	p.t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Put writes a pair.
func (p *PEMs) Put(a *Authority, c Certificate) {
	p.t.Helper()
	cert, key := a.Issue(p.t, c)
	p.Write(p.Cert, cert)
	p.Write(p.Key, key)
}
