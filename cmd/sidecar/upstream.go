package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
)

// quietTransport returns what carries requests of jobs to an engine: it hides their credentials in what the engine answers.
func quietTransport(e *config.Engine) (http.RoundTripper, error) {
	transport, _, err := transportTo(e, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return hideCredentials(e, transport), nil
}

// opened is an engine as jobs and setup see it, under the operator's credentials.
type opened struct {
	config *config.Engine
	kind   kind.Kind
	rules  adapters.Rules
	store  adapters.Store
}

// openFor opens for a command the engine with the name, or all that the configuration has where it is empty.
func openFor(cmd *cobra.Command, name string) ([]*opened, error) {
	c, err := configOf(cmd)
	if err != nil {
		return nil, err
	}
	return openEngines(c, name)
}

// openEngines opens the engine with the name, or all of them where it is empty.
func openEngines(c *config.Config, name string) ([]*opened, error) {
	var engines []*opened
	var names []string
	for i := range c.Engines {
		e := &c.Engines[i]
		names = append(names, e.Name)
		if name != "" && e.Name != name || name == "" && e.Kind == kind.Embedded {
			continue
		}
		o, err := openEngine(e)
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

// errEmbedded is what a job gets that has nothing but an embedded engine to work on.
var errEmbedded = errors.New("an embedded engine lives inside serve alone: there is nothing to work on from outside")

// openEngine opens an engine.
func openEngine(e *config.Engine) (*opened, error) {
	if e.Kind == kind.Embedded {
		return nil, errEmbedded
	}
	transport, err := quietTransport(e)
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
	k := kind.Of(e.Kind)
	return &opened{config: e, kind: k, rules: rules, store: k.Open(transport, urls, rules)(e.Header(), "")}, nil
}

// failed returns an error of the engine, and what to do about it where that is plain.
func (e *opened) failed(err error) error {
	hint := ""
	switch status := adapters.StatusOf(err); {
	case status == http.StatusUnauthorized:
		hint = ": set its credentials in the configuration to those that it knows"
	case status == http.StatusForbidden:
		hint = ": give the user of its credentials in the configuration the rights, which sidecar doctor looks at"
	case unreachable(err):
		hint = ": see that it runs and that its urls in the configuration are right, or ask sidecar doctor"
	}
	return fmt.Errorf("engine %s: %w%s", e.config.Name, err, hint)
}

// unreachable reports whether an engine could not be asked at all.
func unreachable(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network && adapters.StatusOf(err) == 0 && !errors.Is(err, context.Canceled)
}

// discreet carries requests of jobs, and hides their own credentials in what an engine answers where it refuses: its words are
// printed.
type discreet struct {
	http.RoundTripper
	words []string
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
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 4 }) // which stand in words of every kind
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })    // the whole before its parts
	if len(words) == 0 {
		return transport
	}
	return &discreet{transport, words}
}

// maxRefusal is how much is read of a refusal, in bytes.
const maxRefusal = 1 << 20

// RoundTrip implements http.RoundTripper.
func (d *discreet) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.RoundTripper.RoundTrip(r)
	if err != nil {
		if text := d.hide(err.Error()); text != err.Error() {
			err = errors.New(text)
		}
		return nil, err
	}
	if resp.StatusCode < http.StatusBadRequest || resp.Header.Get("Content-Encoding") != "" {
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	_ = resp.Body.Close() // it was read
	if err != nil {
		return nil, err
	}
	text := d.hide(string(body))
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	resp.Header.Del("Content-Length")
	return resp, nil
}

func (d *discreet) hide(text string) string {
	for _, word := range d.words {
		text = strings.ReplaceAll(text, word, config.Hidden)
	}
	return text
}

// prepare prepares the indices behind a name that a rule matches.
func (e *opened) prepare(ctx context.Context, name string) ([]adapters.Index, error) {
	matching, err := e.matching(ctx, name)
	if err != nil {
		return nil, err
	}
	var indices []adapters.Index
	for _, index := range matching {
		if e.rules.Of(index) == nil {
			indices = append(indices, index)
			continue
		}
		prepared, err := e.store.Prepare(ctx, index.Name, false)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", index.Name, err)
		}
		indices = append(indices, prepared...)
	}
	return indices, nil
}

// matching returns the indices behind a name that a rule matches. The others are none of our business; only where the name leads
// to no index but such do they come back, as not ready, so that it can be said why.
func (e *opened) matching(ctx context.Context, name string) ([]adapters.Index, error) {
	behind, err := e.store.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	var indices, strangers []adapters.Index
	for _, index := range behind {
		if e.rules.Of(index) != nil {
			indices = append(indices, index)
			continue
		}
		why := "no rule matches it: a rule's match is compared with the names of indices, not with aliases"
		strangers = append(strangers, adapters.Index{Name: index.Name, Why: why})
	}
	if len(indices) == 0 {
		return strangers, nil
	}
	return indices, nil
}

// checkVersion fails if the engine's version is one that is not tested, unless that is allowed: what such a version stores and does not show could be
// lost by writing documents back.
func (e *opened) checkVersion(ctx context.Context, untested bool) error {
	if untested || len(e.kind.Versions) == 0 {
		return nil
	}
	product, err := e.kind.ProductOf(ctx, e.store)
	if err != nil {
		return e.failed(fmt.Errorf("ask for its version: %w", err))
	}
	if e.kind.Tested(product.Version) {
		return nil
	}
	is := product.Name + " " + product.Version
	if product.Version == "" {
		is = "of a version that it does not tell these credentials"
	}
	return fmt.Errorf("engine %s: it is %s, and neardup is tested on %s %s. What an engine stores and does not show could be lost by writing to its documents, "+
		"so nothing was written. If you have tried it on a copy: --untested", e.config.Name, is, e.kind.Product, e.kind.TestedVersions())
}
