package e2e

import (
	"slices"
	"strings"

	"github.com/neardup/sidecar/internal/differ"
)

// keptAlive: the engine says that it keeps the connection, which is what HTTP/1.1 means where nothing is said (RFC 9112, 9.3).
func keptAlive(direct, through *differ.Reply, _ differ.Masks) bool {
	said := func(r *differ.Reply) string { return strings.Join(r.Values("connection"), ",") }
	return said(direct) == "keep-alive" && said(through) == "" && strings.HasPrefix(through.Line, "HTTP/1.1")
}

// toHead: the engine sends a body in answer to HEAD, which none may have (RFC 9110, 9.3.2).
func toHead(direct, through *differ.Reply, _ differ.Masks) bool {
	return len(direct.Extra) > 0 && len(through.Extra) == 0
}

// spoken are differences in any reply of this engine.
var spoken = []known{
	{
		why:     "the engine says that it keeps a connection, net/http keeps it and does not say so",
		aspects: []string{"connection"}, holds: keptAlive,
	},
	{
		why:   "the engine sends a body in answer to HEAD, net/http sends none",
		names: []string{"*HEAD*", "HTTP/1.0, HEAD"}, aspects: []string{"extra"}, holds: toHead,
	},
	{
		why:   "net/http ends a connection of HTTP/1.0 and does not say so",
		names: []string{"*HTTP?* 1.0", "HTTP/1.0*"}, aspects: []string{"connection"},
	},
}

// knownTypesense are differences in what Typesense's API says.
var knownTypesense = append(slices.Clone(spoken), []known{
	{
		why:  "what something was cut out of is compressed anew, and not by the engine's compressor",
		side: withRule, aspects: []string{"compressed"},
	},
	{
		why:     "the engine is asked for encodings alone that can be read, and chooses another of them",
		names:   []string{"*any encoding", "*brotli*"},
		aspects: []string{"header content-encoding", "header vary", "header accept-ranges", "compressed"},
	},
	{
		why:   "net/http refuses a path that can't be unescaped",
		names: []string{"get: percent"},
	},
}...)

// knownTypesenseLarge adds what differs in long replies alone.
var knownTypesenseLarge = append(slices.Clone(knownTypesense), known{
	why:   "an answer before the body was read: what the client still sends is no next request",
	names: []string{"import of 3 MB, wrong key"}, aspects: []string{"connection"},
})

// knownTypesenseWire are differences in how HTTP is read and written.
var knownTypesenseWire = append(slices.Clone(spoken), []known{
	{
		why:   "what is no HTTP is refused by net/http in its own words, and the connection ends",
		holds: refusedByBoth,
		names: []string{
			"space in front of the colon", "header without a colon", "header without a name", "header with a *",
			"header name with odd signs",
			"a CR within a header", "a header of 2 MB", "HTTP/0.9", "HTTP/2.0", "HTTP/3", "protocol *", "spaces in the line",
			"space in *", "tab in the line", "empty line* in front", "a control byte in the target", "a NUL in the target", "nonsense",
			"a TLS greeting", "chunks: bad size*", "transfer encoding *", "length of a list", "length that is *", "length with a plus",
			"length beyond 64 bits", "CRLF between requests",
		},
	},
	{
		why: "net/http refuses what RFC 9112 and RFC 3986 have servers refuse, and the engine takes it",
		names: []string{
			"broken escape in the path", "cut off escape in the path", "percent at the end of the path", "a target without a slash",
			"a target that is a star", "no Host", "two Hosts", "a Host that can't be", "length given twice, another", "HTTP/1.0, chunks",
		},
	},
	{
		why:   "net/http unfolds a header, as RFC 9112 leaves to servers, and the engine refuses it",
		names: []string{"header folded"},
	},
	{
		why:   "the second request is no HTTP: it is refused in net/http's words",
		names: []string{"something behind a request without a body"}, aspects: []string{"extra"},
	},
	{
		why:   "the engine speaks HTTP/2 in the clear, we don't",
		names: []string{"upgrade to HTTP/2", "preface of HTTP/2"},
	},
	{
		why:   "net/http answers 417 itself",
		names: []string{"Expect of something else"},
	},
	{
		why:   "to a client of HTTP/1.0 that keeps its connection the engine does not say where its answer ends",
		names: []string{"keep-alive of HTTP/1.0"},
	},
	{
		why:   "the body that the engine sends in answer to HEAD is in the place of its next answer",
		names: []string{"keep-alive after HEAD and 404"}, aspects: []string{"status"},
	},
	{
		why:   "the engine ends the connection, with us and not with the client",
		names: []string{"many headers", "upgrade to a web socket"}, aspects: []string{"connection"},
	},
	{
		why:   "the engine is asked in HTTP/1.1, in which it compresses for who takes it",
		names: []string{"compressed on HTTP/1.0"},
	},
	{
		why:   "a write is looked through before it is sent on, and net/http asks for a body once a byte of it is wanted",
		names: []string{"leave: a * beyond the limit"},
	},
}...)
