package main

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// pems are the files of a pair and of an authority, in a folder of their own.
type pems struct {
	t                   *testing.T
	cert, key, ca, gone string
}

func newPEMs(t *testing.T) *pems {
	dir := t.TempDir()
	return &pems{t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt"), filepath.Join(dir, "none")}
}

func (p *pems) write(file string, text []byte) {
	p.t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// put writes a pair.
func (p *pems) put(a *engines.Authority, c engines.Certificate) {
	p.t.Helper()
	cert, key := a.Issue(p.t, c)
	p.write(p.cert, cert)
	p.write(p.key, key)
}

// heldOf reads certificates.
func heldOf(t *testing.T, files pemFiles, log *lines) *certificates {
	t.Helper()
	held, err := newCertificates(files, log.logger())
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// frontOf serves by TLS as the sidecar does, and says "ok".
func frontOf(t *testing.T, c *certificates, log *slog.Logger) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	server.Config.Protocols, server.Config.ErrorLog = onlyHTTP1(), serverErrors(log)
	server.Listener = tls.NewListener(server.Listener, c.forClients())
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// greeted returns the name in the certificate that a client is shown.
func greeted(server *httptest.Server, config *tls.Config) (string, error) {
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(), config)
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

// TestCertificatesReload replaces a pair by what is no good, and then by a good one. What is no good is told in one line, the pair before is
// shown until then, and a connection that is open is not cut.
func TestCertificatesReload(t *testing.T) {
	authority := engines.NewAuthority(t, "clients trust this")
	other, otherKey := authority.Issue(t, engines.Certificate{Name: "other"})
	for _, c := range []struct {
		name string
		harm func(p *pems)
		want string
	}{
		{"the key of another certificate", func(p *pems) { p.write(p.key, otherKey) }, "listen_tls.key_file: KEY is not the key of the certificate in CERT: put both of one pair in place"},
		{"half a certificate", func(p *pems) { p.write(p.cert, other[:len(other)/2]); p.write(p.key, otherKey) }, "listen_tls.cert_file: CERT with key_file KEY: failed to find any PEM data in certificate input: make the pair anew"},
		{"no key", func(p *pems) { _ = os.Remove(p.key) }, "listen_tls.key_file: KEY can't be read: no such file or directory: name one that is there"},
		{"too large", func(p *pems) { p.write(p.cert, bytes.Repeat(other, 2000)) }, "listen_tls.cert_file: CERT is larger than 1MB: name another file"},
		{"a key with a passphrase", func(p *pems) {
			p.write(p.key, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"))
		}, "listen_tls.key_file: KEY is encrypted: take the passphrase off, as with openssl pkey -in KEY"},
		{"expired", func(p *pems) {
			p.put(authority, engines.Certificate{Name: "late", From: time.Unix(0, 0), Until: time.Unix(1e9, 0)})
		}, "listen_tls.cert_file: the certificate in CERT has expired at 2001-09-09T01:46:40Z: renew it"},
		{"not yet valid", func(p *pems) {
			p.put(authority, engines.Certificate{Name: "early", From: time.Unix(1e10, 0), Until: time.Unix(1e10+1e8, 0)})
		}, "listen_tls.cert_file: the certificate in CERT is valid from 2286-11-20T17:46:40Z on: wait, or set the clock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // each waits a little for files that are being written
			var log lines
			p := newPEMs(t)
			p.put(authority, engines.Certificate{Name: "first"})
			held := heldOf(t, ListenTLSConfig{CertFile: p.cert, KeyFile: p.key}.files(), &log)
			server := frontOf(t, held, log.logger())
			trust := &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}
			open := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, MaxConnsPerHost: 1}}
			ask := func(when string) {
				resp, err := open.Get("https://" + server.Listener.Addr().String())
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if name := resp.TLS.PeerCertificates[0].Subject.CommonName; name != "first" {
					t.Errorf("%s: the open connection is one with %s", when, name)
				}
			}
			ask("before")
			c.harm(p)
			want := strings.NewReplacer("CERT", p.cert, "KEY", p.key).Replace(c.want)
			for range 2 {
				if err := held.Reload(); err == nil || err.Error() != want {
					t.Fatalf("%v, want %s", err, want)
				}
			}
			if text := log.take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=ERROR") || !strings.Contains(text, want) {
				t.Errorf("logged %s", text)
			}
			if name, err := greeted(server, trust); name != "first" {
				t.Errorf("clients are shown %q: %v", name, err)
			}
			ask("after")
			_ = os.RemoveAll(p.key)
			p.put(authority, engines.Certificate{Name: "second"})
			if err := held.Reload(); err != nil {
				t.Fatal(err)
			}
			if name, err := greeted(server, trust); name != "second" {
				t.Errorf("clients are shown %q: %v", name, err)
			}
			ask("at the end")
			if text := log.take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "certificates taken") {
				t.Errorf("logged %s", text)
			}
			if err := held.Reload(); err != nil || log.take() != "" {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// TestCertificatesSwapped turns links round as Kubernetes does, while the files are read and clients connect: they are shown one pair or
// the other, whole, and nothing is complained of.
func TestCertificatesSwapped(t *testing.T) {
	var log lines
	authority, dir, pairs := engines.NewAuthority(t, "a"), t.TempDir(), map[string]*pems{"even": newPEMs(t), "odd": newPEMs(t)}
	for name, p := range pairs {
		p.put(authority, engines.Certificate{Name: name})
	}
	turn := func(to string) {
		next := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(filepath.Dir(pairs[to].cert), next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	turn("even")
	for _, file := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", file), filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	shown := ListenTLSConfig{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	held := heldOf(t, shown.files(), &log)
	server := frontOf(t, held, log.logger())
	trust := &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}
	seen := map[string]int{}
	for i := range 60 {
		name := []string{"even", "odd"}[i%2]
		var wg sync.WaitGroup
		wg.Go(func() { turn(name) })
		wg.Go(func() { _ = held.Reload() })
		got, err := greeted(server, trust)
		if err != nil {
			t.Fatal(err)
		}
		seen[got]++
		wg.Wait()
		if err := held.Reload(); err != nil {
			t.Fatal(err)
		}
		if got, err := greeted(server, trust); got != name {
			t.Fatalf("shown %q after %s was put in place: %v", got, name, err)
		}
	}
	if seen["even"] == 0 || seen["odd"] == 0 || strings.Contains(log.take(), "ERROR") {
		t.Errorf("%v, logged %s", seen, log.take())
	}
}

// TestClientsOfAnAuthority has clients come with certificates of the authority that is trusted, of another, of none, and of one that
// has expired; and then another authority is trusted.
func TestClientsOfAnAuthority(t *testing.T) {
	var log lines
	ours, theirs := engines.NewAuthority(t, "ours"), engines.NewAuthority(t, "theirs")
	p := newPEMs(t)
	p.put(ours, engines.Certificate{Name: "front"})
	p.write(p.ca, ours.PEM)
	held := heldOf(t, ListenTLSConfig{CertFile: p.cert, KeyFile: p.key, ClientCAFile: p.ca}.files(), &log)
	server := frontOf(t, held, log.logger())
	client := func(a *engines.Authority, c engines.Certificate) *tls.Config {
		config := &tls.Config{RootCAs: ours.Pool(), ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(8)}
		if a != nil {
			pair, err := tls.X509KeyPair(a.Issue(t, c))
			if err != nil {
				t.Fatal(err)
			}
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
				if _, err := greeted(server, config); (err == nil) != in {
					t.Errorf("%s with %s: let in is %v, want %v: %v", who, tls.VersionName(version), err == nil, in, err)
				}
			}
		}
	}
	try("nobody", none, false)
	try("known", known, true)
	try("a stranger", stranger, false)
	try("one with an expired certificate", late, false)
	server.Config.ErrorLog.Print("flush")
	if text := log.take(); strings.Count(text, "client not let in") != 1 || !strings.Contains(text, "give the client a certificate of that authority") {
		t.Errorf("logged %s", text)
	}
	p.write(p.ca, theirs.PEM)
	if err := held.Reload(); err != nil {
		t.Fatal(err)
	}
	try("known before", known, false)
	try("the new one", stranger, true)
}

// TestVersionsTowardsClients has clients offer what the sidecar does not speak.
func TestVersionsTowardsClients(t *testing.T) {
	var log lines
	authority := engines.NewAuthority(t, "a")
	p := newPEMs(t)
	p.put(authority, engines.Certificate{Name: "front"})
	held := heldOf(t, ListenTLSConfig{CertFile: p.cert, KeyFile: p.key}.files(), &log)
	server := frontOf(t, held, log.logger())
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
		conn, err := tls.Dial("tcp", server.Listener.Addr().String(),
			&tls.Config{RootCAs: authority.Pool(), ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: c.max, NextProtos: c.protocols})
		if (err == nil) != c.in {
			t.Errorf("%s: let in is %v: %v", c.name, err == nil, err)
		}
		if err != nil {
			continue
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != c.agreed {
			t.Errorf("%s: agreed on %q", c.name, got)
		}
		conn.Close()
	}
}

// TestExpiry warns of what ends soon, once a day, and says when.
func TestExpiry(t *testing.T) {
	var log lines
	authority := engines.NewAuthority(t, "a") // two years
	p := newPEMs(t)
	until := time.Now().Add(20 * 24 * time.Hour).Truncate(time.Second)
	p.put(authority, engines.Certificate{Name: "front", Until: until})
	p.write(p.ca, authority.PEM)
	held := heldOf(t, ListenTLSConfig{CertFile: p.cert, KeyFile: p.key, ClientCAFile: p.ca}.files(), &log)
	alone := heldOf(t, TLSConfig{CAFile: p.ca}.files(), &log)
	if got := earliest(nil, alone, held); !got.Equal(until) {
		t.Errorf("the first ends at %v, want %v", got, until)
	}
	var day time.Duration
	for _, c := range []struct {
		at   time.Duration // in days from now
		want string
	}{{0, ""}, {5, ""}, {7, "ends soon"}, {7, ""}, {8, "days=11"}, {21, "has expired"}} {
		day = c.at * 24 * time.Hour
		held.now = func() time.Time { return until.Add(-20 * 24 * time.Hour).Add(day).Add(time.Minute) }
		if err := held.Reload(); err != nil {
			t.Fatal(err)
		}
		if text := log.take(); (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
			t.Errorf("after %d days: logged %q, want %q", c.at, text, c.want)
		}
	}
	// One that has expired is better than none.
	p.put(authority, engines.Certificate{Name: "late", From: time.Unix(0, 0), Until: time.Unix(1e9, 0)})
	heldOf(t, ListenTLSConfig{CertFile: p.cert, KeyFile: p.key}.files(), &log)
}

// TestTLSSections checks configurations about TLS that can't work.
func TestTLSSections(t *testing.T) {
	authority := engines.NewAuthority(t, "a")
	p := newPEMs(t)
	p.put(authority, engines.Certificate{Name: "front"})
	p.write(p.ca, authority.PEM)
	names := strings.NewReplacer("CERT", p.cert, "KEY", p.key, "CA", p.ca)
	for keys, want := range map[string]string{
		"listen_tls: {cert_file: CERT, key_file: KEY, client_ca_file: CA}": "",
		"tls: {ca_file: CA}":               "",
		"tls: {cert_file: CERT}":           "tls.key_file: is empty, and cert_file and key_file go together",
		"listen_tls: {key_file: KEY}":      "listen_tls.cert_file: is empty, and cert_file and key_file go together",
		"listen_tls: {client_ca_file: CA}": "listen_tls.client_ca_file: CA is of no use without TLS",
	} {
		const engine = `{listen: ":1", kind: opensearch, urls: ["https://h:1"], indices: [{match: a, fields: [t]}], `
		text := "engines: [" + engine + names.Replace(keys) + "}]"
		_, err := parse([]byte(text), environment())
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), "engines[0]."+names.Replace(want)) {
			t.Errorf("%s: %v, want %s", keys, err, names.Replace(want))
		}
	}
}
