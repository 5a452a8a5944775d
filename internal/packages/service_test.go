package packages

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// most is the exposure that systemd-analyze may find, of 10: 1.2 today, for a service that is on the network.
const most = 1.5

// TestServiceUnit has systemd check the units. Any word it says is a complaint.
func TestServiceUnit(t *testing.T) {
	needs(t, "systemd-analyze")
	folder := t.TempDir()
	service := filepath.Join(folder, "neardup.service")
	text := read(t, root(t), "deploy", "systemd", "neardup.service")
	// It looks whether the program is there.
	write(t, service, strings.ReplaceAll(text, "/usr/bin/sidecar", "/bin/true"), 0o644)
	write(t, filepath.Join(folder, "neardup.socket"), read(t, root(t), "deploy", "systemd", "neardup.socket"), 0o644)
	said := command{}.run(t, "systemd-analyze", "verify", "--man=no", service, filepath.Join(folder, "neardup.socket"))
	if said != "" {
		t.Errorf("systemd says\n%s", said)
	}
	out := command{}.run(t, "systemd-analyze", "security", "--offline=true", "--no-pager", service)
	found := regexp.MustCompile(`exposure level for neardup.service: ([0-9.]+)`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("no exposure in\n%s", out)
	}
	if score, err := strconv.ParseFloat(found[1], 64); err != nil || score > most {
		t.Errorf("exposure %s, at most %v\n%s", found[1], most, out)
	}
}

// TestServiceFits holds the unit to the program: commands and flags that it has, signals, and time enough to drain.
func TestServiceFits(t *testing.T) {
	unit := map[string][]string{}
	for line := range strings.Lines(read(t, root(t), "deploy", "systemd", "neardup.service")) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(key, "#") {
			unit[key] = append(unit[key], value)
		}
	}
	for key, want := range map[string]string{
		"Type": "notify", "User": "neardup", "Group": "neardup", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "",
		"TimeoutStopSec": "40s",
	} {
		if got := strings.Join(unit[key], "|"); got != want || unit[key] == nil {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	program := filepath.Join(built(t).folder, "sidecar-"+runtimeArch)
	config := filepath.Join(t.TempDir(), "config.yaml")
	write(t, config, read(t, root(t), "deploy", "packages", "config.yaml"), 0o600)
	for _, line := range append(unit["ExecStart"], unit["ExecReload"]...) {
		args := strings.Fields(strings.ReplaceAll(line, "/etc/neardup/config.yaml", config))
		switch {
		case args[0] == "/bin/kill":
			if strings.Join(args[1:], " ") != "-HUP $MAINPID" {
				t.Errorf("ExecReload=%s", line)
			}
		case args[1] == "serve":
			command{}.run(t, program, append(args[1:], "--help")...)
		default:
			command{}.run(t, program, args[1:]...)
		}
	}
	drain := command{}.run(t, program, "serve", "--help")
	if !strings.Contains(drain, "(default 30s)") {
		t.Errorf("the unit leaves 40 s to end, for a drain of 30 s; now it is\n%s", drain)
	}
}
