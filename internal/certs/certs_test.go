package certs

import (
	"bytes"
	"crypto/tls"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/logtest"
)

// heldOf reads certificates.
func heldOf(t *testing.T, files Files, log *logtest.Lines) *Certificates {
	t.Helper()
	return expect.Value(New(files, log.Logger()))(t)
}

// frontOf serves by TLS, and returns its address.
func frontOf(t *testing.T, c *Certificates, log *slog.Logger) string {
	t.Helper()
	return engines.ServeTLS(t, c.ServerConfig(), &http.Server{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)})
}

// TestCertificatesReload replaces a pair by what is no good, and then by a good one. What is no good is told in one line, the pair before is
// shown until then, and a connection that is open is not cut.
func TestCertificatesReload(t *testing.T) {
	authority := engines.NewAuthority(t, "clients trust this")
	other, otherKey := authority.Issue(t, engines.Certificate{Name: "other"})
	for _, c := range []struct {
		name string
		harm func(p *engines.PEMs)
		want string
	}{
		{"the key of another certificate", func(p *engines.PEMs) { p.Write(p.Key, otherKey) }, "listen_tls.key_file: KEY is not the key of the certificate in CERT: use the two files of one pair"},
		{"half a certificate", func(p *engines.PEMs) { p.Write(p.Cert, other[:len(other)/2]); p.Write(p.Key, otherKey) }, "listen_tls.cert_file: CERT with key_file KEY: failed to find any PEM data in certificate input: create the pair again"},
		{"no key", func(p *engines.PEMs) { _ = os.Remove(p.Key) }, "listen_tls.key_file: KEY can't be read: no such file or directory: name a file that exists"},
		{"too large", func(p *engines.PEMs) { p.Write(p.Cert, bytes.Repeat(other, 2000)) }, "listen_tls.cert_file: CERT is larger than 1MB: name another file"},
		{"a key with a passphrase", func(p *engines.PEMs) {
			p.Write(p.Key, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"))
		}, "listen_tls.key_file: KEY is encrypted: remove the passphrase, as with openssl pkey -in KEY"},
		{"expired", func(p *engines.PEMs) {
			p.Put(authority, engines.Certificate{Name: "late", From: time.Unix(0, 0), Until: time.Unix(1e9, 0)})
		}, "listen_tls.cert_file: the certificate in CERT has expired at 2001-09-09T01:46:40Z: renew it"},
		{"not yet valid", func(p *engines.PEMs) {
			p.Put(authority, engines.Certificate{Name: "early", From: time.Unix(1e10, 0), Until: time.Unix(1e10+1e8, 0)})
		}, "listen_tls.cert_file: the certificate in CERT is valid from 2286-11-20T17:46:40Z on: wait, or set the clock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // each waits a little for files that are being written
			var log logtest.Lines
			p := engines.NewPEMs(t)
			p.Put(authority, engines.Certificate{Name: "first"})
			held := heldOf(t, ListenerFiles(p.Cert, p.Key, ""), &log)
			server := frontOf(t, held, log.Logger())
			trust := &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}
			open := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, MaxConnsPerHost: 1}}
			ask := func(when string) {
				resp := expect.Value(open.Get("https://" + server))(t)
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				expect.Same(t, "first", resp.TLS.PeerCertificates[0].Subject.CommonName, "%s: the name on the open connection", when)
			}
			ask("before")
			c.harm(p)
			want := strings.NewReplacer("CERT", p.Cert, "KEY", p.Key).Replace(c.want)
			for range 2 {
				if err := held.Reload(); err == nil || err.Error() != want {
					t.Fatalf("%v, want %s", err, want)
				}
			}
			if text := log.Take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=ERROR") || !strings.Contains(text, want) {
				t.Errorf("logged %s", text)
			}
			expect.Same(t, "first", expect.Value(engines.NameShown(server, trust))(t), "the name that clients are shown")
			ask("after")
			_ = os.RemoveAll(p.Key)
			p.Put(authority, engines.Certificate{Name: "second"})
			expect.OK(t, held.Reload())
			expect.Same(t, "second", expect.Value(engines.NameShown(server, trust))(t), "the name that clients are shown")
			ask("at the end")
			if text := log.Take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "certificates reloaded") {
				t.Errorf("logged %s", text)
			}
			if err := held.Reload(); err != nil || log.Take() != "" {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// TestCertificatesSwapped turns links round as Kubernetes does, while the files are read and clients connect: they are shown one pair or
// the other, whole, and nothing is complained of.
func TestCertificatesSwapped(t *testing.T) {
	var log logtest.Lines
	authority, dir, pairs := engines.NewAuthority(t, "a"), t.TempDir(), map[string]*engines.PEMs{"even": engines.NewPEMs(t), "odd": engines.NewPEMs(t)}
	for name, p := range pairs {
		p.Put(authority, engines.Certificate{Name: name})
	}
	turn := func(to string) {
		next := filepath.Join(dir, "..data_tmp")
		expect.OK(t, os.Symlink(filepath.Dir(pairs[to].Cert), next))
		expect.OK(t, os.Rename(next, filepath.Join(dir, "..data")))
	}
	turn("even")
	for _, file := range []string{"tls.crt", "tls.key"} {
		expect.OK(t, os.Symlink(filepath.Join("..data", file), filepath.Join(dir, file)))
	}
	shown := ListenerFiles(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), "")
	held := heldOf(t, shown, &log)
	server := frontOf(t, held, log.Logger())
	trust := &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}
	seen := map[string]int{}
	for i := range 60 {
		name := []string{"even", "odd"}[i%2]
		var wg sync.WaitGroup
		wg.Go(func() { turn(name) })
		wg.Go(func() { _ = held.Reload() })
		got := expect.Value(engines.NameShown(server, trust))(t)
		seen[got]++
		wg.Wait()
		expect.OK(t, held.Reload())
		expect.Must(t, name, expect.Value(engines.NameShown(server, trust))(t), "the name that is shown")
	}
	if seen["even"] == 0 || seen["odd"] == 0 || strings.Contains(log.Take(), "ERROR") {
		t.Errorf("%v, logged %s", seen, log.Take())
	}
}

