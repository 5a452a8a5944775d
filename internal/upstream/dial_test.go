package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/certs"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/faults"
	"github.com/neardup/sidecar/internal/logtest"
	"github.com/neardup/sidecar/proxy"
)

// behindTLS is an engine that answers by TLS.
func behindTLS(t *testing.T, config *tls.Config) string {
	t.Helper()
	return "https://" + engines.ServeTLS(t, config, &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)})
}

// pairOf returns a certificate with its key.
func pairOf(t *testing.T, a *engines.Authority, c engines.Certificate) tls.Certificate {
	t.Helper()
	return expect.Value(tls.X509KeyPair(a.Issue(t, c)))(t)
}

// ask sends one request on a connection of its own.
func ask(transport http.RoundTripper, url string) (string, error) { return askOn(transport, url, true) }

// askOn sends one request, on a connection that another one left open if there is one.
func askOn(transport http.RoundTripper, url string, last bool) (string, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	request.Close = last
	resp, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// plainPort returns what answers a connection without TLS, or not at all.
func plainPort(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	return "https://" + faults.Listen(t, nil, func(conn net.Conn, _ int) {
		answer(conn)
		<-t.Context().Done()
	})
}

// TestEngineByTLS connects to engines that are as they should be and to others: every failure says what to do about it, and is a failed dial
// where nothing of the request can have been read.
func TestEngineByTLS(t *testing.T) {
	known, unknown := engines.NewAuthority(t, "known"), engines.NewAuthority(t, "unknown")
	good := pairOf(t, known, engines.Certificate{Name: "engine"})
	asking := func(certificate tls.Certificate, max uint16) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known.Pool(), MaxVersion: max}
	}
	p := engines.NewPEMs(t)
	p.Put(known, engines.Certificate{Name: "sidecar"})
	p.Write(p.CA, known.PEM)
	strange := engines.NewPEMs(t)
	strange.Put(unknown, engines.Certificate{Name: "strange"})
	trust, shows, shownStrange := config.TLS{CAFile: p.CA}, config.TLS{CAFile: p.CA, CertFile: p.Cert, KeyFile: p.Key}, config.TLS{CAFile: p.CA, CertFile: strange.Cert, KeyFile: strange.Key}
	serving := func(c tls.Certificate) string { return behindTLS(t, &tls.Config{Certificates: []tls.Certificate{c}}) }
	for _, c := range []struct {
		name string
		tls  config.TLS
		url  string
		hint string // empty where it answers
		late bool   // the engine says no only after the handshake
	}{
		{"trusted", trust, serving(good), "", false},
		{"unknown authority", trust, serving(pairOf(t, unknown, engines.Certificate{})), "name the certificate of the authority that signed the engine's in tls.ca_file", false},
		{"the system's authorities", config.TLS{}, serving(good), "name the certificate of the authority that signed the engine's in tls.ca_file", false},
		{"another name", trust, serving(pairOf(t, known, engines.Certificate{Hosts: []string{"es.example"}})), "write in urls a name that the engine's certificate is for", false},
		{"expired", trust, serving(pairOf(t, known, engines.Certificate{From: time.Unix(0, 0), Until: time.Unix(1e9, 0)})), "renew the engine's certificate, or set the clock of this machine", false},
		{"asks for a certificate, 1.3", shows, behindTLS(t, asking(good, 0)), "", false},
		{"asks and gets none, 1.3", trust, behindTLS(t, asking(good, 0)), "set tls.cert_file and tls.key_file", true},
		{"asks and gets a strange one, 1.3", shownStrange, behindTLS(t, asking(good, 0)), "the engine does not accept the certificate in tls.cert_file", true},
		{"plain HTTP", trust, plainPort(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }), "does not speak TLS: write http:// in urls", false},
		{"hangs up", trust, plainPort(t, func(c net.Conn) { _, _ = io.ReadAtLeast(c, make([]byte, 1<<10), 20); _ = c.(*net.TCPConn).CloseWrite() }), "closed the connection in the handshake: see its log", false},
		{"drips", trust, plainPort(t, func(c net.Conn) {
			for _, b := range []byte("\x16\x03\x03\x40\x00\x02") { // the beginning of a long record
				_, _ = c.Write([]byte{b})
				time.Sleep(100 * time.Millisecond)
			}
		}), "the handshake did not end within 300ms", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := config.Engine{Name: "e", TLS: c.tls}
			transport, _ := transportOf(t, e)
			if strings.Contains(c.hint, "300ms") {
				(&shortened{transport}).handshakes(t, &e, 300*time.Millisecond)
			}
			body, err := ask(transport, c.url)
			if c.hint == "" {
				if err != nil || body != "HTTP/1.1" {
					t.Errorf("%q: %v", body, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "TLS: ") || !strings.Contains(err.Error(), c.hint) {
				t.Fatalf("%v, want a hint %q", err, c.hint)
			}
			op, ok := errors.AsType[*net.OpError](err)
			if dial := ok && op.Op == "dial"; dial == c.late {
				t.Errorf("a failed dial: %v, want %v: %v", dial, !c.late, err)
			}
		})
	}
}

