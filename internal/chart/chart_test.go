package chart

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint/rules"
	"helm.sh/helm/v3/pkg/lint/support"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const dir = "../../cmd/countersign/deploy/helm/countersign"

var update = flag.Bool("update", false, "rewrite the golden files")

// values returns the settings that a user must give, together with the settings in more.
func values(more map[string]any) map[string]any {
	out := map[string]any{
		"slack": map[string]any{"secret": "countersign-slack"}, "model": map[string]any{"name": "gpt-5", "secret": "countersign-model"},
		"policy": "version: 1\ntools: {search_orders: {risk: low}}\n",
	}
	maps.Copy(out, more)
	return out
}

var (
	postgres = map[string]any{"kind": "postgres", "postgres": map[string]any{"secret": "countersign-database", "signingKey": "countersign-signing", "replicas": 3, "migrate": "auto"}}
	http     = map[string]any{"secret": "countersign-slack", "transport": "http"}
)

// settings has the values of the chart for each golden file, by the name of the file.
var settings = map[string]map[string]any{
	"bolt":     values(nil),
	"postgres": values(map[string]any{"store": postgres}),
	"rotation": values(map[string]any{"slack": map[string]any{"secret": "countersign-slack", "tokenRotation": true}}),
	"full": values(map[string]any{
		"store": postgres, "slack": http, "gateway": true, "lock": "version: 1\n", "serviceMonitor": map[string]any{"enabled": true},
		"env": []any{map[string]any{"name": "SHOP_TOKEN", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "shop", "key": "token"}}}},
		"networkPolicy": map[string]any{
			"metricsFrom": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "monitoring"}},
			"egress":      []any{map[string]any{"ports": []any{map[string]any{"protocol": "TCP", "port": 443}}}},
		},
		"traces":      map[string]any{"endpoint": "https://traces.example.com:4318", "secret": "countersign-traces"},
		"tolerations": []any{map[string]any{"key": "bots", "operator": "Exists"}}, "nodeSelector": map[string]any{"kubernetes.io/os": "linux"},
	}),
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render renders the chart as helm install does, with the schema of the values.
func render(t *testing.T, given map[string]any) (map[string]string, error) {
	t.Helper()
	c := load(t)
	vals, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "countersign", Namespace: "bots", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, vals)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for path, text := range files {
		if name := filepath.Base(path); strings.HasSuffix(name, ".yaml") && strings.TrimSpace(text) != "" {
			out[name] = text
		}
	}
	return out, nil
}

// fits checks that a manifest fits the schema of its kind: it has no unknown field, and all values have the right type.
func fits(object *unstructured.Unstructured) error {
	if object.GetKind() == monitoring.ServiceMonitorsKind { // a custom resource, so the Kubernetes API does not define it
		text, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		return yaml.UnmarshalStrict(text, new(monitoring.ServiceMonitor))
	}
	_, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(object)
	return err
}

// TestGolden renders the chart with different settings, and compares the manifests with the golden files. Each
// manifest must fit its schema.
func TestGolden(t *testing.T) {
	for name, given := range settings {
		t.Run(name, func(t *testing.T) {
			files, err := render(t, given)
			if err != nil {
				t.Fatal(err)
			}
			var all bytes.Buffer
			for _, file := range slices.Sorted(maps.Keys(files)) {
				for doc := range strings.SplitSeq(files[file], "\n---\n") {
					object := &unstructured.Unstructured{}
					if err := yaml.UnmarshalStrict([]byte(doc), &object.Object); err != nil {
						t.Fatalf("%s: %v\n%s", file, err, doc)
					}
					if err := fits(object); err != nil {
						t.Errorf("%s %s does not fit the schema: %v", file, object.GetKind(), err)
					}
					text, err := yaml.Marshal(object.Object)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&all, "---\n# %s\n%s", file, text)
				}
			}
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, all.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, all.Bytes()) {
				t.Errorf("the manifests differ from %s; look at the difference with -update:\n%s", golden, all.Bytes())
			}
		})
	}
}

