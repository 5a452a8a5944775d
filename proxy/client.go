package proxy

import (
	"crypto/sha256"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/neardup/sidecar/adapters"
)

// client is what a request is sent with: its headers, the part of its query that can hold credentials, and a key that differs
// wherever these may differ in rights.
type client struct {
	header adapters.Header
	query  string
	key    string
}

// bodyHeaders describe one request's body or the reply to it.
var bodyHeaders = []string{
	"Accept", "Accept-Encoding", "Content-Encoding", "Content-Length", "Content-Type", "Expect", adapters.ControlHeader,
}

// ofOneRequest reports whether a header is of one request's body or connection, and no one's credentials: a follow-up request of ours does not carry
// it.
func ofOneRequest(key string) bool { return hop(key) || slices.Contains(bodyHeaders, key) }

// tracingHeaders differ from request to request without changing what the client may do.
var tracingHeaders = []string{
	"B3", "Baggage", "Elastic-Apm-Traceparent", "Traceparent", "Tracestate", "User-Agent", "X-Amzn-Trace-Id", "X-B3-Parentspanid",
	"X-B3-Sampled", "X-B3-Spanid", "X-B3-Traceid", "X-Cloud-Trace-Context", "X-Elastic-Client-Meta", "X-Opaque-Id", "X-Request-Id",
}

// clientOf returns what a request is sent with. Which headers carry rights can't be known (a gateway may have added any), so all but
// those that are known not to go into the key.
func clientOf(header adapters.Header, rawQuery string) client {
	c := client{header: make(adapters.Header, len(header))}
	for key, values := range header {
		if !ofOneRequest(key) {
			c.header[key] = values
		}
	}
	c.query = adapters.RawQuery(adapters.Params(rawQuery), mayHoldKey)
	keys := make([]string, 0, len(c.header))
	for key := range c.header {
		if !slices.Contains(tracingHeaders, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	rights := make([]string, 0, 2*len(keys)+1)
	for _, key := range keys {
		rights = append(rights, key, strings.Join(c.header[key], "\x00"))
	}
	c.key = keyOf(append(rights, c.query)...)
	return c
}

// mayHoldKey reports whether a URL parameter of this name may hold credentials.
func mayHoldKey(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "key") && !strings.HasSuffix(name, "keys") // several are no one's: an engine may refuse them elsewhere
}

// sender is who sent a request, which is found out when it is first asked for.
type sender struct {
	request *http.Request // as it came
	once    sync.Once
	who     client
}

func (s *sender) client() client {
	s.once.Do(func() { s.who = clientOf(adapters.Header(s.request.Header), s.request.URL.RawQuery) })
	return s.who
}

// senderOf returns who sent the request on whose behalf something is done.
func senderOf(r *http.Request) client { return underwayOf(r.Context()).sender.client() }

// keyOf returns a hash of texts. Each is hashed with its length in front, so that no two lists of texts have the same one.
func keyOf(texts ...string) string {
	list := make([]byte, 0, 512)
	for _, text := range texts {
		list = append(append(strconv.AppendInt(list, int64(len(text)), 10), ':'), text...)
	}
	sum := sha256.Sum256(list)
	return string(sum[:])
}

// entryKey is what a name is remembered under for a client. Names can be as long as a request; the key is not.
func entryKey(who client, name string) string { return keyOf(who.key, name) }

// queries are the parameters of the URLs in a text, which can hold keys.
var queries = regexp.MustCompile(`\?[^\s"]*`)

// hide takes out of a text what may be credentials: parameters of URLs and what the client's headers say.
func (c client) hide(text string) string {
	text = queries.ReplaceAllString(text, "?…")
	for _, values := range c.header {
		for _, value := range values {
			_, token, _ := strings.Cut(value, " ")
			for _, secret := range []string{value, token} {
				if len(secret) >= 6 {
					text = strings.ReplaceAll(text, secret, "…")
				}
			}
		}
	}
	return text
}

// shortened cuts what a client or an engine may have made very long.
func shortened(text string) string {
	if len(text) > 500 {
		return strings.ToValidUTF8(text[:500], "") + "…"
	}
	return text
}

// quotes are what errors quote of that which they are about.
var quotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?`)

// unquoted returns an error's text without what it quotes: that can be of a reply, and so of a document or of what a client said.
func unquoted(err error) string { return shortened(quotes.ReplaceAllString(err.Error(), `"…"`)) }
