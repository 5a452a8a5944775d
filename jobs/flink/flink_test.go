package flink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

// positions returns a sketch of positions at random.
func positions(r *rand.Rand, number uint64, count, bits int) *sketch.Sketch {
	s := &sketch.Sketch{Scheme: 1, Form: sketch.Positions, Bits: uint8(bits), Fingerprint: number, Shingles: 9}
	s.Payload = make([]byte, count*bits/8)
	for i := range s.Payload {
		s.Payload[i] = byte(r.Uint32())
	}
	return s
}

// near returns a sketch of which some positions are those of another.
func near(r *rand.Rand, s *sketch.Sketch) *sketch.Sketch {
	other, share := *s, r.Float64()
	other.Payload = slices.Clone(s.Payload)
	for i := range other.Payload {
		if r.Float64() > share {
			other.Payload[i] = byte(r.Uint32())
		}
	}
	return &other
}

// equal counts as the SQL does, over the same numbers.
func (s shape) equalWords(a, b []int64) (count int) {
	for i := range s.positions {
		word, at := i/s.perWord(), i%s.perWord()
		digit := func(w int64) int64 { return w / (int64(1) << (at * s.width)) % (1 << s.width) }
		if digit(a[word]) == digit(b[word]) {
			count++
		}
	}
	return count
}

// TestWordsSayWhatAgreementSays holds the comparison in numbers of 63 bits to the sketches' own agreement, pair by pair.
func TestWordsSayWhatAgreementSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, bits := range []int{1, 2, 4, 8} {
		for _, count := range []int{8, 64, 128, 256} {
			both := [2]int{}
			for range 2000 {
				a := positions(r, 0, count, bits)
				b := near(r, a)
				threshold := r.Float64()
				s := shapeOf(a, threshold)
				agreement, ok := a.Agreement(b)
				if !ok {
					t.Fatal("not comparable")
				}
				if s.least == 0 { // every pair is a candidate
					continue
				}
				x, y := s.appendWords(nil, a.Payload), s.appendWords(nil, b.Payload)
				if len(x) != s.words() || slices.Min(x) < 0 {
					t.Fatalf("%d numbers, want %d: %v", len(x), s.words(), x)
				}
				got, want := s.equalWords(x, y) >= s.least, agreement >= threshold
				if got != want {
					t.Fatalf("%d positions of %d bits: agreement %v, threshold %v: got %t", count, bits, agreement, threshold, got)
				}
				if got {
					both[1]++
				} else {
					both[0]++
				}
			}
			if min(both[0], both[1]) < 100 {
				t.Errorf("%d positions of %d bits: %v pairs below and above: the test shows little", count, bits, both)
			}
		}
	}
}

// TestCommittedFilesAlone has files beside the committed ones, as failed attempts leave them.
func TestCommittedFilesAlone(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("part-1", "1,2\n3,4\n")
	write("part-2", "")
	write(".staging_1/attempt=0/part-1", "7,8\n")
	write(".part-3.inprogress.1", "5,6\n")
	write("_SUCCESS", "")
	var got [][2]uint64
	for pair, err := range pairsIn(dir) {
		expect.OK(t, err)
		got = append(got, pair)
	}
	expect.Same(t, [][2]uint64{{1, 2}, {3, 4}}, got, "")
	for _, text := range []string{"1\n", "1,2", "1,x\n", "2,1\n", "1,1\n", "-1,2\n", "\n", "1,2,3\n"} {
		write("part-2", "8,9\n"+text)
		var last error
		for _, err := range pairsIn(dir) {
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), "line 2 is no pair") {
			t.Errorf("%q: %v", text, last)
		}
	}
}

