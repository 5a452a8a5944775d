//go:build unix

package terminal

import (
	"os"
	"syscall"
)

// CanLock says whether [Lock] works on this system.
const CanLock = true

// Lock locks a file for this process until it is closed or the process ends. It fails if another process has the lock.
func Lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
