package packages

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
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
	if err := json.Unmarshal([]byte(out), &rpm); err != nil {
		t.Fatal(err)
	}
	if rpm.Name != "neardup" || rpm.License != "Apache-2.0" || !slices.Contains(rpm.Requires, "/usr/sbin/useradd") {
		t.Errorf("name %q, licence %q, requires %q", rpm.Name, rpm.License, rpm.Requires)
	}
	const config, noreplace = 1, 16
	found := map[string]string{}
	for _, f := range rpm.Files {
		found[f.Path] = f.Mode + " " + f.Owner + ":" + f.Group
		if (f.Path == "/etc/neardup/config.yaml") != (f.Flags&(config|noreplace) == config|noreplace) {
			t.Errorf("%s: flags %d", f.Path, f.Flags)
		}
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
		if found[path] != want {
			t.Errorf("%s is %q, want %q", path, found[path], want)
		}
	}
	for name, file := range map[string]string{
		"pre": "preinstall", "post": "postinstall", "preun": "preremove", "postun": "postremove",
	} {
		script := read(t, root(t), "deploy", "packages", file+".sh")
		if strings.TrimSpace(rpm.Scripts[name]) != strings.TrimSpace(script) {
			t.Errorf("%%%s is not %s.sh", name, file)
		}
	}
}
