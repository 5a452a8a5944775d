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

// validateTogether checks what all requests to an engine share.
func (l Limits) validateTogether(f *faults, key string) {
	for _, span := range []struct {
		name         string
		value, usual Span
	}{
		{"deadline", l.Deadline, Span(proxy.DefaultDeadline)}, {"header_timeout", l.HeaderTimeout, Span(ReadHeaderTimeout)},
		{"idle_timeout", l.IdleTimeout, Span(IdleTimeout)},
	} {
		if span.value <= 0 {
			f.add(key+"."+span.name, "%v is out of range: use a span above 0, such as %v", span.value, span.usual)
		}
	}
	if l.MaxSearches < 1 {
		f.add(key+".max_searches", "%d is out of range: use 1 or more (%d is usual)", l.MaxSearches, proxy.DefaultMaxSearches)
	}
	if l.MaxHeld < leastHeld {
		f.add(key+".max_held", "must be 2MB or more, such as %dMB", proxy.DefaultMaxHeld>>20)
	}
}
