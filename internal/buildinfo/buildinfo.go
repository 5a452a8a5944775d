// Package buildinfo says what is running.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version and revision are what the linker was told when a release was built.
var version, revision string

// Set takes what the linker was told; empty texts leave it to the build's own information. It is called before anything else.
func Set(release, commit string) { version, revision = release, commit }

// Info says what is running.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // empty where the build does not know it
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// Of returns what is running.
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

// String returns version, revision where the build knows it, and what it was built with.
func (v Info) String() string {
	if v.Revision != "" {
		v.Revision = " " + v.Revision
	}
	return fmt.Sprintf("sidecar %s%s %s %s/%s", v.Version, v.Revision, v.Go, v.OS, v.Arch)
}
