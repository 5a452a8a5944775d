package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// nearDuplicates is what the rules of these tests go by.
var nearDuplicates = rerank.Profile{Threshold: 0.7, MinShingles: 8, MinWords: 50}

// duplicates starts a sidecar whose rule has on_duplicate, and makes an index through it.
func duplicates(t *testing.T, e *engines.Engine, index, on string) (through, direct api) {
	t.Helper()
	file := config(t, e, setup{match: index, rule: "bands: auto\nmin_shingles: 8\non_duplicate: " + on})
	through, direct = api{e, serveFile(t, file)}, api{e, e.URL}
	through.create(t, index)
	through.drop(t, index)
	return through, direct
}

// ledgered is one stored document with what our fields of it say.
type ledgered struct {
	rule.Ours
	sketch *sketch.Sketch
	plain  string // the document without them
}

// ledgerOf reads all documents with our fields.
func ledgerOf(t *testing.T, direct api, index string) map[string]ledgered {
	t.Helper()
	all := map[string]ledgered{}
	for id, h := range stored(t, direct, index) {
		plain := must(jsonedit.Cut(h.source, rule.Our))(t)
		d := ledgered{Ours: rule.OursOf(h.source), plain: string(plain)}
		var s sketch.Sketch
		if s.UnmarshalText([]byte(d.Sketch)) == nil {
			d.sketch = &s
		}
		all[id] = d
	}
	return all
}

// near reports whether two stored documents are near-duplicates.
func (d ledgered) near(other ledgered) bool {
	if d.sketch == nil || other.sketch == nil {
		return false
	}
	is, _ := nearDuplicates.NearDuplicates(d.sketch, other.sketch)
	return is
}

// sendBulk writes documents in one request, and returns the entries of the reply.
func (a api) sendBulk(t *testing.T, index, lines string) [][]byte {
	t.Helper()
	if a.typesense() {
		return bytes.Split(call(t, a.e, "POST", a.base+"/collections/"+index+"/documents/import?action=upsert&return_id=true", lines).want(t, 200).body, []byte("\n"))
	}
	reply := call(t, a.e, "POST", a.base+"/"+index+"/_bulk", lines).want(t, 200).body
	members := must(jsonedit.Members(reply))(t)
	return must(jsonedit.Elements(jsonedit.Get(members, "items")))(t)
}

// lineOf returns a document as a part of such a request.
func (a api) lineOf(t *testing.T, d corpus.Document) string {
	t.Helper()
	line := must(json.Marshal(d))(t)
	if a.typesense() {
		return string(line) + "\n"
	}
	return fmt.Sprintf("{\"index\":{\"_id\":%q}}\n%s\n", d.ID, line)
}

// entryOf returns the id that an entry of a reply tells, and whether the operation changed nothing; Typesense does not tell the latter but
// by the id of another document.
func (a api) entryOf(t *testing.T, entry []byte, sent string) (id string, noop bool) {
	t.Helper()
	if a.typesense() {
		var line struct {
			ID      string
			Success bool
		}
		if err := json.Unmarshal(entry, &line); err != nil || !line.Success {
			t.Fatalf("%s: %v", entry, err)
		}
		return line.ID, line.ID != sent
	}
	var item map[string]struct {
		ID     string `json:"_id"`
		Result string
		Status int
	}
	if err := json.Unmarshal(entry, &item); err != nil || item["index"].Status >= 300 || item["index"].Result == "" {
		t.Fatalf("%s: %v", entry, err)
	}
	return item["index"].ID, item["index"].Result == "noop"
}

// inPieces sends the corpus piece by piece, each visible before the next, and returns which documents were answered as no-ops, and by
// which document.
func (a api) inPieces(t *testing.T, index string, list []corpus.Document) map[string]string {
	t.Helper()
	skipped := map[string]string{}
	for piece := range slices.Chunk(list, 40) {
		var lines strings.Builder
		for _, d := range piece {
			lines.WriteString(a.lineOf(t, d))
		}
		entries := a.sendBulk(t, index, lines.String())
		expect.Must(t, len(piece), len(entries), "answers to documents")
		for i, d := range piece {
			if id, noop := a.entryOf(t, entries[i], d.ID); noop {
				skipped[d.ID] = id
			}
		}
		a.refresh(t, index)
	}
	return skipped
}

