package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
)

// composeFile is docker-compose.yml as far as it has to fit the sidecar. TestComposeFile in internal/packages holds it to Compose's own loader.
type composeFile struct {
	Services map[string]struct {
		Build       string
		Environment map[string]string
		Volumes     []string
	}
}

// TestComposeFitsTheSidecar holds each sidecar of docker-compose.yml to its configuration file.
func TestComposeFitsTheSidecar(t *testing.T) {
	text := expect.Value(os.ReadFile("../../docker-compose.yml"))(t)
	var c composeFile
	expect.OK(t, yaml.Unmarshal(text, &c))
	sidecars := 0
	for name, service := range c.Services {
		if service.Build == "" {
			continue
		}
		sidecars++
		source, target, _ := strings.Cut(service.Volumes[0], ":")
		expect.Same(t, "/etc/neardup/config.yaml:ro", target, "%s: where the configuration is mounted", name)
		// Only what the service passes on is in its environment.
		_, err := config.Load(filepath.Join("../..", source), func(variable string) (string, bool) {
			_, ok := service.Environment[variable]
			return "x", ok
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	expect.Same(t, 3, sidecars, "sidecars")
}
