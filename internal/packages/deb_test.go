package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestDebLife takes the deb through all that happens to one: installed, run, upgraded with the configuration changed or not,
// removed, purged.
func TestDebLife(t *testing.T) {
	m := newMachine(t)
	m.mustDpkg(t, "-i", m.deb.deb(firstVersion))

	t.Run("files", m.files)
	t.Run("runs as its user", m.runs)

	t.Run("upgrade brings a new configuration where none was changed", func(t *testing.T) {
		m.mustDpkg(t, "-i", m.deb.deb(secondVersion))
		if text := read(t, m.path("etc/neardup/config.yaml")); !strings.Contains(text, secondLine) {
			t.Errorf("it is still the first version's:\n%s", text)
		}
		m.safe(t)
		if out, err := m.sidecar(t, "neardup", "version"); err != nil || !strings.Contains(out, secondVersion) {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("upgrade keeps a changed configuration", func(t *testing.T) {
		mine := "# mine\n" + read(t, m.path("etc/neardup/config.yaml"))
		write(t, m.path("etc/neardup/config.yaml"), mine, 0o600)
		expect.OK(t, os.Chmod(m.path("etc/neardup/config.yaml"), 0o600))
		// Back to the first, whose configuration differs from the second's: dpkg would ask, and takes the old one where told so or
		// nobody answers.
		m.mustDpkg(t, "--force-confold", "-i", m.deb.deb(firstVersion))
		if got := read(t, m.path("etc/neardup/config.yaml")); got != mine {
			t.Errorf("it is now\n%s", got)
		}
		if mode, _, _ := m.mode(t, "etc/neardup/config.yaml"); mode != 0o600 {
			t.Errorf("its permissions are now %v", mode)
		}
		if !m.has("etc/neardup/config.yaml.dpkg-dist") {
			t.Error("the package's own is not laid beside it")
		}
	})
	t.Run("remove leaves the configuration", func(t *testing.T) {
		m.mustDpkg(t, "-r", "neardup")
		if m.has("usr/bin/sidecar") || m.has("usr/lib/systemd/system/neardup.service") || m.has("usr/share/doc/neardup") {
			t.Error("files of the package are left")
		}
		if !strings.HasPrefix(read(t, m.path("etc/neardup/config.yaml")), "# mine\n") {
			t.Error("the configuration is another")
		}
	})
	t.Run("purge takes all", func(t *testing.T) {
		m.mustDpkg(t, "-P", "neardup")
		if m.has("etc/neardup") || m.has("usr/bin/sidecar") {
			t.Error("something is left")
		}
		if status := read(t, m.path("var/lib/dpkg/status")); strings.Contains(status, "Package: neardup") {
			t.Errorf("dpkg still knows it:\n%s", status)
		}
	})
	t.Run("purge leaves what is the administrator's", func(t *testing.T) {
		m.mustDpkg(t, "-i", m.deb.deb(firstVersion))
		write(t, m.path("etc/neardup/seed"), "secret", 0o640)
		out := m.mustDpkg(t, "-P", "neardup")
		if m.has("etc/neardup/config.yaml") || !m.has("etc/neardup/seed") || !strings.Contains(out, "is not empty") {
			t.Errorf("%s", out)
		}
	})
}

// files looks at what was installed.
func (m *machine) files(t *testing.T) {
	for _, path := range []string{
		"usr/bin/sidecar", "etc/neardup/config.yaml", "usr/lib/systemd/system/neardup.service", "usr/lib/sysusers.d/neardup.conf",
		"usr/share/man/man1/sidecar.1.gz", "usr/share/man/man1/sidecar-serve.1.gz", "usr/share/man/man1/sidecar-config-check.1.gz",
		"usr/share/bash-completion/completions/sidecar", "usr/share/zsh/vendor-completions/_sidecar",
		"usr/share/fish/vendor_completions.d/sidecar.fish", "usr/share/doc/neardup/copyright", "usr/share/doc/neardup/NOTICES.gz",
		"usr/share/doc/neardup/changelog.gz", "usr/share/doc/neardup/config.yaml", "usr/share/doc/neardup/examples/neardup.socket",
	} {
		if !m.has(path) {
			t.Errorf("%s is missing", path)
		}
	}
	if m.has("usr/share/man/man1/sidecar-man.1.gz") {
		t.Error("a hidden command has a page")
	}
	m.safe(t)
	err := filepath.WalkDir(m.path("usr/share"), func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(m.root, path)
		if mode, uid, gid := m.mode(t, rel); uid != 0 || gid != 0 || mode&0o022 != 0 {
			t.Errorf("%s: %v %d:%d", rel, mode, uid, gid)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// safe checks that nobody but root writes the program and the configuration, and nobody but root and the service reads the latter.
func (m *machine) safe(t *testing.T) {
	t.Helper()
	_, group := m.user(t, "neardup")
	for path, want := range map[string]os.FileMode{"usr/bin/sidecar": 0o755, "etc/neardup": 0o750, "etc/neardup/config.yaml": 0o640} {
		owner := group
		if want == 0o755 {
			owner = 0
		}
		if mode, uid, gid := m.mode(t, path); mode != want || uid != 0 || gid != owner {
			t.Errorf("%s: %v %d:%d, want %v 0:%d", path, mode, uid, gid, want, owner)
		}
	}
}

// runs has the user of the service run the program, and another one refused.
func (m *machine) runs(t *testing.T) {
	out, err := m.sidecar(t, "neardup", "version")
	if err != nil || !strings.HasPrefix(out, "sidecar "+firstVersion+" "+someRevision[:12]+" ") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = m.sidecar(t, "neardup", "config", "check", "--config", "/etc/neardup/config.yaml")
	if err != nil || !strings.HasPrefix(out, "/etc/neardup/config.yaml: ok\n") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := m.sidecar(t, "nobody", "config", "check", "--config", "/etc/neardup/config.yaml"); err == nil {
		t.Errorf("anybody can read the configuration: %s", out)
	}
}

// fakeSystemctl notes what it is called with.
const fakeSystemctl = "#!/bin/sh\necho \"$*\" >>/run/calls\n"

// TestDebTellsSystemd holds the maintainer scripts to what they ask of systemd, where it runs and where it is merely installed.
func TestDebTellsSystemd(t *testing.T) {
	for _, c := range []struct {
		name    string
		running bool
		want    []string // after install, upgrade, remove
	}{
		{"runs", true, []string{
			"daemon-reload",
			"daemon-reload; try-restart neardup.service",
			"stop neardup.service; --no-reload disable neardup.service; daemon-reload",
		}},
		{"is merely there", false, []string{"", "", "--no-reload disable neardup.service"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			write(t, m.path("usr/bin/systemctl"), fakeSystemctl, 0o755)
			if c.running {
				expect.OK(t, os.MkdirAll(m.path("run/systemd/system"), 0o755))
			}
			for i, args := range [][]string{{"-i", m.deb.deb(firstVersion)}, {"-i", m.deb.deb(secondVersion)}, {"-r", "neardup"}} {
				_ = os.Remove(m.path("run/calls"))
				m.mustDpkg(t, args...)
				calls, _ := os.ReadFile(m.path("run/calls"))
				if got := strings.ReplaceAll(strings.TrimSpace(string(calls)), "\n", "; "); got != c.want[i] {
					t.Errorf("dpkg %s: %q, want %q", args[0], got, c.want[i])
				}
			}
		})
	}
}
