package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/internal/certs"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/proxy"
)

// faults collects what is wrong, each with its key.
type faults []*KeyError

func (f *faults) add(key, format string, args ...any) {
	*f = append(*f, &KeyError{Key: key, Err: fmt.Errorf(format, args...)})
}

// addAll takes over joined errors that each begin with a key below the section.
func (f *faults) addAll(section string, err error) {
	for _, e := range Flatten(err) {
		key, message, _ := strings.Cut(e.Error(), ": ")
		f.add(section+"."+key, "%s", message)
	}
}

// oneOf checks that a value is one of the choices.
func (f *faults) oneOf(key, value string, choices ...string) {
	if !slices.Contains(choices, value) {
		f.add(key, "%q is unknown: use %s", value, Either(choices))
	}
}

// Either returns "a, b or c".
func Either(choices []string) string {
	last := len(choices) - 1
	if last == 0 {
		return choices[0]
	}
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// Validate returns everything that makes the configuration unusable.
func (c *Config) Validate() []*KeyError {
	var f faults
	if _, err := c.Log.MinLevel(); err != nil {
		f.add("log.level", "%q is unknown: use debug, info, warn or error", c.Log.Level)
	}
	f.oneOf("log.format", c.Log.Format, "text", "json")
	if c.Admin != "" {
		f.address("admin", c.Admin)
	}
	c.Traces.validate(&f, "traces")
	c.Sketch.validate(&f, "sketch")
	if len(c.Engines) == 0 {
		f.add("engines", "must have at least one engine with listen, kind, urls and indices")
	}
	names, addresses := map[string]string{}, map[string]string{c.Admin: "admin"}
	for i := range c.Engines {
		e, key := &c.Engines[i], fmt.Sprintf("engines[%d]", i)
		e.validate(&f, key)
		for j, index := range e.Indices {
			index.validateSketch(&f, fmt.Sprintf("%s.indices[%d]", key, j), &c.Sketch)
		}
		if other, taken := names[e.Name]; taken && e.Name != "" {
			f.add(key+".name", "%q is the name of %s too: give each engine its own", e.Name, other)
		}
		if other, taken := addresses[e.Listen]; taken && e.Listen != "" && !strings.HasSuffix(e.Listen, ":0") {
			f.add(key+".listen", "%s is taken by %s: choose another port", e.Listen, other)
		}
		names[e.Name], addresses[e.Listen] = key, key+".listen"
	}
	c.validateLoops(&f)
	return f
}

func (s Sketch) validate(f *faults, section string) {
	f.addAll(section, s.Scheme().Validate())
	for i, kept := range s.Keep {
		key := fmt.Sprintf("%s.keep[%d]", section, i)
		f.oneOf(key, kept, keepCase, keepAccents, keepPunctuation)
		if slices.Contains(s.Keep[:i], kept) {
			f.add(key, "%q stands twice: drop one", kept)
		}
	}
}

// validateLoops checks that no engine is looked for where the sidecar itself listens.
func (c *Config) validateLoops(f *faults) {
	for i, e := range c.Engines {
		for j, text := range e.URLs {
			for k, other := range c.Engines {
				if u, err := url.Parse(text); err == nil && ListensAt(other.Listen, u) {
					f.add(fmt.Sprintf("engines[%d].urls[%d]", i, j), "%s is where engines[%d] listens, and requests would go round in a loop: name the engine's own address", u.Host, k)
					break
				}
			}
		}
	}
}

// ListensAt reports whether an address to listen on is certainly that of a URL.
func ListensAt(listen string, u *url.URL) bool {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return false
	}
	at := u.Port()
	if at == "" {
		at = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return port == at && (strings.EqualFold(host, u.Hostname()) || IsThisHost(host) && IsThisHost(u.Hostname()))
}

// local reports whether none but this machine can reach an address.
func local(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback())
}

// asksForCertificates reports whether an engine's clients have to show one.
func (c *Config) asksForCertificates() bool {
	return slices.ContainsFunc(c.Engines, func(e Engine) bool { return e.ListenTLS.ClientCAFile != "" })
}

// IsThisHost reports whether a host is this one, whatever its name: loopback or no host in particular.
func IsThisHost(host string) bool {
	if host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// MinLevel returns the level that is logged from.
func (l Log) MinLevel() (slog.Level, error) {
	var level slog.Level
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, l.Level) {
		return level, errors.New("unknown level")
	}
	err := level.UnmarshalText([]byte(l.Level))
	return level, err
}

