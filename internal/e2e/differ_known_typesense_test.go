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

// knownTypesense are differences in what Typesense's API says.
var knownTypesense = []known{
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
}

// knownTypesenseLarge adds what differs in long replies alone.
var knownTypesenseLarge = append(slices.Clone(knownTypesense), known{
	why:   "an answer before the body was read: what the client still sends is no next request",
	names: []string{"import of 3 MB, wrong key"}, aspects: []string{"connection"},
})
