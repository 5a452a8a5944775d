// Package collapse answers a client's search with a page of the collapsed list, on any engine.
//
// It is written as a loop that reads from top to bottom. Requests go out through an [Ask], so that nothing here does I/O. The dialect
// says what the engine is asked and reads what it answers ([adapters.Search], [adapters.Reader], [adapters.Wire]); package rerank says which
// ranks to read and which hits fold.
//
// An ordinary search is all in page.go; what it calls elsewhere does nothing for it:
//
//	Answer             the searches of one request
//	  run              one search: collapsed, or left alone with its reason
//	    setPage        what is wanted: which ranks, and what a reading of them must bring
//	    collapse       the loop: [rerank.FindPage] says what to read until the page is known
//	      readSpan     one reading: asked for, listed, judged
//	        read       the dialect writes queries and lists the hits of their results
//	          askRound   one round: counted, and bounded in number
//	            results  queries joined in requests, replies split into results
//	      rendered     the page's hits in the engine's own reply
//
// The other files are for what few searches need:
//
//	together.go        several searches of one request: each runs as if alone, what they ask goes out together
//	own.go             the client's own search: beside a reading, or in place of the page
//	texts.go           texts of hits without a sketch
//	explain.go         what is folded into a hit and why, where that is to be shown
//	cursor.go          what was shown in front of a client's cursor
//	native.go          the engine collapses the search itself, by the ids of clusters
//	neighbours.go      nearest neighbours: the client's own page, or one of the longer list
//	point.go           a point in time, where the list moves or goes on beyond the engine's limit
package collapse
