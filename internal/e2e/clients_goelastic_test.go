// The Go client of Elasticsearch takes minutes to compile: make test-all has this tag, make test does without it.

//go:build goclient

package e2e

import (
	"testing"

	"github.com/elastic/go-elasticsearch/v8"
)

// elastic returns a client as users have it.
func elastic(t *testing.T, url string) *elasticsearch.Client {
	t.Helper()
	client, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{url}, CompressRequestBody: true})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
