// Package typesense is the adapter for Typesense.
//
// The search of one collection is asked as such. Where several are asked at once, or the query string would be too long, they are asked as a
// multi-search: it answers the same bytes under the same permission, for about a sixth more of the engine's time. Ranks beyond one page's 250 hits are
// read in a few requests side by side: the engine does the searches of one request one after the other. What the client put in the query string stays
// there, less the few parameters that a reading steers; those go behind it, or into the body. What an ordinary search takes is in five files:
//
//	classify.go  Classify                          what a request is, by method and path
//	search.go    ParseSearch, parseQuery           what the client asks for, under the rules of the collection
//	reading.go   Requests                          a reading: the client's own search, with other pages and our field beside it
//	listing.go   Listing, seen                     the hits of the result, as it was read
//	render.go    Render                            the page's hits in place of the reply's own
//
// A reading is of one or two contents, each in one or several pages. Each page with each content is a search. An ordinary reading, that of page 1, is
// one search: one content (full) of one page.
//
// These are called too, and need not be opened: reply.go writes the request (Join) and reads the result out of its reply (Split), params.go
// reads and sets parameters as the engine does, key.go says what the key imposes (an ordinary one nothing), neighbours.go how many neighbours a
// vector query looks for (0 for any other search), and fused.go whether a list is one of neighbours, or fused of two (an ordinary one is neither).
//
// The rest of the dialect is what not every search has: multi.go several searches at once, union.go those whose lists the engine merges, pages.go ranks far apart, deciding.go what hits fold by
// beside the sketch, native.go clusters.
//
// An import takes classify.go and EnrichWrite (write.go): line by line, rule.Enricher adds our fields to each document. CleanReply (clean.go) is called only
// where the reply names a field of ours, as an error does that quotes a line.
//
// Jobs read and write documents by the store. A reindex reads a collection, or a share of one, in this order:
//
//	store_scan.go    Scan, parsePart              what is read
//	                 export, exportOnce, hand     an export of the collection, line by line, in pages for the job
//
// and writes its documents in this one:
//
//	store_patch.go   Patch, patch, wanted         what each document is to hold, as it is now
//	                 send, appendUpdate, updated  an import of updates, a line for each, and the documents that it leaves
//	store.go         update                       the import itself
//
// The other ways to scan are in store_select.go: a sample, by ids, and what one search finds by bands. store.go opens the store and sends all requests;
// store_prepare.go says what a collection is like and declares our fields in it; store_journal.go keeps what jobs note of their work,
// store_clean.go deletes documents and puts them back, and store_inspect.go answers what doctor and init ask.
//
// Wherever a reading shows a hit's text, the stored sketch is believed only if its fingerprint is that of the text (Asked.Doubting): Typesense stores a
// backfill's sketch even if the client has written another text since the backfill read the document.
//
// What decides beside the sketch (a host, a date) is read with it, and not shown where the client did not ask for it. Dates are whole
// numbers of Unix seconds; one that as seconds would lie beyond the year 9999 is taken for milliseconds, anything but a number for no date.
// Of arrays all values count, of objects none. A key that hides a deciding field is obeyed: hits then lack it.
//
// Hits far apart, such as representatives, are read in small pages of one request: any rank is a page of one. Folded hits are
// shown in a member of the hit, beside its document:
//
//	"neardup": {"found": 1, "exact": true, "hits": [{"id": "7", "agreement": 0.9312, "document": {…}, "explain": {…}}], "explain": {…}}
//
// Controls count in the URL, in each search of a multi-search and in the request's header. Those in a scoped key or in a preset of the
// server's count for nothing: they are the engine's parameters, which it ignores, and a key can't be changed without its secret.
//
// Documents show our field where they show anything: in the replies to writes, reads, exports and searches. It is cut out of all of
// these, out of the raw lines that an import hands back in its errors, and out of the schema of a collection. Replies about other
// things (keys, overrides, synonyms, presets, statistics) pass as they come.
//
// What is written here of the engine was seen on version 0.24.1.
package typesense
