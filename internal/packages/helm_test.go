package packages

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/internal/expect"
)

// Kubernetes versions that the chart is held to: the oldest that Chart.yaml admits and the newest that there are schemas of.
var kubeVersions = []string{"1.25.0", "1.37.0"}

// object is one of Kubernetes.
type object map[string]any

// at returns what stands at a path of keys and, for lists, indices.
func (o object) at(path ...any) any {
	var value any = map[string]any(o)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			section, _ := value.(map[string]any)
			value = section[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				return nil
			}
			value = list[step]
		}
	}
	return value
}

func objects(t *testing.T, text string) (list []object) {
	t.Helper()
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o map[string]any
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if o != nil {
			list = append(list, o)
		}
	}
}

// chart renders the chart with values; the error is Helm's.
func chart(t *testing.T, kube, values string, more ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	write(t, file, values, 0o644)
	folder := filepath.Join(root(t), "deploy", "helm", "neardup")
	args := []string{"template", "near", folder, "-n", "search", "--kube-version", kube, "-f", file}
	return command{env: []string{"HELM_CACHE_HOME=" + t.TempDir()}}.try(tool(t, "helm"), append(args, more...)...)
}

// valueSets are what the chart is tried with.
func valueSets(t *testing.T) map[string]string {
	t.Helper()
	sets := map[string]string{"defaults": "{}\n"}
	files, err := filepath.Glob("testdata/helm/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d sets of values, %v", len(files), err)
	}
	for _, file := range files {
		sets[strings.TrimSuffix(filepath.Base(file), ".yaml")] = read(t, file)
	}
	return sets
}

// TestChart lints and renders the chart with several sets of values for old and new Kubernetes, has each object checked against
// its schema,
// and has the program itself check the configuration in it.
func TestChart(t *testing.T) {
	inspect := tool(t, "inspect")
	for name, values := range valueSets(t) {
		for _, kube := range kubeVersions {
			t.Run(name+" "+kube, func(t *testing.T) {
				text, err := chart(t, kube, values)
				if err != nil {
					t.Fatal(text)
				}
				file := filepath.Join(t.TempDir(), "rendered.yaml")
				write(t, file, text, 0o644)
				if out, err := conforms(t, kube, text); err != nil || !strings.Contains(out, "Invalid: 0, Errors: 0") {
					t.Errorf("%v\n%s", err, out)
				}
				custom := command{}.run(t, inspect, "custom", file)
				all := objects(t, text)
				for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
					expect.Same(t, slices.ContainsFunc(all, func(o object) bool { return o["kind"] == kind }), strings.Contains(custom, kind), "that %s is there", kind)
				}
				restricted(t, all)
				if kube == kubeVersions[0] { // the configuration is the same for all
					configured(t, all, values)
				}
			})
		}
	}
}

// conforms has the objects in a text checked against the schemas of a version of Kubernetes.
func conforms(t *testing.T, kube, text string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	write(t, file, text, 0o644)
	schemas := filepath.Join(tool(t, "schemas"), "{{ .NormalizedKubernetesVersion }}", "{{ .ResourceKind }}{{ .KindSuffix }}.json")
	return command{}.try(tool(t, "kubeconform"), "-strict", "-summary", "-verbose", "-kubernetes-version", kube,
		"-schema-location", schemas, "-skip", "ServiceMonitor,PrometheusRule", file)
}

