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
			if f[6] != "/usr/sbin/nologin" {
				t.Errorf("%s may log in: %s", name, line)
			}
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
