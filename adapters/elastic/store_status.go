package elastic

import (
	"net/http"
	"net/url"

	"github.com/neardup/sidecar/adapters"
)

// HTTPStatus is for adapters.StatusOf.
func (r *refusal) HTTPStatus() int { return r.status }

// DocumentOf returns the request for a stored document, without credentials.
func DocumentOf(index, id string) *adapters.Request {
	return &adapters.Request{Method: http.MethodGet, Path: "/" + url.PathEscape(index) + "/_doc/" + url.PathEscape(id)}
}
