package proxy

import (
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// hopHeaders are the headers, in their canonical form, that concern one connection alone: those that RFC 9110, section 7.6.1, has every
// intermediary leave out. No request and no reply goes on with them, whichever way it goes.
//
// Proxy-Authorization and Proxy-Authenticate are not among them. They are between a client and a proxy that it was told to use (section
// 11.7.2). To its clients a sidecar is the engine (a gateway, section 3.7), asks for no such credentials and uses none: what comes in goes on
// to where the client meant it to go, as it does through nginx's proxy_pass.
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// hop reports whether a header, in its canonical form, concerns one connection alone.
func hop(key string) bool { return slices.Contains(hopHeaders, key) }

// onwards returns the headers of a request that go on: all but those of its connection. What a client names in Connection and is no such
// header goes on: no engine obeys that, and without its key, its type or the user that it acts for, a request is another one. No other
// protocol is spoken past us: Typesense would take up HTTP/2 on the connection. The lists of values are the request's own.
func onwards(header http.Header) http.Header {
	out := make(http.Header, len(header)+1)
	for key, values := range header {
		if !hop(key) {
			out[key] = values
		}
	}
	if te, ok := header["Te"]; ok && lists(te, "trailers") {
		out["Te"] = []string{"trailers"}
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = noAgent
	}
	return out
}

// lists reports whether the values of a header list a word, in whichever case.
func lists(values []string, word string) bool {
	for _, line := range values {
		for each := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(textproto.TrimString(each), word) {
				return true
			}
		}
	}
	return false
}

// noAgent is what keeps net/http from naming an agent of its own. It is never written to.
var noAgent = []string{""}

// dropHops takes the headers of its connection out of a reply, and those that it says are such.
func dropHops(header http.Header) {
	for _, line := range header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			header.Del(textproto.TrimString(name))
		}
	}
	maps.DeleteFunc(header, func(key string, _ []string) bool { return hop(key) })
}