// TestInstallPage renders the chart with the values that docs/install.md shows, and checks the pod there.
func TestInstallPage(t *testing.T) {
	page := read(t, root(t), "docs", "install.md")
	block := func(title string) string {
		_, rest, found := strings.Cut(page, "```yaml\n# "+title+"\n")
		text, _, closed := strings.Cut(rest, "```")
		if !found || !closed {
			t.Fatalf("the page has no block %s", title)
		}
		return text
	}
	text, err := chart(t, kubeVersions[1], block("values"))
	if err != nil {
		t.Fatal(text)
	}
	configured(t, objects(t, text), block("values"))
	for _, objects := range []string{text, block("pod")} {
		if out, err := conforms(t, kubeVersions[1], objects); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// restricted holds every pod to the profile "restricted" of Pod Security Standards, and to a root that can't be written.
func restricted(t *testing.T, all []object) {
	t.Helper()
	pods := 0
	for _, o := range all {
		if o["kind"] != "Deployment" && o["kind"] != "Job" {
			continue
		}
		pods++
		spec, _ := o.at("spec", "template", "spec").(map[string]any)
		pod := object(spec)
		container := object{"c": pod.at("containers", 0)}
		for what, ok := range map[string]bool{
			"runAsNonRoot":                 pod.at("securityContext", "runAsNonRoot") == true,
			"seccompProfile":               pod.at("securityContext", "seccompProfile", "type") == "RuntimeDefault",
			"runAsUser":                    pod.at("securityContext", "runAsUser") == 65532,
			"automountServiceAccountToken": pod.at("automountServiceAccountToken") == false,
			"allowPrivilegeEscalation":     container.at("c", "securityContext", "allowPrivilegeEscalation") == false,
			"readOnlyRootFilesystem":       container.at("c", "securityContext", "readOnlyRootFilesystem") == true,
			"capabilities":                 container.at("c", "securityContext", "capabilities", "drop", 0) == "ALL",
			"memory limit":                 container.at("c", "resources", "limits", "memory") != nil,
			"no host":                      pod.at("hostNetwork") == nil && pod.at("hostPID") == nil,
		} {
			if !ok {
				t.Errorf("%v: %s is not as it should be", o["kind"], what)
			}
		}
	}
	if pods == 0 {
		t.Error("there are no pods")
	}
}

// configured has the program check the configuration that the chart makes.
func configured(t *testing.T, all []object, values string) {
	t.Helper()
	i := slices.IndexFunc(all, func(o object) bool { return o["kind"] == "ConfigMap" })
	if i < 0 {
		if !strings.Contains(values, "existingConfigMap") {
			t.Error("there is no ConfigMap")
		}
		return
	}
	text, _ := all[i].at("data", "config.yaml").(string)
	secrets := t.TempDir()
	for _, name := range []string{"seed", "api_key", "tls.crt", "tls.key"} {
		write(t, filepath.Join(secrets, name), "x", 0o600)
	}
	// Where the chart mounts secrets there is nothing on this machine.
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, strings.NewReplacer("/run/secrets/neardup/", secrets+"/").Replace(text), 0o600)
	program := filepath.Join(built(t).folder, "sidecar-"+runtimeArch)
	out := command{env: []string{"NEARDUP_SEED=0123", "ENGINE_API_KEY=x"}}.run(t, program, "config", "check", "--config", file)
	if !strings.Contains(out, ": ok\n") {
		t.Error(out)
	}
	if !strings.Contains(text, "admin: 0.0.0.0:7610") && !strings.Contains(values, "admin:") {
		t.Errorf("admin is elsewhere:\n%s", text)
	}
}

// TestChartRefuses gives the chart values that would not work.
func TestChartRefuses(t *testing.T) {
	for values, want := range map[string]string{
		"config: {admin: 127.0.0.1:1}":                                   "/config",
		"config: {engines: [{listen: 127.0.0.1:9201, kind: typesense}]}": "/config/engines/0/listen",
		"config: {engines: [{listen: 0.0.0.0:7610, kind: typesense}]}":   "admin.port: 7610 is the port of a listener too",
		"existingConfigMap: mine":                                        "service.ports: is empty",
		"secretMounts: [{secret: a, path: /etc/neardup}]":                "/secretMounts/0/path",
	} {
		out, err := chart(t, kubeVersions[1], values+"\n")
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, no %q in\n%s", values, err, want, out)
		}
	}
}

// TestChartLints has Helm lint the chart.
func TestChartLints(t *testing.T) {
	helm, folder := tool(t, "helm"), filepath.Join(root(t), "deploy", "helm", "neardup")
	for name, values := range valueSets(t) {
		file := filepath.Join(t.TempDir(), name+".yaml")
		write(t, file, values, 0o644)
		if out, err := (command{}).try(helm, "lint", "--strict", "--kube-version", kubeVersions[1], "-f", file, folder); err != nil ||
			strings.Contains(out, "[WARNING]") || strings.Contains(out, "[ERROR]") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestChartHasTheRules compares the chart's copies of the alerts with the originals, which promtool has checked.
func TestChartHasTheRules(t *testing.T) {
	for _, name := range []string{"alerts.yaml", "recording.yaml"} {
		original := expect.Value(os.ReadFile(filepath.Join(root(t), "deploy", "prometheus", name)))(t)
		if !bytes.Equal(original, []byte(read(t, root(t), "deploy", "helm", "neardup", "files", name))) {
			t.Errorf("deploy/helm/neardup/files/%s is not deploy/prometheus/%s: copy it", name, name)
		}
	}
}
