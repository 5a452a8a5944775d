package elastic

import (
	"encoding/json"
	"io"

	"github.com/neardup/sidecar/adapters"
)

// CleanReply implements adapters.Dialect.
func (d Dialect) CleanReply(c adapters.Class, dst io.Writer, src io.Reader) error {
	switch c.Form {
	case formSource:
		return adapters.Clean(dst, src, func(parent, key string) bool { return parent == "" && adapters.Our(key) })
	case formMapping:
		return adapters.Clean(dst, src, func(parent, key string) bool {
			return (parent == "properties" || parent == "mappings") && adapters.Our(key)
		})
	}
	return adapters.Clean(dst, src, inDocument)
}

// inDocument names our fields in a document's source and in the fields extracted beside it.
func inDocument(parent, key string) bool {
	return (parent == "_source" || parent == "fields") && adapters.Our(key)
}

// ErrorReply returns an error of our own in the engine's shape.
func (d Dialect) ErrorReply(status int, reason string) *adapters.Reply {
	kind := "neardup_exception"
	if status == 400 {
		kind = "illegal_argument_exception"
	}
	type cause struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}
	body, err := json.Marshal(map[string]any{
		"error": struct {
			RootCause []cause `json:"root_cause"`
			cause
		}{[]cause{{kind, reason}}, cause{kind, reason}},
		"status": status,
	})
	if err != nil {
		body = []byte("{}") // strings and numbers always marshal
	}
	header := adapters.Header{"Content-Type": {"application/json"}}
	if !d.OpenSearch { // the official clients refuse to read an answer without it
		header["X-Elastic-Product"] = []string{"Elasticsearch"}
	}
	return &adapters.Reply{Status: status, Header: header, Body: body}
}
