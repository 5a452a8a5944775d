package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/certs"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
)

// faults is a list of errors, each with its key.
type faults []*KeyError

func (f *faults) add(key, format string, args ...any) {
	*f = append(*f, &KeyError{Key: key, Err: fmt.Errorf(format, args...)})
}

// when adds a fault if the condition is true.
func (f *faults) when(wrong bool, key, format string, args ...any) {
	if wrong {
		f.add(key, format, args...)
	}
}

// addAll adds joined errors. Each of them begins with a key of the section.
func (f *faults) addAll(section string, err error) {
	for _, e := range Flatten(err) {
		key, message, _ := strings.Cut(e.Error(), ": ")
		if slices.Contains(advancedKeys, key) {
			key = advancedKey + "." + key
		}
		f.add(section+"."+key, "%s", message)
	}
}

// check adds an error of a key, if it is not nil.
func (f *faults) check(key string, err error) { f.when(err != nil, key, "%w", err) }

// oneOf checks that a value is one of the choices.
func (f *faults) oneOf(key, value string, choices ...string) {
	f.when(!slices.Contains(choices, value), key, "%q is unknown: use %s", value, Either(choices))
}

// unique checks that a list has no value twice.
func (f *faults) unique(key string, list []string) {
	for i, value := range list {
		f.when(value != "" && slices.Contains(list[:i], value), fmt.Sprintf("%s[%d]", key, i), "%q is listed twice: drop one", value)
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

// Validate returns all errors that make the configuration unusable.
func (c *Config) Validate() []*KeyError {
	var f faults
	f.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	f.oneOf("log.format", c.Log.Format, "text", "json")
	if c.Admin != "" {
		f.check("admin", CheckAddress(c.Admin))
	}
	c.Traces.validate(&f, "traces")
	c.Sketch.validate(&f, "sketch")
	f.when(len(c.Engines) == 0, "engines", "must have at least one engine with listen, kind, urls and indices")
	names, addresses := map[string]string{}, map[string]string{c.Admin: "admin"}
	for i := range c.Engines {
		e, key := &c.Engines[i], fmt.Sprintf("engines[%d]", i)
		e.validate(&f, key)
		for j, index := range e.Indices {
			index.validateSketch(&f, fmt.Sprintf("%s.indices[%d]", key, j), &c.Sketch)
		}
		other, taken := names[e.Name]
		f.when(taken && e.Name != "", key+".name", "%q is the name of %s too: give each engine its own", e.Name, other)
		other, taken = addresses[e.Listen]
		f.when(taken && e.Listen != "" && !strings.HasSuffix(e.Listen, ":0"), key+".listen", "%s is taken by %s: choose another port", e.Listen, other)
		names[e.Name], addresses[e.Listen] = key, key+".listen"
		c.validateLoops(&f, key+".urls", e.URLs)
	}
	return f
}

func (s Sketch) validate(f *faults, section string) {
	f.addAll(section, s.Scheme().Validate())
	for i, kept := range s.Keep {
		f.oneOf(fmt.Sprintf("%s.keep[%d]", section, i), kept, keepCase, keepAccents, keepPunctuation)
	}
	f.unique(section+".keep", s.Keep)
}

// validateLoops checks that no engine's URL is an address that the sidecar itself listens on.
func (c *Config) validateLoops(f *faults, key string, urls []string) {
	for i, text := range urls {
		u, err := url.Parse(text)
		at := slices.IndexFunc(c.Engines, func(e Engine) bool { return err == nil && ListensAt(e.Listen, u) })
		if at >= 0 {
			f.add(fmt.Sprintf("%s[%d]", key, i), "%s is where engines[%d] listens, and requests would go round in a loop: name the engine's own address", u.Host, at)
		}
	}
}

// ListensAt reports whether an address to listen on is the same as that of a URL, as far as can be seen without resolving names.
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

// local reports whether an address can be reached from this machine alone.
func local(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback())
}

// asksForCertificates reports whether any engine's clients must present a certificate.
func (c *Config) asksForCertificates() bool {
	return slices.ContainsFunc(c.Engines, func(e Engine) bool { return e.ListenTLS.ClientCAFile != "" })
}

// IsThisHost reports whether a host is loopback or unspecified.
func IsThisHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || strings.EqualFold(host, "localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// CheckAddress checks a host and port to listen on.
func CheckAddress(value string) error {
	if value == "" {
		return errors.New("is empty: give the address to listen on, such as 127.0.0.1:9201")
	}
	_, port, err := net.SplitHostPort(value)
	if err != nil || !digits.MatchString(port) {
		return fmt.Errorf("%q is not an address: write host:port, such as 127.0.0.1:9201", value)
	}
	return checkPort(port)
}

var digits = regexp.MustCompile(`^[0-9]+$`)

// checkPort checks the digits of a port.
func checkPort(port string) error {
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("the port %s is out of range: use 1 to 65535", port)
	}
	return nil
}

// CheckURL checks the URL of an engine.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil && strings.Contains(text, "@"):
		return errors.New("is not a URL: write http://host:port, and put user and password under credentials")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is not the URL of an engine: write http://host:port or https://host:port", shownURL(text))
	case u.User != nil:
		return fmt.Errorf("contains a user name: write %s://%s and put user and password under credentials", u.Scheme, u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q has a query: write http://host:port, with a path if the engine has one", shownURL(text))
	case u.Port() != "":
		return checkPort(u.Port())
	}
	return nil
}

