package adaptertest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// Articles returns n documents for benchmarks, the same ones on every call: each of a title and a body of so many bytes in sentences and
// paragraphs, with its sketch by the rule stored. The given share of them are other versions of one before.
func Articles(t testing.TB, r *rule.Rule, n, bytes int, share float64) []Document {
	t.Helper()
	random := rand.New(rand.NewPCG(7, uint64(n)))
	list, texts := make([]Document, n), make([][]string, 0, n)
	for i := range list {
		var text []string
		if len(texts) > 0 && random.Float64() < share {
			text = append(text, texts[random.IntN(len(texts))]...)
			text[random.IntN(len(text))] = "changed"
		} else {
			for size := 0; size < bytes; size += len(text[len(text)-1]) + 1 {
				text = append(text, word(random, len(text)))
			}
			texts = append(texts, text)
		}
		source := fmt.Appendf(nil, `{"id":"%d","title":"Report %d of the day","body":%s,"n":%d}`, i, i, strconv.Quote(strings.Join(text, " ")), i)
		computed, _ := r.SketchOf(source)
		source, err := rule.WithOurs(source, rule.Ours{Sketch: computed.Text})
		if err != nil {
			t.Fatal(err)
		}
		list[i] = Document{Index: "news-1", ID: strconv.Itoa(i), Source: source}
	}
	return list
}

// word returns a word of a text, some with what stands between sentences and paragraphs, or with quotes.
func word(random *rand.Rand, at int) string {
	letters := make([]byte, 2+random.IntN(8))
	for i := range letters {
		letters[i] = "etaoinshrdlucmwf"[random.IntN(16)]
	}
	switch text := string(letters); {
	case at%60 == 59:
		return text + ".\n"
	case at%12 == 11:
		return text + "."
	case at%40 == 20:
		return `"` + text + `"`
	default:
		return text
	}
}

// ProcessorTime returns what reports, at the end of a benchmark, how long the process has computed for each operation since: beside other work the
// clock says little.
func ProcessorTime(b *testing.B) (report func()) {
	used := func() int64 {
		var u syscall.Rusage
		expect.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/1000/float64(b.N), "cpu-µs/op") }
}
