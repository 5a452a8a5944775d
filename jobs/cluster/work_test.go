package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

// stops is a progress that ends a run in some step.
type stops struct {
	stop  func()
	after int
}

func (s *stops) Step(string, int, int) {
	if s.after--; s.after == 0 {
		s.stop()
	}
}

// keptRun adds the documents that are not kept yet, and clusters. It breaks off after that many documents, or in the
// step with that number. It returns the lines of the clusters, none if it was broken off, and how many documents it added.
func keptRun(t *testing.T, o Options, dir string, list []Document, documents, steps int) (lines []string, added int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.SaveEvery, o.Progress = 1, &stops{cancel, steps}
	c := expect.Value(New(o))(t)
	defer c.Close()
	at := 0
	note, err := c.Resume(ctx, dir, map[string]string{"test": "yes"})
	if ctx.Err() != nil {
		return nil, 0
	}
	expect.OK(t, err)
	if note != nil {
		expect.OK(t, json.Unmarshal(note, &at))
	}
	expect.Must(t, at, c.Documents(), "documents that are kept")
	for ; at < len(list); at++ {
		if added == documents {
			return nil, added
		}
		expect.OK(t, c.Add(list[at]))
		added++
		if at%97 == 0 {
			expect.OK(t, c.Save(func() any { return at + 1 }, false))
		}
	}
	expect.OK(t, c.Save(func() any { return at }, true))
	if err := c.Cluster(ctx); ctx.Err() != nil {
		return nil, added
	} else {
		expect.OK(t, err)
	}
	expect.OK(t, c.Each(ctx, func(members []Member) error {
		for _, m := range members {
			lines = append(lines, fmt.Sprintf("%s %s %d %.4f %v %s", m.Cluster, m.ID, m.Size, m.Agreement, m.First, m.Host))
		}
		return nil
	}))
	lines = append(lines, fmt.Sprintf("%+v", c.Left()))
	expect.OK(t, c.RemoveSaved())
	return lines, added
}

// TestKeptRuns breaks runs off at random: what comes out is that of a run that was not broken off, and no more is done again than what came after the last save.
func TestKeptRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 1))
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	list := documents(rule, texts(r, 2000, 60))
	list[7].Sketch, list[8].ID = nil, strings.Repeat("long", 1000)
	for _, algorithm := range []Algorithm{Bands, Exact} {
		want, _ := keptRun(t, Options{Rule: rule, Algorithm: algorithm}, t.TempDir(), list, -1, -1)
		for round := range effort.Rounds(20) {
			dir, all, runs, lines := t.TempDir(), 0, 0, []string(nil)
			for ; lines == nil; runs++ {
				var added int
				o := Options{Rule: rule, Algorithm: algorithm, Memory: []int64{0, 1, 1 << 18}[r.IntN(3)]}
				if lines, added = keptRun(t, o, dir, list, r.IntN(3*len(list)), r.IntN(40)); lines == nil && r.IntN(2) == 0 { // what was written and never counted
					f := expect.Value(os.OpenFile(filepath.Join(dir, recordsName), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600))(t)
					_, err := io.WriteString(f, "torn")
					expect.OK(t, err)
					expect.OK(t, f.Close())
				}
				all += added
			}
			expect.Must(t, want, lines, "%s, round %d", algorithm, round)
			if most := len(list) + 97*runs; all > most {
				t.Errorf("%d documents were added in %d runs, at most %d were to be", all, runs, most)
			}
			left := expect.Value(os.ReadDir(dir))(t)
			if len(left) != 1 || left[0].Name() != lockName {
				t.Errorf("left behind: %v", left)
			}
		}
	}
}

// TestKeptWorkIsChecked damages what is kept: the next run says so, or goes on rightly.
func TestKeptWorkIsChecked(t *testing.T) {
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	list := documents(rule, texts(rand.New(rand.NewPCG(6, 9)), 300, 40))
	o := Options{Rule: rule, Memory: 1}
	want, _ := keptRun(t, o, t.TempDir(), list, -1, -1)
	dir := t.TempDir()
	for steps := 8; ; steps++ { // until some bands are done
		keptRun(t, o, dir, list, -1, steps)
		if s := expect.Value(parseState(expect.Value(os.ReadFile(filepath.Join(dir, stateName)))(t)))(t); s.Bands > 1 {
			break
		}
	}
	names := map[string][]byte{}
	for _, entry := range expect.Value(os.ReadDir(dir))(t) {
		names[entry.Name()] = expect.Value(os.ReadFile(filepath.Join(dir, entry.Name())))(t)
	}
	state := names[stateName]
	try := func(name string, changed []byte) error {
		dir := t.TempDir()
		for file, text := range names {
			if file == name {
				text = changed
			}
			expect.OK(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
		}
		if name == stateName+".new" {
			expect.OK(t, os.WriteFile(filepath.Join(dir, name), changed, 0o600))
		}
		c := expect.Value(New(o))(t)
		defer c.Close()
		if _, err := c.Resume(t.Context(), dir, map[string]string{"test": "yes"}); err != nil {
			return err
		}
		return c.Cluster(t.Context())
	}
	for n := range state {
		if err := try(stateName, state[:n]); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("a state of %d bytes: %v", n, err)
		}
		if n%20 == 0 {
			expect.OK(t, try(stateName+".new", state[:n]))
		}
		changed := append([]byte(nil), state...)
		changed[n] ^= 1 // of a digit, another digit
		if _, err := parseState(changed); err == nil {
			t.Errorf("a state with another byte %d is taken: %s", n, changed)
		}
	}
	for name, text := range names {
		if name == stateName || name == lockName {
			continue
		}
		for _, changed := range [][]byte{nil, text[:len(text)/2], text[:len(text)-1], append([]byte{text[0] ^ 1}, text[1:]...)} {
			if err := try(name, changed); err == nil || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("%s of %d bytes: %v", name, len(changed), err)
			}
		}
	}
	if err := try(stateName, []byte(strings.Replace(string(state), `"neardup_work":1`, `"neardup_work":2`, 1))); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Error(err)
	}
	other := o
	other.Rule = ruleOf(t, sketch.DefaultScheme(), 0.7, 8)
	c := expect.Value(New(other))(t)
	if _, err := c.Resume(t.Context(), dir, map[string]string{"test": "yes"}); err == nil || !strings.Contains(err.Error(), `the saved run has threshold "0.64", this one "0.7"`) {
		t.Error(err)
	}
	again := expect.Value(New(o))(t)
	if _, err := again.Resume(t.Context(), dir, map[string]string{"test": "yes"}); err == nil || !strings.Contains(err.Error(), "another run uses it") {
		t.Error(err)
	}
	again.Close()
	c.Close()
	lines, added := keptRun(t, o, dir, list, -1, -1)
	expect.Same(t, want, lines, "after all this")
	expect.Same(t, 0, added, "documents that were added again")
}