// fake is a gateway that knows no SQL: every statement ends at once but the job, with what the test says.
type fake struct {
	mu         sync.Mutex
	statements []string
	open       int
	polls      int // of the job
	state      func(polls int) (state string, status int)
	list       [][]any // SHOW JOBS
	// submitted and committed are what the test does about a job: lists it, and writes its files.
	submitted, committed func(statement string)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	if r.Method == http.MethodGet && r.ContentLength != 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // v1 sessions S operations O status
	switch {
	case r.Method == http.MethodPost && len(path) == 2:
		f.open++
		reply(map[string]string{"sessionHandle": "s" + strconv.Itoa(f.open)})
	case r.Method == http.MethodDelete:
		f.open--
		reply(map[string]string{})
	case path[len(path)-1] == "statements":
		var body struct{ Statement string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		f.statements = append(f.statements, body.Statement)
		if strings.HasPrefix(body.Statement, "INSERT") {
			f.submitted(body.Statement)
		}
		reply(map[string]string{"operationHandle": strconv.Itoa(len(f.statements) - 1)})
	case path[len(path)-1] == "cancel":
		reply(map[string]string{})
	default:
		n, _ := strconv.Atoi(path[4])
		statement := f.statements[n]
		state, status := "FINISHED", 200
		if strings.HasPrefix(statement, "INSERT INTO pairs") {
			f.polls++
			state, status = f.state(f.polls)
		}
		switch {
		case status == 0: // gone away
			panic(http.ErrAbortHandler)
		case status != 200:
			w.WriteHeader(status)
			return
		case state == "ERROR":
			f.list = nil
			w.WriteHeader(500)
			reply(map[string][]string{"errors": {"Internal server error.", "x\nCaused by: java.io.IOException: no space left"}})
			return
		case state != "FINISHED":
			reply(map[string]any{"resultType": "NOT_READY"})
			return
		}
		if strings.HasPrefix(statement, "INSERT") {
			f.committed(statement)
		}
		rows := []map[string]any{}
		if statement == "SHOW JOBS" {
			for _, row := range f.list {
				rows = append(rows, map[string]any{"fields": row})
			}
		}
		if strings.HasPrefix(statement, "STOP JOB") {
			f.list = nil
		}
		reply(map[string]any{"resultType": "EOS", "results": map[string]any{"data": rows}})
	}
}

func startFake(t *testing.T, state func(polls int) (string, int)) (*fake, *Job) {
	t.Helper()
	f := &fake{state: state}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	j := &Job{Gateway: server.URL, Shared: t.TempDir(), Bands: 4, Rows: 2, Threshold: 0.7}
	dir := func() string {
		runs, err := filepath.Glob(filepath.Join(j.Shared, "neardup-*"))
		if err != nil || len(runs) != 1 {
			t.Errorf("runs: %v, %v", runs, err)
			return j.Shared
		}
		return runs[0]
	}
	f.submitted = func(statement string) {
		if strings.HasPrefix(statement, "INSERT INTO pairs") {
			f.list = [][]any{{"other", "somebody's", "RUNNING", "now"}, {"ours", filepath.Base(dir()), "RUNNING", "now"}}
		}
	}
	f.committed = func(statement string) {
		out, text := "pairs", "0,1\n"
		if strings.HasPrefix(statement, "INSERT INTO taken") {
			out, text = "taken", filepath.Base(dir())+"\n"
		}
		f.list = nil
		for name, text := range map[string]string{"part-0": text, successFile: ""} {
			if err := os.WriteFile(filepath.Join(dir(), out, name), []byte(text), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	return f, j
}

// some yields sketches, the first two of which are equal.
func some(count int) iter.Seq2[*sketch.Sketch, error] {
	return func(yield func(*sketch.Sketch, error) bool) {
		r := rand.New(rand.NewPCG(3, 4))
		first := positions(r, 0, 8, 8)
		for n := range count {
			s := positions(r, uint64(n), 8, 8)
			if n < 2 {
				s.Payload = first.Payload
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

// TestFilter holds the filter to a count of keys: it misses none that comes twice, and of those that come once it takes as few
// for others as the comment on probes says.
func TestFilter(t *testing.T) {
	for _, c := range []struct {
		bits float64 // for each key
		most float64 // share of the keys that come once
	}{{16, 1. / 300}, {10, 1. / 60}, {5, 1. / 7}} {
		const keys = 200_000
		r, f, times := rand.New(rand.NewPCG(5, 6)), newFilter(int64(keys*c.bits/8)), map[uint64]int{}
		for range keys {
			key := r.Uint64N(32)<<32 | uint64(r.Uint32())
			for range 1 + r.IntN(5)/4*(1+r.IntN(3)) { // a fifth of them come twice to four times
				times[key]++
				f.add(key)
			}
		}
		once, wrong := 0, 0
		for key, n := range times {
			switch again := f.again(key); {
			case n > 1 && !again:
				t.Fatalf("%x came %d times", key, n)
			case n == 1:
				once++
				if again {
					wrong++
				}
			}
		}
		if share := float64(wrong) / float64(once); share > c.most || share < c.most/3 {
			t.Errorf("%.1f bits a key: %.4f of those that came once are kept, want %.4f", c.bits, share, c.most)
		}
	}
}

// checkLeft checks what a run has left: no session, and that number of directories.
func (f *fake) checkLeft(t *testing.T, j *Job, directories int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	left, err := os.ReadDir(j.Shared)
	if err != nil || len(left) != directories || f.open != 0 {
		t.Errorf("left: %v, %v; %d sessions", left, err, f.open)
	}
}

// count returns how many statements began so.
func (f *fake) count(prefix string) (n int) {
	for _, s := range f.statements {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// TestGoesOn breaks runs off in each step. What is done is never done again, and the last run finds the pairs.
func TestGoesOn(t *testing.T) {
	state := "ERROR"
	f, j := startFake(t, func(int) (string, int) { return state, 200 })
	const texts = fileTexts + 10
	fails := func(want string, texts iter.Seq2[*sketch.Sketch, error]) {
		t.Helper()
		again := *j // as another process has it
		if _, err := again.Seek(t.Context(), texts); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %s", err, want)
		}
	}
	fails("not this time", brokenOff(some(texts), texts+fileTexts+5))
	first := filepath.Join(expect.Value(filepath.Glob(filepath.Join(j.Shared, "*")))(t)[0], "texts", "000000.csv.gz")
	old := expect.Value(os.Stat(first))(t)
	fails("no space left", some(texts))
	if now := expect.Value(os.Stat(first))(t); !os.SameFile(old, now) || !now.ModTime().Equal(old.ModTime()) {
		t.Error("a whole file was written again")
	}

	f.submitted("INSERT INTO pairs") // by the run before, which was killed
	ended := f.committed
	jobs := f.count("INSERT INTO pairs")
	go func() { // and ends while it is waited for
		for f.lists() < 5 {
			time.Sleep(time.Millisecond)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		ended("INSERT INTO pairs")
	}()
	state = "FINISHED"
	for range 2 { // the second one finds the pairs of the first
		again := *j
		pairs := expect.Value(again.Seek(t.Context(), some(texts)))(t)
		for pair, err := range pairs {
			expect.OK(t, err)
			expect.Same(t, [2]uint64{0, 1}, pair, "the pair")
		}
		fails("another run does the same", some(texts))
		again.run.lock.Close() // it was killed
	}
	expect.Same(t, jobs, f.count("INSERT INTO pairs"), "jobs submitted")
	pairs := expect.Value(j.Seek(t.Context(), some(texts)))(t)
	for range pairs {
	}
	j.Finish()
	f.checkLeft(t, j, 0)
}

// TestNameOfRun changes all that pairs depend on, one thing at a time: no run goes on from another's files.
func TestNameOfRun(t *testing.T) {
	names := map[string]bool{}
	for _, j := range []Job{{Bands: 4, Rows: 2}, {Bands: 3, Rows: 2}, {Bands: 4, Rows: 1}, {Bands: 4, Rows: 2, Threshold: 0.7}} {
		for _, texts := range []int{20, 21} {
			for _, change := range []func(*sketch.Sketch){func(*sketch.Sketch) {}, func(s *sketch.Sketch) { s.Fingerprint++ }, func(s *sketch.Sketch) { s.Payload[7]++ }} {
				r := &run{Job: j}
				expect.Value(r.repeated(func(yield func(*sketch.Sketch, error) bool) {
					for s := range some(texts) {
						change(s)
						if !yield(s, nil) {
							return
						}
					}
				}))(t)
				names[r.name] = true
			}
		}
	}
	expect.Same(t, 4*2*3, len(names), "names")
}

// lists is how often jobs were listed.
func (f *fake) lists() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count("SHOW JOBS")
}

// brokenOff ends with an error after that many texts, counted over all passes.
func brokenOff(texts iter.Seq2[*sketch.Sketch, error], after int) iter.Seq2[*sketch.Sketch, error] {
	return func(yield func(*sketch.Sketch, error) bool) {
		for s, err := range texts {
			if after--; after < 0 {
				s, err = nil, errors.New("not this time")
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// TestGatewayGoesAway has the gateway not answer for some polls.
func TestGatewayGoesAway(t *testing.T) {
	f, j := startFake(t, func(polls int) (string, int) {
		if polls < 6 {
			return "RUNNING", 200 * (polls % 2)
		}
		return "FINISHED", 200
	})
	pairs := expect.Value(j.Seek(t.Context(), some(20)))(t)
	for pair, err := range pairs {
		if err != nil || pair != [2]uint64{0, 1} {
			t.Errorf("%v, %v", pair, err)
		}
	}
	j.Finish()
	f.checkLeft(t, j, 0)
}

func TestJobFails(t *testing.T) {
	f, j := startFake(t, func(int) (string, int) { return "ERROR", 200 })
	_, err := j.Seek(t.Context(), some(20))
	if err == nil || !strings.Contains(err.Error(), "IOException: no space left") {
		t.Error(err)
	}
	f.checkLeft(t, j, 1)
}

// TestInterruptStopsTheJob has the context end while the job runs: ours is stopped, nobody else's is.
func TestInterruptStopsTheJob(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, j := startFake(t, func(polls int) (string, int) {
		if polls == 3 {
			cancel()
		}
		return "RUNNING", 200
	})
	if _, err := j.Seek(ctx, some(20)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	stops := slices.DeleteFunc(f.statements, func(s string) bool { return !strings.HasPrefix(s, "STOP") })
	expect.Same(t, []string{"STOP JOB 'ours'"}, stops, "")
	f.checkLeft(t, j, 1)
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "flink:8083", "ftp://x", "http://", "://a:secret@b"} {
		if _, err := newGateway(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
	j := &Job{Gateway: "http://me:secret@127.0.0.1:1", Shared: t.TempDir(), Bands: 4, Rows: 2}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := j.Seek(ctx, some(1))
	if text := fmt.Sprint(err); strings.Contains(text, "secret") || !strings.Contains(text, "SQL gateway running") {
		t.Error(text)
	}
}
