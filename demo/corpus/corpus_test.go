package corpus

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/neardup/sidecar/internal/expect"
)

func documents(t *testing.T) []Document {
	t.Helper()
	return expect.Value(Load())(t)
}

func TestCounts(t *testing.T) {
	groups := map[string]int{}
	versions := map[string]int{}
	for _, d := range documents(t) {
		groups[d.Group]++
		versions[d.Version]++
	}
	articles := 0
	for group, n := range groups {
		if strings.HasPrefix(group, "x-") {
			expect.Same(t, 1, n, "documents of look-alike %s", group)
			continue
		}
		articles++
		if n < 2 || n > 6 {
			t.Errorf("article %s: got %d versions, want 2 to 6", group, n)
		}
	}
	if articles < 64 {
		t.Errorf("got %d articles, want at least 64", articles)
	}
	if versions["lookalike"] < 24 {
		t.Errorf("got %d look-alikes, want at least 24", versions["lookalike"])
	}
	expect.Same(t, articles, versions["original"], "originals")
	for _, v := range []string{"syndicated", "corrected", "mirror", "repost", "copy"} {
		if versions[v] < 20 {
			t.Errorf("%s: got %d documents, want at least 20", v, versions[v])
		}
	}
}

func TestDocumentsWellFormed(t *testing.T) {
	ids, urls := map[string]bool{}, map[string]bool{}
	for _, d := range documents(t) {
		if ids[d.ID] || urls[d.URL] {
			t.Errorf("%s: id or url %s occurs twice", d.ID, d.URL)
		}
		ids[d.ID], urls[d.URL] = true, true
		if !strings.HasPrefix(d.ID, d.Group) || !strings.Contains(d.URL, "//"+d.Host+"/") || !strings.HasSuffix(d.Host, ".example") {
			t.Errorf("%s: group %s, host %s and url %s do not go together", d.ID, d.Group, d.Host, d.URL)
		}
		if _, err := time.Parse(time.RFC3339, d.PublishedAt); err != nil {
			t.Errorf("%s: %v", d.ID, err)
		}
		if d.Title == "" || d.Body == "" || strings.Contains(d.Body, "==") {
			t.Errorf("%s: empty, or a section in its body", d.ID)
		}
	}
}

func TestVersionsAgainstOriginal(t *testing.T) {
	for group, docs := range byGroup(t) {
		at, _ := time.Parse(time.RFC3339, docs[0].PublishedAt)
		hosts := map[string]bool{}
		for i, d := range docs {
			later, _ := time.Parse(time.RFC3339, d.PublishedAt)
			if i > 0 && !later.After(at) {
				t.Errorf("%s appeared at %s, no later than its original", d.ID, d.PublishedAt)
			}
			if hosts[d.Host] && d.Version != "corrected" {
				t.Errorf("%s: another version of %s is on %s already", d.ID, group, d.Host)
			}
			hosts[d.Host] = true
			same := d.Title == docs[0].Title && d.Body == docs[0].Body
			if i > 0 && same != (d.Version == "copy") {
				t.Errorf("%s: same as the original: %v", d.ID, same)
			}
		}
	}
}

func TestOrder(t *testing.T) {
	first, second := Documents(), Documents()
	expect.Must(t, first, second, "a second call")
	if len(first) == 0 {
		t.Fatal("no documents")
	}
	first[0].ID = "changed"
	if Documents()[0].ID == "changed" {
		t.Error("callers share one slice")
	}
	authored := expect.Value(read())(t)
	expect.Same(t, mixed(authored), second, "a second reading differs (-second +first)")
	for i := 1; i < len(second); i++ {
		if second[i].Group == second[i-1].Group {
			t.Errorf("%s and %s are neighbours", second[i-1].ID, second[i].ID)
		}
	}
}

