package terminal

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile replaces a file once the new one is complete. The old one stays until then, or if write fails.
func WriteFile(name string, write func(io.Writer) error) (err error) {
	// not os.CreateTemp, which ignores umask(2)
	const readable = 0o666
	temporary := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"."+rand.Text())
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, readable)
	if err != nil {
		return fmt.Errorf("write %s: %w: name a file in a folder that you may write to", name, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
			err = fmt.Errorf("write %s: %w", name, err)
		}
	}()
	out := bufio.NewWriterSize(file, 1<<20)
	if err = write(out); err == nil {
		err = errors.Join(out.Flush(), file.Sync())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(temporary, name), SyncFolder(filepath.Dir(name)))
}

// SyncFolder flushes a directory, so that a new file in it survives a crash. It does nothing where that takes more rights than to make a file.
func SyncFolder(name string) error {
	folder, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = folder.Sync() // not every system supports it
	return folder.Close()
}
