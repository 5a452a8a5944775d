package main

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// composeFile is docker-compose.yml as far as it has to fit the sidecar. TestComposeFile in internal/packages holds it to Compose's own loader.
type composeFile struct{ Services map[string]composeService }

type composeService struct {
	Profiles       []string
	Image, Build   string
	Environment    map[string]string
	Volumes, Ports []string
	DependsOn      map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck    struct{ Test []string }
}

func compose(t *testing.T) composeFile {
	t.Helper()
	text, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var c composeFile
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestComposeFitsTheSidecar holds each sidecar of docker-compose.yml to its configuration file.
func TestComposeFitsTheSidecar(t *testing.T) {
	c, sidecars := compose(t), 0
	for name, service := range c.Services {
		if len(service.Healthcheck.Test) < 2 || len(service.Profiles) != 1 || service.Image == "" {
			t.Errorf("%s needs a health check, a profile and an image", name)
		}
		if service.Build == "" {
			continue
		}
		sidecars++
		source, target, _ := strings.Cut(service.Volumes[0], ":")
		if target != "/etc/neardup/config.yaml:ro" {
			t.Errorf("%s: the configuration is mounted at %s", name, target)
		}
		// Only what the service passes on is in its environment.
		config, err := Load(filepath.Join("../..", source), func(variable string) (string, bool) {
			_, ok := service.Environment[variable]
			return "x", ok
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, e := range config.Engines {
			fitsService(t, c, name, service.Ports[i], e)
		}
	}
	if sidecars != 2 {
		t.Errorf("%d sidecars", sidecars)
	}
}

// fitsService checks that the engine's address is published on loopback and its node is a service that is waited for.
func fitsService(t *testing.T, c composeFile, name, published string, e EngineConfig) {
	t.Helper()
	host, port, err := net.SplitHostPort(e.Listen)
	if err != nil || host != "0.0.0.0" || published != "127.0.0.1:"+port+":"+port {
		t.Errorf("%s: listens on %s, published is %s", name, e.Listen, published)
	}
	node, err := url.Parse(e.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	service := c.Services[name]
	engine, ok := c.Services[node.Hostname()]
	if !ok || engine.Profiles[0] != service.Profiles[0] || service.DependsOn[node.Hostname()].Condition != "service_healthy" {
		t.Errorf("%s: %s is no service of its profile that it waits for", name, node.Hostname())
	}
	for variable, value := range service.Environment {
		if other, both := engine.Environment[variable]; both && other != value {
			t.Errorf("%s and %s differ in %s", name, node.Hostname(), variable)
		}
	}
}
