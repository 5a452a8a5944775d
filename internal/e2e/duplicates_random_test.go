package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// TestDuplicatesOfScribblers has several clients write the same few documents at once in every way. Whatever our fields hold in the end
// goes together: bands and cluster are those of the sketch, and the sketch that of the text.
func TestDuplicatesOfScribblers(t *testing.T) {
	lasting := time.Second
	if soaking() {
		lasting = time.Minute
	}
	start := seeded(t)
	e := engines.Shared(t, engines.OpenSearch)
	for _, more := range []string{"native: true", "on_duplicate: tag", "on_duplicate: skip"} {
		index := "scribbled-" + more[strings.LastIndex(more, " ")+1:]
		through := api{e, serveFile(t, walking(t, e, walkRule{match: index, window: 1000, more: "bands: auto\n" + more}))}
		direct := api{e, e.URL}
		direct.drop(t, index)
		call(t, e, "PUT", e.URL+"/"+index, `{"aliases":{"`+index+`-alias":{}},"settings":{"number_of_shards":2}}`).want(t, 200)
		done := scribble(t, through, index, start, lasting)
		rule := *ruleOfTests(t)
		rule.Bands, rule.Rows = adapters.ChooseBands(128, 0.7)
		owners, sketched := map[string]string{}, 0
		all := kept(t, direct, index)
		for id, h := range all {
			have := adapters.OursOf(h.source)
			if why := wrong(&rule, h.source); why != "" || strings.Contains(string(h.source), "forged") {
				t.Errorf("%s, %s: %s: %s", more, id, why, h.source)
			}
			if have.Sketch == "" {
				if len(have.Bands) > 0 {
					t.Errorf("%s, %s has bands and no sketch: %s", more, id, h.source)
				}
				if other, twice := owners[have.Cluster]; twice && have.Cluster != "" {
					t.Errorf("%s: %s and %s, without a sketch, have one cluster: %s", more, id, other, h.source)
				}
				owners[have.Cluster] = id
				continue
			}
			sketched++
			s := rule.Decode(have.Sketch)
			if s == nil || !slices.Equal(have.Bands, rule.BandKeys(s)) {
				t.Errorf("%s, %s: the bands are not the sketch's: %s", more, id, h.source)
				continue
			}
			own := rule.ClusterID(s.Fingerprint)[4:]
			if native := more == "native: true"; native && (len(have.Cluster) != 17 || have.Cluster[4:] != own) || strings.HasSuffix(more, "tag") && have.Cluster == "" {
				t.Errorf("%s, %s: the cluster is not the sketch's, %s: %s", more, id, own, h.source)
			}
		}
		t.Logf("%s: %d writes done, of %d documents %d have a sketch", more, done, len(all), sketched)
		if done < 5 || sketched == 0 {
			t.Error("too little was done")
		}
	}
}
