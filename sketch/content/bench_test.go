package content_test

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/sketch/content"
)

func Benchmark(b *testing.B) {
	pages := []struct{ name, text string }{
		{"plain", strings.Repeat("My name is Inigo Montoya. ", 200)},
		{"article", gazette("Owls", owls)},
		{"long", herald("The old bridge", strings.Repeat(bridge, 50))},
	}
	functions := []struct {
		name string
		call func(string)
	}{
		{"IsHTML", func(s string) { content.IsHTML(s) }},
		{"Text", func(s string) { content.Text(s) }},
		{"Useful", func(s string) { content.Useful(s) }},
	}
	for _, f := range functions {
		for _, p := range pages {
			b.Run(f.name+"/"+p.name, func(b *testing.B) {
				b.SetBytes(int64(len(p.text)))
				b.ReportAllocs()
				for b.Loop() {
					f.call(p.text)
				}
			})
		}
	}
}
