// Package elastic is the adapter for Elasticsearch and OpenSearch, whose document and search APIs are the same as far as neardup
// uses them.
//
// The sketch is stored as the field neardup_sketch: binary with doc values, so that a search can ask for
// it by docvalue_fields whatever the client's source filter. For rules that have them, its bands are stored as neardup_bands, numbers
// to be looked up by, and the document's cluster as neardup_cluster, a keyword. Jobs keep their journal in an index of its own.
//
// A search is asked as the client wrote it, with from and size widened; the reply's own bytes become the client's page. What an ordinary one
// takes is in five files:
//
//	classify.go   Classify     what a request is, by method and path
//	search.go     ParseSearch  what the client asks for, under the rules of its index
//	reading.go    Requests     a reading: the client's own request, with other ranks and our field beside it
//	listing.go    Listing      the hits of the reply, read in one pass
//	render.go     Render       the page's hits in place of the reply's own
//
// The other files of searching are for what few searches need: multi-searches (multi.go), templates, cursors, neighbours, native mode, picking
// hits by a filter (picked.go), a point in time (point.go, point_deep.go), the client's own search (own.go), filter_path (envelope.go).
//
// A bulk takes two more:
//
//	write.go      EnrichWrite   its lines, one by one: rule.Enricher adds our fields to each document
//	clean.go      CleanReply    the reply, should it quote our fields
package elastic
