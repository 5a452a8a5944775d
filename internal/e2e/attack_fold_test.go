package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
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

// forger makes texts up, shingle by shingle, that share none with a page and whose sketch is the page's: to a bed of shingles it adds
// one after the other and keeps those that bring a position to the page's value. What it asks is whether one does: it computes that where
// it knows the seed, and else has to be told by something that compares under it.
func forger(s *sketch.Sketcher, page *sketch.Sketch, r *rand.Rand, asks int) (texts []string) {
	bed := make([]string, 200)
	for i := range bed {
		bed[i] = shingleAtRandom(r)
	}
	before, _ := s.Sketch(bed...)
	kept := make([]string, len(page.Payload))
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
		if x != "" && !slices.Contains(texts, x) {
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

// TestAttackFolding measures how many pages a forger can fold away by texts that share no shingle with them, knowing all but the seed: those
// without a seed, and none of those with one. Who is told agreements under the seed, by neardup_explain, by comparing or by reading sketches,
// needs no seed and has to ask as often as the forger here computes.
func TestAttackFolding(t *testing.T) {
	victims, asks := 1, 8_000
	if os.Getenv("NEARDUP_SOAK") != "" {
		victims, asks = 5, 150_000
	}
	open, secret := sketcherOf(t, ""), sketcherOf(t, "what nobody knows")
	profile := rerank.Default
	without, with := 0, 0
	alike, unlike := 0.0, 0.0 // the greatest agreement of either kind
	for i := range victims {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		page := ""
		for range 120 {
			page += fmt.Sprintf("w%d ", r.IntN(5000))
		}
		shown, _ := open.Sketch(page)
		hidden, _ := secret.Sketch(page)
		texts := forger(open, &shown, r, asks)
		for _, under := range []struct {
			s       *sketch.Sketcher
			of      *sketch.Sketch
			folds   *int
			closest *float64
		}{{open, &shown, &without, &alike}, {secret, &hidden, &with, &unlike}} {
			k, ok := under.s.Sketch(texts...)
			if !ok {
				t.Fatal("nothing was forged")
			}
			if near, _ := profile.NearDuplicates(&k, under.of); near {
				*under.folds++
			}
			a, _ := k.Agreement(under.of)
			*under.closest = max(*under.closest, a)
		}
	}
	t.Logf("%d pages, %d shingles tried for each: %d folded away without a seed (agreement up to %.2f), %d with one (up to %.2f)",
		victims, asks, without, alike, with, unlike)
	if alike < 0.05 || os.Getenv("NEARDUP_SOAK") != "" && without < victims {
		t.Error("the forger can't forge: this measures nothing")
	}
	if with > 0 || unlike > 0.05 {
		t.Errorf("%d of %d pages are folded away by what was made up without the seed", with, victims)
	}
}

// TestAttackShort has texts below min_shingles: they fold if they are the same and never otherwise, whatever is beside them.
func TestAttackShort(t *testing.T) {
	s, profile := sketcherOf(t, seed), rerank.Default
	for words := range profile.MinShingles + 6 {
		text := strings.Join(strings.Fields(victimText)[:max(words, 1)], " ")
		a, ok := s.Sketch(text)
		b, _ := s.Sketch(text + " ")
		c, _ := s.Sketch(text + " else")
		if !ok {
			continue
		}
		if same, _ := profile.NearDuplicates(&a, &b); !same {
			t.Errorf("%d words: the same text does not fold", words)
		}
		if near, _ := profile.NearDuplicates(&a, &c); near && a.Shingles < uint32(profile.MinShingles) {
			t.Errorf("%d words, %d shingles: another text folds", words, a.Shingles)
		}
	}
}

// TestAttackContainment has one page that quotes twenty others: it folds none of them by resemblance. By containment it folds all that
// its sketch tells enough of, which is why that measure is for pages whose writers are trusted.
func TestAttackContainment(t *testing.T) {
	s := sketcherOf(t, seed)
	var pages []string
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		page := ""
		for range 150 {
			page += fmt.Sprintf("w%d ", r.IntN(9000))
		}
		pages = append(pages, page)
	}
	all, _ := s.Sketch(strings.Join(pages, "\n"))
	two, _ := s.Sketch(pages[0], pages[1])
	resembling, contained := rerank.Default, rerank.Default
	contained.Measure = rerank.Containment
	byResemblance, byContainment, ofTwo := 0, 0, 0
	for i, page := range pages {
		k, _ := s.Sketch(page)
		if near, _ := resembling.NearDuplicates(&k, &all); near {
			byResemblance++
		}
		if near, _ := contained.NearDuplicates(&k, &all); near {
			byContainment++
		}
		if near, _ := contained.NearDuplicates(&k, &two); near && i < 2 {
			ofTwo++
		}
	}
	t.Logf("of 20 pages that one quotes whole %d fold by resemblance, %d by containment; of two, %d by containment",
		byResemblance, byContainment, ofTwo)
	if byResemblance > 0 {
		t.Errorf("%d pages fold by resemblance into one that quotes them", byResemblance)
	}
}

// TestAttackCopy has a stranger copy a page and rank above it. By default the copy is what is shown; where the operator says whose version
// is preferred, which is older, or that only texts of the same host fold, the page is shown. neardup=off shows it always.
func TestAttackCopy(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index := "satk-copy"
		direct := api{e, e.URL}
		direct.drop(t, index)
		made := false
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
