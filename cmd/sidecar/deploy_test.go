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

// composeFile is docker-compose.yml as far as it has to fit the sidecar. Any other key of a service is an error of the test, so that
// a typo in one is found.
type composeFile struct {
	Name     string
	Services map[string]composeService
	Volumes  map[string]any
}

type composeService struct {
	Profiles    []string
	Image       string
	Build       string
	Command     []string
	Environment map[string]string
	Volumes     []string
	Ports       []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck struct {
		Test        []string
		Interval    string
		Timeout     string
		Retries     int
		StartPeriod string `yaml:"start_period"`
	}
	StopGracePeriod string   `yaml:"stop_grace_period"`
	ReadOnly        bool     `yaml:"read_only"`
	CapDrop         []string `yaml:"cap_drop"`
	SecurityOpt     []string `yaml:"security_opt"`
	Tmpfs           []string
}

func compose(t *testing.T) composeFile {
	t.Helper()
	file, err := os.Open("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var c composeFile
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
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

// TestDockerfileBuildsWithOurGo compares the image that builds with go.mod.
func TestDockerfileBuildsWithOurGo(t *testing.T) {
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(string(module), "\ngo ")
	parts := strings.SplitN(strings.SplitN(version, "\n", 2)[0], ".", 3)
	want := " golang:" + strings.Join(parts[:2], ".") + " AS build"
	for _, line := range []string{want, "./cmd/sidecar", "CGO_ENABLED=0", "USER 65532:65532", `ENTRYPOINT ["/usr/local/bin/sidecar"]`} {
		if !strings.Contains(string(dockerfile), line) {
			t.Errorf("the Dockerfile has no %s", line)
		}
	}
}
