// Package upstream connects to the configured engines: by TLS, with the operator's credentials for jobs, and with hints in its errors.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
)

// Engine is an engine for jobs and setup, with the operator's credentials.
type Engine struct {
	Config *config.Engine
	Kind   kind.Kind
	Rules  rule.Rules
	Store  adapters.EngineStore
	// Transport sends requests to the engine, and hides the operator's credentials in its answers.
	Transport http.RoundTripper
}

// OpenAll opens the engine with the name, or all of them if it is empty.
func OpenAll(c *config.Config, name string) ([]*Engine, error) {
	var engines []*Engine
	var names []string
	for i := range c.Engines {
		e := &c.Engines[i]
		names = append(names, e.Name)
		if name != "" && e.Name != name || name == "" && e.Kind == kind.Embedded {
			continue
		}
		o, err := Open(e)
		if err != nil {
			return nil, fmt.Errorf("engine %s: %w", e.Name, err)
		}
		engines = append(engines, o)
	}
	switch {
	case len(engines) > 0:
		return engines, nil
	case name != "":
		return nil, fmt.Errorf("--engine: there is no engine %s: the names are %s", name, strings.Join(names, ", "))
	}
	return nil, errEmbedded
}

// errEmbedded is returned if there is only an embedded engine.
var errEmbedded = errors.New("an embedded engine runs inside serve alone: a job can't reach it")

// Open opens an engine.
func Open(e *config.Engine) (*Engine, error) {
	if e.Kind == kind.Embedded {
		return nil, errEmbedded
	}
	direct, _, err := Transport(e, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	urls, err := e.Nodes()
	if err != nil {
		return nil, err
	}
	rules, err := e.Rules()
	if err != nil {
		return nil, err
	}
	return OpenOn(e, direct, urls, rules), nil
}

// OpenOn is Open on a transport to the engine's nodes, under its rules.
func OpenOn(e *config.Engine, transport http.RoundTripper, urls []*url.URL, rules rule.Rules) *Engine {
	k := kind.Of(e.Kind)
	transport = hideCredentials(e, transport)
	return &Engine{Config: e, Kind: k, Rules: rules, Store: k.Open(transport, urls, rules)(e.Header(), ""), Transport: transport}
}

// Explain adds the engine's name and a hint to an error.
func (e *Engine) Explain(err error) error {
	hint := ""
	switch status := adapters.StatusOf(err); {
	case status == http.StatusUnauthorized:
		hint = ": correct its credentials in the configuration"
	case status == http.StatusForbidden:
		hint = ": give the user of its credentials in the configuration the rights; sidecar doctor checks them"
	case Unreachable(err):
		hint = ": check that it runs and that its urls in the configuration are right, or run sidecar doctor"
	}
	return fmt.Errorf("engine %s: %w%s", e.Config.Name, err, hint)
}

// Forbidden reports whether the engine refused a request for want of a right. Typesense answers 401 then, as for a wrong key.
func Forbidden(err error) bool {
	status := adapters.StatusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// Unreachable reports whether an error means that the engine did not answer.
func Unreachable(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network && adapters.StatusOf(err) == 0 && !errors.Is(err, context.Canceled)
}

// redactingTransport hides the credentials of jobs in an engine's error replies, since jobs print them.
type redactingTransport struct {
	http.RoundTripper
	hidden *strings.Replacer
}

// hideCredentials returns a transport that hides the engine's credentials.
func hideCredentials(e *config.Engine, transport http.RoundTripper) http.RoundTripper {
	var words []string
	for _, values := range e.Header() {
		for _, value := range values {
			_, bare, _ := strings.Cut(value, " ") // without the scheme
			words = append(words, value, bare)
		}
	}
	for _, s := range []config.Secret{e.Credentials.APIKey, e.Credentials.Password, e.Credentials.Bearer} {
		words = append(words, s.Reveal())
	}
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 4 }) // too short: they are part of many words
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })    // the whole before its parts
	if len(words) == 0 {
		return transport
	}
	var pairs []string
	for _, word := range words {
		pairs = append(pairs, word, config.Hidden)
	}
	return &redactingTransport{transport, strings.NewReplacer(pairs...)}
}

