package content_test

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/sketch/content"
)

func Benchmark(b *testing.B) {
	page := herald("The old bridge", strings.Repeat(bridge, 50))
	for name, call := range map[string]func(){
		"IsHTML": func() { content.IsHTML(page) }, "Text": func() { content.Text(page) }, "Useful": func() { content.Useful(page) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}
