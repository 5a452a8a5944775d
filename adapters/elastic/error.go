package elastic

import (
	"fmt"
	"maps"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// ErrorReply returns an error of our own to the request, in the engine's shape and with the headers of its errors: the
// official clients refuse to read a reply without the product's, and choose how to read it by the type.
func (d Dialect) ErrorReply(r *adapters.Request, status int, reason string) *adapters.Reply {
	kind := "neardup_exception"
	if status == 400 {
		kind = "illegal_argument_exception"
	}
	cause := `"type":"` + kind + `","reason":` + string(jsonedit.AppendString(nil, reason))
	body := fmt.Appendf(nil, `{"error":{"root_cause":[{%s}],%s},"status":%d}`, cause, cause, status)
	header := adapters.Header{"Content-Type": {"application/json; charset=UTF-8"}}
	if !d.OpenSearch {
		header["Content-Type"] = []string{d.bodyType(r.Header)}
		header["X-Elastic-Product"] = []string{"Elasticsearch"}
	}
	if id := r.Header["X-Opaque-Id"]; len(id) > 0 {
		header["X-Opaque-Id"] = id[:1]
	}
	return &adapters.Reply{Status: status, Header: header, Body: body}
}

// bodyType returns the media type of JSON of ours towards either side, for a request with this header: of an error, and of a body that
// the client did not send. Elasticsearch answers JSON in kind, with the parameters that it was asked with, among them the version of the API, and
// wants a body to be of the version that is accepted. Of several types in one value it takes note of none, OpenSearch of none at all. Where
// it takes note of none, the reply is of the type that the client gave its own body, even if there is none, without parameters.
func (d Dialect) bodyType(header adapters.Header) string {
	if d.OpenSearch {
		return jsonType
	}
	if accept := header["Accept"]; len(accept) == 1 && !strings.Contains(accept[0], ",") {
		parts := strings.Split(accept[0], ";")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		switch strings.ToLower(parts[0]) {
		case jsonType:
			return strings.Join(parts, ";")
		case vendorType + "json", vendorType + "x-ndjson":
			parts[0] = vendorType + "json"
			return strings.Join(parts, ";")
		}
	}
	if own := header["Content-Type"]; len(own) == 1 && strings.HasPrefix(strings.ToLower(strings.TrimSpace(own[0])), vendorType) {
		return vendorType + "json"
	}
	return jsonType
}

// withType returns the header for a request whose body is JSON of ours.
func (d Dialect) withType(header adapters.Header) adapters.Header {
	header = maps.Clone(header)
	if header == nil {
		header = adapters.Header{}
	}
	header["Content-Type"] = []string{d.bodyType(header)}
	return header
}

const (
	jsonType   = "application/json"
	vendorType = "application/vnd.elasticsearch+"
)
