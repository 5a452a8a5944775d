// Package proxy carries the live traffic between clients and one engine. Each kind of request has its flow, and calls these functions in order:
//
//	ServeHTTP                     proxy.go           begins and ends the request (underway.go), and chooses its flow
//	  answersSimilar              similar.go         near-duplicates of a document, the comparison of two, and lists to deduplicate (dedupe.go): ours
//	                                                 to answer
//	  Classify                    of the dialect     write, search, read or pass
//
//	  answerSearch                search.go          read whole, asked wider, collapsed
//	    read                      search.go          the body, decoded; it counts in what is held (hold.go), and has to keep pace (body.go)
//	    parse                     search.go          ParseSearch of the dialect; for the rules of its indices it calls
//	      scope                   scope.go           from what is known of the indices, or looked up with the client's credentials (catalog.go)
//	    answerLeftAlone           search_left.go     sends a search that is not to be collapsed as the client wrote it
//	    earn                      budget.go          whether there is budget for the second request that a failure would cost: each search earns its target a share
//	    collapse.Answer           internal/collapse  the page; what it asks goes out by
//	      exchange                exchange.go        within the deadline of the search
//	        roundTrip             exchange.go        one request and its reply, read whole
//	          plainly             near.go            a near engine need not compress the reply
//	    failed                    search_left.go     where there is no page: sends the search as the client wrote it
//	    writePage                 reply.go           the page, with the header Neardup
//	      writePieces             reply.go           copies it to the client, by Write of underway.go
//
//	  write                       write.go           a body that is short is enriched whole, a longer one as it streams
//	    readBody, decode          body.go, hold.go   the body, or its beginning
//	    sendWhole                 write.go           the one: enriched, and sent on with its length
//	      enriched                write.go           the body with its documents enriched
//	        EnrichWrite           of the dialect     reads the operations of the write, and has each document enriched by
//	          Enricher.Append     internal/rule      adds our fields to a document (enrich.go, document.go); for its index it calls
//	            writing.Rule      write.go           its rule, and what it takes of our fields
//	              ruleOfDocument  catalog.go         the same, from what is known of the index or looked up with the client's credentials
//	      sendBody                write.go           by send, below
//	      findDuplicates          duplicates.go      where a rule asks for that: finds stored near-duplicates first (duplicates_find.go)
//	        sendOthers, finish    duplicates.go      sends the write on without some operations, and completes the reply
//	    sendStream                write.go           the other: EnrichWrite writes into a pipe from which send reads
//
//	  read                        read.go            looks through the body for names of our fields, and sends it on
//
//	  send                        send.go            all that passes, and what the others send on: streams a request to the engine and the reply to
//	                                                 the client. An httputil.ReverseProxy does both, and calls these three:
//	    headerHider.RoundTrip     send.go            sends the request by meter.RoundTrip, below, and hides the reply's headers from the ReverseProxy
//	    clean                     clean.go           cuts our fields out of the reply, by CleanReply of the dialect
//	      lookAhead               clean.go           the beginning of the reply: most are whole within it and have none
//	    underway.Write            underway.go        each piece of the reply goes to the client
//
//	meter.RoundTrip               meter.go           measures a request to the engine: those of send, and those of roundTrip
//	  nodes.RoundTrip             nodes.go           sends it to one of the nodes
//	    needsOwnConnection        nodes.go           whether the connection is closed after it
//	    Transport.RoundTrip       transport.go       a short request in memory on one connection. All others, and so every body that comes from a
//	                                                 client, go by the http.Transport that it embeds
//
// On any doubt of ours before the first byte to the client, a search is sent as the client wrote it. Every request carries the client's own
// credentials, and what is learned with them is kept apart by them (client.go).
package proxy
