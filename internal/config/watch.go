package config

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/certs"
)

// PollInterval is how often the files are read. Unlike notifications, polling works with editors that rename, with links that change and
// on all file systems. It takes a few microseconds.
const PollInterval = time.Second

// maxConfigFile is the size limit of a configuration that is watched.
const maxConfigFile = 64 << 20

// Watch notices changes of the configuration file and of the files that it names.
type Watch struct {
	file    string
	applied string // the fingerprint of the files when they were last applied
	last    string // their fingerprint at the last poll
}

// NewWatch returns a watch for a configuration file that has just been read.
func NewWatch(file string) *Watch {
	w := &Watch{file: file}
	w.Read()
	return w
}

// Read marks the current content of the files as applied.
func (w *Watch) Read() {
	w.last = fingerprint(w.file)
	w.applied = w.last
}

// Changed reports whether the files have changed since they were last applied, and not since the last call: a program that is still writing
// them gets time to finish.
func (w *Watch) Changed() bool {
	now := fingerprint(w.file)
	changing := now != w.last
	w.last = now
	if changing || now == w.applied {
		return false
	}
	w.applied = now
	return true
}

// fingerprint returns a hash of a configuration file, of the values of its variables, and of the files that it names. It hashes the error of a
// file that can't be read.
func fingerprint(file string) string {
	sum := sha256.New()
	text, err := certs.ReadFile(file, maxConfigFile) // not a pipe: that can be read only once
	settings, _, _ := readYAML(text)
	r := read(settings, filepath.Dir(file), os.LookupEnv)
	fmt.Fprintf(sum, "%q %v %q %v\n", text, err, r.texts, r.wrong)
	for _, name := range r.files {
		content, err := certs.ReadFile(name, max(certs.MaxPEMFile, boilerplate.MostBytes)) // not a pipe: reading it would block
		fmt.Fprintf(sum, "%q %v\n", content, err)
	}
	return string(sum.Sum(nil))
}
