// Package collapse answers a client's search with a page of the collapsed list, on any engine.
//
// It is written as a loop that reads from top to bottom. Requests go out through an [Exchange], so that nothing here does I/O. The dialect
// writes requests and lists the hits of the replies ([adapters.Search]); package rerank says which ranks to read and which hits fold.
//
// Of this package an ordinary search, under a default rule ([adapters.Scope] says what that sets), takes page.go and reading.go alone. What they call in
// other files of the package leaves its page as it is; keepSpecial and noteSpecial only record sizes and times:
//
//	Answer               the searches of one request
//	  answerOne          one search: collapsed, or left alone with its reason
//	    answerCollapsed  the loop: which page is wanted, and readings ([rerank.Found.Readings]) until it is known
//	      compare        one reading, whose hits are judged and added to what is found
//	        read         (reading.go) the dialect writes its requests and lists the hits of the replies ([adapters.Search])
//	          ask        the requests go out, joined by the [adapters.Wire] if there is one, and the replies come back
//	        keep         what the page is rendered from
//	        Judge.Hit    (internal/rule/judge.go) what is compared of each hit
//	        Found.Add    (rerank/page.go) keeps the hits, and with collapse (rerank/collapse.go) says which of them fold
//	      rendered       the page's hits in the engine's own reply
//
// Page 1 of short hits is, as a rule, one reading with sources: judged, and rendered from the same reply. A page that is found by sketches alone, such as one far down
// or one of hits whose sources take long, takes one more reading (shown.go), which brings its hits as the client wants them.
//
// What is passed along is of these types, those of the port in adapters/dialect.go:
//
//	adapters.Searches  the searches of the request, parsed. An ordinary one sets List (of one [adapters.Search]), Single, Plan, Plain; on Typesense Wire too
//	conversation       those searches while they are answered: how they ask, and the reply whose header the client gets
//	adapters.Asked     what one of them asks for, and the [adapters.Scope]: what its rules and the controls say. For page 1 count Target, Scope, From,
//	                   Size, Limit, Doubting and Ways
//	rerank.Page        which page is wanted: answerCollapsed sets what counts of it; [rerank.Found] is what is known of it
//	adapters.Reading   the ranks to be read, for the dialect, which writes an [adapters.Request] for them. For page 1 it has To, Sources, Judged, Frame
//	adapters.Listing   the hits of the replies ([adapters.Reply]), each a [rule.Seen]: what it is judged by. Beside Hits count Parsed, Total, Framed
//	rerank.Hit         a hit as it is compared: its sketch, and the profile of its rule
//	adapters.Outcome   what was done with a search; what the client gets is an [adapters.Reply] too, whose body is its Pieces
//
// The other files are for what few searches need:
//
//	shown.go           the second reading of a page that is found by sketches alone
//	special.go         what page.go and reading.go call for their sake, and what it takes
//	together.go        several searches in one request: each runs as if alone, what they ask goes out together
//	own.go             the client's own search: beside a reading, or in place of the page
//	texts.go           texts of hits without a sketch
//	explain.go         what is folded into a hit and why, where that is to be shown
//	cursor.go          what was shown in front of a client's cursor
//	sequence.go        a page that begins where the page before it ended
//	counts.go          facets that count groups
//	native.go          the engine collapses the search itself, by the ids of clusters
//	neighbours.go      nearest neighbours: the client's own page, or one of the longer list
//	point.go           a point in time, where the list moves or goes on beyond the engine's limit
package collapse
