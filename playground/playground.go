package playground

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
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
	// MaxRanks is how many ranks of a list are looked at.
	MaxRanks = 200
	// MaxBody bounds a request's body, MaxReply an engine's reply, in bytes.
	MaxBody  = 64 << 10
	MaxReply = 32 << 20
	// MaxText is how many bytes of a field's text are shown.
	MaxText = 20 << 10
	// timeout bounds what one request may take, atOnce is how many searches are worked on at once.
	timeout = 20 * time.Second
	atOnce  = 4
)

// Policy is the Content-Security-Policy of the page and of all that it loads.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"

// Engine is one engine that can be looked at, as far as the playground knows it.
type Engine struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Credentials says what it takes: "password" (or a key), "key" or "none".
	Credentials string `json:"credentials"`
	Rules       []Rule `json:"rules"`
	Source      `json:"-"`
}

// Source reads an engine. It is safe for concurrent use.
type Source interface {
	// Authorize returns the headers by which the engine takes credentials.
	Authorize(Credentials) adapters.Header
	// Listed returns the engine's indices, seen with such headers.
	Listed(context.Context, adapters.Header) ([]adapters.Listed, error)
	// LookFor makes the request of a look, and LookedAt reads the reply.
	LookFor(adapters.Look) (*adapters.Request, error)
	LookedAt(adapters.Look, *adapters.Reply) (adapters.Looked, error)
	// View returns how the indices of a rule are looked at under a preset, or under the rule's own where it is empty.
	View(rule int, preset string) (*View, error)
	// Match returns the number of the rule of an index, or -1.
	Match(index string) int
}

// Rule is one rule of an engine in short.
type Rule struct {
	Match     string   `json:"match"`
	Fields    []string `json:"fields"`
	Threshold float64  `json:"threshold"`
	Window    int      `json:"window"`
	Preset    string   `json:"preset"`
}

// View is how an index is looked at: a rule, or what another preset makes of it.
type View struct {
	// Rules are those of the engine with Rule, the one of the index, in its place. Handler collapses by them.
	Rules   rule.Rules
	Rule    *rule.Rule
	Handler http.Handler
	Preset  string
	// MaxWindow caps the window.
	MaxWindow int
	// Conditions say in words on what near-duplicates fold beside their agreement, Representative which of a group is shown.
	Conditions     []string
	Representative string
	// YAML is the entry of a configuration that gives this, with one line for the threshold and one for the window.
	YAML string
}

// Preset is a name for what a rule begins with.
type Preset struct {
	Name      string  `json:"name"`
	Threshold float64 `json:"threshold"`
	// Needs are the keys that a rule must have for it.
	Needs []string `json:"needs"`
}

// Link is another page that is served beside this one.
type Link struct {
	Path string `json:"path"`
	Says string `json:"says"`
}

// Scene is all that can be looked at. It is not changed once it is set.
type Scene struct {
	Version string   `json:"version"`
	Engines []Engine `json:"engines"`
	Presets []Preset `json:"presets"`
	Links   []Link   `json:"links"`
	// Log gets the reasons that are not shown; nil for none.
	Log *slog.Logger `json:"-"`
}

// Credentials are what the page's user gives. They stand in no log and no error.
type Credentials struct {
	User     string `json:"user"`
	Password string `json:"password"`
	Key      string `json:"key"`
}

// Handler serves the page and its questions. It is safe for concurrent use.
type Handler struct {
	scene atomic.Pointer[Scene]
	slots chan struct{}
	mux   *http.ServeMux
}

//go:embed assets
var embedded embed.FS

// New returns a handler with nothing to look at yet: see [Handler.Set].
func New() *Handler {
	h := &Handler{slots: make(chan struct{}, atOnce), mux: http.NewServeMux()}
	h.Set(&Scene{Engines: []Engine{}, Presets: []Preset{}, Links: []Link{}})
	h.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { asset(w, "index.html") })
	h.mux.HandleFunc("GET "+Prefix+"{file}", func(w http.ResponseWriter, r *http.Request) { asset(w, r.PathValue("file")) })
	h.mux.HandleFunc("GET "+Prefix+"api/engines", h.engines)
	h.mux.HandleFunc(Prefix+"api/indices", h.question(h.indices))
	h.mux.HandleFunc(Prefix+"api/search", h.question(h.search))
	return h
}

