//go:build unix

package cleanup

import (
	"os"
	"syscall"
)

// lock locks a file for this process until it is closed or the process ends. It fails if another process has the lock.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
