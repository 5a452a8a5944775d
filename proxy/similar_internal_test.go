package proxy

import (
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// FuzzSimilarPath: whatever a path is, it is read as what it says or not at all.
func FuzzSimilarPath(f *testing.F) {
	for _, path := range []string{
		"/_neardup/news/similar/1", "/_neardup/news/similar", "/_neardup/compare", "/_neardup/news/similar/a%2Fb", "/_neardup/%zz/similar/1",
		"/_neardup//similar/1", "/_neardup/compare/similar", "/_neardup/dedupe", "/_neardup/a%20b/similar/%E4%BD%A0?", "/_neardup/a/similar/", "/_neardup/",
	} {
		f.Add("GET", path)
		f.Add("POST", path)
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		ask, ours := similarOf(method, path)
		if !ours {
			if ask != (question{}) {
				t.Errorf("%+v of what is not ours", ask)
			}
			return
		}
		again, listed := ownPrefix+"compare", ask.compares || ask.dedupes
		switch {
		case ask.dedupes:
			again = ownPrefix + "dedupe"
		case !ask.compares:
			again = ownPrefix + url.PathEscape(ask.index) + "/similar"
		}
		if ask.stored {
			again += "/" + url.PathEscape(ask.id)
		}
		if other, ours := similarOf(method, again); !ours || other != ask || ask.index == "" != listed || (ask.id != "") != ask.stored {
			t.Errorf("%s %s: %+v, and %s: %+v", method, path, ask, again, other)
		}
		expect.Same(t, strings.Count(path, "/"), strings.Count(again, "/"), "%s is read as %s", path, again)
	})
}

// FuzzSimilarQuery: whatever a query is, what is read of it is within bounds, or refused with a reason.
func FuzzSimilarQuery(f *testing.F) {
	for _, query := range []string{"threshold=0.5&size=3&source=true", "threshold=NaN", "threshold=1e400", "size=-1", "source", "source=x", "%zz=1&size=+5"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		l, err := likenessOf(query, "threshold", "size", "source")
		if err != nil {
			if err.Error() == "" {
				t.Error("no reason")
			}
			return
		}
		if l.Size < 1 || l.Size > maxAlike || !(l.Threshold >= 0 && l.Threshold <= 1) {
			t.Errorf("%q: %+v", query, l)
		}
	})
}
