package packages

import (
	"os"
	"path/filepath"
	"regexp"
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
