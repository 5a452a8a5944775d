// Package collapse answers a client's search with a page of the collapsed list, on any engine.
//
// It is written as a loop that reads from top to bottom. Requests go out through an [Ask], so that nothing here does I/O. The dialect
// says what the engine is asked and reads what it answers ([adapters.Search], [adapters.Wire]); package rerank says which ranks to read
// and which hits fold.
//
//	Answer            the searches of one request: each in turn, what they ask joined (answer.go, together.go)
//	  search.run      one search: collapsed, or left alone with its reason (search.go)
//	    natively      the engine collapses it itself, by the ids of clusters (native.go)
//	    page          the loop: read, judge, hand to the pager, until the page is known (page.go)
//	      read        one reading, with the client's own search beside it where that is needed
//	      judge       hits to sketches; texts that are missing are read (judge.go)
//	      decide      nearest neighbours: the client's own page, or one of the longer list (neighbours.go)
//	    render        the page's hits, with what is folded into them (render.go)
//	    leave         the client's own page from a reply at hand, or its own search (search.go)
//
// Which ranks are read, and what with them, is decided in one place, search.begin. A search that is read in another way (from where the
// last page ended, or in a point in time) is the same loop begun with another page.
package collapse
