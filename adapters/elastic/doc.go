// Package elastic is the adapter for Elasticsearch and OpenSearch, whose document and search APIs are the same as far as neardup
// uses them.
//
// The sketch is stored as the field neardup_sketch: binary with doc values, so that a search can ask for
// it by docvalue_fields whatever the client's source filter. A search is asked as the client wrote it, with from and size
// widened; the reply's own bytes become the client's page.
package elastic
