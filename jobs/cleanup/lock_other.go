//go:build !unix

package cleanup

import (
	"errors"
	"os"
)

// lock refuses: here the system has no lock that ends with the process.
func lock(*os.File) error {
	return errors.New("this system has no locks for that: run --apply on Linux, macOS or another Unix")
}