// Set has the handler serve another scene from the next request on.
func (h *Handler) Set(s *Scene) { h.scene.Store(s) }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", Policy)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	h.mux.ServeHTTP(w, r)
}

// types are those of the files that there are, whatever the machine's own table says.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// asset answers one of the embedded files.
func asset(w http.ResponseWriter, name string) {
	text, err := embedded.ReadFile(path.Join("assets", path.Base(name)))
	if err != nil {
		answer(w, http.StatusNotFound, failure{What: "there is no such file", Hint: "The page is at /."})
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	_, _ = w.Write(text) // a reader that has gone needs no answer, here and below
}

// engines answers what can be looked at. No engine is asked.
func (h *Handler) engines(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, struct {
		*Scene
		Ranks int `json:"ranks"`
	}{h.scene.Load(), MaxRanks})
}

// asked is the body of a question.
type asked struct {
	Engine      string      `json:"engine"`
	Index       string      `json:"index"`
	Query       string      `json:"query"`
	Window      int         `json:"window"`
	Threshold   float64     `json:"threshold"`
	Preset      string      `json:"preset"`
	Credentials Credentials `json:"credentials"`
}

// question serves one kind of question: answerTo returns what is answered.
func (h *Handler) question(answerTo func(context.Context, *Engine, *asked) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := read(w, r)
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

// reply returns the answer to a question, or a *failure.
func (h *Handler) reply(ctx context.Context, a *asked, answerTo func(context.Context, *Engine, *asked) (any, error)) (any, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, fail(http.StatusServiceUnavailable, "too many searches are worked on just now", "Try again in a moment.")
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
	refused := explained(ctx, err, a.Credentials)
	if log := scene.Log; log != nil && refused.cause != nil {
		log.Warn("playground: engine unreachable", "engine", engine.Name, "error", short(a.Credentials.hide(refused.cause.Error())))
	}
	return nil, refused
}

// indexed is an index as it is answered.
type indexed struct {
	Name      string `json:"name"`
	Documents int    `json:"documents"`
	// Rule is the number of its rule, -1 for none.
	Rule int `json:"rule"`
}

// maxListed is how many indices are answered.
const maxListed = 2000

// list is the answer to a question for indices. Note says, if not empty, why there may be more.
type list struct {
	Indices []indexed `json:"indices"`
	Note    string    `json:"note,omitempty"`
}

// unlisted is the note to credentials that may not list indices.
const unlisted = "The engine does not tell these credentials which indices there are. Those that rules name are offered, " +
	"others can be typed."

// indices answers the engine's indices, those with a rule first. Credentials that may search and no more are told the names in
// the rules.
func (h *Handler) indices(ctx context.Context, e *Engine, a *asked) (any, error) {
	all, err := e.Listed(ctx, e.Authorize(a.Credentials))
	status := adapters.StatusOf(err)
	if status == http.StatusForbidden || status == http.StatusUnauthorized && e.Credentials == "key" && a.Credentials.Key != "" {
		if named := e.named(); len(named) > 0 {
			return list{named, unlisted}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	indices := []indexed{}
	for _, l := range all {
		indices = append(indices, indexed{l.Name, l.Documents, e.Match(l.Name)})
	}
	slices.SortStableFunc(indices, func(a, b indexed) int { return min(b.Rule, 0) - min(a.Rule, 0) })
	return list{Indices: indices[:min(len(indices), maxListed)]}, nil
}

// named returns the indices that rules name, and no pattern.
func (e *Engine) named() (names []indexed) {
	for i, rule := range e.Rules {
		if !strings.Contains(rule.Match, "*") && e.Match(rule.Match) == i {
			names = append(names, indexed{rule.Match, -1, i})
		}
	}
	return names
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil { // what an engine sent as a number is none
		status = http.StatusBadGateway
		text, _ = json.Marshal(failure{What: "the engine's reply is not understood", Hint: whether})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
