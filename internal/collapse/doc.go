// Package collapse answers a client's search with a page of the collapsed list, on any engine.
//
// It is written as a loop that reads from top to bottom. Requests go out through an [Ask], so that nothing here does I/O. The dialect
// says what the engine is asked and reads what it answers ([adapters.Search], [adapters.Wire]); package rerank says which ranks to read
// and which hits fold.
//
//	Answer             answer.go      the searches of one request
//	  run                             one search: collapsed, or left alone with its reason
//	    natively       native.go      the engine collapses it itself, by the ids of clusters
//	    begin          answer.go      the plan: which ranks are read, and with what
//	    collapse       page.go        the loop: read, judge, hand to the pager, until the page is known
//	      findCursor   walk.go        what was shown in front of a client's cursor
//	      look         page.go        one reading, with the client's own search beside it where that is needed
//	        ask        ask.go         queries joined in requests, replies split into results
//	      judged       page.go        hits to sketches; texts that are missing are read (texts.go)
//	      decide       neighbours.go  nearest neighbours: the client's own page, or one of the longer list
//	      rendered     page.go        the page's hits, with what is folded into them (groups.go)
//	    inPoint        point.go       the same in a point in time, where the list moves or goes on beyond the engine's limit
//	    leave          own.go         the client's own page from an earlier reply, or its own search
//	  together         together.go    several searches of one request: each runs as if alone, what they ask goes out together
package collapse
