package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/buildinfo"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/playground"
	"github.com/neardup/sidecar/proxy"
	"github.com/neardup/sidecar/sketch"
)

// play has the playground show what a configuration says, by the units that serve it.
func (s *process) play(c *config.Config, units map[string]*backend) {
	scene := &playground.Scene{Version: buildinfo.Of().String(), Links: s.status.links(), Log: s.log}
	for _, p := range config.Presets() {
		scene.Presets = append(scene.Presets, playground.Preset{
			Name: p.Name, Threshold: p.Start(c.Sketch).Threshold, Needs: append([]string{}, p.Needs...),
		})
	}
	for i := range c.Engines {
		scene.Engines = append(scene.Engines, s.stage(c, &c.Engines[i], units[c.Engines[i].Name]))
	}
	s.status.plays.Set(scene)
	s.status.playing.Store(c.Playground)
}

// stage returns an engine as the playground sees it.
func (s *process) stage(c *config.Config, e *config.Engine, u *backend) playground.Engine {
	k := kind.Of(e.Kind)
	v := &views{servers: s, config: c, engine: e, unit: u, made: map[viewKey]*playground.View{}}
	p := playground.Engine{
		Name: e.Name, Kind: e.Kind, Credentials: "password", Ask: k.LookFor, Read: k.LookedAt, View: v.view,
		Authorize: func(c playground.Credentials) adapters.Header { return authorize(e, c) },
		Match: func(index string) int {
			rule := u.front.rules.For(index)
			return slices.IndexFunc(u.front.rules, func(r *adapters.Rule) bool { return r == rule })
		},
	}
	open := k.Open(u.front.transport, u.front.urls, u.front.rules)
	p.Listed = func(ctx context.Context, header adapters.Header) ([]adapters.Listed, error) {
		return k.Listed(ctx, open(header, ""))
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
		})
	}
	return p
}

// authorize returns the headers by which the engine takes a user's own credentials.
func authorize(e *config.Engine, c playground.Credentials) adapters.Header {
	if e.Kind == kind.Embedded {
		return adapters.Header{}
	}
	user := config.Engine{Kind: e.Kind, Credentials: config.Credentials{
		APIKey: config.SecretOf(c.Key), Username: config.SecretOf(c.User), Password: config.SecretOf(c.Password),
	}}
	return user.Header()
}

// views are the ways to look at one engine's indices, made when they are first asked for.
type views struct {
	servers *process
	config  *config.Config
	engine  *config.Engine
	unit    *backend

	mu   sync.Mutex
	made map[viewKey]*playground.View
}

type viewKey struct {
	rule   int
	preset string
}

// maxViews is how many are kept; one that is gone is made again.
const maxViews = 100

func (v *views) view(rule int, preset string) (*playground.View, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := viewKey{rule, cmp.Or(preset, v.engine.Indices[rule].Preset)}
	if made := v.made[key]; made != nil {
		return made, nil
	}
	made, err := v.make(key)
	if err != nil {
		return nil, err
	}
	if len(v.made) >= maxViews {
		clear(v.made)
	}
	v.made[key] = made
	return made, nil
}

// make makes a view. Under the rule's own preset it is the rule as it serves; under another one a sidecar of its own, which
// nobody else asks and which counts nothing.
func (v *views) make(key viewKey) (*playground.View, error) {
	index, rules := v.engine.Indices[key.rule], v.unit.front.rules
	made := &playground.View{Rules: rules, Rule: rules[key.rule], Handler: v.unit, MaxWindow: v.engine.Limits.MaxWindow}
	if key.preset != index.Preset {
		var err error
		index, err = index.Under(key.preset, v.config.Sketch)
		if bad, ok := errors.AsType[*config.PresetError](err); ok {
			return nil, playground.Wrong(bad.Why, bad.Hint)
		}
		sketcher, err := sketch.New(index.Sketch.Scheme())
		if err != nil {
			return nil, playground.Wrong(fmt.Sprintf("preset %s: %v", key.preset, err), "Choose another preset.")
		}
		made.Rule = index.Rule(sketcher)
		made.Rules = slices.Clone(rules)
		made.Rules[key.rule] = made.Rule
		log := v.servers.log.With("engine", v.engine.Name, "preset", key.preset)
		made.Handler, err = v.unit.front.proxy(v.engine, made.Rules, proxy.NewMetrics(nil), nil, log)
		if err != nil {
			return nil, err
		}
	}
	made.Preset, made.Conditions, made.YAML = index.Preset, index.Conditions(), index.YAML(v.config.Sketch)
	if made.Representative = "the first-ranked"; !made.Rule.Choice.Ranked() {
		made.Representative = index.Chosen()
	}
	return made, nil
}
