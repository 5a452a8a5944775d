package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// embedded is a document whose vector is that of its event, turned a little. Its text says nothing, or is that of its story but for a word.
type embedded struct {
	n, event int
	story    int       // 0 for none
	vector   []float64 // nil for none
}

// embeddings returns documents of events, three each: their vectors have a cosine of 0.97 with that of the event, those of two events hardly any. The last
// three have no vector that points anywhere.
func embeddings(events, dimensions int) (list []embedded) {
	r := rand.New(rand.NewPCG(25, 8))
	unit := func() []float64 {
		v, square := make([]float64, dimensions), 0.0
		for i := range v {
			v[i] = r.NormFloat64()
			square += v[i] * v[i]
		}
		for i := range v {
			v[i] /= math.Sqrt(square)
		}
		return v
	}
	for event := range events {
		base := unit()
		for range 3 {
			v, away := slices.Clone(base), unit()
			for i := range v {
				v[i] = 3 * (v[i] + 0.25*away[i])
			}
			list = append(list, embedded{event: event, vector: v})
		}
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for range 3 {
		list = append(list, embedded{event: -1})
	}
	for i := range list {
		list[i].n = i
	}
	return list
}

// json returns the document.
func (d embedded) json(a api) string {
	numbers := make([]string, len(d.vector))
	for i, x := range d.vector {
		numbers[i] = strconv.FormatFloat(x, 'g', 7, 64)
	}
	fields := fmt.Sprintf(`"n":%d,"body":%q`, d.n, d.text())
	if d.vector != nil {
		fields += `,"v":[` + strings.Join(numbers, ",") + `]`
	}
	if a.typesense() {
		fields = fmt.Sprintf(`"id":"%d",`, d.n) + fields
	}
	return "{" + fields + "}"
}

// text returns the text of the document.
func (d embedded) text() string {
	if d.story == 0 {
		return "event"
	}
	words := make([]string, 80)
	for i := range words {
		words[i] = fmt.Sprintf("w%dx%d", d.story, i)
	}
	words[d.n%len(words)] = fmt.Sprint("other", d.n)
	return strings.Join(words, " ")
}

// createEmbedded creates an index of such documents.
func (a api) createEmbedded(t *testing.T, index string) {
	t.Helper()
	switch a.e.Kind {
	case engines.Typesense:
		call(t, a.e, "POST", a.base+"/collections", `{"name":"`+index+`","fields":[{"name":"n","type":"int64"},{"name":"body","type":"string"},`+
			`{"name":"v","type":"float[]","optional":true}]}`).want(t, 201)
	case engines.Elasticsearch: // which hides it
		call(t, a.e, "PUT", a.base+"/"+index, `{"mappings":{"properties":{"n":{"type":"integer"},"body":{"type":"text"},`+
			`"v":{"type":"dense_vector","similarity":"cosine"}}}}`).want(t, 200)
	default:
		call(t, a.e, "PUT", a.base+"/"+index, `{"mappings":{"properties":{"n":{"type":"integer"},"body":{"type":"text"}}}}`).want(t, 200)
	}
}

// embed writes documents.
func (a api) embed(t *testing.T, index string, list []embedded) {
	t.Helper()
	var lines strings.Builder
	for _, d := range list {
		lines.WriteString(a.words(t).line(index, fmt.Sprint(d.n), []byte(d.json(a))))
	}
	a.loadLines(t, index, lines.String())
}

// firstOfEach returns the numbers of the documents that are shown of events, in order.
func firstOfEach(list []embedded) (shown []int) {
	seen := map[int]bool{-1: false}
	for _, d := range list {
		if d.event < 0 || !seen[d.event] {
			shown = append(shown, d.n)
		}
		seen[d.event] = true
	}
	return shown
}

// TestVectors folds what has nearly the same vector, whatever it says: with sketches that were stored at ingest, computed of what the engine shows, and
// stored by a backfill; and every command works on them.
func TestVectors(t *testing.T) {
	onEach(t, true, []string{engines.Elasticsearch, engines.OpenSearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		const index, dimensions = "vectors-1", 64
		rule := "match: vectors-*, fields: [v], preset: vectors, bands: auto"
		file, stored := ruled(t, e, rule), ruled(t, e, rule+", missing: alone")
		through, believing, direct := api{e, serveFile(t, file)}, api{e, serveFile(t, stored)}, api{e, e.URL}
		through.drop(t, index)
		through.createEmbedded(t, index)
		list := embeddings(12, dimensions)
		half := len(list) / 2
		through.embed(t, index, list[:half])
		direct.embed(t, index, list[half:])
		want := firstOfEach(list)
		for from := 0; from < len(want); from += 5 {
			page, r := through.listed(t, index, from, 5, "")
			same(t, want[from:min(from+5, len(want))], page, "from %d, %s: the events (-), through us (+)", from, r.header.Get("Neardup"))
		}
		page, r := believing.listed(t, index, 0, 100, "")
		same(t, append(firstOfEach(list[:half]), numbersOf(list[half:])...), page, "before the backfill, %s", r.header.Get("Neardup"))

		left := fmt.Sprintf("%d written", len(list)-half-3)
		succeed(t, "reindex", "-c", file, "--index", index).has(t, left)
		succeed(t, "verify", "-c", file, "--index", index).has(t, fmt.Sprintf("%d right, 0 absent, 0 incomparable, 0 stale", len(list)-3))
		page, r = believing.listed(t, index, 0, 100, "")
		same(t, want, page, "after the backfill, %s", r.header.Get("Neardup"))
		if strings.Contains(string(r.body), "neardup_") {
			t.Errorf("our field is shown: %.300s", r.body)
		}

		// The vector changes, by a partial update through us.
		moved := list[0]
		moved.event, moved.vector = 99, list[1].vector
		if list[1].event == list[0].event {
			t.Fatal("both are of one event")
		}
		through.partly(t, index, moved)
		list[0].event, list[0].vector = list[1].event, list[1].vector
		page, r = believing.listed(t, index, 0, 100, "")
		same(t, firstOfEach(list), page, "after an update, %s", r.header.Get("Neardup"))
		succeed(t, "verify", "-c", file, "--index", index).has(t, fmt.Sprintf("%d right, 0 absent, 0 incomparable, 0 stale", len(list)-3))

		succeed(t, "similar", "-c", file, "--index", index, "0").has(t, index+"  1   1.000      0.000  yes")
		similar := string(call(t, e, "GET", through.base+"/_neardup/"+index+"/similar/0", "").want(t, 200).body)
		other := slices.IndexFunc(list, func(d embedded) bool { return d.event != list[0].event })
		asked := fmt.Sprintf(`{"index":%q,"ids":["0","1","%d"]}`, index, other)
		kept := string(call(t, e, "POST", through.base+"/_neardup/dedupe", asked).want(t, 200).body)
		if !strings.Contains(similar, `"id":"1"`) || !strings.Contains(kept, `"kept":[0,2]`) {
			t.Errorf("of document 0: %s\nof a list: %s", similar, kept)
		}
		groups := 0
		for event := range 12 {
			n := 0
			for _, d := range list {
				if d.event == event {
					n++
				}
			}
			if n > 1 {
				groups++
			}
		}
		succeed(t, "cluster", "-c", file, "--index", index).has(t, fmt.Sprintf("%d clusters of", groups))
		succeed(t, "doctor", "-c", file).has(t, index+" is ready")
		if _, code := sidecar(t, "calibrate", "-c", file, "--index", index); code == 0 {
			t.Error("calibrate finds a threshold for vectors")
		}

		var lines strings.Builder
		for _, d := range list {
			fmt.Fprintf(&lines, `{"id":"%d",%s`+"\n", d.n, strings.TrimPrefix(d.json(direct)[1:], fmt.Sprintf(`"id":"%d",`, d.n)))
		}
		documents := filepath.Join(t.TempDir(), "documents.jsonl")
		check(t, os.WriteFile(documents, []byte(lines.String()), 0o600))
		printed := succeed(t, "sketch", "-c", file, "--index", index, documents).sketches()
		expect.Must(t, len(list)-3, len(printed), "sketches of a file")
	})
}

// partly writes the vector of a document alone.
func (a api) partly(t *testing.T, index string, d embedded) {
	t.Helper()
	_, vector, _ := strings.Cut(d.json(a), `"v":`)
	vector = `{"v":` + vector
	if a.typesense() {
		call(t, a.e, "PATCH", fmt.Sprintf("%s/collections/%s/documents/%d", a.base, index, d.n), vector).want(t, 201)
		return
	}
	call(t, a.e, "POST", fmt.Sprintf("%s/%s/_update/%d?refresh=true", a.base, index, d.n), `{"doc":`+vector+`}`).want(t, 200)
}

func numbersOf(list []embedded) (numbers []int) {
	for _, d := range list {
		numbers = append(numbers, d.n)
	}
	return numbers
}

// leadersOf returns the numbers of the documents that are shown if each folds into the first one shown before it that it is near.
func leadersOf(list []embedded, near func(a, b embedded) bool) (shown []int) {
	var leaders []embedded
	for _, d := range list {
		if !slices.ContainsFunc(leaders, func(l embedded) bool { return near(l, d) }) {
			leaders = append(leaders, d)
		}
	}
	return numbersOf(leaders)
}

// TestWordsWithVectors folds by words and vectors: hits of the same event in other words, and of the same words about another event, among others. The key comes
// to an index whose documents have sketches of words.
func TestWordsWithVectors(t *testing.T) {
	onEach(t, true, []string{engines.Elasticsearch, engines.OpenSearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		const index = "worded-1"
		const words = "match: worded-*, fields: [body]"
		const both, either = words + ", vector: {field: v}", words + ", vector: {field: v, combine: either}"
		plain, file, loose := ruled(t, e, words), ruled(t, e, both), ruled(t, e, either)
		old, through, loosely := api{e, serveFile(t, plain)}, api{e, serveFile(t, file)}, api{e, serveFile(t, loose)}
		storedBoth, storedEither := api{e, serveFile(t, ruled(t, e, both+", missing: alone"))}, api{e, serveFile(t, ruled(t, e, either+", missing: alone"))}
		through.drop(t, index)
		through.createEmbedded(t, index)
		list := embeddings(12, 64)
		for i := range list {
			switch d := &list[i]; {
			case d.event < 0: // without a vector: the words of some event
				d.story = 1 + i%12
			case i%3 == 0: // the words of another event
				d.story = 1 + (d.event+5)%12
			case i%3 == 1: // words of its own
				d.story = 100 + i
			default:
				d.story = 1 + d.event
			}
		}
		sameWords := func(a, b embedded) bool { return a.story == b.story }
		sameEvent := func(a, b embedded) bool { return a.event == b.event && a.event >= 0 }
		holds := func(a api, near func(a, b embedded) bool, when string) {
			t.Helper()
			page, r := a.listed(t, index, 0, 100, "")
			same(t, leadersOf(list, near), page, "%s, %s: the definition (-), through us (+)", when, r.header.Get("Neardup"))
			if strings.Contains(string(r.body), "neardup_") {
				t.Errorf("our field is shown: %.300s", r.body)
			}
		}
		bothAgree := func(a, b embedded) bool { return sameWords(a, b) && sameEvent(a, b) }
		oneAgrees := func(a, b embedded) bool { return sameWords(a, b) || sameEvent(a, b) }
		storedAgrees := func(a, b embedded) bool { return a.event >= 0 && b.event >= 0 && oneAgrees(a, b) } // others have no stored sketch
		never := func(embedded, embedded) bool { return false }
		for _, pair := range [][2]int{{len(leadersOf(list, sameWords)), len(leadersOf(list, bothAgree))}, {len(leadersOf(list, oneAgrees)), len(leadersOf(list, sameWords))}} {
			if pair[0]+5 > pair[1] {
				t.Fatalf("the documents tell nothing: %v are shown", pair)
			}
		}

		old.embed(t, index, list)
		holds(old, sameWords, "words alone")
		holds(through, bothAgree, "computed")
		holds(loosely, oneAgrees, "computed")
		holds(storedBoth, never, "before the backfill")
		succeed(t, "reindex", "-c", file, "--index", index).has(t, fmt.Sprintf("%d written", len(list)))
		all := fmt.Sprint(len(list) - 3) // three have no vector: their sketch of words is removed
		succeed(t, "verify", "-c", file, "--index", index).has(t, all+" right, 0 absent, 0 incomparable, 0 stale")
		succeed(t, "reindex", "-c", file, "--index", index).has(t, "0 written, "+all+" right already")
		succeed(t, "verify", "-c", loose, "--index", index).has(t, all+" right, 0 absent, 0 incomparable, 0 stale")
		holds(storedBoth, bothAgree, "after the backfill")
		holds(storedEither, storedAgrees, "after the backfill")
		holds(old, sameWords, "words alone after the backfill")

		// The vector changes, by a partial update through us: the sketch of the words goes too. Then the whole document does.
		list[0].event, list[0].vector = list[1].event, list[1].vector
		through.partly(t, index, list[0])
		holds(through, bothAgree, "after a partial update")
		succeed(t, "verify", "-c", file, "--index", index).has(t, fmt.Sprintf("%d right, 1 absent, 0 incomparable, 0 stale", len(list)-4))
		list[0].story = list[1].story
		through.embed(t, index, list[:1])
		holds(storedBoth, bothAgree, "after a whole update")
		holds(storedEither, storedAgrees, "after a whole update")
		succeed(t, "verify", "-c", file, "--index", index).has(t, all+" right, 0 absent, 0 incomparable, 0 stale")

		_, r := loosely.listed(t, index, 0, 100, "&neardup_explain=true")
		for _, by := range []string{`"by":"vector"`, `"by":"sketch"`} {
			if !strings.Contains(string(r.body), by) {
				t.Errorf("no hit is explained by %s: %.2000s", by, r.body)
			}
		}
		asked := fmt.Sprintf(`{"index":%q,"ids":["0","1"]}`, index)
		if kept := string(call(t, e, "POST", through.base+"/_neardup/dedupe", asked).want(t, 200).body); !strings.Contains(kept, `"kept":[0]`) {
			t.Errorf("of two with equal words and vectors: %s", kept)
		}
		succeed(t, "similar", "-c", loose, "--index", index, "--scan", "0").has(t, index+"  1 ")
		succeed(t, "doctor", "-c", file).has(t, index+" is ready")
		for _, refused := range [][]string{{"cluster", "-c", file, "--index", index}, {"similar", "-c", loose, "--index", index, "0"}} {
			if out, code := sidecar(t, refused...); code == 0 {
				t.Errorf("%s works on vectors beside words: %s", refused[0], out)
			}
		}
	})
}