// TestDuplicatesTagged loads the corpus: near-duplicates get one cluster, which no other text has.
func TestDuplicatesTagged(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "tagged-1", documents(t)
		through, direct := duplicates(t, e, index, "tag")
		if skipped := through.inPieces(t, index, list); len(skipped) > 0 {
			t.Fatalf("tag leaves documents out: %v", skipped)
		}
		all := ledgerOf(t, direct, index)
		checkStored(t, direct, list, all, nil)
		late, pairs := 0, 0
		for i, d := range list {
			one, found, has := all[d.ID], false, false
			if len(one.Cluster) != 17 || one.Cluster[:4] != all[list[0].ID].Cluster[:4] || len(one.Bands) == 0 {
				t.Fatalf("%s is in cluster %q, with %d bands", d.ID, one.Cluster, len(one.Bands))
			}
			for _, before := range list[:i] {
				other := all[before.ID]
				switch is := one.near(other); {
				case is:
					has, found = true, found || one.Cluster == other.Cluster
				case one.Cluster == other.Cluster && !linked(all, d.ID, before.ID):
					t.Errorf("%s and %s have one cluster, and nothing links them", d.ID, before.ID)
				}
			}
			if has {
				pairs++
			}
			if has && !found {
				late++
			}
		}
		if pairs < 100 || late*50 > pairs {
			t.Errorf("of %d documents with an earlier near-duplicate %d are in no cluster with one", pairs, late)
		}
	})
}

// linked reports whether near-duplicates lead from one document to the other within their cluster.
func linked(all map[string]ledgered, from, to string) bool {
	seen, next := map[string]bool{from: true}, []string{from}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		if at == to {
			return true
		}
		for id, d := range all {
			if !seen[id] && d.Cluster == all[from].Cluster && d.near(all[at]) {
				seen[id] = true
				next = append(next, id)
			}
		}
	}
	return false
}

// checkStored holds what is stored to what was sent, byte for byte less our fields, but for the documents that were left out.
func checkStored(t *testing.T, direct api, list []corpus.Document, all map[string]ledgered, skipped map[string]string) {
	t.Helper()
	same(t, len(list)-len(skipped), len(all), "stored documents of %d, of which %d were answered as no-ops", len(list), len(skipped))
	for _, d := range list {
		_, there := all[d.ID]
		if _, left := skipped[d.ID]; left {
			if there {
				t.Errorf("%s is stored, and was answered as a no-op", d.ID)
			}
			continue
		}
		sent := strings.TrimSpace(direct.lineOf(t, d))
		sent = sent[strings.LastIndex(sent, "\n")+1:]
		plain := all[d.ID].plain
		if direct.typesense() { // which stores members in an order of its own
			sent, plain = string(sorted([]byte(sent))), string(sorted([]byte(plain)))
		}
		expect.Must(t, sent, plain, "%s", d.ID)
	}
}

// sketchesOf returns the sketches of the whole corpus, from an index that keeps them all.
func sketchesOf(t *testing.T, e *engines.Engine, index string, list []corpus.Document) map[string]ledgered {
	t.Helper()
	through, direct := duplicates(t, e, index, "index")
	through.load(t, index, list)
	return ledgerOf(t, direct, index)
}

// TestDuplicatesSkipped loads the corpus and counts what is stored of it: of near-duplicates one.
func TestDuplicatesSkipped(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "skipped-1", documents(t)
		truth := sketchesOf(t, e, "skippedtruth-1", list)
		through, direct := duplicates(t, e, index, "skip")
		skipped := through.inPieces(t, index, list)
		all := ledgerOf(t, direct, index)
		checkStored(t, direct, list, all, skipped)
		for id, other := range skipped {
			if _, there := all[other]; !there || !truth[id].near(truth[other]) {
				t.Errorf("%s stands for %s: it is there: %v, and a near-duplicate: %v", other, id, there, truth[id].near(truth[other]))
			}
		}
		kept := 0 // near-duplicates of an earlier document that is stored, which are stored all the same
		for i, d := range list {
			if _, there := all[d.ID]; there && slices.ContainsFunc(list[:i], func(before corpus.Document) bool {
				_, stands := all[before.ID]
				return stands && truth[d.ID].near(truth[before.ID])
			}) {
				kept++
			}
		}
		if len(skipped) < 100 || kept*50 > len(skipped) {
			t.Errorf("%d documents were left out, %d stayed beside what they repeat", len(skipped), kept)
		}
		before := versions(stored(t, direct, index))
		again := slices.Clone(list)
		for i := range again {
			again[i].ID = "again-" + again[i].ID
		}
		through.inPieces(t, index, again)
		same(t, before, versions(stored(t, direct, index)), "the same texts under other ids changed what is stored")
		checkOneSkipped(t, through, direct, index, all)
		checkWrittenAgain(t, through, direct, index, all)
	})
}

