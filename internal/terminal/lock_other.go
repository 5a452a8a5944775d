//go:build !unix

package terminal

import (
	"errors"
	"os"
)

// CanLock says whether [Lock] works on this system.
const CanLock = false

// Lock always fails: this system has no file lock that ends with the process.
func Lock(*os.File) error {
	return errors.New("this system has no suitable file lock: run the command on Linux, macOS or another Unix")
}
