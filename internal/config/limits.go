package config

import (
	"time"

	"github.com/neardup/sidecar/proxy"
)

// leastHeld is the least that can be given to all requests together: two bodies of a megabyte.
const leastHeld = 2 << 20

// Proxy returns the limits as the proxy takes them.
func (l Limits) Proxy() proxy.Limits {
	return proxy.Limits{
		MaxReply: int64(l.MaxReply), MaxSearchBody: int64(l.MaxSearchBody), EngineMaxBody: int64(l.EngineMaxBody),
		MaxWindow: l.MaxWindow, FallbackShare: l.FallbackShare,
		CursorMemory: int64(l.CursorMemory), CursorTTL: time.Duration(l.CursorTTL),
		Deadline: time.Duration(l.Deadline), MaxSearches: l.MaxSearches, MaxHeld: int64(l.MaxHeld),
	}
}

func (l Limits) validate(f *faults, key string) {
	for _, size := range []struct {
		name  string
		value Size
	}{{"max_reply", l.MaxReply}, {"max_search_body", l.MaxSearchBody}, {"engine_max_body", l.EngineMaxBody}, {"cursor_memory", l.CursorMemory}} {
		if size.value < 1 {
			f.add(key+"."+size.name, "must be more than 0, such as 64MB")
		}
	}
	for _, span := range []struct {
		name         string
		value, usual Span
	}{
		{"cursor_ttl", l.CursorTTL, Span(proxy.DefaultCursorTTL)}, {"deadline", l.Deadline, Span(proxy.DefaultDeadline)},
		{"header_timeout", l.HeaderTimeout, Span(ReadHeaderTimeout)}, {"idle_timeout", l.IdleTimeout, Span(IdleTimeout)},
	} {
		if span.value <= 0 {
			f.add(key+"."+span.name, "%v is out of range: use a span above 0, such as %v", span.value, span.usual)
		}
	}
	if l.MaxWindow < 1 || l.MaxWindow > 1_000_000 {
		f.add(key+".max_window", "%d is out of range: use 1 to 1000000 (%d is usual)", l.MaxWindow, proxy.DefaultMaxWindow)
	}
	if !(l.FallbackShare > 0 && l.FallbackShare <= 1) {
		f.add(key+".fallback_share", "%v is out of range: use a number above 0, at most 1 (%v is usual)", l.FallbackShare, proxy.DefaultFallbackShare)
	}
	if l.MaxSearches < 1 {
		f.add(key+".max_searches", "%d is out of range: use 1 or more (%d is usual)", l.MaxSearches, proxy.DefaultMaxSearches)
	}
	if l.MaxHeld < leastHeld {
		f.add(key+".max_held", "must be 2MB or more, such as %dMB", proxy.DefaultMaxHeld>>20)
	}
}
