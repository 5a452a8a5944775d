package jobs

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// TestWorkersThatEnded tells processes of this machine that have ended from those that have not, and knows nothing of others.
func TestWorkersThatEnded(t *testing.T) {
	if machine() == "" {
		t.Skip("the system does not tell processes apart")
	}
	us := thisWorker()
	cmd := exec.Command("sleep", "0")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(us, ":")
	name := func(change func(parts []string)) string {
		list := append([]string{}, parts...)
		change(list)
		return strings.Join(list, ":") + "/token/7"
	}
	for what, c := range map[string]struct {
		worker string
		dead   bool
	}{
		"this process":              {us + "/token/1", false},
		"one that has ended":        {name(func(p []string) { p[2] = strconv.Itoa(cmd.Process.Pid) }), true},
		"an earlier one of this id": {name(func(p []string) { p[3] = "1" }), true},
		"one of another machine":    {name(func(p []string) { p[1], p[2] = "another", "1" }), false},
		"one without a start":       {name(func(p []string) { p[3] = "" }), false},
		"a name of another kind":    {"w/1", false},
		"the parent":                {name(func(p []string) { p[2], p[3] = strconv.Itoa(os.Getppid()), startOf(os.Getppid()) }), false},
	} {
		if got := workerDead(c.worker); got != c.dead {
			t.Errorf("%s, %s: ended %v, want %v", what, c.worker, got, c.dead)
		}
	}
}
