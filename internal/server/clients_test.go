package server

import (
	"crypto/tls"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/certs"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/logtest"
	"github.com/neardup/sidecar/proxy"
)

// listenerOf serves by TLS as the sidecar does, and returns its address.
func listenerOf(t *testing.T, c *certs.Certificates, errors *log.Logger) string {
	t.Helper()
	return engines.ServeTLS(t, c.ServerConfig(), &http.Server{Protocols: proxy.OnlyHTTP1(), ErrorLog: errors})
}

// TestClientsOfAnAuthority has clients come with certificates of the authority that is trusted, of another, of none, and of one that
// has expired; and then another authority is trusted.
func TestClientsOfAnAuthority(t *testing.T) {
	var lines logtest.Lines
	errors := serverErrors(lines.Logger())
	ours, theirs := engines.NewAuthority(t, "ours"), engines.NewAuthority(t, "theirs")
	p := engines.NewPEMs(t)
	p.Put(ours, engines.Certificate{Name: "front"})
	p.Write(p.CA, ours.PEM)
	held := expect.Value(certs.New(config.ListenTLS{CertFile: p.Cert, KeyFile: p.Key, ClientCAFile: p.CA}.Files(), lines.Logger()))(t)
	server := listenerOf(t, held, errors)
	client := func(a *engines.Authority, c engines.Certificate) *tls.Config {
		config := &tls.Config{RootCAs: ours.Pool(), ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(8)}
		if a != nil {
			pair := expect.Value(tls.X509KeyPair(a.Issue(t, c)))(t)
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		return config
	}
	none, known, stranger := client(nil, engines.Certificate{}), client(ours, engines.Certificate{Name: "known"}), client(theirs, engines.Certificate{Name: "stranger"})
	late := client(ours, engines.Certificate{From: time.Unix(0, 0), Until: time.Unix(1e9, 0)})
	try := func(who string, config *tls.Config, in bool) {
		t.Helper()
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			config := config.Clone()
			config.MinVersion, config.MaxVersion = version, version
			for range 2 { // the second one would come with a ticket of the first
				if _, err := engines.NameShown(server, config); (err == nil) != in {
					t.Errorf("%s with %s: let in is %v, want %v: %v", who, tls.VersionName(version), err == nil, in, err)
				}
			}
		}
	}
	try("nobody", none, false)
	try("known", known, true)
	try("a stranger", stranger, false)
	try("one with an expired certificate", late, false)
	errors.Print("flush")
	if text := lines.Take(); strings.Count(text, "client not let in") != 1 || !strings.Contains(text, "give the client a certificate of that authority") {
		t.Errorf("logged %s", text)
	}
	p.Write(p.CA, theirs.PEM)
	expect.OK(t, held.Reload())
	try("known before", known, false)
	try("the new one", stranger, true)
}

// TestVersionsTowardsClients has clients offer what the sidecar does not speak.
func TestVersionsTowardsClients(t *testing.T) {
	var lines logtest.Lines
	authority := engines.NewAuthority(t, "a")
	p := engines.NewPEMs(t)
	p.Put(authority, engines.Certificate{Name: "front"})
	held := expect.Value(certs.New(config.ListenTLS{CertFile: p.Cert, KeyFile: p.Key}.Files(), lines.Logger()))(t)
	server := listenerOf(t, held, serverErrors(lines.Logger()))
	for _, c := range []struct {
		name      string
		max       uint16
		protocols []string
		in        bool
		agreed    string
	}{
		{"TLS 1.1", tls.VersionTLS11, nil, false, ""}, {"TLS 1.2", tls.VersionTLS12, nil, true, ""}, {"TLS 1.3", tls.VersionTLS13, nil, true, ""},
		{"HTTP/2 or HTTP/1.1", 0, []string{"h2", "http/1.1"}, true, "http/1.1"}, {"HTTP/2 alone", 0, []string{"h2"}, false, ""},
	} {
		conn, err := tls.Dial("tcp", server,
			&tls.Config{RootCAs: authority.Pool(), ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: c.max, NextProtos: c.protocols})
		expect.Same(t, c.in, err == nil, "%s: that it is let in (%v)", c.name, err)
		if err != nil {
			continue
		}
		expect.Same(t, c.agreed, conn.ConnectionState().NegotiatedProtocol, "%s: the protocol", c.name)
		conn.Close()
	}
}
