package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// hashed declares a field with the engine's own min-hash over five words, as the manuals show it.
const hashed = `{"settings":{"number_of_shards":1,"number_of_replicas":0,"analysis":{"filter":{"five":{"type":"shingle",` +
	`"min_shingle_size":5,"max_shingle_size":5,"output_unigrams":false},"hashes":{"type":"min_hash"}},` +
	`"analyzer":{"hashed":{"tokenizer":"standard","filter":["lowercase","five","hashes"]}}}},` +
	`"mappings":{"properties":{"body":{"type":"text","fields":{"hashes":{"type":"text","analyzer":"hashed"}}}}}}`

// editionsOf is a text of 300 words and versions of it with ever more words changed.
func editionsOf(number uint64) (versions [][]string) {
	r := rand.New(rand.NewPCG(number, 17))
	base := make([]string, 300)
	for i := range base {
		base[i] = fmt.Sprintf("w%d", r.IntN(90000))
	}
	for i, edits := range []int{0, 1, 2, 4, 6, 8, 10, 12, 16, 20, 30, 40, 60, 90} {
		version := slices.Clone(base)
		for _, p := range r.Perm(len(base))[:edits] {
			version[p] = fmt.Sprintf("e%d", number*1e6+uint64(i)*1e3+uint64(p))
		}
		versions = append(versions, version)
	}
	return versions
}

// resemblance is that of two lists of words by shingles of so many.
func resemblance(a, b []string, words int) float64 {
	set := func(list []string) map[string]bool {
		all := map[string]bool{}
		for i := range len(list) - words + 1 {
			all[strings.Join(list[i:i+words], " ")] = true
		}
		return all
	}
	one, other, both := set(a), set(b), 0
	for s := range one {
		if other[s] {
			both++
		}
	}
	return float64(both) / float64(len(one)+len(other)-both)
}

// library is an index of texts in many versions with a field of the engine's hashes.
type library struct {
	*desk
	versions map[string][]string
}

const originals = 6

func newLibrary(t *testing.T, e *engines.Engine) library {
	t.Helper()
	l := library{ownDesk(t, e), map[string][]string{}}
	l.direct.drop(t, l.index)
	call(t, e, "PUT", e.URL+"/"+l.index, hashed).want(t, 200)
	var lines strings.Builder
	for f := range originals {
		for v, version := range editionsOf(uint64(f)) {
			id := fmt.Sprintf("%d-%d", f, v)
			l.versions[id] = version
			fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":%q}}\n{\"body\":%q}\n", l.index, id, strings.Join(version, " "))
		}
	}
	l.direct.loadLines(t, l.index, lines.String())
	return l
}

// alike asks for the documents that have so large a share of the hashes of a stored one.
func (l library) alike(id, share, more string) []string {
	l.t.Helper()
	return l.search(l.direct, fmt.Sprintf(`{"size":200,"_source":false,"query":{"more_like_this":{"fields":["body.hashes"],`+
		`"like":{"_index":%q,"_id":%q},"include":true,"min_term_freq":1,"min_doc_freq":1,"minimum_should_match":%q%s}}}`,
		l.index, id, share, more), "").ids
}

const allHashes = `,"max_query_terms":1024`

// TestComparisonMinHash is about the engines' token filter min_hash: its hashes stand at one position, so that a match query
// takes them for synonyms of one word; more_like_this over all of them finds the near-duplicates of one stored document, at a
// share that the request says.
func TestComparisonMinHash(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		l := newLibrary(t, e)
		var analysed struct {
			Tokens []struct {
				Token    string
				Position int
			}
		}
		text := strings.Join(l.versions["0-0"], " ")
		asked := fmt.Sprintf(`{"analyzer":"hashed","text":%q}`, text)
		decode(t, call(t, e, "POST", e.URL+"/"+l.index+"/_analyze", asked).want(t, 200).body, &analysed)
		for _, token := range analysed.Tokens {
			if token.Position != 0 || len(analysed.Tokens) != 512 {
				t.Fatalf("%d hashes, one at position %d", len(analysed.Tokens), token.Position)
			}
		}
		match := func(share string) int {
			query := fmt.Sprintf(`{"query":%q,"minimum_should_match":%q}`, text, share)
			return l.search(l.direct, `{"size":0,"query":{"match":{"body.hashes":`+query+`}}}`, "").total
		}
		if all, some := match("99%"), match("1%"); all != some || all < 10 {
			t.Errorf("a match of 99%% finds %d, of 1%% %d: now the share counts", all, some)
		}
		l.refused("collapse", `{"collapse":{"field":"body.hashes"}}`, "collapse", "")
		for _, share := range []int{50, 80} {
			l.checkShare(share)
		}
		if got := len(l.alike("0-0", "80%", "")); got <= 4 {
			t.Errorf("with the 25 terms that it takes by default, 80%% finds %d", got)
		}
	})
}

// checkShare holds what more_like_this finds of the versions of each text against their resemblance, and that it finds nothing
// of other texts.
func (l library) checkShare(share int) {
	l.t.Helper()
	for f := range originals {
		id := fmt.Sprintf("%d-0", f)
		got := l.alike(id, fmt.Sprintf("%d%%", share), allHashes)
		for other, version := range l.versions {
			near := strings.HasPrefix(other, fmt.Sprintf("%d-", f))
			distance := -1.0
			if near {
				distance = resemblance(l.versions[id], version, 5) - float64(share)/100
			}
			if math.Abs(distance) > 0.15 && slices.Contains(got, other) != (distance > 0) {
				l.t.Errorf("at %d%%, %s comes as like %s: %v", share, other, id, slices.Contains(got, other))
			}
		}
	}
}
