package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/differ"
	"github.com/neardup/sidecar/internal/engines"
)

// family is a family of engines whose cases are the same.
type family struct {
	name  string // of the folder of its case files
	kinds []string
	// What may differ in any reply, all else being the same.
	members, headers []string
	// atOnce says that the case files may be played at the same time: each has indices of its own, and nothing else is shared.
	atOnce bool
	// header goes with every request, where it says nothing of that name.
	header []string
	// isSearch tells from a request line whether its reply may say what became of a search.
	isSearch func(line string) bool
	// sketches returns how many documents the reply to a case that counts them shows with a sketch.
	sketches func(body []byte) string
	// Differences that are there for a reason: in what the API says, in long replies, in how HTTP is spoken.
	known, ofLarge, onWire []known
	// Cases that are no files. A family need not have all.
	wire, large, pages, more func() []differ.Case
}

// families are all that there are. (Elasticsearch and OpenSearch share theirs.)
var families = []*family{
	{
		name: "elastic", kinds: []string{engines.Elasticsearch, engines.OpenSearch},
		// How long it took, an index's unique name, and what OpenSearch says that a search cost.
		// Since 9.1 Elasticsearch says when a template was made, and changed.
		members: []string{"took", "ingest_took", "index_uuid", "created_date_millis", "modified_date_millis"}, headers: []string{"task_resource_usage"},
		isSearch: func(line string) bool {
			return strings.Contains(line, "search") || strings.Contains(line, "_rank_eval")
		},
		sketches: func(body []byte) string {
			head, _, _ := strings.Cut(string(body), ",")
			return strings.TrimPrefix(head, `{"count":`)
		},
		known: knownEverywhere, ofLarge: knownOfLarge, onWire: knownOnWire,
		wire: wireCases, large: largeCases, pages: pageCases,
	},
	{
		name: "typesense", kinds: []string{engines.Typesense}, atOnce: true,
		// How long it took, and when a collection was made.
		members: []string{"search_time_ms", "created_at"}, header: []string{"X-TYPESENSE-API-KEY: <<key>>"},
		isSearch: func(line string) bool { return strings.Contains(line, "search") },
		sketches: func(body []byte) string { return strconv.Itoa(bytes.Count(body, []byte(`"neardup_sketch":"`))) },
		known:    knownTypesense, ofLarge: knownTypesenseLarge,
		large: largeTypesense, pages: pagesTypesense, more: typesenseCombinations,
	},
}

// eachFamily runs a test on every engine of every family, side by side.
func eachFamily(t *testing.T, table func(*family) []known, test func(t *testing.T, d *diffing)) {
	for _, f := range families {
		for _, kind := range f.kinds {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				test(t, newDiffing(t, f, engines.Shared(t, kind), table(f)))
			})
		}
	}
}

// ownNames gives the indices of the cases names that no other run has, on an engine that several share.
func ownNames(text string) string {
	own := fmt.Sprintf("differ%05d", os.Getpid()%100_000)
	text = strings.NewReplacer("differ-", own+"-", "differ%2D", own+"%2D", "%64iffer-", "%64"+own[1:]+"-").Replace(text)
	return scopedKey.ReplaceAllStringFunc(text, func(mark string) string {
		parts := scopedKey.FindStringSubmatch(mark)
		return scoped(parts[1], parts[2])
	})
}

// scopedKey stands in a case file for a key of Typesense that is made from another one and embeds parameters.
var scopedKey = regexp.MustCompile(`<<scoped ([^ ]+) (\{.*?\})>>`)

// scoped makes such a key, as the engine's documentation says and its clients do.
func scoped(key, params string) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(params))
	digest := base64.StdEncoding.EncodeToString(h.Sum(nil))
	return base64.StdEncoding.EncodeToString([]byte(digest + key[:4] + params))
}
