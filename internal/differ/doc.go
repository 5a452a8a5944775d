// Package differ sends the same bytes to a server directly and through whatever stands in front of it, and says in what the two
// answers differ. Nothing is tidied up on the way: requests are written and replies are read as bytes on a socket, and of a reply
// only those values may be left out of the comparison that are named one by one.
//
// A [Case] is one request or several on one connection; [Parse] reads cases from a text file, and a test may write them as Go
// values too. [Runner] plays a list of them to an address and keeps what comes back. [Compare] tells two replies apart.
//
// # Case files
//
// A line that begins with === starts a case and gives its name; lines in front of the first one are a comment. Directives come
// next, then the request line, headers, an empty line and the body, up to the next case. Within a case, a line --- starts the
// next request on the same connection. The protocol, Host and the length of the body are added where the file does not give
// them. A line of directives begins with @:
//
//	@ only KIND…          the case is for these kinds of server alone
//	@ not SIDE…           it is left out on these sides: ways that lead to the server
//	@ pipelined           all requests are written before the first reply is read
//	@ mask MEMBER…        values of these JSON members (a * stands for any text) may differ; of <<VAR>>, what was kept may
//	@ mask-header NAME…   the same for values of headers
//	@ keep VAR MEMBER     the reply's value of the member stands for <<VAR>> in all later requests
//	@ without NAME…       these headers, which the Runner gives every request, are left out
//	@ gzip                the body is sent in gzip
//	@ chunked N           the body is sent in chunks of N bytes
//	@ crlf                the body's lines end in CR LF
//	@ bare                the body ends without a line end
//	@ body "…"            the body as a Go string, in place of lines
//	@ wait                the body is sent when the server says that it wants it, or has answered
//
// A body of lines ends with one line end. Directives stand for the request they are in front of, only, not and pipelined for the
// case.
package differ
