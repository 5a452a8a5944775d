package typesense

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
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

// embedded returns the names of the parameters that a key imposes on a search; none for an ordinary key.
func embedded(key string) []string {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(key, "="))
	if err != nil || len(raw) <= scopedDigest+scopedPrefix {
		return nil
	}
	members, err := adapters.Members(raw[scopedDigest+scopedPrefix:])
	if err != nil {
		return nil
	}
	var names []string
	for _, m := range members {
		names = append(names, m.Key)
	}
	return names
}

// scoped reports whether a key imposes what a reading steers, or what leaves a search alone.
func scoped(key string) bool {
	for _, name := range embedded(key) {
		if name == "collection" || slices.Contains(steered, name) {
			return true
		}
		for _, l := range leaves {
			if name == l.name {
				return true
			}
		}
	}
	return false
}

// keysOf returns the API keys of a request.
func keysOf(r *adapters.Request, params []adapters.Param) []string {
	keys := append([]string{}, r.Header[keyHeader]...)
	for _, p := range params {
		if p.Name == keyParam {
			keys = append(keys, p.Value)
		}
	}
	return keys
}
