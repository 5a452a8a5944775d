package config

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
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

// fingerprint is a hash of a configuration file and the files it names. Of one that can't be read it hashes the error.
func fingerprint(file string) string {
	sum := sha256.New()
	text, err := certs.ReadFile(file, maxConfigFile) // no pipe, which can be read but once
	fmt.Fprintf(sum, "%d:%s%v\n", len(text), text, err)
	for _, name := range filesIn(text) {
		said, err := certs.ReadFile(name, certs.MaxPEMFile) // no pipe, which would keep us waiting
		fmt.Fprintf(sum, "%q %d:%s%v\n", name, len(said), said, err)
	}
	return string(sum.Sum(nil))
}

var fileReference = regexp.MustCompile(`\$\{file:([^}]+)\}`)

// filesIn returns the files that the text of a configuration names: in ${file:…}, and under keys that end in _file. A text
// that can't be taken apart names none.
func filesIn(text []byte) []string {
	v, err := readYAML(text)
	if err != nil {
		return nil
	}
	names := map[string]bool{}
	collectFiles(v.AllSettings(), names)
	return slices.Sorted(maps.Keys(names))
}

func collectFiles(value any, names map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			if name, ok := below.(string); ok && strings.HasSuffix(key, "_file") {
				if name, err := Expand(name, os.LookupEnv); err == nil && name != "" {
					names[name] = true
				}
			}
			collectFiles(below, names)
		}
	case []any:
		for _, below := range value {
			collectFiles(below, names)
		}
	case string:
		for _, found := range fileReference.FindAllStringSubmatch(value, -1) {
			names[strings.TrimSpace(found[1])] = true
		}
	}
}
