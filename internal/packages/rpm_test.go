package packages

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// rpmHeld is what tools/inspect prints of an rpm.
type rpmHeld struct {
	Name, License string
	Requires      []string
	Scripts       map[string]string
	Files         []struct {
		Path, Mode, Owner, Group string
		Size                     int64
		Flags                    int
	}
}

// TestRPM looks into the rpm, which is unpacked whole in the course of it.
func TestRPM(t *testing.T) {
	b := built(t)
	var rpm rpmHeld
	out := command{}.run(t, tool(t, "inspect"), "rpm", b.rpm(firstVersion))
	expect.JSON(t, []byte(out), &rpm)
	if rpm.Name != "neardup" || rpm.License != "Apache-2.0" || !slices.Contains(rpm.Requires, "/usr/sbin/useradd") {
		t.Errorf("name %q, licence %q, requires %q", rpm.Name, rpm.License, rpm.Requires)
	}
	const config, noreplace = 1, 16
	found := map[string]string{}
	for _, f := range rpm.Files {
		found[f.Path] = f.Mode + " " + f.Owner + ":" + f.Group
		expect.Same(t, f.Flags&(config|noreplace) == config|noreplace, f.Path == "/etc/neardup/config.yaml", "%s: flags %d", f.Path, f.Flags)
	}
	for path, want := range map[string]string{
		"/usr/bin/sidecar":                               "100755 root:root",
		"/etc/neardup":                                   "40750 root:neardup",
		"/etc/neardup/config.yaml":                       "100640 root:neardup",
		"/usr/lib/systemd/system/neardup.service":        "100644 root:root",
		"/usr/lib/sysusers.d/neardup.conf":               "100644 root:root",
		"/usr/share/man/man1/sidecar-serve.1.gz":         "100644 root:root",
		"/usr/share/bash-completion/completions/sidecar": "100644 root:root",
		"/usr/share/zsh/site-functions/_sidecar":         "100644 root:root",
		"/usr/share/doc/neardup/NOTICES.gz":              "100644 root:root",
	} {
		expect.Same(t, want, found[path], "%s", path)
	}
	for name, file := range map[string]string{
		"pre": "preinstall", "post": "postinstall", "preun": "preremove", "postun": "postremove",
	} {
		script := read(t, root(t), "deploy", "packages", file+".sh")
		expect.Same(t, strings.TrimSpace(script), strings.TrimSpace(rpm.Scripts[name]), "%%%s, %s.sh", name, file)
	}
}

// The two versions of the packages that tests build. The second has another configuration file.
const (
	firstVersion  = "0.1.0"
	secondVersion = "0.2.0"
	secondLine    = "# a line of the second version"
)

// builds is what all tests share: packages take seconds to make.
type builds struct {
	folder string // both versions' packages, the first version's program and stage
	err    string
}

var (
	buildOnce sync.Once
	buildAll  builds
)

func TestMain(m *testing.M) {
	code := m.Run()
	if buildAll.folder != "" {
		_ = os.RemoveAll(buildAll.folder)
	}
	os.Exit(code)
}

// built returns the packages, which the first test that asks builds.
func built(t *testing.T) builds {
	t.Helper()
	if runtime.GOOS != "linux" {
		lacking(t, "packages are built on Linux")
	}
	nfpm := tool(t, "nfpm")
	buildOnce.Do(func() {
		folder, err := os.MkdirTemp("", "neardup-packages")
		if err != nil {
			buildAll.err = err.Error()
			return
		}
		buildAll.folder = folder
		tree := filepath.Join(t.TempDir(), "tree")
		copyTree(t, tree)
		env := []string{"NFPM=" + nfpm, "REVISION=" + someRevision, "SOURCE_DATE_EPOCH=1700000000", "GOARCH="}
		build := func(version string) {
			out, err := command{dir: tree, env: env}.try("bash", "deploy/packages/build.sh", folder, version)
			if err != nil {
				buildAll.err += version + ": " + err.Error() + "\n" + out
			}
		}
		// The second first, so that the program that stays is the first's.
		config := filepath.Join(tree, "deploy", "packages", "config.yaml")
		text, err := os.ReadFile(config)
		if err != nil {
			buildAll.err = err.Error()
			return
		}
		if err := os.WriteFile(config, []byte(string(text)+secondLine+"\n"), 0o644); err != nil {
			buildAll.err = err.Error()
			return
		}
		build(secondVersion)
		if err := os.WriteFile(config, text, 0o644); err != nil {
			buildAll.err = err.Error()
			return
		}
		build(firstVersion)
	})
	if buildAll.err != "" {
		t.Fatal(buildAll.err)
	}
	return buildAll
}

// deb and rpm return the files of a version.
func (b builds) deb(version string) string {
	return filepath.Join(b.folder, "neardup_"+version+"_"+runtime.GOARCH+".deb")
}

func (b builds) rpm(version string) string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return filepath.Join(b.folder, "neardup-"+version+"-1."+arch+".rpm")
}

// TestNoticesNameEveryModule holds the licences in the package to the modules that the program says it is linked with.
func TestNoticesNameEveryModule(t *testing.T) {
	b := built(t)
	notices := command{}.run(t, "gzip", "-dc", filepath.Join(b.folder, "stage", "NOTICES.gz"))
	out := command{}.run(t, "go", "version", "-m", filepath.Join(b.folder, "sidecar-"+runtime.GOARCH))
	modules := 0
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "dep" {
			continue
		}
		modules++
		if !strings.Contains(notices, "\n"+fields[1]+" "+fields[2]+": ") {
			t.Errorf("%s %s is in the program, and its licence not in NOTICES", fields[1], fields[2])
		}
	}
	if modules < 20 {
		t.Errorf("only %d modules found", modules)
	}
}
