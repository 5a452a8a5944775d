package config

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/proxy"
)

// IndexFor returns the first rule that matches the name of an index. For an empty name it returns the only rule, or nil if there are several.
func (c *Config) IndexFor(name string) (*Index, error) {
	var all []*Index
	var matches []string
	for e := range c.Engines {
		for i := range c.Engines[e].Indices {
			index := &c.Engines[e].Indices[i]
			if name != "" && (index.Match == name || rule.Matches(index.Match, name)) {
				return index, nil
			}
			all, matches = append(all, index), append(matches, index.Match)
		}
	}
	switch {
	case name != "" && len(all) == 0:
		return nil, fmt.Errorf("--index: the configuration has no rule for %s, nor any other", name)
	case name != "":
		return nil, fmt.Errorf("--index: no rule is for %s: the rules match %s", name, strings.Join(matches, ", "))
	case len(all) == 1:
		return all[0], nil
	}
	return nil, nil
}

// Header returns the credentials in the header that the engine's kind reads.
func (e *Engine) Header() adapters.Header {
	c, h := e.Credentials, http.Header{}
	switch {
	case c.APIKey.IsSet():
		k := kind.Of(e.Kind)
		h.Set(k.KeyHeader, k.KeyScheme+c.APIKey.Reveal())
	case c.Bearer.IsSet():
		h.Set("Authorization", "Bearer "+c.Bearer.Reveal())
	case c.Username.IsSet():
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.Username.Reveal()+":"+c.Password.Reveal())))
	}
	return adapters.Header(h)
}

// Nodes parses the engine's URLs.
func (e *Engine) Nodes() ([]*url.URL, error) {
	var urls []*url.URL
	for _, text := range e.URLs {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		urls = append(urls, u)
	}
	return urls, nil
}

// RuleCount returns how many rules the engines have together.
func (c *Config) RuleCount() (n int) {
	for _, e := range c.Engines {
		n += len(e.Indices)
	}
	return n
}

// Unseeded reports whether any rule makes sketches without a seed.
func (c *Config) Unseeded() bool {
	return slices.ContainsFunc(c.Engines, func(e Engine) bool {
		return slices.ContainsFunc(e.Indices, func(i Index) bool { return !i.Sketch.Seed.IsSet() })
	})
}

// Proxy converts the limits for the proxy.
func (l Limits) Proxy() proxy.Limits {
	return proxy.Limits{
		MaxReply: int64(l.MaxReply), MaxSearchBody: int64(l.MaxSearchBody), EngineMaxBody: int64(l.EngineMaxBody),
		MaxWindow: l.MaxWindow, FallbackShare: l.FallbackShare,
		CursorMemory: int64(l.CursorMemory), CursorTTL: time.Duration(l.CursorTTL),
		Deadline: time.Duration(l.Deadline), MaxSearches: l.MaxSearches, MaxHeld: int64(l.MaxHeld),
	}
}