// TestExpiry warns of what ends soon, once a day, and says when.
func TestExpiry(t *testing.T) { synctest.Test(t, testExpiry) }

func testExpiry(t *testing.T) {
	var log logtest.Lines
	authority := engines.NewAuthority(t, "a") // two years
	p := engines.NewPEMs(t)
	until := time.Now().Add(20 * 24 * time.Hour).Truncate(time.Second)
	p.Put(authority, engines.Certificate{Name: "front", Until: until})
	p.Write(p.CA, authority.PEM)
	held := heldOf(t, ListenerFiles(p.Cert, p.Key, p.CA), &log)
	alone := heldOf(t, EngineFiles("", "", p.CA), &log)
	if got := Earliest(nil, alone, held); !got.Equal(until) {
		t.Errorf("the first ends at %v, want %v", got, until)
	}
	for _, c := range []struct {
		at   time.Duration // in days from now
		want string
	}{{0, ""}, {5, ""}, {7, "expires soon"}, {7, ""}, {8, "days=11"}, {21, "has expired"}} {
		time.Sleep(time.Until(until.Add((c.at-20)*24*time.Hour + time.Minute)))
		expect.OK(t, held.Reload())
		if text := log.Take(); (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
			t.Errorf("after %d days: logged %q, want %q", c.at, text, c.want)
		}
	}
	// One that has expired is better than none.
	p.Put(authority, engines.Certificate{Name: "late", From: time.Unix(0, 0), Until: time.Unix(1e8, 0)})
	heldOf(t, ListenerFiles(p.Cert, p.Key, ""), &log)
}

func TestUnreadable(t *testing.T) {
	if err := unreadable(&fs.PathError{Err: fs.ErrPermission}); !strings.Contains(err.Error(), "uid") || !strings.Contains(err.Error(), "to read it") {
		t.Errorf("no hint: %v", err)
	}
}

// TestAgeIsMonotonic: a clock that is set back by hours must not keep files from being read for hours.
func TestAgeIsMonotonic(t *testing.T) {
	var log logtest.Lines
	p := engines.NewPEMs(t)
	p.Write(p.CA, engines.NewAuthority(t, "a").PEM)
	c := heldOf(t, EngineFiles("", "", p.CA), &log)
	if at := c.read.Load().String(); !strings.Contains(at, " m=") {
		t.Errorf("the age of the files goes by the wall clock: %s", at)
	}
}
