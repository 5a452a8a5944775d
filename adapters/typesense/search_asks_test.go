package typesense

import (
	"net/url"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

// Every span is covered without a gap by pages that the engine grants, and by no more of them than full ones would need.
func TestPagesCoverSpans(t *testing.T) {
	for from := 0; from < 600; from += 1 + from/90 {
		for _, length := range []int{1, 7, 10, 100, 250, 251, 700} {
			for _, fixed := range []int{0, 1, 7, 250} {
				for _, limit := range []int{0, from + length, from + length + 13} {
					if fixed > 0 {
						limit = limit / fixed * fixed
					}
					at, to := from, from+length
					if limit > 0 {
						to = min(to, limit)
					}
					list := cover(from, to, fixed, limit)
					for _, s := range list {
						if s.size > maxPerPage || s.page < 1 || s.from() > at || s.to() <= at || limit > 0 && s.to() > limit || fixed > 0 && s.size != fixed {
							t.Fatalf("%d to %d in pages of %d up to %d: %v", from, to, fixed, limit, list)
						}
						at = s.to()
					}
					if at < to || fixed == 0 && limit == 0 && len(list) > (length+249)/250+1 {
						t.Fatalf("%d to %d in pages of %d up to %d: %v", from, to, fixed, limit, list)
					}
				}
			}
		}
	}
}

// Our field is asked for whatever the client highlights, and never highlighted: engines hang on a field that is not indexed.
func TestOurFieldIsNotHighlighted(t *testing.T) {
	rule := newRule(t, "news", "body")
	for value, want := range map[string]string{"neardup_sketch": nothing, "title, neardup_sketch": "title", "title,body": "title,body"} {
		s := search(get("/collections/news/documents/search?q=x&highlight_fields="+url.QueryEscape(value)), planFor(adapters.Scope{}, rule))
		f := &fake{documents: []map[string]any{{"id": "1", "body": "b"}}}
		if _, err := adaptertest.Run(s.Exchange, f.reply); err != nil {
			t.Fatal(err)
		}
		for _, asked := range f.searches {
			if asked["highlight_fields"] != want {
				t.Errorf("%q: asked for %q", value, asked["highlight_fields"])
			}
		}
	}
}
