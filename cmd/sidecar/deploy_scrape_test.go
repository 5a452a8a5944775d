package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scraping is a Prometheus that runs.
type scraping struct{ base string }

// scraper starts a Prometheus with the rules of deploy/prometheus that scrapes an address.
func scraper(t *testing.T, path, target string) *scraping {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile("../../deploy/prometheus/prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("../../deploy/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	// The example, made faster and led here.
	config := strings.NewReplacer(
		"15s", "200ms", "recording.yaml, alerts.yaml", rules+"/recording.yaml, "+rules+"/alerts.yaml", `"sidecar-1:9600", "sidecar-2:9600"`, target,
	).Replace(string(text))
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		part, err := os.ReadFile(filepath.Join(rules, name))
		if err != nil {
			t.Fatal(err)
		}
		faster := strings.ReplaceAll(string(part), "interval: 30s", "interval: 200ms")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(faster), 0o600); err != nil {
			t.Fatal(err)
		}
		config = strings.ReplaceAll(config, filepath.Join(rules, name), filepath.Join(dir, name))
	}
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	at := freePort(t)
	var log lines
	cmd := exec.Command(path, "--config.file", filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", at)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	s := &scraping{"http://" + at}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if response, err := http.Get(s.base + "/-/ready"); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return s
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("Prometheus does not get ready\n%s", log.String())
		}
	}
}

func (s *scraping) get(t *testing.T, path string, into any) {
	t.Helper()
	response, err := http.Get(s.base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", path, response.StatusCode, err)
	}
}

// holds reports whether an expression gives anything.
func (s *scraping) holds(t *testing.T, expr string) bool {
	t.Helper()
	var reply struct {
		Data struct{ Result []any }
	}
	s.get(t, "/api/v1/query?query="+url.QueryEscape(expr), &reply)
	return len(reply.Data.Result) > 0
}

func (s *scraping) await(t *testing.T, expr string) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !s.holds(t, expr); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", expr)
		}
	}
}

// healthy checks that all rules were evaluated without an error, that the target is well, and that the dashboard's expressions can be asked.
func (s *scraping) healthy(t *testing.T) {
	t.Helper()
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError, State string }
			}
		}
	}
	s.get(t, "/api/v1/rules", &rules)
	n := 0
	for _, group := range rules.Data.Groups {
		for _, rule := range group.Rules {
			if n++; rule.Health != "ok" {
				t.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
			if rule.State == "firing" {
				t.Errorf("%s fires", rule.Name)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d rules are loaded", n)
	}
	for _, expr := range readDashboard(t).expressions() {
		var reply struct{ Status string }
		if s.get(t, "/api/v1/query?query="+url.QueryEscape(expr), &reply); reply.Status != "success" {
			t.Errorf("%s: %s", expr, fmt.Sprint(reply))
		}
	}
}