// checkOneSkipped writes a stored text under another id, alone: Typesense is to answer with the document that it repeats, as it is stored.
func checkOneSkipped(t *testing.T, through, direct api, index string, all map[string]ledgered) {
	t.Helper()
	if !through.typesense() {
		return
	}
	ids := slices.Sorted(maps.Keys(all))
	plain, err := jsonedit.Cut(direct.get(t, index, ids[0]), rule.Our)
	if err == nil {
		plain, err = jsonedit.Set(plain, "id", []byte(`"another"`))
	}
	check(t, err)
	a := call(t, through.e, "POST", through.base+"/collections/"+index+"/documents", string(plain)).want(t, 201)
	members, err := jsonedit.Members(a.body)
	if id, _ := jsonedit.Text(jsonedit.Get(members, "id")); err != nil || !slices.Contains(ids, id) {
		t.Errorf("%s, want the stored document", a.body)
	}
}

// checkWrittenAgain writes stored documents under their own ids: each such write is stored.
func checkWrittenAgain(t *testing.T, through, direct api, index string, all map[string]ledgered) {
	t.Helper()
	var lines strings.Builder
	n := 0
	for id, d := range all {
		if n++; n > 10 {
			break
		}
		changed := strings.Replace(d.plain, `"host":"`, `"host":"again.`, 1)
		if !through.typesense() {
			fmt.Fprintf(&lines, "{\"index\":{\"_id\":%q}}\n", id)
		}
		lines.WriteString(changed + "\n")
	}
	through.sendBulk(t, index, lines.String())
	changed := 0
	for _, d := range ledgerOf(t, direct, index) {
		changed += strings.Count(d.plain, `"host":"again.`)
	}
	same(t, min(10, len(all)), changed, "documents that were written again")
}

// TestDuplicatesConcurrent lets several clients write few texts under many ids at once: what was answered as stored is, byte for byte, and what
// was answered as a no-op has another document that stands for it.
func TestDuplicatesConcurrent(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		for _, on := range []string{"tag", "skip"} {
			index, list := "concurrent"+on+"-1", documents(t)[:40]
			through, direct := duplicates(t, e, index, on)
			var mu sync.Mutex
			skipped, sent := map[string]string{}, []corpus.Document{}
			var all sync.WaitGroup
			for client := range 4 {
				all.Go(func() {
					for round := range 6 {
						var lines strings.Builder
						piece := slices.Clone(list[(7*client+11*round)%30:][:10])
						for i := range piece {
							piece[i].ID = fmt.Sprintf("c%dr%di%d", client, round, i)
							lines.WriteString(through.lineOf(t, piece[i]))
						}
						entries := through.sendBulk(t, index, lines.String())
						mu.Lock()
						for i, d := range piece {
							sent = append(sent, d)
							if id, noop := through.entryOf(t, entries[i], d.ID); noop {
								skipped[d.ID] = id
							}
						}
						mu.Unlock()
					}
				})
			}
			all.Wait()
			if t.Failed() {
				return
			}
			stored := ledgerOf(t, direct, index)
			checkStored(t, direct, sent, stored, skipped)
			for id, other := range skipped {
				if _, there := stored[other]; !there {
					t.Errorf("%s stands for %s and is not there", other, id)
				}
			}
			if on == "skip" && direct.typesense() && len(stored) > 160 { // there is no refresh to wait for
				t.Errorf("%d documents are stored of 40 texts", len(stored))
			}
			t.Logf("%s: %d of %d documents left out", on, len(skipped), len(sent))
		}
	})
}
