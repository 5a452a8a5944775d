package proxy

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// addressed returns the host and port under which the client addressed us: its Host header, and where that names no port the one
// of the scheme. Behind a proxy that speaks TLS for us, that one says which scheme the client used.
func addressed(r *http.Request) string {
	host := url.URL{Host: r.Host}
	switch {
	case host.Hostname() == "":
		return ""
	case host.Port() != "":
		return r.Host
	case r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"):
		return net.JoinHostPort(host.Hostname(), "443")
	}
	return net.JoinHostPort(host.Hostname(), "80")
}
