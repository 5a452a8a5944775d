package sketch

import (
	"os"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// BenchmarkText measures text to sketch over the documents of a file, one a line: NEARDUP_CORPUS=file go test -bench Text ./sketch
func BenchmarkText(b *testing.B) {
	path := os.Getenv("NEARDUP_CORPUS")
	if path == "" {
		b.Skip("NEARDUP_CORPUS names no file of documents, one a line")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	docs := strings.Split(strings.TrimSpace(string(data)), "\n")
	docs = docs[:min(len(docs), 50000)]
	size := len(strings.Join(docs, ""))
	s := newSketcher(b, nil)
	run := func(name string, f func(doc string)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, doc := range docs {
					f(doc)
				}
			}
		})
	}
	var k Sketch
	w := new(workspace)
	run("xxhash64", func(doc string) { xxhash.Sum64String(doc) })
	run("sketch", func(doc string) { s.SketchInto(&k, doc) })
	run("base", func(doc string) { w.base = w.base[:0]; w.appendBase(doc) })
	run("base+fingerprint", func(doc string) { w.base = w.base[:0]; w.appendBase(doc); w.fingerprint(1) })
	run("base+words", func(doc string) { w.base = w.base[:0]; w.appendBase(doc); s.cutFast(w, 0) })
	run("gather", func(doc string) { s.gather(w, []string{doc}) })
}
