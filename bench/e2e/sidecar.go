package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// setup is the configuration of a sidecar, other than its engine.
type setup struct {
	rule   string // members of the one rule, YAML in one line: `threshold: 0.7, window: 100`
	limits string // members of the section limits: `max_window: 10000`
	engine string // further lines of the engine's section, four spaces deep
	more   string // further sections
}

// build makes the sidecar as it is released.
func build(ctx context.Context, folder string) (program string, err error) {
	program = filepath.Join(folder, "sidecar")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", program, "./cmd/sidecar")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the sidecar: %w: %s", err, out)
	}
	return program, nil
}

// config writes the configuration of a sidecar in front of the engine, for all indices of this run.
func (b *bench) config(e *engine, s setup) (path string, err error) {
	rule := "match: " + indexName("*") + ", fields: [title, body]"
	if s.rule != "" {
		rule += ", " + s.rule
	}
	credentials := ""
	if e.key != "" {
		credentials = "    credentials: {api_key: " + e.key + "}\n"
	}
	if s.engine != "" {
		s.engine += "\n"
	}
	text := fmt.Sprintf("log: {format: json}\nadmin: 127.0.0.1:0\n%sengines:\n  - listen: 127.0.0.1:0\n    kind: %s\n    urls: [%s]\n"+
		"%s    limits: {%s}\n%s    indices:\n      - {%s}\n", s.more, e.kind, e.base, credentials, s.limits, s.engine, rule)
	file, err := os.CreateTemp(b.folder, "config-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(text)
	return file.Name(), errors.Join(err, file.Close())
}

// sidecar starts a sidecar in front of the engine, for all indices of this run.
func (b *bench) sidecar(e *engine, s setup) (*process, error) {
	file, err := b.config(e, s)
	if err != nil {
		return nil, err
	}
	base, admin := "", ""
	listening := func(line string) bool {
		var said struct{ Msg, Addr string }
		if json.Unmarshal([]byte(line), &said) != nil {
			return false
		}
		switch said.Msg {
		case "listening":
			base = "http://" + said.Addr
		case "admin listening":
			admin = "http://" + said.Addr
		}
		return base != "" && admin != ""
	}
	p, err := b.start(ours, "", listening, b.program, "serve", "--config", file)
	if err != nil {
		return nil, err
	}
	p.base, p.admin = base, admin
	return p, nil
}

// Names of contenders and processes.
const (
	direct = "direct"
	ours   = "sidecar"
	goes   = "ReverseProxy"
	tuned  = "ReverseProxy, tuned"
	nginx  = "nginx"
	hap    = "HAProxy"
)

// bare starts Go's own reverse proxy, and nothing else, in a separate process.
func (b *bench) bare(to string, tuned bool) (*process, error) {
	return b.itself(goes, "-bare", to, fmt.Sprintf("-tuned=%t", tuned))
}

// free is an address that nobody listens at.
func free() (string, error) {
	port, err := freePort()
	return fmt.Sprintf("http://127.0.0.1:%d", port), err
}

// serveBare is what the process of bare does: nothing but the standard library's proxy as it comes or, tuned, with buffers that are kept and a
// garbage collector that waits as long as the sidecar's.
func serveBare(listen, to string, tuned bool) error {
	upstream, err := url.Parse(to)
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport: &http.Transport{MaxIdleConns: 4096, MaxIdleConnsPerHost: 4096, DisableCompression: true},
	}
	if tuned {
		proxy.BufferPool = &pool{}
		debug.SetGCPercent(400)
	}
	return http.ListenAndServe(listen, proxy)
}

// nginx starts nginx as a plain proxy with as many workers as the machine has cores. The error says why it can't be had.
func (b *bench) nginx(to string) (*process, error) {
	return b.foreign(nginx, to, `daemon off; worker_processes %[1]d; pid %[4]s/nginx.pid; error_log stderr warn;
events { worker_connections 8192; }
http {
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path %[4]s/body; proxy_temp_path %[4]s/proxy; fastcgi_temp_path %[4]s/f; uwsgi_temp_path %[4]s/u; scgi_temp_path %[4]s/s;
  client_max_body_size 0;
  upstream engine { server %[3]s; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen %[2]s;
    location / { proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host; }
  }
}
`, "-p", b.folder, "-c")
}

// haproxy starts HAProxy in front of one or more addresses, in turns. The error says why it can't be had.
func (b *bench) haproxy(to ...string) (*process, error) {
	servers := ""
	for i, base := range to {
		servers += fmt.Sprintf("  server s%d %s\n", i, strings.TrimPrefix(base, "http://"))
	}
	return b.foreign(hap, to[0], `global
  nbthread %[1]d
  maxconn 8192
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend in
  bind %[2]s
  default_backend out
backend out
  balance roundrobin
`+strings.ReplaceAll(servers, "%", "%%"), "-db", "-f")
}

// foreign starts another proxy with a configuration, into which go the number of cores, the address to listen at, that of the
// engine and a folder.
func (b *bench) foreign(name, to, config string, arguments ...string) (*process, error) {
	program := strings.ToLower(name)
	path, err := exec.LookPath(program)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + program); err != nil {
			return nil, fmt.Errorf("%s is not installed", program)
		}
	}
	base, err := free()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(b.folder, program+"-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "conf")
	plain := func(address string) string { return strings.TrimPrefix(address, "http://") }
	cores := runtime.NumCPU()
	if b.core != "" {
		cores = 1
	}
	text := fmt.Sprintf(config+"#%[3]s%[4]s\n", cores, plain(base), plain(to), folder)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return b.start(name, base, nil, path, append(arguments, file)...)
}

// unzipped returns the body of a reply as it was before it was compressed.
func unzipped(r reply) ([]byte, error) {
	if r.header.Get("Content-Encoding") != "gzip" {
		return r.body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