// TestSchemaSees checks that the schema rejects unknown fields and values of a wrong type.
func TestSchemaSees(t *testing.T) {
	for doc, ok := range map[string]bool{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}`:                                                            true,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, date: {a: b}}`:                                                            false,
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: "one"}}`:                                          false,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {template: {spec: {pods: 1}}}}`:                               false,
		`{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: x}, spec: {selector: {}, endpoints: [{port: a}]}}`: true,
		`{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: x}, spec: {selector: {}, endpoints: [{prt: a}]}}`:  false,
		`{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: x}, spec: {selector: {}, endpoints: {port: a}}}`:   false,
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := fits(object); (err == nil) != ok {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// The chart refuses wrong settings before Helm changes the cluster. The error names the wrong setting.
func TestWrongValues(t *testing.T) {
	for name, c := range map[string]struct {
		given map[string]any
		want  string
	}{
		"no policy":                      {map[string]any{"slack": settings["bolt"]["slack"], "model": settings["bolt"]["model"]}, "policy"},
		"no secret of Slack":             {values(map[string]any{"slack": map[string]any{}}), "secret"},
		"a misspelt key":                 {values(map[string]any{"replicas": 3}), "replicas"},
		"a database without its address": {values(map[string]any{"store": map[string]any{"kind": "postgres"}}), "secret"},
		"headers for no receiver":        {values(map[string]any{"traces": map[string]any{"secret": "t"}}), "endpoint"},
		"an interval without a unit":     {values(map[string]any{"serviceMonitor": map[string]any{"enabled": true, "interval": "30"}}), "interval"},
		"another kind of store":          {values(map[string]any{"store": map[string]any{"kind": "sqlite"}}), "kind"},
		"neither a key nor an endpoint":  {values(map[string]any{"model": map[string]any{"name": "m"}}), "model"},
		"too many replicas for Slack":    {values(map[string]any{"store": map[string]any{"kind": "postgres", "postgres": map[string]any{"secret": "s", "signingKey": "k", "replicas": 5}}}), "replicas"},
		"a variable that is a number":    {values(map[string]any{"env": []any{map[string]any{"name": "N", "value": 5}}}), "/env/0/value"},
		"an annotation that is a number": {values(map[string]any{"podAnnotations": map[string]any{"port": 9090}}), "/podAnnotations/port"},
		"memory in a wrong unit":         {values(map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "512MB"}}}), "/resources/limits/memory"},
		"a label of nodes that is true":  {values(map[string]any{"nodeSelector": map[string]any{"bots": true}}), "/nodeSelector/bots"},
	} {
		if _, err := render(t, c.given); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for _, quantity := range []any{1, 0.5, "500m", "1e3", "1.5Gi", "1E"} {
		if _, err := render(t, values(map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": quantity}}})); err != nil {
			t.Errorf("the quantity %v: %v", quantity, err)
		}
	}
	many := map[string]any{"kind": "postgres", "postgres": map[string]any{"secret": "s", "signingKey": "k", "replicas": 5}}
	if _, err := render(t, values(map[string]any{"store": many, "slack": http})); err != nil {
		t.Errorf("five replicas over HTTP: %v", err)
	}
}

// TestPods checks the rules that every pod must follow under all settings.
func TestPods(t *testing.T) {
	for name, given := range settings {
		files, err := render(t, given)
		if err != nil {
			t.Fatal(err)
		}
		_, pod := workload(t, files)
		env := map[string]string{}
		for _, e := range pod.Containers[0].Env {
			if e.Name != "SHOP_TOKEN" { // for the policy
				env[e.Name] = e.Value
			}
		}
		areRead(t, env)
		socketIsSafe(t, name, env["COUNTERSIGN_CONTROL"], pod)
		text := files["workload.yaml"]
		for _, line := range []string{
			"runAsNonRoot: true", "readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false", "drop: [ALL]", "automountServiceAccountToken: false", "enableServiceLinks: false",
			"path: /healthz", "path: /readyz", "/run/secrets/slack/",
		} {
			if !strings.Contains(text, line) {
				t.Errorf("%s: the pod has no %s", name, line)
			}
		}
		if kind, budget := strings.Contains(text, "kind: StatefulSet"), strings.Contains(text, "kind: PodDisruptionBudget"); kind == budget {
			t.Errorf("%s: a StatefulSet %t, and a budget %t", name, kind, budget)
		}
	}
}

// socketIsSafe checks that the control socket is in a folder that the bot makes in an emptyDir. The bot refuses a folder
// that is a volume itself, because the pod's fsGroup can write to it. In a persistent volume, Kubernetes may also change
// the mode of the folder and of the socket.
func socketIsSafe(t *testing.T, name, socket string, pod corev1.PodSpec) {
	t.Helper()
	parent := filepath.Dir(filepath.Dir(socket))
	mounts := pod.Containers[0].VolumeMounts
	i := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == parent && !m.ReadOnly })
	if i < 0 || !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mounts[i].Name && v.EmptyDir != nil }) {
		t.Errorf("%s: the control socket %q is not in a folder of an emptyDir", name, socket)
	}
}

// TestLint runs the rules of helm lint.
func TestLint(t *testing.T) {
	linter := &support.Linter{ChartDir: dir}
	rules.Chartfile(linter)
	rules.ValuesWithOverrides(linter, settings["full"])
	rules.Templates(linter, settings["full"], "bots", true)
	rules.Dependencies(linter)
	for _, m := range linter.Messages {
		if m.Severity >= support.WarningSev {
			t.Errorf("%s: %v", m.Path, m.Err)
		}
	}
}

// TestConfigMap checks that the pods get the exact bytes of the policy and of the lock file.
func TestConfigMap(t *testing.T) {
	for _, text := range []string{"version: 1\n", "  # indented\nversion: 1\n\n", "version: 1", "a: \"{{.x}}\"\r\nb: |\n  \tc\n", "# ü \u00a0 ✓\n---\n"} {
		files, err := render(t, values(map[string]any{"policy": text, "lock": text}))
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(files["service.yaml"], "\n---\n") {
			var m corev1.ConfigMap
			if err := yaml.Unmarshal([]byte(doc), &m); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if m.Kind == "ConfigMap" && (m.Data["countersign.yaml"] != text || m.Data["countersign.lock"] != text) {
				t.Errorf("%q became %q", text, m.Data)
			}
		}
	}
}
