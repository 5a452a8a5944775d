package elastic

import (
	"io"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// Sniffing clients ask the cluster where its nodes take HTTP requests (sniff_on_start, DiscoverNodes) and from then on talk to
// these addresses: past the sidecar. Where [Dialect.RewriteSniffing] says so, the nodes' own addresses in such a reply are
// replaced by the one under which the client reached us. Each node then has the same, and whichever a client chooses, it comes
// to us.

// asksForNodes reports whether the reply to a request can tell the nodes' addresses: GET /_nodes with or without ids and metrics.
// The other pages below it hold figures alone.
func asksForNodes(method string, path []string) bool {
	if method != "GET" || path[0] != "_nodes" {
		return false
	}
	figures := []string{"stats", "usage", "hot_threads", "hotthreads"}
	return !slices.ContainsFunc(path[1:min(len(path), 3)], func(part string) bool { return slices.Contains(figures, part) })
}

// classifyNodes returns the class of a request for the nodes' addresses. Where there is none to put in their place, it passes.
func (d Dialect) classifyNodes(r *adapters.Request) adapters.Class {
	ours := d.Advertise
	if ours == "" {
		ours = r.Host
	}
	if ours == "" {
		return adapters.Class{}
	}
	return adapters.Class{Kind: adapters.KindRead, Form: formNodes, Address: ours, Always: true}
}

// rewriteNodes copies what the nodes say of themselves with one address in the place of those at which they take HTTP requests:
// the members publish_address and bound_address of nodes.<id>.http. All other bytes stay. From the first byte on that is not
// well-formed the rest is copied as it stands. It returns only errors of src and dst.
func rewriteNodes(dst io.Writer, src io.Reader, address string) error {
	quoted := jsonedit.AppendString(nil, address)
	return jsonedit.Clean(dst, src, jsonedit.Cuts{Edit: func(path []string, theirs []byte) []byte {
		if len(path) == 4 && path[0] == "nodes" && path[2] == "http" && (path[3] == "publish_address" || path[3] == "bound_address") {
			return quoted
		}
		return theirs
	}})
}
