//go:build unix

package cleanup

import (
	"os"
	"syscall"
)

// lock keeps a file for this process, until it is closed. The lock ends with the process.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
