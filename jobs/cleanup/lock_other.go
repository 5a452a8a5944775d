//go:build !unix

package cleanup

import (
	"errors"
	"os"
)

// lock always fails: this system has no file lock that ends with the process.
func lock(*os.File) error {
	return errors.New("this system has no suitable file lock: run --apply on Linux, macOS or another Unix")
}