// TestForeignFilesStay has links and folders in the place of each file of a run, with a saved run and without one: what they lead to stays as it is.
func TestForeignFilesStay(t *testing.T) {
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	list := documents(rule, texts(rand.New(rand.NewPCG(6, 9)), 300, 40))
	o := Options{Rule: rule, SaveEvery: time.Hour}
	for _, saved := range []bool{false, true} {
		for _, name := range []string{recordsName, stateName, stateName + ".new", lockName, forestName + "8"} {
			for _, kind := range []string{"link", "broken link", "folder"} {
				dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
				if saved {
					keptRun(t, o, dir, list, 200, -1)
					expect.OK(t, os.RemoveAll(filepath.Join(dir, name)))
				}
				if kind == "link" {
					expect.OK(t, os.WriteFile(victim, []byte("precious"), 0o600))
				}
				if kind == "folder" {
					expect.OK(t, os.MkdirAll(filepath.Join(dir, name, "more"), 0o700))
				} else {
					expect.OK(t, os.Symlink(victim, filepath.Join(dir, name)))
				}
				c := expect.Value(New(o))(t)
				_, err := c.Resume(t.Context(), dir, map[string]string{"test": "yes"})
				for i := 0; i < 300 && err == nil; i++ {
					if err = c.Add(list[i]); err == nil {
						err = c.Save(func() any { return i }, i == 299)
					}
				}
				if err == nil {
					err = c.work.wait()
				}
				c.Close()
				if err == nil && !strings.HasPrefix(name, forestName) {
					t.Errorf("a %s for %s is taken", kind, name)
				}
				if text, err := os.ReadFile(victim); kind == "link" && string(text) != "precious" || kind == "broken link" && err == nil {
					t.Errorf("a %s for %s: it led to a file with %q, %v", kind, name, text, err)
				}
			}
		}
	}
}

// TestKeptIsOnTheDisk holds that a state counts no more than what was flushed before it.
func TestKeptIsOnTheDisk(t *testing.T) {
	flushed, states := map[string]int64{}, 0
	defer func(before func(*os.File) error) { syncFile = before }(syncFile)
	syncFile = func(f *os.File) error {
		raw := expect.Value(os.ReadFile(f.Name()))(t)
		name := filepath.Base(f.Name())
		flushed[name] = int64(len(raw))
		if name != stateName+".new" {
			return nil
		}
		states++
		s := expect.Value(parseState(raw))(t)
		if flushed[recordsName] < s.Bytes || s.Bands > 0 && flushed[fmt.Sprint(forestName, s.Bands)] == 0 {
			t.Errorf("%+v, of which these are on the disk: %v", s, flushed)
		}
		return nil
	}
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	list := documents(rule, texts(rand.New(rand.NewPCG(6, 9)), 1000, 40))
	keptRun(t, Options{Rule: rule, Memory: 1}, t.TempDir(), list, -1, -1)
	if states < 10 {
		t.Errorf("%d states", states)
	}
}

// FuzzKeptWork has any bytes for a state and for records.
func FuzzKeptWork(f *testing.F) {
	rule := ruleOf(f, sketch.DefaultScheme(), 0.64, 8)
	c := expect.Value(New(Options{Rule: rule}))(f)
	for _, d := range documents(rule, []string{"one two three four", ""}) {
		expect.OK(f, c.Add(d))
	}
	f.Add([]byte(`{"neardup_work":1,"documents":2,"bytes":9,"run":{"a":"b"}}`), c.records.held)
	f.Add([]byte(`{"neardup_work":2}`), []byte{headerSize: 0xff})
	f.Fuzz(func(t *testing.T, raw, records []byte) {
		_, _ = parseState(raw)
		in, room, whole := &io.LimitedReader{R: strings.NewReader(string(records)), N: int64(len(records))}, []byte(nil), 0
		for {
			record, sketched, err := readRecord(in, room)
			if err != nil {
				break
			}
			whole += len(record)
			names := decode(record, 1, new(sketch.Sketch))
			if len(record)-len(names) != sketched {
				t.Fatalf("%d bytes of a sketch, want %d", len(record)-len(names), sketched)
			}
			for range namesInRecord {
				_ = cutText(&names)
			}
			if len(names) > 0 {
				t.Fatalf("%d bytes behind the names", len(names))
			}
			room = record
		}
		if whole > len(records) {
			t.Fatalf("%d bytes of %d", whole, len(records))
		}
	})
}
