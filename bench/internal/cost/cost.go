// Package cost measures what a run of a program takes.
package cost

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Cost is what a run took. The processor time is that of the program and of all that it started and waited for. The memory, in bytes, is the most that
// they had together, each page counted once. (The resident size that the system tells at the end begins at that of the program which started it.)
type Cost struct {
	Wall, Processor time.Duration
	Memory          int64
}

// Of runs a program to its end. It calls look, if not nil, with the process id every 50 ms. What the program writes goes into the error of a program
// that fails, unless the command says where to. At the end of ctx it ends the program and all that this has started.
func Of(ctx context.Context, cmd *exec.Cmd, look func(pid int)) (c Cost, err error) {
	var said bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &said
	}
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return c, err
	}
	group := cmd.Process.Pid
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for ended := false; !ended; {
		select {
		case err = <-done:
			ended = true
		case <-time.After(50 * time.Millisecond):
			c.Memory = max(c.Memory, memoryOf(group))
			if look != nil {
				look(group)
			}
		case <-ctx.Done():
			_ = syscall.Kill(-group, syscall.SIGKILL)
			<-done
			return c, ctx.Err()
		}
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w: %s", cmd.Path, err, said.Bytes()[max(0, said.Len()-2000):])
	}
	c.Wall = time.Since(began)
	c.Processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return c, nil
}

// memoryOf adds up the memory of the processes of a group. Of pages that several share, each has its part. It is at least the most that one of
// them had so far.
func memoryOf(group int) (most int64) {
	var sum int64
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) < 3 || fields[2] != strconv.Itoa(group) {
			continue
		}
		sum += kilobytes(filepath.Join(filepath.Dir(stat), "smaps_rollup"), "Pss:")
		most = max(most, kilobytes(filepath.Join(filepath.Dir(stat), "status"), "VmHWM:"))
	}
	return max(sum, most)
}

// kilobytes returns, in bytes, what a file of /proc says of a name.
func kilobytes(file, name string) int64 {
	text, _ := os.ReadFile(file) // the process may have ended
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			kb, _ := strconv.ParseInt(fields[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}
