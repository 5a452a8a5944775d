package e2e

import (
	"path"
	"slices"
	"strings"

	"github.com/neardup/sidecar/internal/differ"
)

// withRule is a pattern of the sides on which a rule matches.
const withRule = "[rl]*"

// known is a difference that is there for a reason. Names, aspects and side are patterns as path.Match has them. What is not
// given stands for all.
type known struct {
	why        string
	kind, side string
	names      []string
	aspects    []string
	holds      func(direct, through *differ.Reply, m differ.Masks) bool // what has to hold besides
}

// matches reports whether the entry covers a difference between servers that are of these kinds.
func (k *known) matches(kinds []string, side, name, aspect string) bool {
	in := func(s string, patterns ...string) bool {
		for _, p := range patterns {
			if ok, _ := path.Match(p, s); ok || p == "" {
				return true
			}
		}
		return len(patterns) == 0
	}
	ofKind := func(kind string) bool { return in(kind, k.kind) }
	return slices.ContainsFunc(kinds, ofKind) && in(side, k.side) && in(name, k.names...) && in(aspect, k.aspects...)
}

// refusedEarly is a difference that there is now and then.
var refusedEarly = known{
	why:  "Elasticsearch 9 may refuse a request before it has read the body: net/http then ends the connection",
	kind: "elasticsearch", aspects: []string{"connection"}, holds: func(direct, _ *differ.Reply, _ differ.Masks) bool { return direct.Status() >= "400" },
}

// knownEverywhere are differences in what the engine's API says.
var knownEverywhere = []known{
	{why: "what something was cut out of is compressed anew, and not by the engine's compressor", side: withRule, aspects: []string{"compressed"}},
	{
		why:  "the engine writes these members in the order of a hash table, in which our field has a place too",
		side: sideRuled, aspects: []string{"body"}, holds: differ.Rearranged,
		names: []string{
			"fields", "fields with *", "filter_path with fields", "_source excludes alone", "_source everything *",
			"msearch: many forms", "highlight of all fields, *", "field_caps: *", "mapping: all fields*", "objects: fields",
			"search pipeline of the request",
		},
	},
	{
		why:  "the explanation lists the fields in the order of a hash table, in which our field has a place too; the order changes with each start of the engine",
		side: withRule, names: []string{"validate: all fields"}, aspects: []string{"body"}, holds: differ.Rearranged,
	},
	{
		why:  "guarantees, 6: of a collapsed page filter_path keeps numbers as they were sent, where the engine writes them anew",
		side: withRule, aspects: []string{"body"}, holds: differ.Renumbered, names: []string{"indices by a pattern"},
	},
	{
		why:     "the engine is asked for encodings alone that can be read, and chooses another of them",
		names:   []string{"get: any encoding"},
		aspects: []string{"header content-encoding", "body"},
	},
	{
		why:  "guarantees, 6: a reply in SMILE from which something of ours goes is written without references",
		side: withRule, aspects: []string{"body"},
		names: []string{
			"format: smile", "get: smile of *",
		},
	},
	{
		why:  "decision 013: where an index has no room for our field, its field limit is raised by one",
		side: withRule, names: []string{"full: a new field", "full: settings"}, aspects: []string{"body"},
	},
	{
		why:  "guarantees, 5: an update of a part of the sketched text clears the sketch, which is a change",
		side: sideRuled, aspects: []string{"body"},
		names: []string{
			"update: noop of a part of the text", "update: a part of the text, then the same again", "update: the same part again", "part: read back",
		},
	},
	{
		why: "guarantees, 2: where the engine ends the connection without an answer, we answer 502",
		names: []string{
			"bulk: gzip that is none", "bulk: deflate that is none", "bulk: unknown encoding", "gzip body that is none",
			"read back: documents that are odd in their bytes",
		},
	},
	refusedEarly,
	{
		why:  "OpenSearch 3 lists indices in the order of a hash table, even directly",
		kind: "opensearch", names: []string{"mapping: spelled the other way"}, aspects: []string{"body"}, holds: differ.Rearranged,
	},
	{why: "total_size_in_bytes: sketches take room", side: withRule, names: []string{"stats: docs"}, aspects: []string{"body"}},
	{why: "decision 012: a pattern of names takes ours in", side: sideRuled, names: []string{"exists by a pattern *"}, aspects: []string{"body"}},
	{
		why:  "a script is shown the stored document",
		side: sideRuled, names: []string{"script_fields that return *", "update: scripted upsert with *"}, aspects: []string{"body"},
	},
	{
		why:  "OpenSearch warns once of a thing for an X-Opaque-Id, and did so when it refused the widened search",
		kind: "opensearch", side: withRule, names: []string{"warning: a deprecated sort"}, aspects: []string{"header warning"},
	},
}

