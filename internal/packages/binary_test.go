package packages

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// What the test builds call themselves.
const (
	someVersion  = "1.2.3-test"
	someRevision = "0123456789abcdef0123456789abcdef01234567"
)

// makeBuild copies the sources into a new folder, has make build them there and returns the program.
func makeBuild(t *testing.T, folder string, env ...string) []byte {
	t.Helper()
	tree := filepath.Join(t.TempDir(), folder)
	copyTree(t, tree)
	command{dir: tree, env: env}.run(t, "make", "build", "VERSION="+someVersion, "REVISION="+someRevision)
	return expect.Value(os.ReadFile(filepath.Join(tree, "bin", "sidecar")))(t)
}

// TestBuildIsTheSameAnywhere builds in two folders, in different environments, and compares the bytes. With NEARDUP_SOAK
// nothing that was
// compiled before is used in the second.
func TestBuildIsTheSameAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("short: builds the program")
	}
	needs(t, "make", "go")
	env := []string{"TZ=Asia/Kathmandu", "LANG=C", "GOFLAGS=", "GOMAXPROCS=1", "CGO_ENABLED=1", "USER=somebody"}
	if os.Getenv("NEARDUP_SOAK") != "" {
		env = append(env, "GOCACHE="+t.TempDir(), "GOMAXPROCS=3")
	}
	one, two := makeBuild(t, "one"), makeBuild(t, "two/and/deeper", env...)
	if !bytes.Equal(one, two) {
		t.Errorf("two builds differ: %d and %d bytes", len(one), len(two))
	}
	home, _ := os.UserHomeDir()
	goroot := strings.TrimSpace(command{}.run(t, "go", "env", "GOROOT"))
	for _, path := range []string{goroot, home + "/", root(t), os.TempDir() + "/Test"} {
		if len(path) > 1 && bytes.Contains(one, []byte(path)) {
			t.Errorf("the program holds the path %s of this machine", path)
		}
	}
}

// TestBinary looks at the program of the packages: static, and knowing what it is.
func TestBinary(t *testing.T) {
	program := filepath.Join(built(t).folder, "sidecar-"+runtime.GOARCH)
	info := expect.Value(buildinfo.ReadFile(program))(t)
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
		if strings.HasPrefix(s.Key, "vcs") {
			t.Errorf("%s is set: it differs between a clone and an archive", s.Key)
		}
	}
	if settings["CGO_ENABLED"] != "0" || settings["-trimpath"] != "true" {
		t.Errorf("built with %v", settings)
	}
	if runtime.GOOS == "linux" {
		static(t, program)
	}
	out := command{}.run(t, program, "version")
	want := "sidecar " + firstVersion + " " + someRevision[:12] + " " + runtime.Version() + " linux/" + runtime.GOARCH + "\n"
	expect.Same(t, want, out, "version")
}

// static checks that the program needs no loader and no library.
func static(t *testing.T, program string) {
	t.Helper()
	file := expect.Value(elf.Open(program))(t)
	defer func() { _ = file.Close() }()
	if libraries, err := file.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("it is linked with %v", libraries)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a segment %v: it is not static", p.Type)
		}
	}
}
