package embedded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// failure is an error in Elasticsearch's shape.
type failure struct {
	status int
	plain  string // replaces the object where Elasticsearch gives a string only
	shard  string // the index whose shard failed
	cause  cause
}

// cause is what went wrong; its fields are in Elasticsearch's order.
type cause struct {
	Type         string `json:"type"`
	Reason       string `json:"reason"`
	ResourceType string `json:"resource.type,omitempty"`
	ResourceID   string `json:"resource.id,omitempty"`
	UUID         string `json:"index_uuid,omitempty"`
	Shard        string `json:"shard,omitempty"`
	Index        string `json:"index,omitempty"`
	Line         int    `json:"line,omitempty"`
	Col          int    `json:"col,omitempty"`
}

// Error returns the type and the reason.
func (f *failure) Error() string { return f.cause.Type + ": " + f.cause.Reason + f.plain }

// MarshalJSON gives the whole body of the error's reply.
func (f *failure) MarshalJSON() ([]byte, error) {
	type shard struct {
		Shard  int    `json:"shard"`
		Index  string `json:"index"`
		Node   string `json:"node"`
		Reason cause  `json:"reason"`
	}
	var body any = struct {
		RootCause []cause `json:"root_cause"`
		cause
	}{[]cause{f.cause}, f.cause}
	switch {
	case f.plain != "":
		body = f.plain
	case f.shard != "":
		body = struct {
			RootCause []cause `json:"root_cause"`
			Type      string  `json:"type"`
			Reason    string  `json:"reason"`
			Phase     string  `json:"phase"`
			Grouped   bool    `json:"grouped"`
			Shards    []shard `json:"failed_shards"`
		}{[]cause{f.cause}, "search_phase_execution_exception", "all shards failed", "query", true, []shard{{0, f.shard, node, f.cause}}}
	}
	return appendJSON(nil, struct {
		Error  any `json:"error"`
		Status int `json:"status"`
	}{body, f.status}), nil
}

// asFailure is err in Elasticsearch's shape.
func asFailure(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return fail(http.StatusInternalServerError, "exception", "%v", err)
}

func fail(status int, kind, format string, args ...any) *failure {
	return &failure{status: status, cause: cause{Type: kind, Reason: fmt.Sprintf(format, args...)}}
}

func illegal(format string, args ...any) *failure {
	return fail(http.StatusBadRequest, "illegal_argument_exception", format, args...)
}

func parsing(format string, args ...any) *failure {
	return fail(http.StatusBadRequest, "parsing_exception", format, args...)
}

func invalid(what string) *failure {
	return fail(http.StatusBadRequest, "action_request_validation_exception", "Validation Failed: 1: %s;", what)
}

func unsupported(what string) *failure {
	return fail(http.StatusNotImplemented, "unsupported_operation_exception",
		"the embedded demo engine does not support [%s]: use a real Elasticsearch for this", what)
}

func noSuchIndex(name string) *failure {
	return &failure{status: http.StatusNotFound, cause: cause{Type: "index_not_found_exception", Reason: "no such index [" + name + "]",
		ResourceType: "index_or_alias", ResourceID: name, UUID: "_na_", Index: name}}
}

// ofIndex is a failure of one index's document.
func (x *index) ofIndex(status int, kind, format string, args ...any) *failure {
	f := fail(status, kind, format, args...)
	f.cause.UUID, f.cause.Shard, f.cause.Index = x.uuid, "0", x.name
	return f
}

// onShard is a failure of a search on one index.
func (x *index) onShard(kind, format string, args ...any) *failure {
	f := fail(http.StatusBadRequest, kind, format, args...)
	f.shard = x.name
	if kind == "query_shard_exception" {
		f.cause.UUID, f.cause.Index = x.uuid, x.name
	}
	return f
}

// appendJSON appends v as compact JSON, without the escapes that only HTML needs.
func appendJSON(b []byte, v any) []byte {
	buf := bytes.NewBuffer(b)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Appendf(b, `{"error":%q,"status":500}`, err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
