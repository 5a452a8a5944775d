package server

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/internal/expect"
)

// exported returns the names of all series that a sidecar exports, with those of histograms' parts.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	m := newMeters(&status{})
	m.engine("one")
	described := make(chan *prometheus.Desc)
	go func() { m.registry.Describe(described); close(described) }()
	names, fqName := map[string]bool{}, regexp.MustCompile(`fqName: "([^"]+)"`)
	for d := range described {
		found := fqName.FindStringSubmatch(d.String())
		for _, part := range []string{"", "_bucket", "_sum", "_count"} {
			names[found[1]+part] = true
		}
	}
	if len(names) < 80 {
		t.Fatalf("only %d names", len(names))
	}
	return names
}

// prometheusRules are the parts of a file of rules that matter here.
type prometheusRules struct {
	Groups []struct {
		Name     string
		Interval string
		Rules    []struct {
			Record, Alert, Expr, For string
			Labels, Annotations      map[string]string
		}
	}
}

func rulesOf(t *testing.T, name string) (r prometheusRules) {
	t.Helper()
	f := expect.Value(os.Open(filepath.Join("../../deploy/prometheus", name)))(t)
	defer func() { _ = f.Close() }()
	decoder := yaml.NewDecoder(f)
	decoder.KnownFields(true)
	expect.OK(t, decoder.Decode(&r))
	return r
}

var (
	metricName   = regexp.MustCompile(`[a-z_]+:?neardup_[a-z0-9_:]+|\b(?:neardup|go|process)_[a-z0-9_]+|\bup\b`)
	quotedInExpr = regexp.MustCompile(`"[^"]*"`)
)

// namesIn returns the names of metrics in an expression.
func namesIn(expr string) []string {
	return metricName.FindAllString(quotedInExpr.ReplaceAllString(expr, `""`), -1)
}

// knownNames are the names that expressions may use: what is exported, what recording rules make of it, and what Prometheus adds.
func knownNames(t *testing.T) map[string]bool {
	names := exported(t)
	names["up"] = true
	for _, group := range rulesOf(t, "recording.yaml").Groups {
		for _, rule := range group.Rules {
			names[rule.Record] = true
		}
	}
	return names
}

// TestPrometheusRulesUseWhatIsExported compares names, and each alert with the page that explains it.
func TestPrometheusRulesUseWhatIsExported(t *testing.T) {
	known, used := knownNames(t), 0
	runbook := expect.Value(os.ReadFile("../../docs/operations.md"))(t)
	for _, file := range []string{"recording.yaml", "alerts.yaml"} {
		for _, group := range rulesOf(t, file).Groups {
			for _, rule := range group.Rules {
				name := rule.Record + rule.Alert
				for _, metric := range namesIn(rule.Expr) {
					if used++; !known[metric] {
						t.Errorf("%s uses %s, which nothing exports", name, metric)
					}
				}
				if rule.Alert == "" {
					continue
				}
				_, section, found := strings.Cut(rule.Annotations["runbook"], "docs/operations.md#")
				if heading := regexp.MustCompile(`(?mi)^#+ ` + section + `\b|^\| \*\*` + section + `\*\*`); !found || !heading.Match(runbook) {
					t.Errorf("%s leads to %q, which docs/operations.md does not have", name, rule.Annotations["runbook"])
				}
			}
		}
	}
	if used < 30 {
		t.Errorf("only %d names found", used)
	}
}

// dashboard is deploy/grafana/neardup.json as far as it is checked.
type dashboard struct {
	Panels []struct {
		Targets []struct{ Expr string }
	}
	Templating struct{ List []struct{ Definition string } }
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	expect.OK(t, json.Unmarshal(expect.Value(os.ReadFile("../../deploy/grafana/neardup.json"))(t), &d))
	return d
}

// expressions returns all queries of the dashboard, with variables as a reader might set them.
func (d dashboard) expressions() (list []string) {
	set := strings.NewReplacer("$job", "neardup", "$instance", ".*", "$engine", ".*")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			list = append(list, set.Replace(target.Expr))
		}
	}
	for _, v := range d.Templating.List {
		if inner, found := strings.CutPrefix(v.Definition, "label_values("); found {
			list = append(list, set.Replace(inner[:strings.LastIndex(inner, ",")]))
		}
	}
	return list
}

// TestDashboardIsSound holds the dashboard's queries to what is exported.
func TestDashboardIsSound(t *testing.T) {
	d, known := readDashboard(t), knownNames(t)
	for _, expr := range d.expressions() {
		names := namesIn(expr)
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s: nothing exports %s", expr, name)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s has no metric", expr)
		}
	}
}

// prometheusTool returns the path of promtool or prometheus. Where there is none and none can be fetched the test is skipped; in CI it fails.
func prometheusTool(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() || os.Getenv("NEARDUP_ENGINES") == "off" {
		t.Skip("it may have to be fetched")
	}
	out, err := exec.CommandContext(t.Context(), "bash", "../../deploy/prometheus/check.sh", "path", name).Output()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("%v", err)
	}
	return strings.TrimSpace(string(out))
}

// TestPromtool has promtool check the rules and the example configuration, run the rules' tests, and parse the dashboard's expressions.
func TestPromtool(t *testing.T) {
	promtool := prometheusTool(t, "promtool")
	out, err := exec.CommandContext(t.Context(), "bash", "../../deploy/prometheus/check.sh").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Unit Testing:  tests.yaml\n  SUCCESS") {
		t.Errorf("%v\n%s", err, out)
	}
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for i, expr := range readDashboard(t).expressions() {
		fmt.Fprintf(&rules, "      - {record: \"dashboard:%d\", expr: %q}\n", i, expr)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	expect.OK(t, os.WriteFile(file, []byte(rules.String()), 0o600))
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("the dashboard's expressions: %v\n%s", err, out)
	}
}
