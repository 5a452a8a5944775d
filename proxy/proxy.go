package proxy

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/rule"
)

// Defaults of Limits.
const (
	DefaultMaxReply      = 64 << 20
	DefaultMaxSearchBody = 8 << 20
	DefaultEngineMaxBody = 100 << 20 // http.max_content_length of Elasticsearch and OpenSearch
	DefaultMaxWindow     = 1000      // a larger one costs seconds of a processor for each search that asks for it
	DefaultFallbackShare = 0.05
	DefaultCursorMemory  = 16 << 20
	DefaultCursorTTL     = 5 * time.Minute // what the engines' manuals keep a scroll or a point in time for, at most
	DefaultDeadline      = 200 * time.Millisecond
	DefaultMaxSearches   = 1000
	DefaultMaxHeld       = 128 << 20 // some 400 MB of memory
)

// Limits bound what one request may cost. Zero values stand for the defaults.
type Limits struct {
	// MaxReply is the largest reply to a search, in bytes, that is read to be collapsed.
	MaxReply int64
	// MaxSearchBody is the largest search request, in bytes, that is looked at.
	MaxSearchBody int64
	// EngineMaxBody is the largest body, in bytes, that the engine accepts: enriching never takes a write across it.
	EngineMaxBody int64
	// MaxWindow caps the window of a rule and of a request.
	MaxWindow int
	// FallbackShare is the share of searches, 0 to 1, that may cost one more request because collapsing them failed.
	FallbackShare float64
	// CursorMemory bounds, in bytes, what is remembered of clients' cursors; CursorTTL is for how long each page's is.
	CursorMemory int64
	CursorTTL    time.Duration
	// Deadline bounds what collapsing a search may take beside the engine's first answer: our own work, and all further requests.
	Deadline time.Duration
	// MaxSearches is how many searches are held at once to be collapsed. MaxHeld bounds, in bytes, the bodies and replies that are held at
	// once by all requests.
	MaxSearches int
	MaxHeld     int64
}

func (l Limits) withDefaults() Limits {
	return Limits{
		MaxReply: cmp.Or(l.MaxReply, DefaultMaxReply), MaxSearchBody: cmp.Or(l.MaxSearchBody, DefaultMaxSearchBody), MaxWindow: cmp.Or(l.MaxWindow, DefaultMaxWindow),
		EngineMaxBody: cmp.Or(l.EngineMaxBody, DefaultEngineMaxBody), FallbackShare: cmp.Or(l.FallbackShare, DefaultFallbackShare),
		CursorMemory: cmp.Or(l.CursorMemory, DefaultCursorMemory), CursorTTL: cmp.Or(l.CursorTTL, DefaultCursorTTL),
		Deadline: cmp.Or(l.Deadline, DefaultDeadline), MaxSearches: cmp.Or(l.MaxSearches, DefaultMaxSearches), MaxHeld: cmp.Or(l.MaxHeld, DefaultMaxHeld),
	}
}

// Engine is what a Handler stands in front of. The fields are set before New and not changed after.
type Engine struct {
	// Dialect is the engine's. New wraps it in [careful], whose EnrichWrite and CleanReply turn a panic into an error. The rest is called as it is.
	Dialect adapters.Dialect
	// Open returns a store that acts with a client's headers and the credentials of its query.
	Open func(header adapters.Header, query string) adapters.Store
	// Document, if set, returns the engine's own request for a stored document, without credentials. What the engine answers to it where
	// it does not show the document is the answer to who asks for its near-duplicates.
	Document func(index, id string) *adapters.Request
	// Rules say which documents are sketched and how hits fold.
	Rules rule.Rules
	// Presets are the rules for texts that belong to no index, by their names; [DefaultPreset] is the one for a request that names none.
	Presets map[string]*rule.Rule
	// Decided, if set, returns what people have decided about pairs of documents.
	Decided func() *decided.Set
	// URLs are the engine's nodes: scheme and host, and a path if the engine has one in front of it.
	URLs []*url.URL
	// Transport, if set, carries the requests in place of one with our defaults.
	Transport http.RoundTripper
	Limits    Limits
	// FailClosed answers an error where a search can't be collapsed, rather than the search as the engine answers it.
	FailClosed bool
	// Metrics, if set, are counted with; they can outlive the Handler. Without, it has its own.
	Metrics *Metrics
	// Traces, if set, says where spans go.
	Traces *Traces
	// Log, if set, gets a line for each anomaly, and at debug one for each request.
	Log *slog.Logger
}

// Handler is the proxy of one engine. It is safe for concurrent use.
type Handler struct {
	Engine
	toEngine http.RoundTripper // to the nodes, measured
	catalog  *catalog
	cursors  *cursors
	choices  choices
	paused   set // the names of which the last look-up of near-duplicates failed a moment ago
	recent   recent
	holds    holds
}

// New returns the handler of an engine, or what is missing.
func New(e Engine) (*Handler, error) {
	if e.Dialect == nil || e.Open == nil || len(e.URLs) == 0 {
		return nil, errors.New("proxy: an engine needs a dialect, a store and at least one URL")
	}
	e.Limits, e.Dialect = e.Limits.withDefaults(), careful{e.Dialect}
	if e.Log == nil {
		e.Log = slog.New(slog.DiscardHandler)
	}
	if e.Transport == nil {
		e.Transport = NewTransport()
	}
	if e.Metrics == nil {
		e.Metrics = NewMetrics(nil)
	}
	h := &Handler{
		Engine: e, catalog: newCatalog(e), cursors: newCursors(e.Limits), choices: newChoices(), toEngine: newEngine(e), paused: newSet(pausedFor),
		holds: holds{most: e.Limits.MaxHeld, mostSearches: int64(e.Limits.MaxSearches), granted: newSet(0), held: e.Metrics.held},
	}
	e.Metrics.cursors.Store(h.cursors)
	return h, nil
}

// ServeHTTP decides what a request is and sends it down its flow.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u, r := h.begin(w, r)
	defer h.end(u, r)
	defer u.hold.release()
	if !h.answersSimilar(u, r) {
		u.class = h.Dialect.Classify(requestOf(r))
		kind := u.class.Kind
		h.countAs(u, kind.String())
		switch {
		case kind == adapters.KindWrite && h.mayChange(u, r):
			h.write(u, r)
		case kind == adapters.KindSearch:
			h.answerSearch(u, r)
		case kind == adapters.KindRead:
			h.read(u, r)
		default: // what passes, and writes that can't be read
			h.send(u, r, nil)
		}
	}
	u.ended = true
}

// requestOf returns the request, without its body, as a dialect looks at it.
func requestOf(r *http.Request) *adapters.Request {
	return &adapters.Request{
		Method: r.Method, Host: addressed(r), Path: rawPath(r), RawQuery: r.URL.RawQuery, Header: adapters.Header(r.Header),
	}
}

// refuse answers an error of the proxy's own.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, reason string) {
	writeReply(w, h.Dialect.ErrorReply(requestOf(r), status, reason))
}

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
