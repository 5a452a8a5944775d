package playground

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// Prefix begins the paths of everything but the page itself, which is served at /.
	Prefix = "/playground/"
	// MaxRanks is how many hits of a search are compared.
	MaxRanks = 200
	// MaxBody is the size limit of a request's body in bytes.
	MaxBody = 64 << 10
	// MaxText is how many bytes of a field's text are shown.
	MaxText = 20 << 10
	// timeout is how long one request may take, concurrency how many run at a time.
	timeout     = 20 * time.Second
	concurrency = 4
)

// Policy is the Content-Security-Policy of the page and of all that it loads.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"

// Engine is one engine of the configuration.
type Engine struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Credentials says which kind it accepts: "password" (or a key), "key" or "none".
	Credentials string `json:"credentials"`
	Rules       []Rule `json:"rules"`
	Source      `json:"-"`
}

// Source reads an engine. It is safe for concurrent use.
type Source interface {
	// Authorize returns the headers with these credentials.
	Authorize(Credentials) adapters.Header
	// Listed returns the indices that these headers may see.
	Listed(context.Context, adapters.Header) ([]adapters.Listed, error)
	// ReadQuery returns the query that a line of text holds: words, or a client's own search.
	ReadQuery(line string) (adapters.Query, error)
	// LookFor returns the request for a search, and LookedAt reads the reply.
	LookFor(adapters.Look) (*adapters.Request, error)
	LookedAt(adapters.Look, *adapters.Reply) (adapters.Looked, error)
	// View returns a rule under another preset, or under its own if the name is empty.
	View(rule int, preset string) (*View, error)
	// Match returns the position of the rule that matches an index, or -1.
	Match(index string) int
}

// Rule is the summary of one rule of an engine.
type Rule struct {
	Match     string   `json:"match"`
	Fields    []string `json:"fields"`
	Threshold float64  `json:"threshold"`
	Window    int      `json:"window"`
	Preset    string   `json:"preset"`
	// Unfit has the presets that the rule can't take, each with the reason.
	Unfit map[string]string `json:"unfit"`
}

// View is a rule, under its own preset or another one.
type View struct {
	// Rules are the engine's rules, with Rule in its place. Handler collapses by them.
	Rules   rule.Rules
	Rule    *rule.Rule
	Handler http.Handler
	Preset  string
	// Decided, if set, returns what people have decided about pairs of documents.
	Decided func() rule.Decisions
	// MaxWindow is the largest window.
	MaxWindow int
	// Conditions describe the other conditions on which near-duplicates fold, Representative which hit of a group is shown.
	Conditions     []string
	Representative string
	// YAML is the rule as an entry of a configuration, with a line for the threshold and one for the window.
	YAML string
}

// Preset is a preset that a user can choose.
type Preset struct {
	Name      string  `json:"name"`
	Threshold float64 `json:"threshold"`
}

// Link is another page on the same address.
type Link struct {
	Path string `json:"path"`
	Says string `json:"says"`
}

// Scene is everything that the playground shows. It must not change once it is set.
type Scene struct {
	Version string   `json:"version"`
	Engines []Engine `json:"engines"`
	Presets []Preset `json:"presets"`
	Links   []Link   `json:"links"`
	// Log gets the causes of errors that are not shown; nil for none.
	Log *slog.Logger `json:"-"`
}

// Credentials are those that the page's user types. They are in no log and no error.
type Credentials struct {
	User     string `json:"user"`
	Password string `json:"password"`
	Key      string `json:"key"`
}

// Handler serves the page and its API. It is safe for concurrent use.
type Handler struct {
	scene atomic.Pointer[Scene]
	slots chan struct{}
	mux   *http.ServeMux
}

//go:embed assets
var embedded embed.FS

// Files are the page and all that it loads.
var Files = must(fs.Sub(embedded, "assets"))

func must(files fs.FS, err error) fs.FS {
	if err != nil {
		panic(err) // the name is valid
	}
	return files
}

// New returns a handler without engines. Call [Handler.Set] to add them.
func New() *Handler {
	h := &Handler{slots: make(chan struct{}, concurrency), mux: http.NewServeMux()}
	h.Set(&Scene{Engines: []Engine{}, Presets: []Preset{}, Links: []Link{}})
	h.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { ServeFile(w, "index.html", Files) })
	h.mux.HandleFunc("GET "+Prefix+"{file}", func(w http.ResponseWriter, r *http.Request) { ServeFile(w, r.PathValue("file"), Files) })
	h.mux.HandleFunc("GET "+Prefix+"api/engines", h.engines)
	h.mux.HandleFunc(Prefix+"api/indices", h.endpoint(MaxBody, h.indices))
	h.mux.HandleFunc(Prefix+"api/search", h.endpoint(MaxBody, h.search))
	h.mux.HandleFunc(Prefix+"api/queries", h.endpoint(maxQueries, h.queries))
	h.mux.HandleFunc(Prefix+"api/try", h.endpoint(MaxBody, h.try))
	h.mux.HandleFunc(Prefix+"api/report", h.endpoint(maxQueries, h.report))
	return h
}

