package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/buildinfo"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/playground"
	"github.com/neardup/sidecar/proxy"
	"github.com/neardup/sidecar/sketch"
)

// setPlayground sets the engines and rules that the playground shows, and the backends that answer it.
func (s *process) setPlayground(c *config.Config, backends map[string]*backend) {
	scene := &playground.Scene{Version: buildinfo.Of().String(), Links: s.status.links(), Log: s.log}
	for _, p := range config.Presets() {
		scene.Presets = append(scene.Presets, playground.Preset{
			Name: p.Name, Threshold: p.Start(c.Sketch).Threshold,
		})
	}
	for i := range c.Engines {
		scene.Engines = append(scene.Engines, s.playgroundEngine(c, &c.Engines[i], backends[c.Engines[i].Name]))
	}
	s.status.playground.Set(scene)
}

// playgroundEngine returns an engine for the playground.
func (s *process) playgroundEngine(c *config.Config, e *config.Engine, u *backend) playground.Engine {
	k := kind.Of(e.Kind)
	p := playground.Engine{
		Name: e.Name, Kind: e.Kind, Credentials: "password",
		Source: &source{
			Kind: k, process: s, config: c, engine: e, backend: u, views: map[viewKey]*playground.View{},
		},
	}
	switch {
	case e.Kind == kind.Embedded:
		p.Credentials = "none"
	case k.KeysOnly:
		p.Credentials = "key"
	}
	for _, i := range e.Indices {
		p.Rules = append(p.Rules, playground.Rule{
			Match: i.Match, Fields: i.Fields, Threshold: i.Threshold, Window: i.Window, Preset: i.Preset,
			Unfit: unfit(i, c.Sketch),
		})
	}
	return p
}

// unfit returns the presets that a rule can't take, each with the reason.
func unfit(i config.Index, section config.Sketch) map[string]string {
	reasons := map[string]string{}
	for _, name := range config.PresetNames() {
		if name == i.Preset {
			continue
		}
		_, err := i.Under(name, section)
		if bad, ok := errors.AsType[*config.PresetError](err); ok {
			reasons[name] = strings.TrimPrefix(bad.Why, "preset "+name+" ")
		}
	}
	return reasons
}

// source is one engine for the playground; it implements playground.Source.
type source struct {
	kind.Kind
	process *process
	config  *config.Config
	engine  *config.Engine
	backend *backend

	mu    sync.Mutex
	views map[viewKey]*playground.View // made when they are first needed
}

// Authorize returns the headers with a user's own credentials.
func (v *source) Authorize(c playground.Credentials) adapters.Header {
	if v.engine.Kind == kind.Embedded {
		return adapters.Header{}
	}
	user := config.Engine{Kind: v.engine.Kind, Credentials: config.Credentials{
		APIKey: config.SecretOf(c.Key), Username: config.SecretOf(c.User), Password: config.SecretOf(c.Password),
	}}
	return user.Header()
}

// Listed returns the engine's indices.
func (v *source) Listed(ctx context.Context, header adapters.Header) ([]adapters.Listed, error) {
	return v.Open(v.backend.transport, v.backend.urls, v.backend.rules)(header, "").Listed(ctx)
}

// Match returns the position of the rule that matches an index, or -1.
func (v *source) Match(index string) int {
	rules := v.backend.rules
	matched := rules.For(index)
	return slices.IndexFunc(rules, func(r *rule.Rule) bool { return r == matched })
}

type viewKey struct {
	rule   int
	preset string
}

// View returns a rule under a preset, with a handler that serves it. Under the rule's own preset the handler is the backend. Under another one it
// is a separate proxy without metrics.
func (v *source) View(number int, preset string) (*playground.View, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	index, rules := v.engine.Indices[number], v.backend.rules
	key := viewKey{number, cmp.Or(preset, index.Preset)}
	if made := v.views[key]; made != nil {
		return made, nil
	}
	made := &playground.View{Rules: rules, Rule: rules[number], Handler: v.backend, MaxWindow: v.engine.Limits.MaxWindow}
	if key.preset != index.Preset {
		var err error
		index, err = index.Under(key.preset, v.config.Sketch)
		if bad, ok := errors.AsType[*config.PresetError](err); ok {
			return nil, playground.Wrong(bad.Why, bad.Hint)
		}
		sketcher, err := sketch.New(index.Scheme())
		if err != nil {
			return nil, playground.Wrong(fmt.Sprintf("preset %s: %v", key.preset, err), "Choose another preset.")
		}
		made.Rule = index.Rule(sketcher)
		made.Rules = slices.Clone(rules)
		made.Rules[number] = made.Rule
		log := v.process.log.With("engine", v.engine.Name, "preset", key.preset)
		made.Handler, err = v.backend.proxy(v.engine, made.Rules, proxy.NewMetrics(nil), nil, log)
		if err != nil {
			return nil, err
		}
	}
	if v.backend.decided != nil {
		made.Decided = func() rule.Decisions { return v.backend.decided() }
	}
	made.Preset, made.Conditions, made.YAML = index.Preset, index.Conditions(), index.YAML(v.config.Sketch)
	if made.Representative = "the first-ranked"; !made.Rule.Choice.Ranked() {
		made.Representative = index.Chosen()
	}
	v.views[key] = made
	return made, nil
}
