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
}