// Set replaces the scene, from the next request on.
func (h *Handler) Set(s *Scene) { h.scene.Store(s) }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", Policy)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	h.mux.ServeHTTP(w, r)
}

// types are the content types of the assets. The machine's own table may have others.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// ServeFile answers a file of a page, from the first folder that has it.
func ServeFile(w http.ResponseWriter, name string, folders ...fs.FS) {
	for _, folder := range folders {
		if text, err := fs.ReadFile(folder, name); err == nil {
			w.Header().Set("Content-Type", types[path.Ext(name)])
			_, _ = w.Write(text) // an error means that the client has disconnected
			return
		}
	}
	answer(w, http.StatusNotFound, failure{What: "there is no such file", Hint: "The page is at /."})
}

// engines answers with the scene.
func (h *Handler) engines(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, struct {
		*Scene
		Ranks int `json:"ranks"`
	}{h.scene.Load(), MaxRanks})
}

// request is the body of a request to the API.
type request struct {
	Engine      string      `json:"engine"`
	Index       string      `json:"index"`
	Query       string      `json:"query"`
	Window      int         `json:"window"`
	Threshold   float64     `json:"threshold"`
	Preset      string      `json:"preset"`
	Credentials Credentials `json:"credentials"`
	trying
}

// endpoint serves one endpoint of the API: answerTo returns the reply to a request whose body has most bytes at most.
func (h *Handler) endpoint(most int64, answerTo func(context.Context, *Engine, *request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := read(w, r, most)
		var reply any
		if err == nil {
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			reply, err = h.reply(ctx, a, answerTo)
		}
		if refused, ok := errors.AsType[*failure](err); ok {
			answer(w, refused.status, refused)
			return
		}
		answer(w, http.StatusOK, reply)
	}
}

// reply returns the reply to a request, or a *failure.
func (h *Handler) reply(ctx context.Context, a *request, answerTo func(context.Context, *Engine, *request) (any, error)) (any, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, fail(http.StatusServiceUnavailable, "too many searches are running", "Try again in a moment.")
	}
	scene := h.scene.Load()
	at := slices.IndexFunc(scene.Engines, func(e Engine) bool { return e.Name == a.Engine })
	if at < 0 {
		return nil, fail(http.StatusNotFound, "there is no engine "+short(a.Engine), "Reload the page: the configuration has changed.")
	}
	engine := &scene.Engines[at]
	reply, err := any(nil), a.Credentials.check()
	if err == nil {
		reply, err = answerTo(ctx, engine, a)
	}
	if err == nil {
		return reply, nil
	}
	refused := failureOf(ctx, err, a.Credentials)
	if log := scene.Log; log != nil && refused.cause != nil {
		log.Warn("playground: engine unreachable", "engine", engine.Name, "error", short(a.Credentials.hide(refused.cause.Error())))
	}
	return nil, refused
}

// indexInfo is one of the engine's indices.
type indexInfo struct {
	Name      string `json:"name"`
	Documents int    `json:"documents"`
	// Rule is the position of its rule, -1 for none.
	Rule int `json:"rule"`
}

// maxListed is how many indices are listed at most.
const maxListed = 2000

// indexList is the reply to api/indices. Note, if not empty, says why there may be more.
type indexList struct {
	Indices []indexInfo `json:"indices"`
	Note    string      `json:"note,omitempty"`
}

// noteUnlisted is the note if the credentials may not list indices.
const noteUnlisted = "These credentials may not list the engine's indices. Those that rules name are offered, " +
	"others can be typed."

// indices answers with the engine's indices, those with a rule first. If the credentials may not list indices, it answers with those that rules
// name.
func (h *Handler) indices(ctx context.Context, e *Engine, a *request) (any, error) {
	all, err := e.Listed(ctx, e.Authorize(a.Credentials))
	status := adapters.StatusOf(err)
	if status == http.StatusForbidden || status == http.StatusUnauthorized && e.Credentials == "key" && a.Credentials.Key != "" {
		if named := e.namedIndices(); len(named) > 0 {
			return indexList{named, noteUnlisted}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	indices := []indexInfo{}
	for _, l := range all {
		indices = append(indices, indexInfo{l.Name, l.Documents, e.Match(l.Name)})
	}
	slices.SortStableFunc(indices, func(a, b indexInfo) int { return min(b.Rule, 0) - min(a.Rule, 0) })
	return indexList{Indices: indices[:min(len(indices), maxListed)]}, nil
}

// namedIndices returns the indices that rules name without a pattern.
func (e *Engine) namedIndices() (names []indexInfo) {
	for i, rule := range e.Rules {
		if !strings.Contains(rule.Match, "*") && e.Match(rule.Match) == i {
			names = append(names, indexInfo{rule.Match, -1, i})
		}
	}
	return names
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil { // the engine sent an invalid number
		status = http.StatusBadGateway
		text, _ = json.Marshal(failure{What: "the engine's reply is not understood", Hint: checkEngine})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
