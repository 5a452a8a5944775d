package elastic

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/neardup/sidecar/adapters"
)

// handled answers requests without a network.
type handled func(http.ResponseWriter, *http.Request)

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h(w, r)
	return w.Result(), nil
}

// TestPatchOfABusyEngine has no room for a bulk however often it is sent: nothing of it counts as written.
func TestPatchOfABusyEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		store := Open(handled(func(w http.ResponseWriter, _ *http.Request) {
			sent++
			w.WriteHeader(http.StatusTooManyRequests)
		}), []*url.URL{{Scheme: "http", Host: "engine"}}, nil)(nil, "")
		results, err := store.Patch(t.Context(), "news-1", nil, []adapters.Patch{{Stored: adapters.Stored{ID: "1",
			Source: []byte(`{}`), Version: version{}}, Ours: adapters.Ours{Sketch: "x"}}})
		if err != nil || !slices.Equal(results, []adapters.Result{adapters.Refused}) || sent != patchTries+1 {
			t.Errorf("%v %v after %d bulks", results, err, sent)
		}
	})
}

// TestScanThatBreaksOff loses its shards on the second page.
func TestScanThatBreaksOff(t *testing.T) {
	store := Open(handled(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/news-1/_search":
			_, _ = w.Write([]byte(`{"_scroll_id":"s","_shards":{"failed":0},"hits":{"total":{"value":5},"hits":[{"_id":"1",` +
				`"_source":{}}]}}`))
		case "/_search/scroll":
			_, _ = w.Write([]byte(`{"_scroll_id":"s","_shards":{"failed":1},"hits":{"total":{"value":5},"hits":[]}}`))
		default:
			_, _ = w.Write([]byte(`{}`))
		}
	}), []*url.URL{{Scheme: "http", Host: "engine"}}, nil)(nil, "")
	seen := 0
	err := store.Scan(t.Context(), "news-1", nil, adapters.Selection{}, func(p adapters.Page) error { seen += len(p.Documents); return nil })
	if err == nil || seen != 1 {
		t.Errorf("a scan that broke off after %d of 5 documents ended with %v", seen, err)
	}
}
