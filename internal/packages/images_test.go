package packages

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

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
	t.Run("what is wrong is found", func(t *testing.T) {
		for _, text := range []string{
			"FROM scratch\nCOPPY a b\n", "FROM scratch\nMAINTAINER somebody\n", "from scratch AS One\nRUN --mount=type=nothing x\n",
		} {
			file := filepath.Join(t.TempDir(), "Dockerfile")
			write(t, file, text, 0o644)
			if out, err := (command{}).try(inspect, "dockerfile", file); err == nil {
				t.Errorf("%q passes: %s", text, out)
			}
		}
	})
}

// TestDockerignore looks that nothing the image is built of is left out.
func TestDockerignore(t *testing.T) {
	ignored := "\n" + read(t, root(t), "Dockerfile.dockerignore")
	for _, needed := range []string{"cmd", "go.mod", "go.sum", "LICENSE", "proxy", "demo"} {
		if strings.Contains(ignored, "\n"+needed+"\n") {
			t.Errorf("%s is left out", needed)
		}
	}
	if !strings.Contains(ignored, "\n.git\n") {
		t.Error(".git goes into the build")
	}
}

// TestComposeFile has Docker Compose's own loader read the file under each profile.
func TestComposeFile(t *testing.T) {
	inspect := tool(t, "inspect")
	file := filepath.Join(root(t), "docker-compose.yml")
	for profile, want := range map[string]string{
		"elasticsearch": "elasticsearch\nsidecar-elasticsearch\n", "typesense": "sidecar-typesense\ntypesense\n",
	} {
		if out := (command{}).run(t, inspect, "compose", file, profile); out != want {
			t.Errorf("%s: %q, want %q", profile, out, want)
		}
	}
	text := read(t, file)
	for old, wrong := range map[string]string{
		"stop_grace_period: 35s": "stop_grace_periode: 35s", "condition: service_healthy": "condition: service_helthy",
		"read_only: true": "read_only: [1]", "typesense-data:/data": "typesense-date:/data",
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in the file", old)
		}
		broken := filepath.Join(t.TempDir(), "docker-compose.yml")
		write(t, broken, strings.Replace(text, old, wrong, 1), 0o644)
		if out, err := (command{}).try(inspect, "compose", broken, "elasticsearch", "typesense"); err == nil {
			t.Errorf("%s passes: %s", wrong, out)
		}
	}
}
