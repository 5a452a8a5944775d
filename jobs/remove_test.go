package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// odd are documents in forms that no encoder of ours would write.
var odd = []string{
	`{"title":"the ferry was late again"}`,
	"{ \"title\" : \"the ferry\\u0020was \\ud83d\\ude00 late\" ,\n\t\"n\":1.10e0 }",
	`{"title":"one two three","n":9007199254740993,"a":{"b":[1, 2,{"neardup_sketch":"a nested one is the client's"}]}}`,
	`{"b":2,"a":1,"title":["x y z","y z q"],"é":"\u00e9"}`,
	`{}`, `{ }`, `{"title":"…"}`, `{"title":null}`, `{"n":1}`,
	`{"neardup_other":"is not ours","title":"four five six"}`,
	"{\"title\":\"\u2028 \\/ \\\" <b>bold</b> & more\"}",
}

// enriched returns the documents as they stand with our fields, and as they were.
func enriched(t testing.TB, r *rule.Rule, n int) (with, without map[string]string) {
	t.Helper()
	with, without = map[string]string{}, map[string]string{}
	for i := range n {
		id, source := fmt.Sprintf("%04d", i), odd[i%len(odd)]
		want, _ := r.OursFor([]byte(source), id)
		with[id], without[id] = string(expect.Value(rule.WithOurs([]byte(source), want))(t)), source
	}
	return with, without
}

func TestRemoveLeavesNothing(t *testing.T) {
	for _, rule := range []*rule.Rule{testRule(t), richRule(t)} {
		with, without := enriched(t, rule, 3*len(odd))
		with["cleared"], without["cleared"] = `{"title":"a","neardup_sketch":null}`, `{"title":"a"}`
		with["twice"], without["twice"] = `{"neardup_bands":[1],"title":"a","neardup_cluster":7, "neardup_bands":[2]}`, `{"title":"a"}`
		found := 0
		for id := range with {
			if with[id] != without[id] {
				found++
			}
		}
		m := byID{newMemory(7, with)}
		dry := expect.Value(Remove(t.Context(), Job{Store: m, Index: "news"}, RemoveOptions{DryRun: true}, nil))(t)
		expect.Same(t, Removal{Total: len(with), Scanned: len(with), Found: found}, dry, "a dry run")
		expect.Same(t, 0, m.writes, "documents that a dry run wrote")
		got := expect.Value(Remove(t.Context(), Job{Store: m, Index: "news"}, RemoveOptions{}, nil))(t)
		expect.Same(t, Removal{Total: len(with), Scanned: len(with), Found: found, Cleaned: found}, got, "")
		expect.Same(t, without, m.sources, "the documents")
		if again, err := Remove(t.Context(), Job{Store: m, Index: "news"}, RemoveOptions{}, nil); err != nil || again.Found != 0 || m.writes != found {
			t.Errorf("again: %+v, %v, %d writes", again, err, m.writes)
		}
	}
}

// TestRemoveWhileOthersWrite changes and deletes documents between being read and being written: what was written meanwhile
// stays, less our fields, and every document is counted once.
func TestRemoveWhileOthersWrite(t *testing.T) {
	seed := effort.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	r := richRule(t)
	for range effort.Rounds(50) {
		synctest.Test(t, func(t *testing.T) {
			with, without := enriched(t, r, 60)
			m := byID{newMemory(1+rnd.IntN(30), with)}
			m.onPatch = func(batch int) (int, error) {
				if id := fmt.Sprintf("%04d", rnd.IntN(60)); rnd.IntN(2) == 0 {
					if _, there := without[id]; !there {
						return batch, nil
					}
					if rnd.IntN(3) == 0 {
						m.memory.remove(id)
						delete(without, id)
						return batch, nil
					}
					text := fmt.Sprintf(`{"title":"written meanwhile %d"}`, rnd.Int())
					want, _ := r.OursFor([]byte(text), "0")
					document, _ := rule.WithOurs([]byte(text), want)
					without[id] = text
					m.put(id, string(document))
				}
				return batch, nil
			}
			m.room = func(batch int) int { return rnd.IntN(batch + 1) }
			got, err := Remove(t.Context(), Job{Store: m, Index: "news"}, RemoveOptions{}, nil)
			if err != nil || got.Found != got.Cleaned+got.Gone+got.Refused+got.Left {
				t.Fatalf("%+v, %v", got, err)
			}
			m.onPatch, m.room = nil, nil
			if got, err = Remove(t.Context(), Job{Store: m, Index: "news"}, RemoveOptions{}, nil); err != nil ||
				got.Left != 0 { // what was written behind the scan
				t.Fatalf("%+v, %v", got, err)
			}
			expect.Same(t, without, maps.Clone(m.sources), "the documents")
		})
	}
}

func TestRemoveBreaksOff(t *testing.T) {
	with, without := enriched(t, testRule(t), 40)
	broken := errors.New("the line went dead")
	m, batches := byID{newMemory(10, with)}, 0
	m.onPatch = func(batch int) (int, error) {
		if batches++; batches == 2 {
			return batch / 2, broken
		}
		return batch, nil
	}
	if got, err := Remove(t.Context(), Job{Store: m, Index: "news"}, RemoveOptions{}, nil); !errors.Is(err, broken) {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.onPatch = func(batch int) (int, error) {
		cancel() // the batch that is under way ends, and is counted
		return batch, nil
	}
	before := m.writes
	if got, err := Remove(ctx, Job{Store: m, Index: "news"}, RemoveOptions{}, nil); !errors.Is(err, context.Canceled) ||
		got.Cleaned != m.writes-before || got.Cleaned == 0 {
		t.Errorf("%+v, %v, %d writes", got, err, m.writes-before)
	}
	m.onPatch = nil
	if _, err := Remove(t.Context(), Job{Store: m, Index: "news"}, RemoveOptions{}, nil); err != nil {
		t.Error(err)
	}
	expect.Same(t, without, m.sources, "the documents")
}

// TestRemoveOfAnEngineWithoutRoom ends with an error when the engine refuses every request for long.
func TestRemoveOfAnEngineWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with, _ := enriched(t, testRule(t), 3)
		m := byID{newMemory(10, with)}
		m.onPatch = func(int) (int, error) { return 0, adapters.ErrBusy }
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		defer cancel()
		if got, err := Remove(ctx, Job{Store: m, Index: "news"}, RemoveOptions{}, nil); err == nil || ctx.Err() != nil || got.Cleaned != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
