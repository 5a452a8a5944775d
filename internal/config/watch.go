package config

import (
	"crypto/sha256"
	"fmt"
	"os"
	"time"

	"github.com/neardup/sidecar/internal/certs"
)

// LookEvery is how often the files are polled. Polling, unlike a notification, sees through editors that rename, links
// that are turned round and file systems that tell nobody, alike; and takes some microseconds.
const LookEvery = time.Second

// maxConfigFile bounds, in bytes, a configuration that is looked at for changes.
const maxConfigFile = 64 << 20

// Watch notices when the configuration, or a file it names, says something else.
type Watch struct {
	file    string
	applied string // what the files said when they were last read
	last    string // what they said at the last look
}

// NewWatch returns a watch of a configuration file that has just been read.
func NewWatch(file string) *Watch {
	w := &Watch{file: file}
	w.Read()
	return w
}

// Read takes note of what the files say now.
func (w *Watch) Read() {
	w.last = fingerprint(w.file)
	w.applied = w.last
}

// Changed reports whether the files say something else than when they were last read, and did at the look before already: who
// is still writing gets the time to end.
func (w *Watch) Changed() bool {
	now := fingerprint(w.file)
	settled := now == w.last
	w.last = now
	if !settled || now == w.applied {
		return false
	}
	w.applied = now
	return true
}

// fingerprint is a hash of a configuration file, of what it amounts to, and of the files it names. Of one that can't be read it hashes the error.
func fingerprint(file string) string {
	sum := sha256.New()
	text, err := certs.ReadFile(file, maxConfigFile) // no pipe, which can be read but once
	settings, _ := readYAML(text)
	r := read(settings, os.LookupEnv)
	fmt.Fprintf(sum, "%q %v %q %v\n", text, err, r.texts, r.wrong)
	for _, name := range r.files {
		said, err := certs.ReadFile(name, certs.MaxPEMFile) // no pipe, which would keep us waiting
		fmt.Fprintf(sum, "%q %v\n", said, err)
	}
	return string(sum.Sum(nil))
}
