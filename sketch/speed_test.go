package sketch

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// fastSimilarity fills slots with the minima of a set of distinct, well mixed hashes. It is the plain form of
// [slotArray.fill].
func fastSimilarity(slots []uint64, set []uint64) {
	for i := range slots {
		slots[i] = untaken
	}
	for round := range uint64(rounds) {
		for _, x := range set {
			if round > 0 {
				x = spread(x) * roundKeys[round]
			}
			position, slot := throw(x, round, uint64(len(slots)))
			slots[position] = min(slots[position], slot)
		}
	}
	for i, slot := range slots {
		if slot == untaken {
			for _, x := range set {
				slots[i] = min(slots[i], rounds<<56|spread(x)*freeKeys[i]>>8)
			}
		}
	}
}

// TestFillIsPlainAtEverySize holds the quick way to fill slots against the plain one, in one slotArray after another set's slots.
func TestFillIsPlainAtEverySize(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	set := make([]uint64, 3000)
	for i := range set {
		set[i] = random.Uint64()
	}
	a, want := new(slotArray), make([]uint64, maxPositions)
	check := func(size, positions int) {
		t.Helper()
		from := random.IntN(len(set) - size + 1)
		fastSimilarity(want[:positions], set[from:from+size])
		a.fill(positions, set[from:from+size])
		if !slices.Equal(a.slots[:positions], want[:positions]) {
			t.Fatalf("%d shingles on %d positions: the slots differ", size, positions)
		}
	}
	for size := 1; size <= len(set); size++ { // every size, on the default and on some other number of positions
		if testing.Short() && size > 300 && size%40 != 0 {
			continue
		}
		check(size, defaultPositions)
		check(size, 8+8*random.IntN(maxPositions/8))
	}
	for positions := 8; positions <= maxPositions; positions += 8 { // every number of positions
		for _, size := range []int{1, 2, 63, 64, 65, 300, 3000} {
			check(size, positions)
		}
	}
}

// TestFillTakesExtremes does the same for hashes that stand at the ends of what a slot holds, and for ones that all fall on one position.
func TestFillTakesExtremes(t *testing.T) {
	a, want := new(slotArray), make([]uint64, defaultPositions)
	var low, high []uint64
	for i := range uint64(200) {
		low, high = append(low, i), append(high, ^i)
	}
	for _, set := range [][]uint64{low, high, {0}, {^uint64(0)}, {0, ^uint64(0)}, low[:64], high[:65]} {
		fastSimilarity(want, set)
		a.fill(len(want), set)
		if !slices.Equal(a.slots[:len(want)], want) {
			t.Errorf("%d shingles from %x: the slots differ", len(set), set[0])
		}
	}
}

// TestDistinct holds the set against one made with a map, for many sizes and shares of repeated shingles, also where all shingles belong
// at few places of the table.
func TestDistinct(t *testing.T) {
	random, w := rand.New(rand.NewPCG(3, 5)), new(workspace)
	for size := range 700 {
		if testing.Short() && size > 100 && size%20 != 0 {
			continue
		}

		for _, kinds := range []int{1, 2, size/10 + 1, size + 1, 1 << 30} {
			spread := uint64(golden)
			if size%3 == 0 {
				spread <<= 8 + size%40
			}
			w.all = w.all[:0]
			seen := make(map[uint64]bool)
			for range size {
				x := (1 + random.Uint64N(uint64(kinds))) * spread
				if x == 0 {
					x = 1
				}
				w.all = append(w.all, x)
				seen[x] = true
			}
			w.distinct()
			got := slices.Sorted(slices.Values(w.set))
			want := make([]uint64, 0, len(seen))
			for x := range seen {
				want = append(want, x)
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%d shingles of %d kinds: got %d distinct, want %d", size, kinds, len(got), len(want))
			}
		}
	}
}

