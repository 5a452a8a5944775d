package decided

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
)

// journal is a journal in memory. Now and then it loses the answer to what it has stored.
type journal struct {
	mu      sync.Mutex
	entries []adapters.Entry
	loses   func() bool
	reads   int // entries that were read
}

func (j *journal) Append(_ context.Context, job string, e adapters.Entry) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if slices.ContainsFunc(j.entries, func(o adapters.Entry) bool { return o.Compare(e) == 0 }) {
		return false, nil
	}
	j.entries = append(j.entries, e)
	return j.loses == nil || !j.loses(), nil
}

func (j *journal) Since(_ context.Context, job string, slot, number int) (list []adapters.Entry, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if e.Job == job && e.Slot == slot && e.Number >= number {
			list = append(list, e)
		}
	}
	j.reads += len(list)
	return list, nil
}

func (j *journal) Entries(context.Context, string) ([]adapters.Entry, error) { panic("not asked") }
func (j *journal) Drop(context.Context, string, int, int) error              { panic("not asked") }

func pairOf(a, b string, v Verdict) Pair {
	return Pair{Index: "news", A: a, B: b, Verdict: v, TextA: uint64(a[0]), TextB: uint64(b[0])}
}

// TestLogKeepsWhatAllWrite: writers at the same time, through a journal that loses answers, lose nothing, and each one's last word about its own pairs counts.
func TestLogKeepsWhatAllWrite(t *testing.T) {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 1))
	j := &journal{loses: func() bool { mu.Lock(); defer mu.Unlock(); return r.IntN(3) == 0 }}
	var all sync.WaitGroup
	for writer := range 6 {
		all.Go(func() {
			l := Open(j)
			for i := range 20 {
				for _, v := range []Verdict{Same, Different, Forgotten, Different}[:1+i%4] {
					id := fmt.Sprintf("%d-%d", writer, i)
					if i%2 == 0 {
						_, err := l.Add(t.Context(), "", pairOf(id, "other", v))
						expect.OK(t, err)
						continue
					}
					_, err := l.Add(t.Context(), "", pairOf("other", id, v))
					expect.OK(t, err)
				}
			}
		})
	}
	all.Wait()
	l := Open(j)
	expect.OK(t, l.Read(t.Context()))
	for writer := range 6 {
		for i := range 20 {
			got, _ := l.Pair("news", "other", fmt.Sprintf("%d-%d", writer, i))
			expect.Must(t, []Verdict{Same, Different, Forgotten, Different}[i%4], got.Verdict, "writer %d, pair %d", writer, i)
		}
	}
	if n, err := l.Add(t.Context(), "", l.Pairs()...); n != 0 || err != nil {
		t.Errorf("the same again adds %d: %v", n, err)
	}
}

// TestLogReadsWhatIsNew: a second read reads one entry, and after the journal was deleted what was decided since.
func TestLogReadsWhatIsNew(t *testing.T) {
	j := &journal{}
	l, other := Open(j), Open(j)
	for i := range 30 {
		expect.Value(other.Add(t.Context(), "anna", pairOf(fmt.Sprint(i), "x", Same)))(t)
	}
	expect.OK(t, l.Read(t.Context()))
	expect.Must(t, 30, len(l.Pairs()), "pairs")
	j.reads = 0
	expect.OK(t, l.Read(t.Context()))
	expect.Must(t, 1, j.reads, "entries read")
	j.entries = nil
	expect.Value(Open(j).Add(t.Context(), "ben", pairOf("n", "x", Different)))(t)
	expect.OK(t, l.Read(t.Context()))
	by := expect.By{cmpopts.IgnoreFields(Pair{}, "At")}
	want := pairOf("n", "x", Different)
	want.By = "ben"
	by.Must(t, []Pair{want}, l.Pairs(), "after the journal was deleted")
}

