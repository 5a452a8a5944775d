package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/similar"
)

// TestDedupe deduplicates lists of an index, as ids and as documents, and holds what is kept to the definition: what a search would show of the same
// list. Texts of no index need no key.
func TestDedupe(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		const index = "dedupe-1"
		all := documents(t)[:100]
		through := api{e, serve(t, e, setup{match: index})}
		through.create(t, index, all...)
		o := newOracle(t, api{e, e.URL}, all)
		dedupe := func(parts map[string]any, header ...string) reply {
			return call(t, e, "POST", through.base+"/_neardup/dedupe", string(must(json.Marshal(parts))(t)), header...)
		}
		kept := func(ids []string, parts map[string]any) (list []string) {
			var got similar.Deduped
			decode(t, dedupe(parts).want(t, 200).body, &got)
			for _, at := range got.Kept {
				list = append(list, ids[at])
			}
			return list
		}
		random := rand.New(rand.NewPCG(5, 6))
		for range 5 {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			list := all[:10+random.IntN(len(all)-10)]
			ids := []string{}
			for _, d := range list {
				ids = append(ids, d.ID)
			}
			want := o.collapsed(ids)
			same(t, want, kept(ids, map[string]any{"index": index, "ids": ids}), "kept of ids")
			same(t, want, kept(ids, map[string]any{"index": index, "documents": list}), "kept of documents")
		}
		raw := o.raw(t, index, "ferry")
		same(t, slices.Concat(through.whole(t, index, "ferry", 10, "")...), kept(raw, map[string]any{"index": index, "ids": raw}), "kept of the hits of a search")

		var got similar.Deduped
		decode(t, dedupe(map[string]any{"index": index, "ids": []string{all[0].ID, "none", "a/b", "*", all[0].ID}}).want(t, 200).body, &got)
		same(t, fmt.Sprint([]int{0}, []string{"*", "a/b", "none"}), fmt.Sprint(got.Kept, got.Missing), "kept, and missing")
		if e.Key != "" {
			for _, parts := range []map[string]any{{"index": index, "ids": raw}, {"index": index, "texts": raw}} {
				if status := dedupe(parts, "X-Typesense-Api-Key", "bad").status; status != 401 && status != 403 {
					t.Errorf("without a key: %d", status)
				}
			}
			same(t, 200, dedupe(map[string]any{"texts": raw}, "X-Typesense-Api-Key", "bad").status, "texts without a key")
		}
	})
}
