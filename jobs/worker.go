package jobs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// thisWorker returns the name under which this process takes part in a job: its machine, and whatever tells it from all other
// processes that ever ran there, as far as the system tells. A process that has ended can so be known on its own machine at once.
func thisWorker() string {
	host, _ := os.Hostname()
	host = strings.Map(func(r rune) rune {
		if r == '/' || r == ':' {
			return '-'
		}
		return r
	}, host)
	return fmt.Sprintf("%s:%s:%d:%s", host, machine(), os.Getpid(), startOf(os.Getpid()))
}

// workerDead reports whether the worker of the name is known to have ended: a process of this machine since it was started, which
// is not there.
func workerDead(worker string) bool {
	name, _, _ := strings.Cut(worker, "/")
	parts := strings.Split(name, ":")
	if len(parts) != 4 || machine() == "" || parts[1] != machine() || parts[3] == "" {
		return false
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil {
		return false
	}
	start := startOf(pid)
	// Where not even the first process is shown, those of others are hidden (hidepid), and may well be there.
	return start != parts[3] && (start != "" || startOf(1) != "")
}

// machine returns what tells this machine, since it was started, and this space of process ids from all others; empty where the
// system does not say.
func machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(boot) < 8 {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(boot[:8])) + "-" + strings.Trim(strings.TrimPrefix(space, "pid:"), "[]")
}

// startOf returns when a process was started, as the system counts, or empty if it is not there.
func startOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the name before it may hold anything
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}
