package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// shingleAtRandom is a text of a few shingles of words that nobody else has.
func shingleAtRandom(r *rand.Rand) string {
	var word [13]byte
	for i := range word {
		word[i] = byte('a' + r.IntN(26))
	}
	word[6] = ' '
	return string(word[:])
}

// forger makes up texts that share no shingle with a page and whose sketch is the page's: to a bed of shingles it adds one after the other
// and keeps those that bring a position to the page's value. It has to compute sketches, or be told agreements, under the page's seed.
func forger(s *sketch.Sketcher, page *sketch.Sketch, r *rand.Rand, asks int) (texts []string) {
	bed := make([]string, 200)
	for i := range bed {
		bed[i] = shingleAtRandom(r)
	}
	before, _ := s.Sketch(bed...)
	kept := map[int]string{}
	for range asks {
		x := shingleAtRandom(r)
		after, _ := s.Sketch(append(bed[:len(bed):len(bed)], x)...)
		for i, value := range after.Payload {
			if value != before.Payload[i] && value == page.Payload[i] {
				kept[i] = x
			}
		}
	}
	for _, x := range kept {
		if !slices.Contains(texts, x) {
			texts = append(texts, x)
		}
	}
	return texts
}

func sketcherOf(t *testing.T, seed string) *sketch.Sketcher {
	t.Helper()
	scheme := sketch.DefaultScheme()
	scheme.Seed = seed
	s, err := sketch.New(scheme)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inventedPage is a page of so many random words.
func inventedPage(r *rand.Rand, words int) string {
	var page strings.Builder
	for range words {
		fmt.Fprintf(&page, "w%d ", r.IntN(9000))
	}
	return page.String()
}

// TestAttackFolding counts the pages that a forger who knows all but the seed can fold away by texts that share no shingle with them: those
// without a seed, and none of those with one.
func TestAttackFolding(t *testing.T) {
	victims, asks := 1, 8_000
	if soaking() {
		victims, asks = 5, 150_000
	}
	open, secret := sketcherOf(t, ""), sketcherOf(t, "what nobody knows")
	folds, closest := map[*sketch.Sketcher]int{}, map[*sketch.Sketcher]float64{}
	for i := range victims {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		page := inventedPage(r, 120)
		shown, _ := open.Sketch(page)
		texts := forger(open, &shown, r, asks)
		for _, s := range []*sketch.Sketcher{open, secret} {
			of, _ := s.Sketch(page)
			forged, ok := s.Sketch(texts...)
			if !ok {
				t.Fatal("nothing was forged")
			}
			if near, _ := rerank.Default.NearDuplicates(&forged, &of); near {
				folds[s]++
			}
			agreement, _ := forged.Agreement(&of)
			closest[s] = max(closest[s], agreement)
		}
	}
	t.Logf("%d pages, %d shingles tried for each: %d folded away without a seed (agreement up to %.2f), %d with one (up to %.2f)",
		victims, asks, folds[open], closest[open], folds[secret], closest[secret])
	if closest[open] < 0.05 || soaking() && folds[open] < victims {
		t.Error("the forger can't forge: this measures nothing")
	}
	if folds[secret] > 0 || closest[secret] > 0.05 {
		t.Errorf("%d of %d pages are folded away by what was made up without the seed", folds[secret], victims)
	}
}

// TestAttackContainment has one page that quotes twenty others: it folds none of them by resemblance.
func TestAttackContainment(t *testing.T) {
	s, r := sketcherOf(t, seed), rand.New(rand.NewPCG(3, 4))
	var pages []string
	for range 20 {
		pages = append(pages, inventedPage(r, 150))
	}
	all, _ := s.Sketch(strings.Join(pages, "\n"))
	for _, page := range pages {
		k, _ := s.Sketch(page)
		if near, _ := rerank.Default.NearDuplicates(&k, &all); near {
			t.Errorf("a page folds into one that quotes it: %s", page)
		}
	}
}

// TestAttackCopy has a stranger copy a page and rank above it. By default the copy is what is shown; where the operator says whose version
// is preferred, which is older, or that only texts of the same host fold, the page is shown. neardup=off shows it always.
func TestAttackCopy(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index := "satk-copy"
		direct, made := api{e, e.URL}, false
		direct.drop(t, index)
		for rule, want := range map[string]string{
			"": "copy", "representative: {prefer: host, values: [own.example]}": "page", "same: [host]": "copy page",
			"representative: oldest\ndate_field: published_at": "page",
		} {
			through := api{e, serveFile(t, walking(t, e, walkRule{match: index, window: 100, more: rule}))}
			if !made {
				through.copied(t, index)
				made = true
			}
			if got := through.shown(t, index, ""); got != want {
				t.Errorf("%q shows %q, want %q", rule, got, want)
			}
			if got := through.shown(t, index, "&neardup=off"); got != "copy page" {
				t.Errorf("%q with neardup=off shows %q", rule, got)
			}
		}
	})
}

// copied makes an index with a page and a copy of it that ranks above.
func (a api) copied(t *testing.T, index string) {
	t.Helper()
	if a.typesense() {
		call(t, a.e, "POST", a.base+"/collections",
			`{"name":"`+index+`","fields":[{"name":"title","type":"string"},{"name":"body","type":"string"},`+
				`{"name":"host","type":"string"},{"name":"published_at","type":"int64"},{"name":"rank","type":"int32"}],"default_sorting_field":"rank"}`).want(t, 201)
	} else {
		call(t, a.e, "PUT", a.base+"/"+index,
			`{"mappings":{"properties":{"title":{"type":"text"},"body":{"type":"text"},"host":{"type":"keyword"},`+
				`"published_at":{"type":"date"},"rank":{"type":"integer"}}}}`).want(t, 200)
	}
	var lines strings.Builder
	for i, id := range []string{"page", "copy"} {
		line := fmt.Sprintf(`{"id":%q,"title":"news","body":%q,"host":%q,"published_at":%d,"rank":%d}`+"\n",
			id, victimText, [2]string{"own.example", "stranger.example"}[i], 1000000+i*5000, 1+i)
		if !a.typesense() {
			line = fmt.Sprintf(`{"index":{"_index":%q,"_id":%q}}`+"\n", index, id) + line
		}
		lines.WriteString(line)
	}
	a.loadLines(t, index, lines.String())
}

// shown returns which of the two a search shows.
func (a api) shown(t *testing.T, index, params string) string {
	t.Helper()
	var r reply
	if a.typesense() {
		r = call(t, a.e, "GET", a.base+"/collections/"+index+"/documents/search?q=mayor&query_by=body&sort_by=rank:desc"+params,
			"").want(t, 200)
	} else {
		r = call(t, a.e, "POST", a.base+"/"+index+"/_search?"+strings.TrimPrefix(params, "&"),
			`{"query":{"match":{"body":"mayor"}},"sort":[{"rank":"desc"}]}`).want(t, 200)
	}
	var ids []string
	for _, id := range []string{"copy", "page"} {
		if strings.Contains(string(r.body), `"id":"`+id+`"`) {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, " ")
}
