package certs

import "crypto/tls"

// serverTLS returns the configuration of one connection with a client.
func serverTLS(f Files, m *Material) *tls.Config {
	if !f.server || m.pair == nil {
		return nil
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*m.pair}, NextProtos: []string{"http/1.1"},
		// A ticket would let in, for days, who once showed a certificate of an authority that is trusted no more.
		SessionTicketsDisabled: f.insist,
	}
	if f.insist {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, m.pool
	}
	return config
}

// ServerConfig returns the configuration of a listener, nil for one without TLS. It stays the same one: what the files hold at the
// moment is looked up for each connection.
func (c *Certificates) ServerConfig() *tls.Config {
	if c == nil {
		return nil
	}
	return c.inward
}
