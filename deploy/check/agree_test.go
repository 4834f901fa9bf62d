package check

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"
)

// TestLint: helm lint has nothing to say of the chart, but that it has no icon.
func TestLint(t *testing.T) {
	for name, values := range settings {
		t.Run(name, func(t *testing.T) {
			given := map[string]any{}
			if err := yaml.Unmarshal([]byte(values), &given); err != nil {
				t.Fatal(err)
			}
			for _, m := range lint.RunAll(chart, given, "default").Messages {
				if m.Severity > support.InfoSev || !strings.Contains(m.Err.Error(), "icon is recommended") {
					t.Error(m)
				}
			}
		})
	}
}

// TestAgree: the chart installs what the manifests and the overlays have.
func TestAgree(t *testing.T) {
	for _, c := range []struct {
		setting string
		want    objects
	}{
		{"defaults", read(t, "grove.yaml")},
		{"autoscaled", build(t, filepath.Join(overlays, "autoscaled"))},
		{"pool", joined(read(t, "grove.yaml"), read(t, "inference-gateway.yaml"))},
		{"production", build(t, filepath.Join(overlays, "production"))},
	} {
		t.Run(c.setting, func(t *testing.T) {
			got, _ := install(t, "grove", settings[c.setting])
			for name, o := range got {
				labels := labelsOf(t, o)
				for _, label := range []string{"app.kubernetes.io/managed-by", "helm.sh/chart"} {
					if labels[label] == "" {
						t.Errorf("%s has no label %s", name, label)
					}
					delete(labels, label)
				}
				if p, ok := o.(*networking.NetworkPolicy); ok { // the overlay has no pod of helm test
					first := p.Spec.Ingress[0].From[0]
					if first.PodSelector == nil || first.PodSelector.MatchLabels["app"] != "grove-test" {
						t.Errorf("%s does not admit the pod of helm test", name)
					}
					p.Spec.Ingress[0].From = p.Spec.Ingress[0].From[1:]
				}
			}
			if diff := cmp.Diff(c.want, got, sorted); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// sorted sorts volumes and their mounts, whose order has no meaning.
var sorted = cmp.Options{
	cmpopts.SortSlices(func(a, b core.Volume) bool { return a.Name < b.Name }),
	cmpopts.SortSlices(func(a, b core.VolumeMount) bool { return a.Name < b.Name }),
}

// joined returns the objects of two files.
func joined(a, b objects) objects {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// labelsOf returns the labels of an object.
func labelsOf(t *testing.T, o any) map[string]string {
	t.Helper()
	a, err := meta.Accessor(o)
	if err != nil {
		t.Fatal(err)
	}
	return a.GetLabels()
}

// TestRefused: values that would give a wrong deployment are refused, by the schema or by a template.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"replica: 2", "'replica' not allowed"},
		{"server: {paralel: 8}", "'paralel' not allowed"},
		{"replicas: two", "'/replicas': got string"},
		{"replicas: -1", "'/replicas': minimum"},
		{"resources: {cpu: 1.5}", "'/resources/cpu': got number"},
		{"resources: {cpu: 500m}", "'/resources/cpu': got string"},
		{"resources: {memory: 8GB}", "'/resources/memory'"},
		{"server: {parallel: 0}", "'/server/parallel': minimum"},
		{"server: {extraArgs: [context=8]}", "'/server/extraArgs/0'"},
		{"image: {pullPolicy: Sometimes}", "'/image/pullPolicy'"},
		{"image: {tag: 'sha256:12'}", "'/image/tag'"},
		{"model: {file: /models/model.gguf}", "'/model/file'"},
		{"model: {claim: ''}", "'/model/claim'"},
		{"prefixes: {claim: Shared}", "'/prefixes/claim'"},
		{"prefixes: {maxBytes: 16Gi}", "'/prefixes/maxBytes'"},
		{"podLabels: {app: other}", "'/podLabels'"},
		{"serviceMonitor: {labels: {app: other}}", "'/serviceMonitor/labels'"},
		{"service: {port: 0}", "'/service/port': minimum"},
		{"disruptionBudget: {maxUnavailable: 0}", "'/disruptionBudget/maxUnavailable': minimum"},
		{"autoscaling: {enabled: true, minReplicas: 0}", "'/autoscaling/minReplicas': minimum"},
		{"autoscaling: {enabled: true, minReplicas: 9}", "minReplicas is above maxReplicas"},
		{"networkPolicy: {enabled: true}", "'/networkPolicy/from': minItems"},
		{"{inferencePool: {enabled: true}, server: {keysSecret: keys}}", "the endpoint picker reads /metrics without a key"},
	} {
		if _, err := render("grove", c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v; want one with %q", c.values, err, c.want)
		}
	}
}

// TestValues: the schema, the file of values and the settings of the tests have the same values.
func TestValues(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(filepath.Join(chart, "values.schema.json")); err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := yaml.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, text := range settings {
		var given map[string]any
		if err := yaml.Unmarshal([]byte(text), &given); err != nil {
			t.Fatal(err)
		}
		for _, name := range names(values, given) {
			set[name] = true
		}
	}
	want := names(values, values)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(set))); diff != "" {
		t.Error("the settings of the tests do not set the values:", diff)
	}
	if diff := cmp.Diff(want, properties(schema)); diff != "" {
		t.Error("the schema does not have the values:", diff)
	}
}

// names returns the paths of the values that are given; values say which of them are groups.
func names(values, given map[string]any) (all []string) {
	for name, v := range given {
		group, _ := values[name].(map[string]any)
		if inner, ok := v.(map[string]any); ok && len(group) > 0 {
			for _, n := range names(group, inner) {
				all = append(all, name+"."+n)
			}
			continue
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// properties returns the paths of a schema's properties but global, which Helm sets.
func properties(schema map[string]any) (all []string) {
	inner, _ := schema["properties"].(map[string]any)
	for name, p := range inner {
		below := properties(p.(map[string]any))
		switch {
		case name == "global":
		case len(below) == 0:
			all = append(all, name)
		}
		for _, n := range below {
			all = append(all, name+"."+n)
		}
	}
	slices.Sort(all)
	return all
}

// TestDecode: what is decoded is checked.
func TestDecode(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"
	for _, c := range []struct{ text, want string }{
		{service + "spec: {port: 1}", `unknown field "port"`},
		{service + "spec: {type: a, type: b}", `key "type" already set`},
		{service + "spec: {ports: [{port: a}]}", "cannot unmarshal string"},
		{service + "---\n" + service, "Service a is there twice"},
		{"apiVersion: v2\nkind: Service\n", `API version "v2" with kind "Service"`},
		{"a: b", "not one that the manifests may have"},
	} {
		if _, err := decode(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: the error is %v; want one with %q", c.text, err, c.want)
		}
	}
}
