package config

import (
	"slices"
	"strings"

	"github.com/neardup/sidecar/internal/certs"
)

func (t ListenTLS) Files() certs.Files {
	return certs.ListenerFiles(t.CertFile, t.KeyFile, t.ClientCAFile)
}

func (t TLS) Files() certs.Files { return certs.EngineFiles(t.CertFile, t.KeyFile, t.CAFile) }

// validateTLS checks both sections about TLS.
func (e *Engine) validateTLS(f *faults, key string) {
	f.addAll(key+".listen_tls", e.ListenTLS.Files().Check())
	f.addAll(key+".tls", e.TLS.Files().Check())
	plain := slices.ContainsFunc(e.URLs, func(u string) bool { return strings.HasPrefix(u, "http://") })
	if plain && e.TLS.CertFile != "" {
		f.add(key+".tls.cert_file", "%s is shown to an engine behind https alone: write https:// in urls, or drop it", e.TLS.CertFile)
	}
}

// describe says in short how clients connect.
func (t ListenTLS) describe() string {
	switch {
	case t.ClientCAFile != "":
		return " by TLS with clients' certificates"
	case t.CertFile != "":
		return " by TLS"
	}
	return ""
}
