package onboard

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/upstream"
)

// credentials reports the credentials of jobs, which the engine has accepted.
func (p *engineChecks) credentials() {
	if p.product.Name == "" {
		return // the engine does not show these its version; the checks below show their rights
	}
	const accepts = "it accepts the %s in %s.credentials"
	switch c := p.engine.Credentials; {
	case c.APIKey.IsSet():
		p.ok("credentials", accepts, "api_key", p.key)
	case c.Bearer.IsSet():
		p.ok("credentials", accepts, "bearer", p.key)
	case c.Username.IsSet():
		p.ok("credentials", accepts, "username and password", p.key)
	default:
		p.ok("credentials", "it answers without credentials, and none are configured")
	}
}

// searchEngine sends a search to the engine itself.
func (p *engineChecks) searchEngine(ctx context.Context) {
	if p.search.index == "" {
		return // the listener's line says so
	}
	began := time.Now()
	if _, err := p.searchAt(ctx, p.at, p.Transport); err != nil {
		p.fail("search", fmt.Sprintf("check the engine's log, and whether %s.credentials may search", p.key),
			"a search of %s, sent to the engine itself, failed: %v", p.search.index, err)
		return
	}
	p.ok("search", "a search of %s, sent to the engine itself: answered in %s", p.search.index, since(began))
}

// since returns how long something took.
func since(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond) }

// listener sends a search through the running sidecar. It returns the sidecar's URL, nil if none runs.
func (p *engineChecks) listener(ctx context.Context) *url.URL {
	host, port, _ := net.SplitHostPort(p.engine.Listen) // validated
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	at := net.JoinHostPort(host, port)
	if port == "0" {
		p.ok("listener", "its port is chosen when it starts, so it can't be checked")
		return nil
	}
	connection, err := (&net.Dialer{Timeout: server.ProbeTimeout}).DialContext(ctx, "tcp", at)
	if err != nil {
		p.warn("listener", "start it with: sidecar serve", "no sidecar runs at %s", at)
		return nil
	}
	_ = connection.Close()
	running := &url.URL{Scheme: "http", Host: at}
	transport := &http.Transport{DisableKeepAlives: true}
	if own := p.engine.ListenTLS; own.CertFile != "" {
		running.Scheme, transport.TLSClientConfig = "https", trustOnly(own)
		if own.ClientCAFile != "" {
			p.ok("listener", "something listens at %s; it asks for a client's certificate, so no search was sent", at)
			return running
		}
	}
	if p.search.index == "" {
		p.ok("listener", "something listens at %s; no index has documents to search for, so no search was sent", at)
		return running
	}
	p.searchSidecar(ctx, running, transport)
	return running
}

// trustOnly trusts the certificate of listen_tls, with any authority and any names, and no other one.
func trustOnly(files config.ListenTLS) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection compares the certificate itself
		VerifyConnection: func(state tls.ConnectionState) error {
			pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
			if err != nil {
				return err
			}
			if len(state.PeerCertificates) == 0 || !bytes.Equal(pair.Certificate[0], state.PeerCertificates[0].Raw) {
				return fmt.Errorf("its certificate is not that in %s", files.CertFile)
			}
			return nil
		},
	}
}

// searchSidecar sends a search through the running sidecar, and reports the result.
func (p *engineChecks) searchSidecar(ctx context.Context, running *url.URL, transport http.RoundTripper) {
	index, at, began := p.search.index, running.Host, time.Now()
	outcome, err := p.searchAt(ctx, running.String(), transport)
	_, after, _ := strings.Cut(outcome, "reason=")
	reason, _, _ := strings.Cut(after, ";")
	switch {
	case err != nil:
		p.fail("listener", "check its log; `sidecar ready` says whether it reaches the engine",
			"a search of %s through the sidecar at %s failed: %v", index, at, err)
	case outcome == "":
		p.fail("listener", "check what runs there, and restart it with this configuration",
			"a search of %s at %s is answered without the header Neardup: no sidecar, or one with other rules", index, at)
	case strings.HasPrefix(outcome, "bypassed"):
		p.warn("listener", fmt.Sprintf("docs/controls.md says what the reason %s means", reason),
			"a search of %s through the sidecar at %s is left alone (%s, in %s)", index, at, outcome, since(began))
	default:
		p.ok("listener", "a search of %s through the sidecar at %s: %s, in %s", index, at, outcome, since(began))
	}
}

// searchAt sends the search to an address, and returns the header Neardup of the reply.
func (p *engineChecks) searchAt(ctx context.Context, at string, transport http.RoundTripper) (outcome string, err error) {
	search := p.Kind.Words(p.search.index, p.search.fields, "*")
	search.Header = p.engine.Header()
	reply, err := upstream.Send(ctx, transport, at, search)
	if err != nil {
		return "", err
	}
	if reply.Status != http.StatusOK {
		body := strings.Join(strings.Fields(string(reply.Body[:min(len(reply.Body), 300)])), " ")
		return "", fmt.Errorf("%d %s: %s", reply.Status, http.StatusText(reply.Status), body)
	}
	return strings.TrimSpace(http.Header(reply.Header).Get("Neardup")), nil
}
