package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/expect"
)

// TestUnseen: lines of new documents pass as they are, those of near-duplicates don't, and a document without words always does.
func TestUnseen(t *testing.T) {
	lines := strings.SplitAfter(pages, "\n")
	want := lines[0] + lines[2] + lines[4] + lines[5] // b is like a, d is equal to c
	got := piped(t, pages, "unseen")
	expect.Same(t, want, got.stdout, "%s", got.stderr)
	if got.code != 0 || !strings.Contains(got.stderr, "6 documents: 4 new, 2 seen\n1 new documents have no word") {
		t.Errorf("%+v", got)
	}

	dir := t.TempDir()
	seen, out := filepath.Join(dir, "seen.bloom"), filepath.Join(dir, "out.jsonl")
	expect.OK(t, os.WriteFile(out, []byte(`{"whole":1}`), 0o600))
	args := []string{"unseen", "--input", file(t, pages), "--seen", seen, "--output", out, "--expect", "3"}
	if got := sidecar(t, args...); got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, "3 documents are remembered, of 3 expected") {
		t.Errorf("%+v", got)
	}
	expect.OK(t, appendText(out, `{"torn":`))
	if got := sidecar(t, args...); got.code != 0 || !strings.Contains(got.stderr, "6 documents: 1 new, 5 seen") {
		t.Errorf("%+v", got)
	}
	expect.Same(t, `{"whole":1}`+"\n"+want+lines[5], string(expect.Value(os.ReadFile(out))(t)), "")
	other := `{"text":"something that was never there"}` + "\n"
	if got := piped(t, other, "unseen", "--seen", seen); got.code != 0 || got.stdout != other || !strings.Contains(got.stderr, "begin another file with a greater --expect") {
		t.Errorf("%+v", got)
	}

	got = piped(t, lines[0]+lines[1]+" { } \n", "unseen", "--mark", `du"p`)
	marked := func(line, value string) string { return strings.TrimSuffix(line, "}\n") + `,"du\"p":` + value + "}\n" }
	expect.Same(t, marked(lines[0], "false")+marked(lines[1], "true")+` {"du\"p":false } `+"\n", got.stdout, "%s", got.stderr)
}

func appendText(name, text string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString(text)
		_ = file.Close()
	}
	return err
}

func TestUnseenRefuses(t *testing.T) {
	for _, c := range []struct{ input, args, want string }{
		{pages, "--mark url", `standard input:1: has a field "url" already: choose another name with --mark`},
		{"{}\nnone\n", "", "standard input:2: is no JSON object"},
		{pages, "--seen " + file(t, "other"), "is no file of seen documents"},
		{pages, "--output " + t.TempDir(), "--output: "},
		{pages, "--expect 0", "use 1 to 10000000000"},
		{pages, "--false-positives 1", "use 0.000000001 to 0.1"},
		{pages, "--index news", "--index names a rule of a configuration"},
		{pages, "--config " + write(t, "engines: [{kind: elasticsearch, url: 'http://localhost:9200', indices: [{match: a, fields: [t], sketch: {family: simhash}}]}]"),
			"sketches of family simhash can't be remembered"},
	} {
		got := piped(t, c.input, append([]string{"unseen"}, strings.Fields(c.args)...)...)
		if got.code != 1 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: %+v", c.args, got)
		}
	}
}

// TestUnseenPassesAtOnce: a new document is passed on while the input stays open, and a full disk or a closed pipe fails without remembering it.
func TestUnseenPassesAtOnce(t *testing.T) {
	in, send := io.Pipe()
	receive, out := io.Pipe()
	done := make(chan int)
	go func() { done <- run(t.Context(), []string{"unseen"}, in, out, io.Discard) }()
	for i := range 3 {
		line := fmt.Sprintf("{\"text\":\"document %d\"}\n", i)
		got := make([]byte, len(line))
		_ = expect.Value(io.WriteString(send, line))(t)
		_ = expect.Value(io.ReadFull(receive, got))(t)
		expect.Same(t, line, string(got), "")
	}
	expect.OK(t, send.Close())
	expect.Same(t, 0, <-done, "")

	seen := filepath.Join(t.TempDir(), "seen.bloom")
	args := []string{"unseen", "--seen", seen}
	receive, out = io.Pipe()
	_ = receive.Close()
	expect.Same(t, 1, run(t.Context(), args, strings.NewReader(pages), out, io.Discard), "")
	if got := piped(t, pages, args...); !strings.Contains(got.stderr, "4 new, 2 seen") {
		t.Errorf("%+v", got)
	}
}

// TestUnseenKilled kills the program with SIGKILL at random moments and runs it again on the same input: in the end each document was passed on, and each line of the output is whole.
func TestUnseenKilled(t *testing.T) {
	ofProcesses(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	const documents = 5000
	var input strings.Builder
	for i := range documents {
		fmt.Fprintf(&input, "{\"n\":%d,\"text\":\"", i)
		for range 60 {
			fmt.Fprintf(&input, "%x ", random.Uint64())
		}
		input.WriteString("\"}\n")
	}
	dir := t.TempDir()
	killed := 0
	for done := false; !done; {
		cmd := exec.CommandContext(t.Context(), expect.Value(os.Executable())(t), "unseen", "--seen", "seen.bloom", "--expect", "5000", "--false-positives", "1e-9", "--output", "out.jsonl")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), asSidecar+"=1")
		in := expect.Value(cmd.StdinPipe())(t)
		expect.OK(t, cmd.Start())
		sent := make(chan bool)
		go func() { // slowly, so that the file is saved several times
			defer close(sent)
			for piece := input.String(); len(piece) > 0; {
				n := min(len(piece), 1+random.IntN(500_000))
				if _, err := io.WriteString(in, piece[:n]); err != nil {
					return
				}
				piece = piece[n:]
				time.Sleep(40 * time.Millisecond)
			}
			_ = in.Close()
		}()
		if killed < 5 {
			time.Sleep(time.Duration(random.IntN(700)) * time.Millisecond)
			expect.OK(t, cmd.Process.Kill())
			killed++
		}
		<-sent
		done = cmd.Wait() == nil
	}
	times := make([]int, documents)
	for line := range bytes.Lines(expect.Value(os.ReadFile(filepath.Join(dir, "out.jsonl")))(t)) {
		var n int
		if _, err := fmt.Sscanf(string(line), `{"n":%d,`, &n); err != nil || !strings.Contains(input.String(), string(line)) {
			t.Fatalf("seed %d: the output has a line %.100q", seed, line)
		}
		times[n]++
	}
	for n, passed := range times {
		if passed == 0 {
			t.Errorf("seed %d: document %d was lost", seed, n)
		}
	}
}
