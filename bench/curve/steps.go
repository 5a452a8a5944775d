package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/neardup/sidecar/internal/measured"
)

// meter adds up the costs of steps, one of which is under way.
type meter struct {
	mu    sync.Mutex
	steps []measured.Step
	now   string
	wall  time.Time
	cpu   float64
	done  chan struct{}
}

func newMeter() *meter {
	m := &meter{done: make(chan struct{})}
	go func() {
		for {
			select {
			case <-m.done:
				return
			case <-time.After(50 * time.Millisecond):
				m.mu.Lock()
				m.look()
				m.mu.Unlock()
			}
		}
	}()
	return m
}

// begin ends the step that is under way and begins another one, or goes on with it.
func (m *meter) begin(step string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	wall, cpu := time.Now(), cpuTime()
	m.look()
	if c := m.step(); c != nil {
		c.Wall += wall.Sub(m.wall).Seconds()
		c.CPU += cpu - m.cpu
	}
	m.now, m.wall, m.cpu = step, wall, cpu
	if step != "" && m.step() == nil {
		m.steps = append(m.steps, measured.Step{Step: step})
	}
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak of memory begins anew
}

// step is the one that is under way.
func (m *meter) step() *measured.Step {
	for i := range m.steps {
		if m.steps[i].Step == m.now {
			return &m.steps[i]
		}
	}
	return nil
}

// look notes the peaks of memory and disk.
func (m *meter) look() {
	if c := m.step(); c != nil {
		c.RSS, c.Disk = max(c.RSS, peak()), max(c.Disk, onDisk())
	}
}

// cpuTime returns the processor time of the process, in the program and in the kernel for it, in seconds.
func cpuTime() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// peak returns the most memory that the process has had since its peak began anew.
func peak() int64 {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "VmHWM:"); is {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// onDisk returns how many bytes the process' open temporary files take, which have no name any more.
func onDisk() (bytes int64) {
	const open = "/proc/self/fd"
	entries, _ := os.ReadDir(open)
	for _, e := range entries {
		path := filepath.Join(open, e.Name())
		if name, _ := os.Readlink(path); !strings.HasSuffix(name, ".tmp (deleted)") {
			continue
		}
		var s syscall.Stat_t
		if syscall.Stat(path, &s) == nil {
			bytes += 512 * s.Blocks
		}
	}
	return bytes
}

// free returns how many bytes are free where the temporary files are.
func free(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("%s: %w", dir, err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}
