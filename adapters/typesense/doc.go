// Package typesense is the adapter for Typesense.
//
// Every search is asked as a multi-search, whatever the client used: it takes parameters of any length, answers the same bytes as
// the search of one collection, needs the same permission, and reads ranks beyond one page's 250 hits in one request. What the
// client put in the query string stays there, less the few parameters that a reading steers; those go into the body.
//
// Documents show our field where they show anything: in the replies to writes, reads, exports and searches. It is cut out of all of
// these, out of the raw lines that an import hands back in its errors, and out of the schema of a collection. Replies about other
// things (keys, overrides, synonyms, presets, statistics) pass as they come.
//
// What is written here of the engine was seen on version 0.24.1.
package typesense
