package typesense

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// keyHeader and keyParam carry the API key in a request; keyParam also stands inside single searches of a multi-search.
const (
	keyHeader = "X-Typesense-Api-Key"
	keyParam  = "x-typesense-api-key"
)

// A scoped key is the base64 of an HMAC (itself base64), the first characters of the key it was made from, and a JSON object of
// parameters that the engine puts over those of every search made with it.
const (
	scopedDigest = 44
	scopedPrefix = 4
)

// embedded returns the parameters that a key imposes on a search; none for an ordinary key. Those that the engine ignores for their type
// are left out.
func embedded(key string) map[string]string {
	end := strings.IndexFunc(key, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/')
	})
	if end >= 0 { // the engine reads no further
		key = key[:end]
	}
	if len(key)%4 == 1 { // too few bits for a byte
		key = key[:len(key)-1]
	}
	raw, err := base64.RawStdEncoding.DecodeString(key)
	if err != nil || len(raw) <= scopedDigest+scopedPrefix {
		return nil
	}
	members, err := jsonedit.Members(raw[scopedDigest+scopedPrefix:])
	if err != nil {
		return nil
	}
	values := map[string]string{}
	for _, m := range members {
		text, isText := jsonedit.Text(m.Value)
		switch m.Value[0] {
		case '{', '[', 'n':
			delete(values, m.Key) // the last of a name counts, be it one that is ignored
			continue
		}
		if !isText {
			text = string(m.Value)
		}
		values[m.Key] = text
	}
	delete(values, "expires_at")
	return values
}

// keyOf returns the API key that a request is made with: the header counts before the query string.
func keyOf(r *adapters.Request, params []adapters.Param) string {
	if keys := r.Header[keyHeader]; len(keys) > 0 {
		return keys[0]
	}
	key, _ := adapters.Last(params, keyParam)
	return key
}

// takeKey reads which key counts, the search's own before that of the request, and what it imposes. It is not sure where a search brings
// a scoped key to a request that has another: the engine does not look at the search's if the request's is the server's own.
func (q *query) takeKey(members []jsonedit.Member) (sure bool) {
	outer := q.key
	if own, given := jsonedit.Text(jsonedit.Get(members, keyParam)); given {
		q.key, q.ownKey = own, true
	}
	q.fixed = embedded(q.key)
	return q.key == outer || outer == "" || !steers(q.fixed)
}

// steers reports whether what a key imposes bears on how a search is read.
func steers(values map[string]string) bool {
	for name := range values {
		if slices.Contains(steered, name) || name == "collection" || name == "limit_hits" || name == limitSearches ||
			slices.ContainsFunc(leaves, func(l leaf) bool { return l.name == name }) {
			return true
		}
	}
	return false
}