func (e *Engine) validate(f *faults, key string) {
	f.check(key+".listen", CheckAddress(e.Listen))
	if e.Kind == "" {
		f.add(key+".kind", "is empty: use %s", Either(kind.Names()))
	} else {
		f.oneOf(key+".kind", e.Kind, kind.Names()...)
	}
	f.oneOf(key+".on_failure", e.OnFailure, "open", "error")
	e.validateSniffing(f, key)
	e.validateURLs(f, key+".urls")
	e.Credentials.validate(f, key+".credentials", e.Kind)
	f.addAll(key+".listen_tls", e.ListenTLS.Files().Check())
	f.addAll(key+".tls", e.TLS.Files().Check())
	f.when(e.TLS.CertFile != "" && slices.ContainsFunc(e.URLs, isPlain), key+".tls.cert_file",
		"%s is used with https alone: write https:// in urls, or drop it", e.TLS.CertFile)
	e.Limits.validate(f, key+".limits")
	f.when(e.Decided.Refresh != 0 && time.Duration(e.Decided.Refresh) < time.Second, key+".decided.refresh", "%v is out of range: use 1s or more (10s is usual), or 0 for never", e.Decided.Refresh)
	f.when(e.Decided.Refresh != 0 && e.Kind == kind.Embedded, key+".decided.refresh", "the embedded engine stores no decided pairs: remove this key")
	f.when(e.Decided.Refresh != 0 && slices.Contains(kind.Names(), e.Kind) && kind.Of(e.Kind).KeysOnly && !e.Credentials.APIKey.IsSet(), key+".decided.refresh", "needs credentials.api_key: the decided pairs are read with it")
	e.validateIndices(f, key)
}

func isPlain(url string) bool { return strings.HasPrefix(url, "http://") }

func (t ListenTLS) Files() certs.Files {
	return certs.ListenerFiles(t.CertFile, t.KeyFile, t.ClientCAFile)
}

func (t TLS) Files() certs.Files { return certs.EngineFiles(t.CertFile, t.KeyFile, t.CAFile) }

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
		f.add(key+".advertise", "%q is not an address: write the host:port at which clients reach the sidecar, such as search.example:9201", e.Advertise)
	case ip != nil && ip.IsUnspecified():
		f.add(key+".advertise", "%s is not an address that a client can connect to: name the host at which clients reach the sidecar", e.Advertise)
	case !e.RewriteSniffing:
		f.add(key+".advertise", "is for sniffing clients alone: set rewrite_sniffing: true, or drop it")
	}
}

func (e *Engine) validateURLs(f *faults, key string) {
	if e.Kind == kind.Embedded {
		f.when(len(e.URLs) > 0, key, "must be empty: the embedded engine runs inside the sidecar")
		return
	}
	f.when(len(e.URLs) == 0, key, "must name at least one address of the engine, such as http://127.0.0.1:9200")
	for i, text := range e.URLs {
		f.check(fmt.Sprintf("%s[%d]", key, i), CheckURL(text))
	}
	encrypted := func(url string) bool { return strings.HasPrefix(url, "https://") }
	f.when(slices.ContainsFunc(e.URLs, isPlain) && slices.ContainsFunc(e.URLs, encrypted), key, "mixes http and https: use the same for all nodes of an engine")
}

