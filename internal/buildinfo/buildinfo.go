// Package buildinfo returns the version of the program.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version and revision are those that the linker sets in a release.
var version, revision string

// Set sets the version and revision that the linker set; empty ones are read from the build information. Call it before anything else.
func Set(release, commit string) { version, revision = release, commit }

// Info is the version of the program, and how it was built.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // empty if it is unknown
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// Of returns the version of the running program.
func Of() Info {
	v := Info{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	v.Revision = revision[:min(len(revision), 12)]
	if info, ok := debug.ReadBuildInfo(); ok {
		if v.Version == "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 && revision == "" {
				v.Revision = s.Value[:12]
			}
		}
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	return v
}

// String returns the version, the revision if it is known, and the Go version and platform.
func (v Info) String() string {
	if v.Revision != "" {
		v.Revision = " " + v.Revision
	}
	return fmt.Sprintf("sidecar %s%s %s %s/%s", v.Version, v.Revision, v.Go, v.OS, v.Arch)
}