// CheckAddress returns what is wrong with a host and port to listen on; nil if nothing is.
func CheckAddress(key, value string) error {
	var f faults
	if f.address(key, value); len(f) > 0 {
		return f[0]
	}
	return nil
}

// CheckURL returns what is wrong with the URL of an engine; nil if nothing is.
func CheckURL(text string) error {
	var f faults
	e := Engine{URLs: []string{text}}
	if e.validateURLs(&f, "URL"); len(f) > 0 {
		return f[0].Err
	}
	return nil
}

// address checks a host and port to listen on.
func (f *faults) address(key, value string) {
	if value == "" {
		f.add(key, "is empty: give the address to listen on, such as 127.0.0.1:9201")
		return
	}
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		f.add(key, "%q is no address: write host:port, such as 127.0.0.1:9201", value)
	}
}

func (e *Engine) validate(f *faults, key string) {
	f.address(key+".listen", e.Listen)
	if e.Kind == "" {
		f.add(key+".kind", "is empty: use %s", Either(kind.Names()))
	} else {
		f.oneOf(key+".kind", e.Kind, kind.Names()...)
	}
	f.oneOf(key+".on_failure", e.OnFailure, "open", "error")
	e.validateSniffing(f, key)
	e.validateURLs(f, key+".urls")
	e.Credentials.validate(f, key+".credentials", e.Kind)
	e.validateTLS(f, key)
	e.Limits.validate(f, key+".limits")
	e.validateIndices(f, key)
}

func (e *Engine) validateSniffing(f *faults, key string) {
	if e.RewriteSniffing && slices.Contains(kind.Names(), e.Kind) && !kind.Of(e.Kind).Sniffed() {
		f.add(key+".rewrite_sniffing", "no client of %s asks for nodes: drop it", e.Kind)
		return
	}
	if e.Advertise == "" {
		return
	}
	host, port, err := net.SplitHostPort(e.Advertise)
	number, notNumber := strconv.ParseUint(port, 10, 16)
	ip := net.ParseIP(host)
	switch {
	case err != nil || notNumber != nil || number == 0 || host == "" || strings.ContainsAny(host, "/@ "):
		f.add(key+".advertise", "%q is no address: write the host:port at which clients reach the sidecar, such as search.example:9201", e.Advertise)
	case ip != nil && ip.IsUnspecified():
		f.add(key+".advertise", "%s is no address that a client can connect to: name the host at which clients reach the sidecar", e.Advertise)
	case !e.RewriteSniffing:
		f.add(key+".advertise", "is told to sniffing clients alone: set rewrite_sniffing: true, or drop it")
	}
}

func (e *Engine) validateURLs(f *faults, key string) {
	if e.Kind == kind.Embedded {
		if len(e.URLs) > 0 {
			f.add(key, "must be empty: the embedded engine runs inside the sidecar")
		}
		return
	}
	if len(e.URLs) == 0 {
		f.add(key, "must name at least one address of the engine, such as http://127.0.0.1:9200")
	}
	schemes := map[string]bool{}
	for i, text := range e.URLs {
		at := fmt.Sprintf("%s[%d]", key, i)
		u, err := url.Parse(text)
		switch {
		case err != nil && strings.Contains(text, "@"):
			f.add(at, "is no URL: write http://host:port, and put user and password under credentials")
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			f.add(at, "%q is no URL of an engine: write http://host:port or https://host:port", shownURL(text))
		case u.User != nil:
			f.add(at, "holds a user name: write %s://%s and put user and password under credentials", u.Scheme, u.Host)
		case u.RawQuery != "" || u.Fragment != "":
			f.add(at, "%q has a query: write http://host:port, with a path if the engine stands below one", shownURL(text))
		default:
			schemes[u.Scheme] = true
		}
	}
	if len(schemes) > 1 {
		f.add(key, "mixes http and https: the nodes of one engine speak the same")
	}
}

