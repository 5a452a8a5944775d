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
//	classify.go  Classify               what a request is, by method and path: its entry in endpoints
//	search.go    ParseSearch, parseOne  what the client asks for, under the rules of its index
//	reading.go   Requests               a reading: the client's own request, with other ranks and our field beside it
//	listing.go   Listing, seen          the hits of the reply, read in one pass (parseReply)
//	render.go    Render                 the page's hits in place of the reply's own
//
// They also ask whether the search needs more than that. An ordinary one does not, and these need not be opened:
//
//	search.go   asks allowsPoint (point.go), usesCursor and cursorReason (cursor.go), readNeighbours (neighbours.go), readFused (fused.go),
//	            readPipeline and pipelineReason (pipeline.go), collapsesOver (native.go), pickable and narrowable (picked.go), judgedApart (choose.go)
//	reading.go  asks leftOut and setBeside: what a reading changes besides its ranks and our field, nothing on an ordinary page 1
//	listing.go  asks numbered (reading.go): whether hits are told apart by their sequence numbers, never on page 1 with its sources
//	listing.go  asks ruleName (name.go): by what name rules know the index of a hit
//
// The other files of searching are for what few searches need: multi-searches (multi.go), templates, cursors, neighbours, fused lists, search pipelines, native mode, picking
// hits by a filter (picked.go), a point in time (point.go, point_deep.go), the client's own search (own.go), filter_path (envelope.go).
//
// A bulk takes classify.go and EnrichWrite (write.go): line by line, rule.Enricher adds our fields to each document. CleanReply (clean.go) is called only
// where the reply names a field of ours, as an error can that quotes a document.
//
// Query languages (ES|QL, SQL, PPL) answer tables: query.go reads their requests, table.go, table_text.go and table_flat.go cut our columns out of the replies.
//
// Jobs read and write documents by the store. A reindex reads a part of an index in this order. Functions with a star need not be opened:
//
//	Scan                    store_scan.go     a page after the other, of what is selected
//	  prepare*              store_scan.go     the query, the index's UUID and number of shards, and whether it hides vectors and can be written to
//	  readShards            store_scan.go     each shard of the part (store_part.go), in a point in time of its own
//	    readShard           store_scan.go     page by page, in the order of its sequence numbers
//	      nextPage*         store_scan.go     a page, again where its point in time is lost or the reply too long
//	        page            store_scan.go     the request for it, which search* sends; readScanPage* reads the documents of the reply
//	      yieldHits         store_scan.go     a page for the job, with where the scan goes on after it (part.mark)
//
// and writes its documents in this one:
//
//	Patch                   store_patch.go    some documents of one index
//	  openDestination*      store_patch.go    the index, reached through an alias of our own
//	  writeAndCompare*      store_compare.go  the first document of the index, alone: before and after
//	  send                  store_patch.go    a bulk
//	    appendPatch         store_patch.go    its two lines for a document
//	    throughAlias*       store_patch.go    sends it, and adds the alias again where another process has removed it
//
// A part is a list of shardRange: the sequence numbers of a shard from next to before to (-1: an open range, which takes in what is written later), read
// in a point in time. Split names the parts, and a scan of one begins by parsePart: both in store_part.go, which need not be opened. A version is the
// state in which a document was read, above all its sequence number: a write makes it a condition (appendCondition).
//
// The other ways to scan are in store_select.go: a sample, by ids, and what one search finds by bands. store.go sends all requests; store_index.go and
// store_prepare.go say what an index is like and prepare it; store_journal.go keeps what jobs note of their work; store_clean.go deletes
// documents and puts them back.
package elastic
