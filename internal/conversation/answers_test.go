package conversation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/jobs/ask"
)

// TestAnswersOfTwoRuns: runs that answer at the same time lose no answer of one another. Of a pair the last answer counts, and none after it was taken back.
func TestAnswersOfTwoRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answers.jsonl")
	expect.OK(t, os.WriteFile(file, []byte(`{"a":"x","b":"y","verdict":"same"}`), 0o600)) // without a line end
	var runs sync.WaitGroup
	for run := range 4 {
		runs.Go(func() {
			for i := range 25 {
				expect.OK(t, appendAnswer(file, ask.Answer{A: fmt.Sprint(run), B: fmt.Sprint("<", i), Verdict: ask.Same}))
			}
		})
	}
	runs.Wait()
	for i, v := range []ask.Verdict{ask.Different, ask.Undo, ask.Undo} {
		expect.OK(t, appendAnswer(file, ask.Answer{A: fmt.Sprint("<", i), B: "0", Verdict: v}))
	}
	expect.OK(t, appendAnswer(file, ask.Answer{A: "0", B: "<2", Verdict: ask.Skip}))
	list := expect.Value(readAnswers(file))(t)
	verdicts := map[string]ask.Verdict{}
	for _, a := range list {
		verdicts[min(a.A, a.B)+max(a.A, a.B)] = a.Verdict
	}
	if len(list) != 100 || len(verdicts) != 100 || verdicts["xy"] != ask.Same || verdicts["0<0"] != ask.Different || verdicts["0<1"] != "" || verdicts["0<2"] != ask.Skip {
		t.Errorf("%d answers to %d pairs: %v", len(list), len(verdicts), verdicts)
	}
	expect.OK(t, os.WriteFile(file, []byte("\n{}\n"), 0o600))
	if _, err := readAnswers(file); err == nil || !strings.Contains(err.Error(), "answers.jsonl: line 2: \"{}\" is not an answer such as ") {
		t.Errorf("a file that holds no answer: %v", err)
	}
}