// transportOf returns a transport to an engine, and what it holds of files.
func transportOf(t *testing.T, e config.Engine) (*proxy.Transport, *certs.Certificates) {
	t.Helper()
	transport, held, err := Transport(&e, new(logtest.Lines).Logger())
	expect.OK(t, err)
	return transport, held
}

// shortened has a transport's handshakes end sooner.
type shortened struct{ transport *proxy.Transport }

func (s *shortened) handshakes(t *testing.T, e *config.Engine, limit time.Duration) {
	t.Helper()
	c := expect.Value(certs.New(e.TLS.Files(), new(logtest.Lines).Logger()))(t)
	s.transport.TLSHandshakeTimeout = limit
	d := &engineDialer{certificates: c, transport: s.transport, log: new(logtest.Lines).Logger()}
	s.transport.DialTLSContext = d.dial
}

// TestEngineTrustReload has the engine get a certificate of another authority, and ask for another one of ours: after the files changed the
// same transport reaches it, and a request under way ends on the connection it began on.
func TestEngineTrustReload(t *testing.T) {
	before, after := engines.NewAuthority(t, "before"), engines.NewAuthority(t, "after")
	p := engines.NewPEMs(t)
	p.Put(before, engines.Certificate{Name: "old"})
	p.Write(p.CA, before.PEM)
	e := config.Engine{Name: "e", TLS: config.TLS{CAFile: p.CA, CertFile: p.Cert, KeyFile: p.Key}}
	transport, held := transportOf(t, e)
	serving := func(a *engines.Authority) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{pairOf(t, a, engines.Certificate{})}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool()}
	}
	old, renewed := behindTLS(t, serving(before)), behindTLS(t, serving(after))
	expect.Value(askOn(transport, old, false))(t)
	if _, err := ask(transport, renewed); err == nil {
		t.Fatal("an authority that is not known is trusted")
	}
	slow := make(chan struct{})
	held2 := behindSlow(t, serving(before), slow)
	underway := make(chan error, 1)
	go func() { _, err := ask(transport, held2); underway <- err }()
	<-slow
	p.Put(after, engines.Certificate{Name: "new"})
	p.Write(p.CA, after.PEM)
	expect.OK(t, held.Reload())
	if _, err := ask(transport, renewed); err != nil {
		t.Errorf("after the change: %v", err)
	}
	if _, err := askOn(transport, old, false); err == nil {
		t.Error("an authority that is trusted no more still is, or an idle connection was used")
	}
	slow <- struct{}{}
	if err := <-underway; err != nil {
		t.Errorf("a request under way was cut: %v", err)
	}
}

// behindSlow is an engine that tells when a request has come, and answers when it is told to.
func behindSlow(t *testing.T, config *tls.Config, step chan struct{}) string {
	t.Helper()
	return "https://" + engines.ServeTLS(t, config, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		step <- struct{}{}
		<-step
		_, _ = io.WriteString(w, "ok")
	})})
}

// TestJobsReadAnew dials after the files changed, with nobody to call Reload, as a job that runs for days does.
func TestJobsReadAnew(t *testing.T) {
	before, after := engines.NewAuthority(t, "before"), engines.NewAuthority(t, "after")
	p := engines.NewPEMs(t)
	p.Write(p.CA, before.PEM)
	e := config.Engine{TLS: config.TLS{CAFile: p.CA}}
	transport, _ := transportOf(t, e)
	url := behindTLS(t, &tls.Config{Certificates: []tls.Certificate{pairOf(t, after, engines.Certificate{})}})
	p.Write(p.CA, append(before.PEM, after.PEM...))
	if _, err := ask(transport, url); err == nil {
		t.Fatal("an authority that is not known is trusted")
	}
	defer func(age time.Duration) { pemAge = age }(pemAge)
	pemAge = 0
	deadline := time.Now().Add(60 * time.Second)
	for {
		_, err := ask(transport, url)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestDialEnds has the caller give up while the engine says nothing.
func TestDialEnds(t *testing.T) {
	e := config.Engine{TLS: config.TLS{InsecureSkipVerify: true}}
	transport, _ := transportOf(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	request := expect.Value(http.NewRequestWithContext(ctx, http.MethodGet, plainPort(t, func(net.Conn) {}), nil))(t)
	if _, err := transport.RoundTrip(request); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the end of the caller's time", err)
	}
}