// TestSetFindsBothSides: each document of a pair by its text, and nothing by another text, id or index.
func TestSetFindsBothSides(t *testing.T) {
	var pairs []Pair
	for i := range 500 {
		a, b := i%40, 40+i%50
		p := Pair{Index: "news", A: fmt.Sprint(a), B: fmt.Sprint(b), Verdict: []Verdict{Same, Different}[i%2], TextA: uint64(a % 7), TextB: uint64(b % 7)} // many have one text
		if !slices.ContainsFunc(pairs, func(q Pair) bool { return p.Name() == q.Name() }) {
			pairs = append(pairs, p)
		}
	}
	s := NewSet(append(pairs, Pair{Index: "news", A: "gone", B: "1", TextA: 1, TextB: 1}))
	expect.Must(t, len(pairs), s.Len(), "pairs")
	for _, p := range pairs {
		for range 2 {
			d := s.Of("news", p.A, p.TextA)
			if d == nil {
				t.Fatalf("%v is not found by %s", p, p.A)
			}
			i := slices.IndexFunc(d.Pairs, func(e rerank.Decision) bool { return e.Other == document("news", p.B) })
			if i < 0 || d.Pairs[i].Fingerprint != p.TextB || d.Pairs[i].Same != (p.Verdict == Same) || d.Document != document("news", p.A) {
				t.Fatalf("%v: %+v", p, d)
			}
			p.A, p.B, p.TextA, p.TextB = p.B, p.A, p.TextB, p.TextA
		}
		for _, other := range []*rerank.Decided{s.Of("news", p.A, p.TextA+1), s.Of("books", p.A, p.TextA), s.Of("news", "x"+p.A, p.TextA), (*Set)(nil).Of("news", p.A, p.TextA)} {
			if other != nil {
				t.Fatalf("%v is found by something else: %+v", p, other)
			}
		}
	}
	if s.Of("news", "gone", 1) != nil || !s.Has("news") || s.Has("books") {
		t.Error("what was forgotten is found, or an index is taken for another one")
	}
}