func TestJSONHasNoLabels(t *testing.T) {
	encoded := expect.Value(json.Marshal(documents(t)[0]))(t)
	var fields map[string]string
	expect.OK(t, json.Unmarshal(encoded, &fields))
	got := slices.Sorted(maps.Keys(fields))
	want := []string{"body", "host", "id", "published_at", "title", "url"}
	expect.Same(t, want, got, "fields")
}

func TestSwapMustOccurOnce(t *testing.T) {
	for _, directive := range []string{"swap: cat => dog", "swap: the => a", "swap: hen", "colour: red", "style: gothic", "cut: 1", "cut: x"} {
		text := text{title: "Title", body: []string{"the hen and the cock"}}
		if err := text.change([]string{directive}); err == nil {
			t.Errorf("%q was taken", directive)
		}
	}
}

func TestStyles(t *testing.T) {
	for _, tc := range []struct{ style, in, want string }{
		{"typographic", `"It's 'so'," - he said...`, "“It’s ‘so’,” — he said…"},
		{"ascii", "« Oui », 1871–2025, it’s…", `"Oui", 1871-2025, it's...`},
		{"unaccented", "Señora Vardøyra", "Senora Vardoyra"},
		{"decomposed", "é", "e\u0301"},
	} {
		expect.Same(t, tc.want, styles[tc.style](tc.in), "%s(%q)", tc.style, tc.in)
	}
}

// TestResemblanceWithinGroups holds every version near its original, and nearly all above the threshold of 0.8 that the walk-through uses.
func TestResemblanceWithinGroups(t *testing.T) {
	versions, below := 0, 0
	for _, docs := range byGroup(t) {
		for _, d := range docs[1:] {
			r := resemblance(shingles(docs[0]), shingles(d))
			versions++
			if r < 0.6 {
				t.Errorf("%s: resemblance with its original is %.3f, want at least 0.6", d.ID, r)
			}
			if r < 0.8 {
				below++
			}
		}
	}
	if below*100 >= versions*8 {
		t.Errorf("%d of %d versions lie below 0.8, want under 8 %%", below, versions)
	}
}

// TestResemblanceBetweenGroups holds different texts apart, look-alikes too.
func TestResemblanceBetweenGroups(t *testing.T) {
	docs := documents(t)
	sets := make([]map[string]bool, len(docs))
	for i, d := range docs {
		sets[i] = shingles(d)
	}
	for i, a := range docs {
		for j, b := range docs[:i] {
			if a.Group == b.Group {
				continue
			}
			if r := resemblance(sets[i], sets[j]); r >= 0.35 {
				t.Errorf("%s and %s: resemblance is %.3f, want under 0.35", a.ID, b.ID, r)
			}
		}
	}
}

// byGroup returns each article's documents, the original first and the others in order of their ids.
func byGroup(t *testing.T) map[string][]Document {
	t.Helper()
	groups := map[string][]Document{}
	for _, d := range documents(t) {
		groups[d.Group] = append(groups[d.Group], d)
	}
	for group, docs := range groups {
		slices.SortFunc(docs, func(a, b Document) int {
			if (a.Version == "original") != (b.Version == "original") {
				if a.Version == "original" {
					return -1
				}
				return 1
			}
			return strings.Compare(a.ID, b.ID)
		})
		if docs[0].Version != "original" && docs[0].Version != "lookalike" {
			t.Fatalf("%s has no original", group)
		}
	}
	return groups
}

// shingles is written as plainly as can be: it is the yardstick, not the product.
func shingles(d Document) map[string]bool {
	text := strings.ToLower(norm.NFC.String(d.Title + "\n" + d.Body))
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	set := map[string]bool{}
	for i := 0; i+4 <= len(words); i++ {
		set[strings.Join(words[i:i+4], " ")] = true
	}
	return set
}

func resemblance(a, b map[string]bool) float64 {
	common := 0
	for s := range a {
		if b[s] {
			common++
		}
	}
	return float64(common) / float64(len(a)+len(b)-common)
}