// validate checks that there is at most one way to log in, and that the kind of engine supports it.
func (c Credentials) validate(f *faults, key, name string) {
	f.when(c.Username.IsSet() != c.Password.IsSet(), key, "username and password go together: set both or none")
	users := c.Username.IsSet() || c.Password.IsSet()
	f.when(c.APIKey.IsSet() && users || c.APIKey.IsSet() && c.Bearer.IsSet() || users && c.Bearer.IsSet(), key,
		"has more than one of api_key, username with password, and bearer: keep one")
	f.when(kind.Of(name).KeysOnly && !c.APIKey.IsSet() && (users || c.Bearer.IsSet()), key,
		"%s has no users and no bearer tokens: set api_key", name)
}

func (e *Engine) validateIndices(f *faults, engine string) {
	f.when(len(e.Indices) == 0, engine+".indices", "must have at least one entry with match and fields")
	for i, index := range e.Indices {
		key := fmt.Sprintf("%s.indices[%d]", engine, i)
		index.validate(f, key)
		f.when(index.Window > e.Limits.MaxWindow && e.Limits.MaxWindow > 0, key+".window",
			"%d is above limits.max_window (%d): raise limits.max_window to %d, at the price of processor time for each search, or lower this",
			index.Window, e.Limits.MaxWindow, index.Window)
		e.validateOrder(f, key+".match", i)
		e.validateStoredCases(f, key+".cases", index.Cases)
	}
}

// validateOrder checks that no earlier entry matches everything that entry i does. A pattern that matches the text of another, where * is
// an ordinary letter, matches everything that the other does.
func (e *Engine) validateOrder(f *faults, key string, i int) {
	match := e.Indices[i].Match
	first := slices.IndexFunc(e.Indices[:i], func(earlier Index) bool { return match != "" && rule.Matches(earlier.Match, match) })
	switch {
	case first < 0:
	case e.Indices[first].Match == match:
		f.add(key, "%q is in indices[%d] too, and the first match wins: drop one", match, first)
	default:
		f.add(key, "%q never matches: %q in indices[%d] matches the same indices, and the first match wins: move this one up", match, e.Indices[first].Match, first)
	}
}

// leastHeld is the minimum of max_held: two bodies of a megabyte.
const leastHeld = 2 << 20

func (l Limits) validate(f *faults, key string) {
	for name, size := range map[string]Size{
		"max_reply": l.MaxReply, "advanced.max_search_body": l.MaxSearchBody, "engine_max_body": l.EngineMaxBody, "cursor_memory": l.CursorMemory,
	} {
		f.when(size < 1, key+"."+name, "must be more than 0, such as 64MB")
	}
	usual := DefaultEngine().Limits
	for name, span := range map[string][2]Span{
		"cursor_ttl": {l.CursorTTL, usual.CursorTTL}, "deadline": {l.Deadline, usual.Deadline},
		"advanced.header_timeout": {l.HeaderTimeout, usual.HeaderTimeout}, "advanced.idle_timeout": {l.IdleTimeout, usual.IdleTimeout},
	} {
		f.when(span[0] <= 0, key+"."+name, "%v is out of range: use a span above 0, such as %v", span[0], span[1])
	}
	f.when(l.MaxWindow < 1 || l.MaxWindow > 1_000_000, key+".max_window", "%d is out of range: use 1 to 1000000 (%d is usual)", l.MaxWindow, usual.MaxWindow)
	f.when(!(l.FallbackShare > 0 && l.FallbackShare <= 1), key+".advanced.fallback_share",
		"%v is out of range: use a number above 0, at most 1 (%v is usual)", l.FallbackShare, usual.FallbackShare)
	f.when(l.MaxSearches < 1, key+".max_searches", "%d is out of range: use 1 or more (%d is usual)", l.MaxSearches, usual.MaxSearches)
	f.when(l.MaxHeld < leastHeld, key+".max_held", "must be 2MB or more, such as %v", usual.MaxHeld)
}

func (c Traces) validate(f *faults, key string) {
	f.when(c.Sample < 0 || c.Sample > 1, key+".sample", "%v is out of range: use 0 to 1", c.Sample)
	if c.Endpoint == "" {
		return
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		f.add(key+".endpoint", "%q is not the URL of a receiver: write one such as http://127.0.0.1:4318", shownURL(c.Endpoint))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		f.add(key+".endpoint", "must not contain credentials or a query: put them into OTEL_EXPORTER_OTLP_HEADERS")
	}
}