// maxErrorReply is how many bytes of an error reply are read.
const maxErrorReply = 1 << 20

// RoundTrip implements http.RoundTripper.
func (d *redactingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.RoundTripper.RoundTrip(r)
	if err != nil {
		if text := d.hidden.Replace(err.Error()); text != err.Error() {
			err = errors.New(text)
		}
		return nil, err
	}
	if resp.StatusCode < http.StatusBadRequest || resp.Header.Get("Content-Encoding") != "" {
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorReply))
	_ = resp.Body.Close() // it was read
	if err != nil {
		return nil, err
	}
	text := d.hidden.Replace(string(body))
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// Matching returns the indices that a name resolves to and a rule matches. If no rule matches any of them, it returns them as not ready, with the
// reason.
func (e *Engine) Matching(ctx context.Context, name string) ([]adapters.Index, error) {
	resolved, err := e.Store.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	var indices, unmatched []adapters.Index
	for _, index := range resolved {
		if index.Rule(e.Rules) != nil {
			indices = append(indices, index)
			continue
		}
		why := "no rule matches it: a rule's match is compared with the names of indices, not with aliases"
		unmatched = append(unmatched, adapters.Index{Name: index.Name, Why: why})
	}
	if len(indices) == 0 {
		return unmatched, nil
	}
	return indices, nil
}

// CheckVersion fails if the engine's version is untested, unless that is allowed. Writing documents back could lose what such a version stores and does
// not return.
func (e *Engine) CheckVersion(ctx context.Context, untested bool) error {
	if untested || len(e.Kind.Versions) == 0 {
		return nil
	}
	product, err := e.Store.Product(ctx)
	if err != nil {
		return e.Explain(fmt.Errorf("ask for its version: %w", err))
	}
	if e.Kind.Tested(product.Version) {
		return nil
	}
	version := product.Name + " " + product.Version
	if product.Version == "" {
		version = "of a version that it does not show with these credentials"
	}
	return fmt.Errorf("engine %s: it is %s, and neardup is tested on %s %s. Writing to its documents could lose what the engine stores and does not show, "+
		"so nothing was written. If you have tried it on a copy: --untested", e.Config.Name, version, e.Kind.Product, e.Kind.TestedVersions())
}

// FindOrPrepare returns the indices that a name resolves to, or the patterns of all rules if it is empty. With prepare it has our fields declared
// in them, for those who write. It continues after an error, unless the engine can't be reached.
func (e *Engine) FindOrPrepare(ctx context.Context, name string, prepare bool) ([]adapters.Index, error) {
	names := []string{name}
	if name == "" {
		names = nil
		for _, rule := range e.Rules {
			names = append(names, rule.Match)
		}
	}
	var all []adapters.Index
	var errs []error
	for _, name := range names {
		indices, err := e.Matching(ctx, name)
		if err == nil && prepare {
			indices, err = e.prepare(ctx, indices)
		}
		if err != nil {
			errs = append(errs, e.Explain(err))
			if Unreachable(err) {
				break
			}
		}
		for _, index := range indices {
			if !slices.ContainsFunc(all, func(i adapters.Index) bool { return i.Name == index.Name }) {
				all = append(all, index)
			}
		}
	}
	return all, errors.Join(errs...)
}

// prepare has our fields declared in those of the indices that a rule matches, and returns all as they are then.
func (e *Engine) prepare(ctx context.Context, indices []adapters.Index) (all []adapters.Index, err error) {
	for _, index := range indices {
		prepared := []adapters.Index{index}
		if index.Rule(e.Rules) != nil {
			if prepared, err = e.Store.Prepare(ctx, index.Name, false); err != nil {
				return nil, fmt.Errorf("index %s: %w", index.Name, err)
			}
		}
		all = append(all, prepared...)
	}
	return all, nil
}
