package packages

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDebLife takes the deb through all that happens to one: installed, run, upgraded with the configuration changed or not,
// removed,
// installed again, purged.
func TestDebLife(t *testing.T) {
	m := newMachine(t)
	m.mustDpkg(t, "-i", m.deb.deb(firstVersion))

	t.Run("files", m.files)
	t.Run("runs as its user", m.runs)
	t.Run("serves as its user", m.serves)

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
		if err := os.Chmod(m.path("etc/neardup/config.yaml"), 0o600); err != nil {
			t.Fatal(err)
		}
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
	t.Run("install again keeps it", func(t *testing.T) {
		m.mustDpkg(t, "--force-confold", "-i", m.deb.deb(secondVersion))
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
	for _, name := range []string{"bash", "zsh", "fish"} {
		script := map[string]string{
			"bash": "usr/share/bash-completion/completions/sidecar", "zsh": "usr/share/zsh/vendor-completions/_sidecar",
			"fish": "usr/share/fish/vendor_completions.d/sidecar.fish",
		}[name]
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		if out, err := (command{}).try(name, "-n", m.path(script)); err != nil {
			t.Errorf("%s: %v %s", script, err, out)
		}
	}
}

// safe checks that nobody but root writes the program.
func (m *machine) safe(t *testing.T) {
	t.Helper()
	m.safeConfig(t)
	if mode, uid, _ := m.mode(t, "usr/bin/sidecar"); mode != 0o755 || uid != 0 {
		t.Errorf("usr/bin/sidecar: %v of %d", mode, uid)
	}
}

// safeConfig checks that nobody but root writes the configuration, and nobody but root and the service reads it.
func (m *machine) safeConfig(t *testing.T) {
	t.Helper()
	_, group := m.user(t, "neardup")
	for path, want := range map[string]os.FileMode{"etc/neardup": 0o750, "etc/neardup/config.yaml": 0o640} {
		if mode, uid, gid := m.mode(t, path); mode != want || uid != 0 || gid != group {
			t.Errorf("%s: %v %d:%d, want %v 0:%d", path, mode, uid, gid, want, group)
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

// serves starts the service as systemd would, with an engine inside, and follows what it says.
func (m *machine) serves(t *testing.T) {
	config := "admin: 127.0.0.1:0\nengines:\n  - {listen: 127.0.0.1:0, kind: embedded, indices: [{match: news, fields: [title]}]}\n"
	write(t, m.path("tmp/embedded.yaml"), config, 0o644)
	told := m.notices(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := m.inside(ctx, t, "neardup", "/usr/bin/sidecar", "serve", "--config", "/tmp/embedded.yaml")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET=/run/notify")
	log := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ended error
	done := make(chan struct{})
	go func() { ended = cmd.Wait(); close(done) }()
	var said []string
	wait := func(message string) {
		t.Helper()
		for {
			select {
			case line := <-told:
				if said = append(said, line); line == message {
					return
				}
			case <-done:
				t.Fatalf("it has ended with %v before it said %s; it said %q\n%s", ended, message, said, log)
			case <-ctx.Done():
				t.Fatalf("it never said %s, but %q", message, said)
			}
		}
	}
	wait("READY=1")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wait("STOPPING=1")
	<-done
	if ended != nil {
		t.Errorf("it ends with %v\n%s", ended, log)
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
				if err := os.MkdirAll(m.path("run/systemd/system"), 0o755); err != nil {
					t.Fatal(err)
				}
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

// TestDebUserStands has a user of that name made by somebody else before.
func TestDebUserStands(t *testing.T) {
	m := newMachine(t)
	write(t, m.path("etc/group"), read(t, m.path("etc/group"))+"neardup:x:4711:\n", 0o644)
	write(t, m.path("etc/passwd"), read(t, m.path("etc/passwd"))+"neardup:x:4711:4711::/nonexistent:/usr/sbin/nologin\n", 0o644)
	m.mustDpkg(t, "-i", m.deb.deb(firstVersion))
	m.safe(t)
	if uid, _ := m.user(t, "neardup"); uid != 4711 {
		t.Errorf("the user is now %d", uid)
	}
}

// TestDebScripts has a shell check the scripts, and looks for what is not in every /bin/sh.
func TestDebScripts(t *testing.T) {
	needs(t, "sh", "bash")
	scripts, err := filepath.Glob(filepath.Join(root(t), "deploy", "packages", "*.sh"))
	if err != nil || len(scripts) < 7 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	bashism := regexp.MustCompile(`\[\[|\blocal\b|\bfunction\b|<<<|\bsource\b|&>`)
	for _, script := range scripts {
		text := read(t, script)
		shell := "sh"
		if strings.HasPrefix(text, "#!/usr/bin/env bash\n") {
			shell = "bash"
		} else if found := bashism.FindAllString(text, -1); slices.ContainsFunc(found, func(s string) bool { return s != "" }) {
			t.Errorf("%s: %q is not in every sh", filepath.Base(script), found)
		}
		command{}.run(t, shell, "-n", script)
	}
}