// validate checks that there is one way to log in at most, and one that the kind of engine knows.
func (c Credentials) validate(f *faults, key, name string) {
	if c.Username.IsSet() != c.Password.IsSet() {
		f.add(key, "username and password go together: set both or none")
	}
	ways := 0
	for _, set := range []bool{c.APIKey.IsSet(), c.Username.IsSet() || c.Password.IsSet(), c.Bearer.IsSet()} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		f.add(key, "has more than one of api_key, username with password, and bearer: keep one")
	}
	if kind.Of(name).KeysOnly && !c.APIKey.IsSet() && ways > 0 {
		f.add(key, "%s knows no users and no bearer tokens: set api_key", name)
	}
}

func (e *Engine) validateIndices(f *faults, engine string) {
	if len(e.Indices) == 0 {
		f.add(engine+".indices", "must have at least one entry with match and fields")
	}
	for i, index := range e.Indices {
		key := fmt.Sprintf("%s.indices[%d]", engine, i)
		index.validate(f, key)
		if index.Window > e.Limits.MaxWindow && e.Limits.MaxWindow > 0 {
			f.add(key+".window", "%d is above limits.max_window (%d): raise limits.max_window to %d, at the price of processor time for each search, or lower this", index.Window, e.Limits.MaxWindow, index.Window)
		}
		e.validateOrder(f, key+".match", i)
	}
}

// validateOrder checks that an entry can match an index that no earlier one matches. A pattern that matches another one's text, in
// which * is a letter like any other, matches all that the other does.
func (e *Engine) validateOrder(f *faults, key string, i int) {
	match := e.Indices[i].Match
	for first, earlier := range e.Indices[:i] {
		switch {
		case match == "" || !rule.Matches(earlier.Match, match):
			continue
		case earlier.Match == match:
			f.add(key, "%q stands in indices[%d] too, and the first match wins: drop one", match, first)
		default:
			f.add(key, "%q never matches: %q in indices[%d] takes its indices, and the first match wins: move this one up", match, earlier.Match, first)
		}
		return
	}
}

// leastHeld is the least that can be given to all requests together: two bodies of a megabyte.
const leastHeld = 2 << 20

func (l Limits) validate(f *faults, key string) {
	for _, size := range []struct {
		name  string
		value Size
	}{{"max_reply", l.MaxReply}, {"max_search_body", l.MaxSearchBody}, {"engine_max_body", l.EngineMaxBody}, {"cursor_memory", l.CursorMemory}} {
		if size.value < 1 {
			f.add(key+"."+size.name, "must be more than 0, such as 64MB")
		}
	}
	for _, span := range []struct {
		name         string
		value, usual Span
	}{
		{"cursor_ttl", l.CursorTTL, Span(proxy.DefaultCursorTTL)}, {"deadline", l.Deadline, Span(proxy.DefaultDeadline)},
		{"header_timeout", l.HeaderTimeout, Span(ReadHeaderTimeout)}, {"idle_timeout", l.IdleTimeout, Span(IdleTimeout)},
	} {
		if span.value <= 0 {
			f.add(key+"."+span.name, "%v is out of range: use a span above 0, such as %v", span.value, span.usual)
		}
	}
	if l.MaxWindow < 1 || l.MaxWindow > 1_000_000 {
		f.add(key+".max_window", "%d is out of range: use 1 to 1000000 (%d is usual)", l.MaxWindow, proxy.DefaultMaxWindow)
	}
	if !(l.FallbackShare > 0 && l.FallbackShare <= 1) {
		f.add(key+".fallback_share", "%v is out of range: use a number above 0, at most 1 (%v is usual)", l.FallbackShare, proxy.DefaultFallbackShare)
	}
	if l.MaxSearches < 1 {
		f.add(key+".max_searches", "%d is out of range: use 1 or more (%d is usual)", l.MaxSearches, proxy.DefaultMaxSearches)
	}
	if l.MaxHeld < leastHeld {
		f.add(key+".max_held", "must be 2MB or more, such as %dMB", proxy.DefaultMaxHeld>>20)
	}
}

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

func (c Traces) validate(f *faults, key string) {
	if c.Sample < 0 || c.Sample > 1 {
		f.add(key+".sample", "%v is out of range: use 0 to 1", c.Sample)
	}
	if c.Endpoint == "" {
		return
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		f.add(key+".endpoint", "%q is no URL of a receiver: write one such as http://127.0.0.1:4318", shownURL(c.Endpoint))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		f.add(key+".endpoint", "must not hold credentials or a query: put them into OTEL_EXPORTER_OTLP_HEADERS")
	}
}
