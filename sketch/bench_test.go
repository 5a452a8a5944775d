package sketch

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// BenchmarkKernel measures 295 ready hashes to 128 positions: a text of about 300 words.
func BenchmarkKernel(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	sets := make([][]uint64, 64) // one alone would teach the processor its branches
	for i := range sets {
		for range 295 {
			sets[i] = append(sets[i], r.Uint64())
		}
	}
	slots := new(slotArray)
	for i := 0; b.Loop(); i++ {
		slots.fill(defaultPositions, sets[i%len(sets)])
	}
}

// BenchmarkSketch measures texts of some kilobytes to sketches by the default scheme.
func BenchmarkSketch(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"english", "The council decided that from Monday the late ferry to Saltmere leaves at 10.30 p.m.; it isn't the first change this year. "},
		{"french", "Où l’été s’achève, le garçon naïf déjà reçoit « l’œuvre » de sa sœur à l'hôtel ; ça coûte 3 €. "},
		{"russian", "Совет решил, что с понедельника поздний паром в Солтмир отходит в десять вечера; это не первое изменение. "},
		{"arabic", "قرر المجلس أن العبّارة المتأخرة تغادر في العاشرة مساءً منذ يوم الاثنين ١٢٣. "},
		{"hindi", "परिषद ने निर्णय लिया कि सोमवार से देर की नौका रात दस बजे चलेगी। "},
		{"chinese", "市议会决定，从星期一开始，开往盐湖的晚班渡轮每天晚上十点出发。2024年 "},
		{"japanese", "日本語のテキストと English が混ざっています。２０２４年３月 Ｇｏｏｇｌｅで、々〇ー "},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := New(DefaultScheme())
			if err != nil {
				b.Fatal(err)
			}
			text := strings.Repeat(c.text, 4000/len(c.text)+1)
			b.SetBytes(int64(len(text)))
			var k Sketch
			for b.Loop() {
				s.SketchInto(&k, text)
			}
		})
	}
}
