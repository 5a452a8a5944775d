package packages

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/internal/expect"
)

// TestWorkflows has actionlint read the workflows.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), ".github", "workflows", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	command{}.run(t, tool(t, "actionlint"), append([]string{"-shellcheck=", "-pyflakes="}, files...)...)
}

// TestReleasesHaveTheSamePackages holds .goreleaser.yaml to nfpm.yaml, from which the tested packages come.
func TestReleasesHaveTheSamePackages(t *testing.T) {
	type content map[string]any
	type packaged struct {
		Description, License, Maintainer string
		Contents                         []content
		Overrides                        map[string]struct{ Scripts map[string]string }
		Deb, RPM                         map[string]any
	}
	var tested packaged
	var released struct{ Nfpms []packaged }
	for file, into := range map[string]any{"nfpm.yaml": &tested, ".goreleaser.yaml": &released} {
		expect.OK(t, yaml.Unmarshal([]byte(read(t, root(t), file)), into))
	}
	var want []content
	for _, c := range tested.Contents {
		source, _ := c["src"].(string)
		if source == "${BINARY}" {
			continue // GoReleaser puts the program there by itself
		}
		if _, given := c["src"]; given {
			c["src"] = strings.ReplaceAll(source, "${STAGE}", "bin/stage")
		}
		delete(c, "expand")
		want = append(want, c)
	}
	tested.Contents = want
	expect.Same(t, []packaged{tested}, released.Nfpms, "they differ")
}

// TestGoReleaser checks the configuration and makes a whole release without publishing it: every platform, archives, deb, rpm,
// SBOMs. No
// images, for which it would need Docker.
func TestGoReleaser(t *testing.T) {
	long(t)
	needs(t, "git")
	goreleaser, syft := tool(t, "goreleaser"), tool(t, "syft")
	tree := filepath.Join(t.TempDir(), "tree")
	copyTree(t, tree)
	at := command{dir: tree, env: []string{
		"PATH=" + filepath.Dir(syft) + ":" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GOFLAGS=",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
	}}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-qm", "all"}, {"tag", "v0.3.0"},
		{"remote", "add", "origin", "https://github.com/neardup/sidecar.git"},
	} {
		at.run(t, "git", args...)
	}
	at.run(t, goreleaser, "check")
	at.patient(t, goreleaser, "release", "--snapshot", "--clean", "--skip=docker,publish")
	dist := filepath.Join(tree, "bin", "dist")
	sums := read(t, dist, "SHA256SUMS")
	for _, name := range []string{
		"linux_amd64.tar.gz", "linux_arm64.tar.gz", "darwin_amd64.tar.gz", "darwin_arm64.tar.gz",
		"windows_amd64.zip", "windows_arm64.zip",
		"amd64.deb", "arm64.deb", "x86_64.rpm", "aarch64.rpm", "linux_amd64.tar.gz.cdx.json", "windows_arm64.zip.cdx.json",
	} {
		if !regexp.MustCompile(`(?m)^[0-9a-f]{64}  neardup[-_]0\.3\.1.snapshot\S*` + regexp.QuoteMeta(name) + `$`).MatchString(sums) {
			t.Errorf("there is no checksum for …%s in\n%s", name, sums)
		}
	}
	command{dir: dist}.run(t, "sha256sum", "--check", "--quiet", "SHA256SUMS")
	bills, err := filepath.Glob(filepath.Join(dist, "*.cdx.json"))
	if err != nil || len(bills) != 6 {
		t.Fatalf("%d SBOMs, %v", len(bills), err)
	}
	for _, bill := range bills {
		for _, module := range []string{"github.com/spf13/cobra", "golang.org/x/net", "stdlib"} {
			if !strings.Contains(read(t, bill), `"name":"`+module+`"`) && !strings.Contains(read(t, bill), `"name": "`+module+`"`) {
				t.Errorf("%s does not name %s", filepath.Base(bill), module)
			}
		}
	}
}

const runtimeArch = runtime.GOARCH

// TestDockerfiles has BuildKit's parser and linter read the Dockerfiles, and looks at the stage that is shipped.
func TestDockerfiles(t *testing.T) {
	inspect := tool(t, "inspect")
	for _, file := range []string{"Dockerfile", "deploy/packages/Dockerfile"} {
		t.Run(file, func(t *testing.T) {
			out := command{}.run(t, inspect, "dockerfile", filepath.Join(root(t), file))
			_, last, found := strings.Cut(out, "FROM scratch\n")
			if !found || strings.Contains(last, "FROM ") {
				t.Fatalf("the last stage is not from scratch:\n%s", out)
			}
			for _, want := range []string{
				"USER 65532:65532\n", `ENTRYPOINT ["/usr/local/bin/sidecar"]`, `CMD ["serve"]`, `CMD ["/usr/local/bin/sidecar", "ready"]`,
				"/etc/ssl/certs/ca-certificates.crt",
			} {
				if !strings.Contains(last, want) {
					t.Errorf("the image has no %s:\n%s", want, last)
				}
			}
			for _, never := range []string{"RUN ", "ADD ", "USER root"} {
				if strings.Contains(last, never) {
					t.Errorf("the image has %s:\n%s", never, last)
				}
			}
		})
	}
}

// TestComposeFile has Docker Compose's own loader read the file under each profile.
func TestComposeFile(t *testing.T) {
	inspect := tool(t, "inspect")
	file := filepath.Join(root(t), "docker-compose.yml")
	for profile, want := range map[string]string{
		"elasticsearch": "elasticsearch\nsidecar-elasticsearch\n", "typesense": "sidecar-typesense\ntypesense\n",
		"many": "elasticsearch\nhaproxy\nmany\n",
	} {
		expect.Same(t, want, (command{}).run(t, inspect, "compose", file, profile), "%s", profile)
	}
}

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
	watch := filepath.Join(folder, "neardup-watch.service")
	write(t, watch, strings.ReplaceAll(read(t, root(t), "deploy", "systemd", "neardup-watch.service"), "/usr/bin/sidecar", "/bin/true"), 0o644)
	said := command{}.run(t, "systemd-analyze", "verify", "--man=no", service, filepath.Join(folder, "neardup.socket"), watch)
	expect.Same(t, "", said, "what systemd says")
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
			expect.Same(t, "-HUP $MAINPID", strings.Join(args[1:], " "), "ExecReload=%s", line)
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