func TestParse(t *testing.T) {
	got, err := Parse(strings.NewReader("\ufeff# a comment\n\na1 a2 same\r\nbooks \"a \\\"1\" b#1 different # why\n  a2\ta1  same\n\"#1\" \"\\u00e9\" same"), "f", "news")
	expect.OK(t, err)
	expect.Must(t, []Pair{
		{Index: "news", A: "a1", B: "a2", Verdict: Same}, {Index: "books", A: `a "1`, B: "b#1", Verdict: Different}, {Index: "news", A: "#1", B: "é", Verdict: Same},
	}, got, "pairs")
	var lines []string
	for _, p := range got {
		lines = append(lines, p.String())
	}
	again, err := Parse(strings.NewReader(strings.Join(lines, "\n")), "f", "")
	expect.OK(t, err)
	expect.Must(t, got, again, "written and read")
	for text, want := range map[string]string{
		"a b": "f: line 1: holds 2 words: write two ids and same or different", "a b c d e": "holds 5 words",
		"\na b diferent": `f: line 2: "diferent": write same or different here`, "a a same": "both ids are a",
		`"a b same`: "f: line 1: a word begins with a quotation mark but is not a JSON string", `"" b same`: "an id is empty",
		"a b same\nb a different":      "f: line 2: b and a are different here, but same on an earlier line",
		strings.Repeat("x", maxLine+1): "f: line 1: bufio.Scanner: token too long",
	} {
		if _, err := Parse(strings.NewReader(text), "f", "news"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

// TestLiveKeepsWhatItCouldRead: what can't be read leaves the last set; a later reading finds all since, and what was taken back is gone.
func TestLiveKeepsWhatItCouldRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		log, failing := Open(j), false
		live := NewLive(unreliable{j, &failing}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var results []bool
		expect.OK(t, live.Read(ctx))
		go live.Run(ctx, 10*time.Second, func(err error) { results = append(results, err == nil) })
		add := func(v Verdict) {
			expect.Value(log.Add(t.Context(), "", pairOf("a", "b", v), pairOf("a", "c", Same)))(t)
		}
		obeyed := func(what string, want []bool) {
			t.Helper()
			time.Sleep(11 * time.Second)
			synctest.Wait()
			var got []bool
			for _, id := range []string{"b", "c"} {
				if same, is := live.Set().Pair("news", "a", uint64('a'), id, uint64(id[0])); is {
					got = append(got, same)
				}
			}
			expect.Must(t, want, got, "%s", what)
		}
		obeyed("nothing is decided", nil)
		add(Same)
		obeyed("decided", []bool{true, true})
		before := live.Set()
		obeyed("nothing new", []bool{true, true})
		if live.Set() != before {
			t.Error("a set is made though nothing is new")
		}
		failing = true
		add(Different)
		obeyed("not readable", []bool{true, true})
		failing = false
		obeyed("readable again", []bool{false, true})
		add(Forgotten)
		obeyed("taken back", []bool{true})
		if live.Set().Len() != 1 || live.Set().Mark() == before.Mark() {
			t.Errorf("%d pairs", live.Set().Len())
		}
		expect.Must(t, []bool{true, true, true, false, true, true}, results, "what was reported")
	})
}

// unreliable is a journal that can't be read now and then.
type unreliable struct {
	*journal
	failing *bool
}

func (u unreliable) Since(ctx context.Context, job string, slot, number int) ([]adapters.Entry, error) {
	if *u.failing {
		return nil, errors.New("no rights")
	}
	return u.journal.Since(ctx, job, slot, number)
}

// TestManyPairs says what 100,000 pairs take, in a short form 2,000.
func TestManyPairs(t *testing.T) {
	j, n := &journal{}, effort.Rounds(100_000)
	var pairs []Pair
	for i := range n {
		pairs = append(pairs, Pair{
			Index: "news", A: fmt.Sprintf("document-number-%d", 2*i), B: fmt.Sprintf("document-number-%d", 2*i+1), Verdict: []Verdict{Same, Different}[i%2],
			TextA: uint64(2*i) * 0x9e3779b97f4a7c15, TextB: uint64(2*i+1) * 0x9e3779b97f4a7c15,
		})
	}
	expect.Value(Open(j).Add(t.Context(), "anna", pairs...))(t)
	pairs = nil
	before := live()
	began, l := time.Now(), NewLive(j, nil)
	expect.OK(t, l.Read(t.Context()))
	took, grown := time.Since(began), live()-before
	t.Logf("%d pairs in %d entries: %v to read, %d bytes for a pair", n, len(j.entries), took, grown/n)
	if l.Set().Len() != n || grown > 400*n+1<<20 {
		t.Errorf("%d pairs take %d bytes", l.Set().Len(), grown)
	}
}

// live is how many bytes are reachable.
func live() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// FuzzParse holds that what is read of a file and written again is read as the same.
func FuzzParse(f *testing.F) {
	f.Add("a1 a2 same\nbooks \"a 1\" b#1 different # why")
	f.Add("\"\\u0000\" \"\\\"\" same\n\xff b different")
	f.Fuzz(func(t *testing.T, text string) {
		pairs, err := Parse(strings.NewReader(text), "f", "an index")
		if err != nil {
			return
		}
		var lines []string
		for _, p := range pairs {
			lines = append(lines, p.String())
		}
		again, err := Parse(strings.NewReader(strings.Join(lines, "\n")), "f", "")
		if err != nil || !slices.Equal(pairs, again) {
			t.Fatalf("%v %v: %v", pairs, again, err)
		}
	})
}

// TestLogRefusesOtherVerdicts: what a newer version has decided is not taken for "different".
func TestLogRefusesOtherVerdicts(t *testing.T) {
	j := &journal{}
	l, live := Open(j), NewLive(j, nil)
	_, _ = l.Add(t.Context(), "", pairOf("a", "b", "perhaps"))
	if err := live.Read(t.Context()); err == nil || live.Set().Len() > 0 {
		t.Errorf("%v, %d pairs", err, live.Set().Len())
	}
}

// overtaken is a journal in which another process decides something just before.
type overtaken struct {
	*journal
	before func()
}

func (o *overtaken) Append(ctx context.Context, job string, e adapters.Entry) (bool, error) {
	if before := o.before; before != nil {
		o.before = nil
		before()
	}
	return o.journal.Append(ctx, job, e)
}

// TestLogIsJudgedAgain: a pair that was as before when Add began is stored if somebody else decides otherwise meanwhile.
func TestLogIsJudgedAgain(t *testing.T) {
	j := &journal{}
	o := &overtaken{journal: j}
	l := Open(o)
	expect.Value(l.Add(t.Context(), "", pairOf("a", "b", Same)))(t)
	o.before = func() { expect.Value(Open(j).Add(t.Context(), "", pairOf("a", "b", Different)))(t) }
	n, err := l.Add(t.Context(), "", pairOf("a", "b", Same), pairOf("a", "c", Same))
	if p, _ := l.Pair("news", "a", "b"); n != 2 || err != nil || p.Verdict != Same {
		t.Errorf("%d stored, %v: %v", n, err, p)
	}
}

// TestSetOfNothing: a nil Set is empty.
func TestSetOfNothing(t *testing.T) {
	var s *Set
	if _, is := s.Pair("news", "a", 1, "b", 2); is || s.Mark() != 0 || s.Len() != 0 || s.Has("news") {
		t.Error("it holds something")
	}
}
