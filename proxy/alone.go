package proxy

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
)

// hastyBody is how long the body of a hasty request may be, in bytes, for its connection to be used again.
const hastyBody = 128 << 10

// alone reports whether a request gets a connection of its own, which is closed behind it, and under what key note is to remember what
// becomes of it.
//
// A hasty engine may answer before it has read the body and then never answers on that connection again: what is left of the body, were it
// a few bytes, is in its way. So is what it has not yet taken in of a long body when it refuses that (beyond 196,605 bytes in Typesense).
// Nor does such an engine leave out the body of an answer to HEAD. Whoever got the connection next would wait for ever, or for another's
// answer. A client's first request of a kind is alone until one was granted: an engine that refuses a client's credentials does so early,
// one that grants them reads what was sent.
func (n *nodes) alone(r *http.Request) (yes bool, key string) {
	u := underwayOf(r.Context())
	switch {
	case long(r):
		return true, ""
	case u == nil || !u.hasty:
		return false, ""
	case r.Method == http.MethodHead:
		return true, ""
	case r.Body == nil || r.Body == http.NoBody:
		return false, ""
	}
	key = kindOf(r, u.target)
	return r.ContentLength < 0 || r.ContentLength > hastyBody || !n.granted.has(key), key
}

// kindOf returns a key for requests of the same client that the engine decides on alike: method, endpoint and index, as far as the path
// and the dialect tell them.
func kindOf(r *http.Request, target string) string {
	segments := strings.Split(rawPath(r), "/")
	sum := sha256.New()
	part(sum, senderOf(r).key)
	part(sum, r.Method)
	part(sum, target)
	part(sum, strings.Join(segments[:min(len(segments), 4)], "/"))
	part(sum, strings.Repeat("/", len(segments)))
	return string(sum.Sum(nil))
}

// note remembers what became of a request.
func (n *nodes) note(key string, status int) {
	switch {
	case key == "":
	case status < 400:
		n.granted.add(key)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		n.granted.drop(key)
	}
}

// set is a bounded set of keys: where it is full, adding one drops another.
type set struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (s *set) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}

func (s *set) add(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[string]bool{}
	}
	if len(s.keys) >= maxNames && !s.keys[key] {
		for other := range s.keys {
			delete(s.keys, other)
			break
		}
	}
	s.keys[key] = true
}

func (s *set) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, key)
}
