// Package proxy carries the live traffic between clients and one engine. Each kind of request has its flow, and calls these functions in order:
//
//	ServeHTTP                     proxy.go           begins and ends the request (underway.go), and chooses its flow
//	  answersSimilar              similar.go         near-duplicates of a document, and the comparison of two: ours to answer
//	  Classify                    of the dialect     write, search, read or pass
//
//	  answerSearch                search.go          read whole, asked wider, collapsed
//	    read                      search.go          the body, decoded; it counts in what is held (hold.go), and has to keep pace (body.go)
//	    parse                     search.go          ParseSearch of the dialect; for the rules of its indices it calls
//	      scope                   scope.go           from what is known of the indices, or looked up with the client's credentials (catalog.go)
//	    answerLeftAlone           search_left.go     sends a search that is not to be collapsed as the client wrote it
//	    earn                      budget.go          whether one may fail, which costs another request: of each target a share may
//	    collapse.Answer           internal/collapse  the page; what it asks goes out by
//	      exchange                exchange.go        within the deadline of the search
//	        roundTrip             exchange.go        one request and its reply, read whole
//	    failed                    search_left.go     where there is no page: sends the search as the client wrote it
//	    writePage                 reply.go           the page, with the header Neardup
//	      writePieces             reply.go           copies it to the client, by Write of underway.go
//
//	  write                       write.go           a body that is short is enriched whole, a longer one as it streams
//	    sendWhole, sendStream     write.go           the one or the other
//	      EnrichWrite             of the dialect     enriches each document; for its index it calls
//	        Rule                  write.go           its rule, and what it takes of our fields
//	          ruleOfDocument      catalog.go         the same, from what is known of the index or looked up with the client's credentials
//	      send                    send.go            sends it on
//	      findDuplicates          duplicates.go      where a rule asks for that: finds stored near-duplicates first (duplicates_find.go)
//	        sendOthers, finish    duplicates.go      sends the write on without some operations, and completes the reply
//
//	  read                        read.go            looks through the body for names of our fields, and sends it on
//
//	  send                        send.go            all that passes, and what the others send on: streams a request to the engine and the reply to
//	                                                 the client. An httputil.ReverseProxy does both: it calls meter.RoundTrip below, and
//	                                                 then Write of underway.go for each piece of the reply
//	    clean                     clean.go           cuts our fields out of the reply, by CleanReply of the dialect
//	      lookAhead               clean.go           the beginning of the reply: most are whole within it and have none
//
//	meter.RoundTrip               meter.go           measures a request to the engine
//	  nodes.RoundTrip             nodes.go           sends it to one of the nodes
//	    needsOwnConnection        nodes.go           whether the connection is closed after it
//	    Transport.RoundTrip       transport.go       a short request on one connection; all writes by http.Transport
//
// On any doubt of ours before the first byte to the client, a search is sent as the client wrote it. Every request carries the client's own
// credentials, and what is learned with them is kept apart by them (client.go).
package proxy
