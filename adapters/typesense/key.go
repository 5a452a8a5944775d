package typesense

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// keyHeader and keyParam carry the API key in a request; keyParam also in single searches of a multi-search.
const (
	keyHeader = "X-Typesense-Api-Key"
	keyParam  = "x-typesense-api-key"
)

// keyOf returns the API key that a request is made with: the header counts before the query string.
func keyOf(r *adapters.Request, params []adapters.Param) string {
	if keys := r.Header[keyHeader]; len(keys) > 0 {
		return keys[0]
	}
	key, _ := adapters.Last(params, keyParam)
	return key
}

// key is what a search is made with. A scoped one imposes parameters.
type key struct {
	text  string
	own   bool              // the search brings it itself
	fixed map[string]string // what it imposes: it counts in place of whatever is asked
	doubt adapters.Reason   // why a search is left alone whose key may not be the one that counts
}

// read reads which key counts, the search's own before that of the request, and what it imposes. It is in doubt where a search brings a
// scoped key to a request that has another: the engine does not look at the search's if the request's is the server's own.
func (k *key) read(search []jsonedit.Member) {
	outer := k.text
	if own, given := jsonedit.Text(jsonedit.Get(search, keyParam)); given {
		k.text, k.own = own, true
	}
	k.fixed = embedded(k.text)
	if k.text != outer && outer != "" && steers(k.fixed) {
		k.doubt = "scoped_key"
	}
}

// check returns why a search that is made with the key is left alone, or nothing.
func (k *key) check(q *query) adapters.Reason {
	switch {
	case k.fixed["page"]+k.fixed["limit"]+k.fixed["offset"] != "": // the rest of the list is not to be had
		return "scoped_key"
	case k.fixed["preset"] != "":
		return "preset"
	case q.preset() && q.hidesID(): // nothing would show that what is read beside the client's hits is of them
		return "scoped_key"
	}
	return ""
}

// shows returns which fields the key lets be seen.
func (k *key) shows() fields {
	return fields{fieldList(k.fixed["include_fields"]), fieldList(k.fixed["exclude_fields"])}
}

// steers reports whether what a key imposes bears on how a search is read.
func steers(values map[string]string) bool {
	names := append(slices.Clone(steered), "collection", "limit_hits", limitSearches)
	for _, l := range leaves {
		names = append(names, l.name)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		_, imposed := values[name]
		return imposed
	})
}

// scopedHead is how long the head of a scoped key is: an HMAC in base64, and the first characters of the key that it was made from. A JSON object
// follows: the parameters that the engine puts over those of every search. All of it is in base64.
const scopedHead = 44 + 4

const inBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// embedded returns the parameters that a key imposes on a search; none for an ordinary key. Those that the engine ignores for their type
// are left out.
func embedded(key string) map[string]string {
	key = key[:len(key)-len(strings.TrimLeft(key, inBase64))] // the engine reads no further
	if len(key)%4 == 1 {                                      // too few bits for a byte
		key = key[:len(key)-1]
	}
	raw, err := base64.RawStdEncoding.DecodeString(key)
	if err != nil || len(raw) <= scopedHead {
		return nil
	}
	members, err := jsonedit.Members(raw[scopedHead:])
	if err != nil {
		return nil
	}
	values, _ := valuesIn(members)
	delete(values, "expires_at")
	return values
}