// knownOfLarge adds what differs in long replies alone.
var knownOfLarge = append(slices.Clone(knownEverywhere), known{
	why:     "a long reply is compressed while it is sent, and flushing adds an empty block: once more or once less, even directly",
	aspects: []string{"compressed"}, holds: flushedOtherwise,
})

// flushedOtherwise reports whether two compressed bodies differ in length by whole empty blocks of deflate (RFC 1951, 3.2.4).
func flushedOtherwise(direct, through *differ.Reply, _ differ.Masks) bool {
	const emptyBlock = 5
	longer := len(through.Body) - len(direct.Body)
	return longer%emptyBlock == 0 && max(longer, -longer) <= 10*emptyBlock
}

// knownOnWire are differences in how HTTP is read and written.
var knownOnWire = []known{
	{why: "the engine is asked in HTTP/1.1, in which it compresses for who takes it", names: []string{"compressed on HTTP/1.0"}},
	{
		why:   "net/http says what becomes of the connection; the engine does the same and says nothing",
		names: []string{"keep-alive of HTTP/1.0", "close"}, aspects: []string{"connection"},
	},
	{
		why:  "guarantees, 2: where the engine ends the connection without an answer, we answer 502",
		kind: "opensearch", names: []string{"method PROPFIND", "method BREW", "method in small letters", "method with odd signs"},
	},
	{
		why:  "Elasticsearch 9 refuses a path before it has asked for the body: then net/http does not ask the client for it",
		kind: "elasticsearch", names: []string{"leave: no path"}, aspects: []string{"interim"},
	},
	refusedEarly,
	{
		why:   "RFC 9112, 6.3 and 7.1.1: a length beside chunks, and what is added to chunks, are left out of what is sent on; newer engines refuse them",
		names: []string{"chunks and a length", "chunks: extensions"},
	},
	{why: "RFC 9110, 7.8: a client and a proxy may go on as before; OpenSearch 3 changes to HTTP/2", kind: "opensearch", names: []string{"upgrade to HTTP/2"}},
	{
		why:   "a write is looked through before it is sent on, and net/http asks for a body once a byte of it is wanted",
		names: []string{"leave: a * beyond the limit"},
	},
}

// keptAlive: the engine says that it keeps the connection, which is what HTTP/1.1 means where nothing is said (RFC 9112, 9.3).
func keptAlive(direct, through *differ.Reply, _ differ.Masks) bool {
	said := func(r *differ.Reply) string { return strings.Join(r.Values("connection"), ",") }
	return said(direct) == "keep-alive" && said(through) == "" && strings.HasPrefix(through.Line, "HTTP/1.1")
}

// toHead: the engine sends a body in answer to HEAD, which none may have (RFC 9110, 9.3.2).
func toHead(direct, through *differ.Reply, _ differ.Masks) bool {
	return len(direct.Extra) > 0 && len(through.Extra) == 0
}

// knownTypesense are differences in what Typesense's API says.
var knownTypesense = []known{
	{why: "the engine says that it keeps a connection, net/http keeps it and does not say so", aspects: []string{"connection"}, holds: keptAlive},
	{
		why:   "the engine sends a body in answer to HEAD, net/http sends none",
		names: []string{"*HEAD*", "HTTP/1.0, HEAD"}, aspects: []string{"extra"}, holds: toHead,
	},
	{why: "net/http ends a connection of HTTP/1.0 and does not say so", names: []string{"*HTTP?* 1.0", "HTTP/1.0*"}, aspects: []string{"connection"}},
	{why: "what something was cut out of is compressed anew, and not by the engine's compressor", side: withRule, aspects: []string{"compressed"}},
	{
		why:     "the engine is asked for encodings alone that can be read, and chooses another of them",
		names:   []string{"*any encoding", "*brotli*"},
		aspects: []string{"header content-encoding", "header vary", "header accept-ranges", "compressed"},
	},
	{why: "net/http refuses a path that can't be unescaped", names: []string{"get: percent"}},
}

// knownTypesenseLarge adds what differs in long replies alone.
var knownTypesenseLarge = append(slices.Clone(knownTypesense), known{
	why:   "an answer before the body was read: what the client still sends is no next request",
	names: []string{"import of 3 MB, wrong key"}, aspects: []string{"connection"},
})
