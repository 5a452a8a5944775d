package config

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// FuzzConfig has any text for a configuration: it is read or refused by an error that shows no secret of the environment.
func FuzzConfig(f *testing.F) {
	if text, err := os.ReadFile("../../config.yaml"); err == nil {
		f.Add(text)
	}
	for _, s := range []string{
		"", "engines: []",
		"engines:\n  - kind: typesense\n    urls: [http://127.0.0.1:1]\n    credentials: {api_key: \"${SECRET}\"}\n    indices: [{match: a, fields: [b]}]\n",
		"sketch: {seed: ${SECRET}}\nengines: 5", "a: &a [*a]", "sketch: {shingle: ${SECRET:-x}}",
		"engines:\n- {kind: elasticsearch, urls: ['${SECRET}'], threshold: 1}\n", "? [a]\n: b", "admin: $${SECRET}",
	} {
		f.Add([]byte(s))
	}
	const hidden = "hunter-two-forever"
	env := func(name string) (string, bool) { return hidden, strings.HasPrefix(name, "SECRET") }
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Contains(text, []byte(hidden)) {
			return
		}
		for _, keys := range []*regexp.Regexp{anyKey, offlineKeys} {
			c, err := parse(text, ".", env, keys)
			if (c == nil) == (err == nil) {
				t.Fatalf("%q gives %v and %v", text, c, err)
			}
			if err == nil {
				continue
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if key, _, _ := strings.Cut(line, ": "); strings.Contains(line, hidden) && secret(key) {
					t.Fatalf("%q is refused with a secret: %v", text, err)
				}
			}
		}
	})
}

// TestTracesSection: what is wrong with an endpoint is said without showing what may be secret in it.
func TestTracesSection(t *testing.T) {
	for endpoint, good := range map[string]bool{
		"": true, "http://127.0.0.1:4318": true, "https://traces.example/otlp/": true,
		"127.0.0.1:4318": false, "grpc://x:4317": false, "http://user:hunter2@x:4318": false, "http://x:4318/?key=hunter2": false, "user:hunter2@x": false,
	} {
		var f faults
		Traces{Endpoint: endpoint, Sample: 1}.validate(&f, "traces")
		if text := fmt.Sprint(f); (len(f) == 0) != good || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", endpoint, text)
		}
	}
	for _, sample := range []float64{-0.1, 1.5} {
		var f faults
		if (Traces{Sample: sample}).validate(&f, "traces"); len(f) == 0 {
			t.Errorf("%v is taken", sample)
		}
	}
}

// TestTLSSections checks configurations about TLS that can't work.
func TestTLSSections(t *testing.T) {
	authority := engines.NewAuthority(t, "a")
	p := engines.NewPEMs(t)
	p.Put(authority, engines.Certificate{Name: "front"})
	p.Write(p.CA, authority.PEM)
	names := strings.NewReplacer("CERT", p.Cert, "KEY", p.Key, "CA", p.CA)
	for keys, want := range map[string]string{
		"listen_tls: {cert_file: CERT, key_file: KEY, client_ca_file: CA}": "",
		"tls: {ca_file: CA}":               "",
		"tls: {cert_file: CERT}":           "tls.key_file: is empty, and cert_file and key_file go together",
		"listen_tls: {key_file: KEY}":      "listen_tls.cert_file: is empty, and cert_file and key_file go together",
		"listen_tls: {client_ca_file: CA}": "listen_tls.client_ca_file: CA is of no use without TLS",
	} {
		const engine = `{listen: ":1", kind: opensearch, urls: ["https://h:1"], indices: [{match: a, fields: [t]}], `
		text := "engines: [" + engine + names.Replace(keys) + "}]"
		_, err := Parse([]byte(text), environment())
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), "engines[0]."+names.Replace(want)) {
			t.Errorf("%s: %v, want %s", keys, err, names.Replace(want))
		}
	}
}
