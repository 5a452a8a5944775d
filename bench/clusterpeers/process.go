package main

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

// cost is what a run took. The processor time is that of the program and of all that it started and waited for; the memory is the most
// that they had together, each page counted once.
type cost struct {
	wall, processor time.Duration
	memory          int64
}

// measure runs a program to its end.
func measure(ctx context.Context, cmd *exec.Cmd) (c cost, err error) {
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
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
			c.memory = max(c.memory, memoryOf(group))
		case <-ctx.Done():
			_ = syscall.Kill(-group, syscall.SIGKILL) // what it started as well
			<-done
			return c, ctx.Err()
		}
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w: %s", cmd.Path, err, said.Bytes()[max(0, said.Len()-2000):])
	}
	c.wall = time.Since(began)
	c.processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
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
