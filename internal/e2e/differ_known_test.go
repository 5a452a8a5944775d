package e2e

import (
	"path"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/differ"
)

// known is a difference that is there for a reason. Names are those of cases, as path.Match has them; an empty kind or side, or no
// aspects, stand for all.
type known struct {
	kind, side string
	names      []string
	aspects    []string
	holds      func(direct, through *differ.Reply, m differ.Masks) bool // what has to hold besides, if anything
	why        string
}

// matches reports whether the entry covers a difference.
func (k *known) matches(kind, side, name, aspect string) bool {
	if k.kind != "" && k.kind != kind || k.side != "" && k.side != side {
		return false
	}
	any := func(patterns []string, s string) bool {
		for _, p := range patterns {
			if ok, _ := path.Match(p, s); ok {
				return true
			}
		}
		return len(patterns) == 0
	}
	return any(k.names, name) && any(k.aspects, aspect)
}

// refusedByBoth reports whether neither reply grants anything.
func refusedByBoth(direct, through *differ.Reply, _ differ.Masks) bool {
	refused := func(r *differ.Reply) bool { return r.Status() >= "400" || r.Broken == "closed" }
	return refused(direct) && refused(through)
}

// knownEverywhere are differences in what the engine's API says.
var knownEverywhere = []known{
	{side: sideRuled, aspects: []string{"compressed"}, why: "what something was cut out of is compressed anew, and not by the engine's compressor"},
	{
		side: sideRuled, holds: differ.Rearranged, aspects: []string{"body"},
		names: []string{"fields", "fields with *", "filter_path with fields", "_source excludes alone", "_source everything *", "msearch: many forms", "highlight of all fields, *", "field_caps: *", "mapping: all fields*"},
		why:   "the engine writes these members in the order of a hash table, in which our field has a place too",
	},
	{names: []string{"get: any encoding"}, aspects: []string{"header content-encoding", "body"}, why: "the engine is asked for encodings alone that can be read, and chooses another of them"},
	{side: sideRuled, names: []string{"stats: docs"}, aspects: []string{"body"}, why: "total_size_in_bytes: sketches take room"},
	{side: sideRuled, names: []string{"exists by a pattern *"}, aspects: []string{"body"}, why: "decision 012: a pattern of names takes ours in"},
	{side: sideRuled, names: []string{"script_fields that return *", "update: scripted upsert with *"}, aspects: []string{"body"}, why: "a script is shown the stored document"},
	{kind: "opensearch", side: sideRuled, names: []string{"warning: a deprecated sort"}, aspects: []string{"header warning"}, why: "OpenSearch warns once of a thing for an X-Opaque-Id, and warned of it when it refused the widened search"},
}

// knownOnWire are differences in how HTTP is read and written.
var knownOnWire = []known{
	{side: sideRuled, aspects: []string{"compressed"}, why: knownEverywhere[0].why},
	{
		holds: refusedByBoth, why: "what is no HTTP is refused by net/http in its own words, and the connection ends",
		names: []string{
			"broken escape in the path", "cut off escape in the path", "percent at the end of the path", "space in front of the colon", "header without *",
			"header with a *", "header name with odd signs", "a CR within a header", "a header of 2 MB", "HTTP/0.9", "HTTP/2.0", "HTTP/3", "preface of HTTP/2",
			"protocol of another kind", "space in the target", "nonsense", "a TLS greeting", "chunks: bad size*", "length given twice, another", "length of a list",
			"length that is *", "length with a plus", "length beyond 64 bits",
		},
	},
	{
		why: "net/http refuses what RFC 9112 has servers refuse, and the engine takes it",
		names: []string{
			"a target without a slash", "a target that is a star", "no Host", "two Hosts", "a Host that can't be", "protocol in small letters", "spaces in the line", "tab in the line",
			"space in front of the line", "empty line* in front", "CRLF between requests", "a control byte in the target", "a NUL in the target", "transfer encoding *",
		},
	},
	{
		why:   "net/http takes what RFC 9112 has servers take, and the engine refuses it",
		names: []string{"a target with *", "a search's target with its host", "lines that end in LF alone", "HTTP/1.2", "HTTP/1.0, chunks", "length given twice, the same"},
	},
	{names: []string{"something behind a request without a body"}, aspects: []string{"extra"}, why: "the second request is no HTTP: refused in net/http's words"},
	{names: []string{"a connection header that names another"}, aspects: []string{"header x-opaque-id"}, why: "what Connection names is not passed on (RFC 9110, 7.6.1)"},
	{names: []string{"compressed on HTTP/1.0"}, why: "the engine is asked in HTTP/1.1, in which it compresses for who takes it"},
	{names: []string{"Expect of something else"}, aspects: []string{"connection", "header date"}, why: "net/http answers 417 itself"},
	{names: []string{"keep-alive of HTTP/1.0", "close"}, aspects: []string{"connection"}, why: "net/http says what becomes of the connection; the engine does the same and says nothing"},
	{names: []string{"method CONNECT"}, aspects: []string{"body"}, why: "the target of CONNECT is a host, which is the engine's (decision 006)"},
}

// knownMet are the entries that covered something.
type knownMet struct{ sync.Map }

func (m *knownMet) note(k *known) { m.Store(k, true) }

// check fails the test for entries of the table that covered nothing.
func (m *knownMet) check(t *testing.T, table []known) {
	for i := range table {
		if _, ok := m.Load(&table[i]); !ok {
			t.Errorf("nothing differs any more in %q: %s", table[i].names, table[i].why)
		}
	}
}