// TestSketchIntoAllocatesNothing: a sketch costs no memory once the workspaces have their size, in any script, unless what stands
// between two blanks takes the plain way; there the libraries want room of their own.
func TestSketchIntoAllocatesNothing(t *testing.T) {
	if !poolKeeps() {
		t.Skip("the race detector makes pools forget")
	}
	s := newSketcher(t, nil)
	for name, text := range map[string]string{
		"english":  "The quick brown fox's den isn't at 3.14 km, or 1,000 miles; e.g. U.S.A. x_y __init__ a:b 'quoted' \"a\".",
		"french":   "Où l’été s’achève, le garçon naïf déjà reçoit « l’œuvre » de sa sœur ; ça coûte 3 €.",
		"russian":  "Привет мир, ёлка и Йод; пол-литра. Україна ґанок",
		"hebrew":   "עברית היא שפה צה\"ל ג'ירפה",
		"arabic":   "العربية لغة جميلة ١٢٣ فارسی",
		"chinese":  "中文文本，包含标点。简体 繁體 2024年",
		"japanese": "日本語のテキストと English が混ざっています。２０２４年３月 Ｇｏｏｇｌｅで、々〇ー",
		"korean":   "한국어 텍스트 띄어쓰기",
		"thai":     "ภาษาไทยไม่มีช่องว่าง",
		"emoji":    "emoji 👍 a👍b ☃ ™ … ½ ﬁne",
		"invalid":  "invalid \xff\xfe bytes a\xffb \xc3( \xe2\x82 end\xc3",
	} {
		var k Sketch
		text = strings.Repeat(text+" ", 20)
		got := testing.AllocsPerRun(50, func() { s.SketchInto(&k, text, "a second text", text) })
		expect.Same(t, 0.0, got, "%s: allocations a document", name)
	}
}

// poolKeeps reports whether a pool gives back what was put into it: under the race detector it drops some at random.
func poolKeeps() bool {
	var pool sync.Pool
	for range 100 {
		pool.Put(new(int))
		if pool.Get() == nil {
			return false
		}
	}
	return true
}

// TestMemoryOfLongTexts: a sketch of a long text takes no more than 32 times its length, however short its words are. It is what the proxy
// counts on for its budget.
func TestMemoryOfLongTexts(t *testing.T) {
	if effort.Race {
		t.Skip("the race detector takes memory of its own")
	}
	const words = 1<<20 + 100 // just too many for a table of a million
	var b strings.Builder
	for i := range words {
		b.WriteByte('a' + byte(uint32(i)*2654435761>>27%26))
		b.WriteByte(' ')
	}
	text := b.String()
	s := expect.Value(New(DefaultScheme()))(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.Sketch(text)
	runtime.ReadMemStats(&after)
	took := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(text))
	t.Logf("%.1f times its length", took)
	if took > 32 {
		t.Errorf("a text of %d bytes takes %.1f times as much", len(text), took)
	}
}

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
		{"vietnamese", "Hội đồng quyết định rằng từ thứ Hai chuyến phà muộn đến Saltmere sẽ rời bến lúc mười giờ tối; đây không phải là thay đổi đầu tiên. "},
		{"decomposed", norm.NFD.String("Hội đồng quyết định rằng từ thứ Hai chuyến phà muộn đến Saltmere sẽ rời bến lúc mười giờ tối. ")},
		{"korean", "의회는 월요일부터 솔트미어로 가는 늦은 배가 밤 열 시에 떠난다고 결정했다. "},
		{"thai", "สภาตัดสินใจว่าตั้งแต่วันจันทร์เรือข้ามฟากเที่ยวดึกไปซอลต์เมียร์จะออกเวลาสี่ทุ่ม "},
		{"bengali", "পরিষদ সিদ্ধান্ত নিয়েছে যে সোমবার থেকে সল্টমিয়ারের শেষ ফেরি রাত দশটায় ছাড়বে। "},
		{"hindi", "परिषद ने निर्णय लिया कि सोमवार से देर की नौका रात दस बजे चलेगी। "},
		{"chinese", "市议会决定，从星期一开始，开往盐湖的晚班渡轮每天晚上十点出发。2024年 "},
		{"japanese", "日本語のテキストと English が混ざっています。２０２４年３月 Ｇｏｏｇｌｅで、々〇ー "},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := expect.Value(New(DefaultScheme()))(b)
			text := strings.Repeat(c.text, 4000/len(c.text)+1)
			b.SetBytes(int64(len(text)))
			var k Sketch
			for b.Loop() {
				s.SketchInto(&k, text)
			}
		})
	}
}
