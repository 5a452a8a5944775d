package server

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
)

// TestMetricsPageIsDocumented holds docs/metrics.md to what is exported: each metric with its type and labels, and no other;
// and each value of a label that is there from the beginning.
func TestMetricsPageIsDocumented(t *testing.T) {
	text := expect.Value(os.ReadFile("../../docs/metrics.md"))(t)
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(neardup_[a-z_]+)` \\| (\\w+) \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		labels := regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[3], -1)
		names := []string{}
		for _, label := range labels {
			names = append(names, label[1])
		}
		documented[row[1]] = row[2] + " " + strings.Join(names, ",")
	}

	m := newMeters(&status{})
	m.engine("x")
	j := &JobMetrics{}
	job := j.register("reindex")
	j.documents.WithLabelValues("x", "scanned")
	exported, types := map[string]string{}, map[string]string{}
	for own, registry := range map[string]*prometheus.Registry{engineLabel: m.registry, commandLabel: job} {
		descs := make(chan *prometheus.Desc, 1000)
		registry.Describe(descs)
		close(descs)
		for desc := range descs {
			name, labels := described(desc.String())
			if !strings.HasPrefix(name, "neardup_") {
				continue
			}
			kept := slices.DeleteFunc(labels, func(label string) bool {
				return label == own && name != "neardup_certificate_expiry_seconds" // said above the tables
			})
			slices.Sort(kept)
			exported[name] = strings.Join(kept, ",")
		}
		families := expect.Value(registry.Gather())(t)
		for _, family := range families {
			types[family.GetName()] = strings.ToLower(family.GetType().String())
			if name := family.GetName(); strings.HasPrefix(name, "neardup_") && name != "neardup_build_info" {
				explained(t, string(text), family)
			}
		}
	}
	if len(exported) < 30 {
		t.Fatalf("only %d metrics: %v", len(exported), exported)
	}
	for name, labels := range exported {
		kind := types[name]
		if kind == "" { // a vector without a series yet: the end of its name tells
			kind = map[bool]string{true: "counter", false: "gauge"}[strings.HasSuffix(name, "_total")]
		}
		exported[name] = kind + " " + labels
	}
	expect.Same(t, documented, exported, "docs/metrics.md says (-), the registry has (+)")
}

// explained fails the test unless the text says what each value of a label means.
func explained(t *testing.T, text string, family *dto.MetricFamily) {
	t.Helper()
	for _, series := range family.Metric {
		for _, pair := range series.Label {
			if value := pair.GetValue(); value != "" && value != "x" && value != "scanned" && !strings.Contains(text, "`"+value+"`") {
				t.Errorf("docs/metrics.md does not say what %s=%q of %s is", pair.GetName(), value, family.GetName())
			}
		}
	}
}

// described returns name and labels of a metric's description, as the client library writes it.
func described(text string) (name string, labels []string) {
	parts := regexp.MustCompile(`fqName: "([^"]*)", help: ".*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`).FindStringSubmatch(text)
	for pair := range strings.SplitSeq(parts[2], ",") {
		if key, _, ok := strings.Cut(pair, "="); ok {
			labels = append(labels, key)
		}
	}
	for label := range strings.SplitSeq(parts[3], ",") {
		if label != "" {
			labels = append(labels, label)
		}
	}
	return parts[1], labels
}

// TestOwnHost: which names in a Host header a stranger's page can't have come by.
func TestOwnHost(t *testing.T) {
	s := &status{}
	s.now.Store(&state{config: &config.Config{Admin: "Metrics.Example.Com:7610"}})
	for host, own := range map[string]bool{
		"127.0.0.1:7610": true, "127.0.0.1": true, "[::1]:7610": true, "::1": true, "[fe80::1%25eth0]:1": true, "10.1.2.3:80": true,
		"localhost": true, "LOCALHOST:7610": true, "x.localhost": true, "sidecar:7610": true, "sidecar.": true, "": true,
		"a.b.svc": true, "a.b.svc.cluster.local:7610": true, "host.docker.internal": true, "box.home.arpa": true,
		"metrics.example.com:7610": true, "METRICS.EXAMPLE.COM.": true,
		"example.com": false, "metrics.example.com.evil.example": false, "127.0.0.1.nip.io": false, "localhost.example.com:7610": false, "local.example": false,
		"0x7f.1.example": false, "svc.example": false,
	} {
		expect.Same(t, own, s.ownHost(host), "%q", host)
	}
}
