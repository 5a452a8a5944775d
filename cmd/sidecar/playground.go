package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/playground"
	"github.com/neardup/sidecar/proxy"
)

// play has the playground show what a configuration says, by the units that serve it.
func (s *servers) play(c *Config, units map[string]*unit) {
	scene := &playground.Scene{Version: versionLine(), Links: s.status.links(), Log: s.log}
	for _, p := range presets {
		scene.Presets = append(scene.Presets, playground.Preset{
			Name: p.name, Threshold: p.start(c.Sketch).Threshold, Needs: append([]string{}, p.needs...),
		})
	}
	for i := range c.Engines {
		scene.Engines = append(scene.Engines, s.stage(c, &c.Engines[i], units[c.Engines[i].Name]))
	}
	s.status.plays.Set(scene)
	s.status.playing.Store(c.Playground)
}

// stage returns an engine as the playground sees it.
func (s *servers) stage(c *Config, e *EngineConfig, u *unit) playground.Engine {
	k := kind.Of(e.Kind)
	v := &views{servers: s, config: c, engine: e, unit: u, made: map[viewKey]*playground.View{}}
	p := playground.Engine{
		Name: e.Name, Kind: e.Kind, Credentials: "password", Ask: k.LookFor, Read: k.LookedAt, View: v.view,
		Authorize: e.authorize,
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
func (e *EngineConfig) authorize(c playground.Credentials) adapters.Header {
	if e.Kind == kind.Embedded {
		return adapters.Header{}
	}
	user := EngineConfig{Kind: e.Kind, Credentials: CredentialsConfig{
		APIKey: secretOf(c.Key), Username: secretOf(c.User), Password: secretOf(c.Password),
	}}
	return user.header()
}

// views are the ways to look at one engine's indices, made when they are first asked for.
type views struct {
	servers *servers
	config  *Config
	engine  *EngineConfig
	unit    *unit

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
		if index, err = index.under(key.preset, v.config.Sketch); err != nil {
			return nil, err
		}
		sketcher, err := sketchers{}.of(index.Sketch.Scheme())
		if err != nil {
			return nil, playground.Wrong(fmt.Sprintf("preset %s: %v", key.preset, err), "Choose another preset.")
		}
		made.Rule = index.rule(sketcher)
		made.Rules = slices.Clone(rules)
		made.Rules[key.rule] = made.Rule
		log := v.servers.log.With("engine", v.engine.Name, "preset", key.preset)
		made.Handler, err = v.unit.front.proxy(v.engine, made.Rules, proxy.NewMetrics(nil), nil, log)
		if err != nil {
			return nil, err
		}
	}
	made.Preset, made.Conditions, made.YAML = index.Preset, index.conditions(), index.yaml(v.config.Sketch)
	if made.Representative = "the first-ranked"; !made.Rule.Choice.Ranked() {
		made.Representative = index.chosen()
	}
	return made, nil
}

// under returns the entry under another preset: what folds is the preset's, which documents and which texts are the entry's, and
// so is what of the section sketch it has of its own.
func (i IndexConfig) under(name string, section SketchConfig) (IndexConfig, error) {
	if !slices.Contains(presetNames(), name) {
		return i, playground.Wrong(fmt.Sprintf("preset: %.60q is unknown", name), "Use "+either(presetNames())+".")
	}
	p := presetOf(name)
	other := p.start(section)
	other.Match, other.Fields, other.Missing = i.Match, i.Fields, i.Missing
	other.DateField, other.HostField = i.DateField, i.HostField
	own := reflect.ValueOf(&other.Sketch).Elem()
	was, is := reflect.ValueOf(presetOf(i.Preset).start(section).Sketch), reflect.ValueOf(i.Sketch)
	for n := range is.NumField() {
		if !reflect.DeepEqual(was.Field(n).Interface(), is.Field(n).Interface()) {
			own.Field(n).Set(is.Field(n))
		}
	}
	other.named()
	var f faults
	other.validate(&f, "rule")
	other.validateSketch(&f, "rule", &section)
	for _, need := range p.needs {
		if other.HostField == "" && need == hostField || other.DateField == "" && need == dateField {
			return other, playground.Wrong(fmt.Sprintf("preset %s needs %s", name, need),
				"Add "+need+" to the rule of "+i.Match+" in the configuration.")
		}
	}
	if len(f) > 0 {
		why := errors.Unwrap(f[0]).Error()
		return other, playground.Wrong("preset "+name+" does not fit the rule of "+i.Match+": "+why, "Choose another preset.")
	}
	return other, nil
}

// yaml returns the entry as it stands in a configuration: what differs from its preset, and always the threshold and the window.
func (i IndexConfig) yaml(section SketchConfig) string {
	start := presetOf(i.Preset).start(section)
	start.HostField = i.HostField
	start.named()
	start.HostField = ""
	p := &yamlWriter{}
	is, was := reflect.ValueOf(i), reflect.ValueOf(start)
	for n, field := range reflect.VisibleFields(is.Type()) {
		key, value := field.Tag.Get("mapstructure"), is.Field(n)
		always := slices.Contains([]string{"match", "fields", "preset", "threshold", "window"}, key)
		if key == "" || key == "-" || !always && reflect.DeepEqual(value.Interface(), was.Field(n).Interface()) {
			continue
		}
		if text, ok := scalar(value); ok || value.Kind() != reflect.Struct {
			p.out.WriteString("  " + key + ":")
			if ok {
				p.out.WriteString(" " + text + "\n")
			} else {
				p.value(value, "  ")
			}
			continue
		}
		p.out.WriteString(part(key, value, was.Field(n)))
	}
	return "- " + strings.TrimPrefix(p.out.String(), "  ")
}

// part returns a section of an entry: the keys of it that differ. Secrets are not shown.
func part(key string, is, was reflect.Value) string {
	var keys, hidden []string
	for n, field := range reflect.VisibleFields(is.Type()) {
		name, value := field.Tag.Get("mapstructure"), is.Field(n)
		if name == "-" || reflect.DeepEqual(value.Interface(), was.Field(n).Interface()) {
			continue
		}
		if _, secret := value.Interface().(Secret); secret {
			hidden = append(hidden, name)
			continue
		}
		p := &yamlWriter{}
		p.value(value, "")
		keys = append(keys, name+":"+strings.TrimSuffix(p.out.String(), "\n"))
	}
	note := ""
	if len(hidden) > 0 {
		note = "  # and its " + strings.Join(hidden, ", ")
	}
	return "  " + key + ": {" + strings.Join(keys, ", ") + "}" + note + "\n"
}
