package ask

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestTakeBack takes answers back one by one: each time the session says what it said before, and asks what it asked.
func TestTakeBack(t *testing.T) {
	l := drawn(0.4, 0.03)
	s := New(l.pairs, l.counts, 0.64)
	if _, ok := s.TakeBack(); ok {
		t.Error("an answer was taken back that nobody gave")
	}
	var asked []Pair
	var found []Finding
	for i := range 12 {
		p, _ := s.Next()
		asked, found = append(asked, p), append(found, s.Finding())
		verdict := []Verdict{Same, Different, Skip}[i%3]
		expect.OK(t, s.Answer(Answer{A: p.B, B: p.A, Verdict: verdict})) // in either order
	}
	for i := len(asked) - 1; i >= 0; i-- {
		last, ok := s.TakeBack()
		again, _ := s.Next()
		if !ok || last.B != asked[i].A || again != asked[i] {
			t.Fatalf("%v taken back, then asked about %v, before that about %v", last, again, asked[i])
		}
		expect.Same(t, found[i], s.Finding(), "the finding")
	}
}

// TestNeverTwiceTheSameKind asks about no document or group twice while there are others, and about no pair twice at all.
func TestNeverTwiceTheSameKind(t *testing.T) {
	var pairs []Pair
	for i := range 60 {
		group := i % 20
		pairs = append(pairs, Pair{A: fmt.Sprint("a", i), B: fmt.Sprint("b", i/2), Agreement: 0.62 + float64(i%5)/100, Shingles: 10 + 7*i, Groups: [2]int{group, group}})
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	s := New(pairs, Counts{62: 100, 66: 100}, 0.64)
	documents, groups, lengths := map[string]int{}, map[int]int{}, map[int]int{}
	for range 20 {
		p, _ := s.Next()
		documents[p.B]++
		groups[p.Groups[0]]++
		lengths[lengthOf(p.Shingles)]++
		expect.OK(t, s.Answer(Answer{A: p.A, B: p.B, Verdict: Skip}))
	}
	if len(documents) != 20 || len(groups) != 20 || len(lengths) != 4 {
		t.Errorf("%d documents, %d groups, lengths %v in twenty questions", len(documents), len(groups), lengths)
	}
	for range 40 {
		p, _ := s.Next()
		expect.OK(t, s.Answer(Answer{A: p.A, B: p.B, Verdict: Skip}))
	}
	if p, ok := s.Next(); ok || len(s.Answers()) != 60 {
		t.Errorf("%d answers of 60, and then %v", len(s.Answers()), p)
	}
}

// TestSettles has a clear border: ten answers and a few more are enough. Without any candidate nothing is asked or settled.
func TestSettles(t *testing.T) {
	l := drawn(0.5, 0.005)
	s := New(l.pairs, l.counts, 0.64)
	for !s.Finding().Settled && len(s.Answers()) < 40 {
		p, _ := s.Next()
		verdict := Different
		if l.same[key(p.A, p.B)] {
			verdict = Same
		}
		expect.OK(t, s.Answer(Answer{A: p.A, B: p.B, Verdict: verdict}))
	}
	if f := s.Finding(); len(s.Answers()) > 25 || f.Threshold < 0.47 || f.Threshold > 0.52 || f.Low > f.Threshold || f.High < f.Threshold || f.Precision < 0.9 || f.Recall < 0.9 {
		t.Errorf("after %d answers %+v", len(s.Answers()), f)
	}
	if err := s.Answer(Answer{A: "x", B: "y", Verdict: Same}); err == nil || !strings.Contains(err.Error(), `"x" and "y"`) {
		t.Error(err)
	}
	if err := s.Answer(Answer{A: l.pairs[0].A, B: l.pairs[0].B, Verdict: "maybe"}); err == nil || !strings.Contains(err.Error(), "use same, different or skip") {
		t.Error(err)
	}
	last := s.Answers()[len(s.Answers())-1]
	p, _ := s.Next()
	s.Pass(p)
	if other, _ := s.Next(); other == p {
		t.Errorf("%v is asked about after it was passed over", p)
	}
	if back, ok := s.TakeBack(); !ok || back != last {
		t.Errorf("taken back is %v, and not the last answer %v", back, last)
	}
	empty := New(nil, Counts{}, 0.64)
	if p, ok := empty.Next(); ok || empty.Finding().Settled {
		t.Errorf("%v asked of nothing: %+v", p, empty.Finding())
	}
}

// TestManyAnswers takes ten thousand answers, half of them at random: they still make a threshold.
func TestManyAnswers(t *testing.T) {
	var l labelled
	for i := range 10_000 {
		l.pairs = append(l.pairs, Pair{A: fmt.Sprint(i, "a"), B: fmt.Sprint(i, "b"), Agreement: float64(15+i%80) / 100})
	}
	s := New(l.pairs, Counts{30: 10, 50: 10, 70: 10}, 0.64)
	for i, p := range l.pairs {
		verdict := Different
		if p.Agreement > 0.5 != (i%2 == 0 && i%3 == 0) {
			verdict = Same
		}
		expect.OK(t, s.Answer(Answer{A: p.A, B: p.B, Verdict: verdict}))
	}
	if f := s.Finding(); !(f.Threshold > 0.45 && f.Threshold < 0.7 && f.Precision > 0.5) {
		t.Errorf("%+v", f)
	}
}

func TestMark(t *testing.T) {
	show := func(pieces []Piece) (text string) {
		for _, p := range pieces {
			switch {
			case p.Text == "":
				text += " …"
			case p.Own:
				text += " [" + p.Text + "]"
			default:
				text += " " + p.Text
			}
		}
		return strings.TrimSpace(text)
	}
	fold := func(word string) string { return strings.Trim(strings.ToLower(word), "—,.") }
	a, b := Mark("The storm — over Sylt, took ten boats today", "the storm over Amrum took 12 boats today.", fold)
	expect.Same(t, "The storm — over [Sylt,] [took] [ten] boats today", show(a), "")
	expect.Same(t, "the storm over [Amrum] [took] [12] boats today.", show(b), "")
	a, b = Mark("東京は雨", "東京は雪", fold)
	expect.Same(t, "東 京 は [雨]", show(a), "")
	expect.Same(t, "東 京 は [雪]", show(b), "")
	a, b = Mark("one", "one", fold)
	expect.Same(t, "one one", show(a)+" "+show(b), "")
	long, _ := Mark(strings.Repeat("w ", 30)+"x y "+strings.Repeat("w ", 30), strings.Repeat("w ", 60), fold)
	expect.Same(t, "w w w w … w w [x] [y] w w …", show(Excerpt(long, 2, 99)), "")
	expect.Same(t, "w w w …", show(Excerpt(long, 2, 3)), "")
}

// TestAdvise finds the field that parts what was called different, with its counts, and no field that parts everything.
func TestAdvise(t *testing.T) {
	var judged []Judged
	for i := range 5 {
		judged = append(judged,
			Judged{Same: true, A: Values{"city": "Rome", "id": "1", "@day": "2024-03-01", "host": "a"}, B: Values{"city": "Rome", "id": fmt.Sprint(i), "@day": "2024-03-02", "host": "b"}},
			Judged{Same: false, A: Values{"city": "Rome", "id": "1", "@day": "2024-03-01", "host": "a"}, B: Values{"city": fmt.Sprint("Oslo", min(i, 3)), "id": fmt.Sprint(i), "@day": "2024-05-02", "host": "a"}})
	}
	judged[1].B["city"] = "Rome"
	expect.Same(t, []Advice{
		{"within: {field: \"@day\", span: 1d}", "5 of 5 pairs you called different lie more than 1d apart in @day; 0 of 5 same ones do"},
		{"same: [city]", "4 of 5 pairs you called different differ in city; 0 of 5 same ones do"},
		{"different: [host]", "5 of 5 pairs you called different have the same host; 0 of 5 same ones do"},
	}, Advise(judged, nil), "")
	expect.Same(t, []Advice(nil), Advise(judged[:6], nil), "of three pairs of each verdict")
	expect.Same(t, []Advice(nil), Advise(judged, []string{"city", "@day", "host.keyword"}), "what the rule has conditions on")
	expect.Same(t, []string{"@day", "city", "id"}, Differing(judged[5].A, judged[5].B), "")
}

// TestAdvisePreset names the preset by which clearly more pairs are judged as the person does, with counts, and none where chance or the threshold explains it.
func TestAdvisePreset(t *testing.T) {
	// Of twenty pairs half are the same, whatever their agreement. Preset "right" says so but for one, "half" of every other pair, "never" folds nothing.
	var judged []Judged
	for i := range 20 {
		same := i%2 == 0
		judged = append(judged, Judged{Same: same, Agreement: 0.3 + 0.02*float64(i), Presets: map[string]bool{
			"right": same != (i == 3), "half": i%4 < 2, "never": false,
		}})
	}
	expect.Same(t, []Advice{{"preset: right", "preset right judges 19 of 20 pairs as you do; this rule judges 10, at threshold 0.5"}},
		AdvisePreset(judged, 0.5), "")
	expect.Same(t, []Advice(nil), AdvisePreset(judged[:Fewest-1], 0.9), "of nine pairs")
	for i := range judged {
		judged[i].Agreement = map[bool]float64{true: 0.6, false: 0.4}[judged[i].Same != (i < 3)]
	}
	expect.Same(t, []Advice(nil), AdvisePreset(judged, 0.5), "19 beside 17")
	for i := range judged { // eight of ten same ones don't agree: folding nothing is right as often, and no help
		judged[i].Agreement = map[bool]float64{true: 0.6, false: 0.4}[i < 18]
		judged[i].Same = i >= 16 && i < 18
		judged[i].Presets = map[string]bool{"never": false}
	}
	expect.Same(t, []Advice(nil), AdvisePreset(judged, 0.5), "a preset that folds nothing")
}

// TestMayStop: with answers of which one in ten is a slip, a session says that one may stop only where no likely threshold is much better, and hardly
// ever where the true loss is above the tolerable one. Where it is settled by the number of answers alone it says so.
func TestMayStop(t *testing.T) {
	stops, bad := 0, 0
	for _, l := range []*labelled{drawn(0.25, 0.02), drawn(0.34, 0.08), drawn(0.5, 0.15), drawn(0.6, 0.01), drawn(0.76, 0.05)} {
		best, _ := l.best()
		for seed := range uint64(4) {
			for questions := Fewest; questions <= most; questions += 2 {
				f := l.judge(t, seed, questions, true).Finding()
				stop := strings.HasPrefix(f.Progress(), "You can stop")
				if stop != (f.Gain <= enough && f.Loss <= tolerable) || f.Settled != (stop || f.Judged() >= most) {
					t.Errorf("%s, %d answers: %+v: %s", l.name, questions, f, f.Progress())
				}
				if stop {
					stops++
					if best-l.f1(f.Threshold) > 2*tolerable {
						bad++
					}
				}
			}
		}
	}
	if t.Logf("%d of %d stops lose much", bad, stops); stops < 20 || bad*10 > stops {
		t.Errorf("%d of %d stops lose more than twice the tolerable", bad, stops)
	}
}

// TestContradicting counts the answers that the best threshold is wrong about, and says how many more pairs fold at the threshold.
func TestContradicting(t *testing.T) {
	var pairs []Pair
	for i := range 10 {
		pairs = append(pairs, Pair{A: fmt.Sprint(i, "a"), B: fmt.Sprint(i, "b"), Agreement: 0.3 + float64(i/2)/10})
	}
	for answers, want := range map[string]string{
		"dddddsssss": "1 answer contradicts the others.", // two of the same agreement
		"ddddssssss": "",
		"ssssssssss": "",
		"dddddddddd": "",
		"ssdddddsss": "3 answers contradict the others.",
		"sdkdddssds": "2 answers contradict the others.",
		"ssssdddddd": "4 answers contradict the others.",
	} {
		s := New(pairs, Counts{20: 7, 30: 5, 40: 4, 50: 3, 60: 2, 70: 1}, 0.64)
		for i, letter := range answers {
			verdict := map[rune]Verdict{'s': Same, 'd': Different, 'k': Skip}[letter]
			expect.OK(t, s.Answer(Answer{A: pairs[i].A, B: pairs[i].B, Verdict: verdict}))
		}
		f := s.Finding()
		expect.Same(t, want, f.Contradictions(), "%s", answers)
		more := -1 // that of 0.7 folds now
		for level, n := range s.counts {
			if level >= Hundredth(f.Threshold) {
				more += int(n)
			}
		}
		expect.Same(t, more, f.More, "%s", answers)
	}
}
