package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a running program whose processor time and memory can be read, with those of the children it has.
type process struct {
	name string // sidecar, ReverseProxy, nginx, HAProxy, engine
	pid  int
	base string // where it listens: http://127.0.0.1:8080
	// admin is where a sidecar has its metrics.
	admin string

	cmd  *exec.Cmd // nil for what runs already
	done chan error
}

// start runs a program until stop, or the end of the context. What it writes goes to log; a line for which ready is true says that it
// is up, and without ready it is up when it takes connections at base.
func start(ctx context.Context, name, base string, ready func(line string) bool, program string, arguments ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: name, pid: cmd.Process.Pid, base: base, cmd: cmd, done: make(chan error, 1)}
	up, last := make(chan bool, 1), ""
	go func() {
		lines := bufio.NewScanner(said)
		lines.Buffer(nil, 1<<20)
		for told := false; lines.Scan(); {
			if last = lines.Text(); !told && ready != nil && ready(last) {
				told = true
				up <- true
			}
		}
		p.done <- cmd.Wait()
	}()
	if ready == nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // nobody looks at the port of what has ended
		go func() {
			if reachable(ctx, base) == nil {
				up <- true
			}
		}()
	}
	select {
	case <-up:
		return p, nil
	case err := <-p.done:
		return nil, fmt.Errorf("start %s: it ended (%v): %s", name, err, last)
	case <-time.After(time.Minute):
		return nil, errors.Join(fmt.Errorf("start %s: it did not listen within a minute", name), p.stop())
	}
}

// start starts a contender, on the core that contenders have now.
func (b *bench) start(name, base string, ready func(line string) bool, program string, arguments ...string) (*process, error) {
	if b.core != "" {
		program, arguments = "taskset", append([]string{"-c", b.core, program}, arguments...)
	}
	return start(b.ctx, name, base, ready, program, arguments...)
}

// reachable waits until an address takes connections.
func reachable(ctx context.Context, base string) error {
	for {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), time.Second)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the program, if it was started here, and waits for its end.
func (p *process) stop() error {
	if p == nil || p.cmd == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(10 * time.Second):
		return p.cmd.Process.Kill()
	}
}

// cpu returns the processor time that the process and its children that live have taken, in the program and in the kernel for it, to the
// nanosecond: /proc tells it in hundredths of a second.
func (p *process) cpu() (time.Duration, error) {
	sum := time.Duration(0)
	for _, pid := range family(p.pid) {
		const scheduled = 2 // the clock of a process that clock_getcpuclockid(3) names
		var spent unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|scheduled), &spent); err != nil {
			return 0, fmt.Errorf("read the processor time of %s: %w", p.name, err)
		}
		sum += time.Duration(spent.Nano())
	}
	return sum, nil
}

// pin has the process run on these cores alone, as taskset writes them (0-1). What it starts later does, too.
func (p *process) pin(cores string) error {
	if said, err := exec.Command("taskset", "-a", "-c", "-p", cores, strconv.Itoa(p.pid)).CombinedOutput(); err != nil {
		return fmt.Errorf("pin %s to the cores %s: %w: %s", p.name, cores, err, said)
	}
	return nil
}

// rss returns the memory that the process and its children have, in bytes: pages that are shared count for each.
func (p *process) rss() (int64, error) { return p.memory("VmRSS:") }

// memory is rss for another line of /proc/<pid>/status.
func (p *process) memory(line string) (int64, error) {
	sum := int64(0)
	for _, pid := range family(p.pid) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), line)
		var kilobytes int64
		if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
			return 0, fmt.Errorf("read the memory of %s: %w", p.name, err)
		}
		sum += kilobytes << 10
	}
	return sum, nil
}

// family is a process with its descendants.
func family(pid int) []int {
	list := []int{pid}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		text, _ := os.ReadFile(file) // a thread may have ended
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				list = append(list, family(child)...)
			}
		}
	}
	return list
}

// listener returns the id of the process that listens at a port of this machine.
func listener(port string) (int, error) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, err
	}
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line) // 1 is the local address, 3 the state (0A listens), 9 the inode
			if len(fields) > 9 && fields[3] == "0A" && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) {
				inodes["socket:["+fields[9]+"]"] = true
			}
		}
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && inodes[to] {
			return strconv.Atoi(strings.Split(file, "/")[2])
		}
	}
	return 0, fmt.Errorf("no process of this user listens at port %s", port)
}

// freePort returns a port that nobody listens at.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
