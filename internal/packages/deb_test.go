package packages

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
		expect.Same(t, mine, read(t, m.path("etc/neardup/config.yaml")), "the file")
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
		"usr/share/doc/neardup/changelog.gz", "usr/share/doc/neardup/config.yaml", "usr/share/doc/neardup/examples/neardup.socket", "usr/share/doc/neardup/examples/neardup-watch.service",
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
				expect.Same(t, c.want[i], strings.ReplaceAll(strings.TrimSpace(string(calls)), "\n", "; "), "dpkg %s", args[0])
			}
		})
	}
}

// machine is a throw-away system to install into: a folder with a shell, what the maintainer scripts call, and an empty dpkg
// database.
// Nothing of this machine is touched, and nothing of it but the kernel is seen from inside.
type machine struct {
	root string
	deb  builds
}

// programs are what the maintainer scripts call, and cat and ls for the tests.
var programs = []string{"sh", "chown", "chmod", "rm", "rmdir", "getent", "groupadd", "useradd", "cat", "ls"}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		lacking(t, "to install a package into a folder one must be root on Linux")
	}
	needs(t, "dpkg", "dpkg-deb", "ldd")
	needs(t, programs...)
	m := &machine{root: t.TempDir(), deb: built(t)}
	for _, folder := range []string{
		"usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "tmp", "run", "proc", "var/lib/dpkg/info", "var/lib/dpkg/updates", "etc",
	} {
		expect.OK(t, os.MkdirAll(filepath.Join(m.root, folder), 0o755))
	}
	for _, folder := range []string{"bin", "sbin", "lib", "lib64"} {
		expect.OK(t, os.Symlink("usr/"+folder, filepath.Join(m.root, folder)))
	}
	for _, name := range programs {
		m.copyProgram(t, name)
	}
	users := "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
	write(t, m.path("etc/passwd"), users, 0o644)
	write(t, m.path("etc/group"), "root:x:0:\nnogroup:x:65534:\n", 0o644)
	write(t, m.path("etc/shadow"), "root:*:19000:0:99999:7:::\n", 0o640)
	write(t, m.path("etc/gshadow"), "root:*::\n", 0o640)
	write(t, m.path("etc/nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files\n", 0o644)
	write(t, m.path("dev/null"), "", 0o666) // a file: containers may not let one make devices
	expect.OK(t, os.Chmod(m.path("dev/null"), 0o666))
	write(t, m.path("var/lib/dpkg/available"), "", 0o644)
	write(t, m.path("var/lib/dpkg/info/passwd.list"), "", 0o644)
	write(t, m.path("var/lib/dpkg/status"), `Package: passwd
Status: install ok installed
Maintainer: nobody <nobody@example.org>
Architecture: `+runtime.GOARCH+`
Version: 1:4.13
Description: users and groups

`, 0o644)
	return m
}

func (m *machine) path(path string) string { return filepath.Join(m.root, path) }

// copyProgram copies a program and the libraries that it is linked with.
func (m *machine) copyProgram(t *testing.T, name string) {
	t.Helper()
	found := expect.Value(exec.LookPath(name))(t)
	m.copyFile(t, found, filepath.Join("usr", filepath.Base(filepath.Dir(found)), name))
	for line := range strings.Lines(command{}.run(t, "ldd", found)) {
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "/") {
				// /lib is a link to /usr/lib in there, as everywhere by now.
				to := strings.TrimPrefix(word, "/")
				if !strings.HasPrefix(to, "usr/") {
					to = "usr/" + to
				}
				m.copyFile(t, word, to)
			}
		}
	}
}

func (m *machine) copyFile(t *testing.T, from, to string) {
	t.Helper()
	target := m.path(to)
	if _, err := os.Stat(target); err == nil {
		return
	}
	write(t, target, read(t, from), 0o755)
}

// dpkg runs dpkg on the machine. Nobody answers questions.
func (m *machine) dpkg(args ...string) (string, error) {
	env := []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
	return command{env: env}.try("dpkg", append([]string{"--root=" + m.root, "--log=/dev/null"}, args...)...)
}

func (m *machine) mustDpkg(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.dpkg(args...)
	if err != nil {
		t.Fatalf("dpkg %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// user returns uid and gid of a user of the machine.
func (m *machine) user(t *testing.T, name string) (uid, gid uint32) {
	t.Helper()
	for line := range strings.Lines(read(t, m.path("etc/passwd"))) {
		if f := strings.Split(strings.TrimSpace(line), ":"); f[0] == name {
			u, _ := strconv.Atoi(f[2])
			g, _ := strconv.Atoi(f[3])
			expect.Same(t, "/usr/sbin/nologin", f[6], "how %s may log in: %s", name, line)
			return uint32(u), uint32(g)
		}
	}
	t.Fatalf("there is no user %s", name)
	return 0, 0
}

// inside returns a command that runs on the machine as a user, with nothing of this one in its environment.
func (m *machine) inside(ctx context.Context, t *testing.T, user, name string, args ...string) *exec.Cmd {
	t.Helper()
	uid, gid := m.user(t, user)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/usr/sbin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: m.root, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return cmd
}

// sidecar runs the installed program as a user.
func (m *machine) sidecar(t *testing.T, user string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := m.inside(ctx, t, user, "/usr/bin/sidecar", args...).CombinedOutput()
	return string(out), err
}

// mode returns a file's permissions, owner and group.
func (m *machine) mode(t *testing.T, path string) (mode os.FileMode, uid, gid uint32) {
	t.Helper()
	info := expect.Value(os.Lstat(m.path(path)))(t)
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no owner")
	}
	return info.Mode().Perm(), stat.Uid, stat.Gid
}

func (m *machine) has(path string) bool {
	_, err := os.Lstat(m.path(path))
	return err == nil
}
