package jsonedit

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// benchReply is a reply of n hits with a source of some 1,500 bytes and the sketch beside it.
func benchReply(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"took":5,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"total":{"value":1000,"relation":"eq"},"max_score":1.5,"hits":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"_index":"news-1","_id":"%d","_score":1.25,"_source":{"title":"A title of %d words","n":%d,"tags":["a","b","c"],"o":{"x":1.5,"y":[1,2,3]},"body":"%s","neardup_sketch":"%s"},"fields":{"neardup_sketch":["%s"]}}`,
			i, i, i, strings.Repeat(`Some text with a \"quote\" and more of it. `, 28), strings.Repeat("Ab9+", 50), strings.Repeat("Ab9+", 50))
	}
	b.WriteString(`]}}`)
	return b.Bytes()
}

var benchCuts = Cuts{
	Prefix: prefix,
	Drop: func(path []string) bool {
		last := len(path) - 1
		return last > 0 && Our(path[last]) && (path[last-1] == "_source" || slices.Contains(path[:last], "fields"))
	},
	Prune: func(path []string, element bool) bool { return !element && path[len(path)-1] == "fields" },
}

// BenchmarkBytes measures reading and editing of a reply of 100 hits, and of a document.
func BenchmarkBytes(b *testing.B) {
	reply := benchReply(100)
	hit := benchReply(1)
	document := []byte(`{"title":"A title","n":1,"tags":["a","b"],"neardup_sketch":"x","body":"` + strings.Repeat("Some text and more of it. ", 60) + `"}`)
	run := func(name string, size int, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
	run("cleaned", len(reply), func() { Cleaned(reply, benchCuts) })
	run("cleaned hit", len(hit), func() { Cleaned(hit, benchCuts) })
	run("in place", len(reply), func() { CleanedInPlace(bytes.Clone(reply), benchCuts) })
	run("streamed", len(reply), func() { _ = Clean(io.Discard, bytes.NewReader(reply), benchCuts) })
	run("members", len(document), func() { _, _ = Members(document) })
	run("cut", len(document), func() { _, _ = Cut(document, Our) })
	run("set", len(document), func() { _, _ = Set(document, "n", []byte("2")) })
	run("reader", len(reply), func() {
		r := NewReader(reply)
		for r.Enter('{'); r.Next(); {
			if string(r.Key()) == "hits" {
				for r.Enter('{'); r.Next(); {
					if string(r.Key()) == "hits" {
						for r.Enter('['); r.Next(); {
							for r.Enter('{'); r.Next(); {
								r.Value()
							}
						}
					}
				}
			}
		}
	})
	bulk := bytes.Repeat(append([]byte("{\"index\":{}}\n"), append(document, '\n')...), 100)
	run("lines", len(bulk), func() {
		_ = EditLines(io.Discard, bytes.NewReader(bulk), '\n', func(line []byte) []byte { return line }, nil)
	})
}
