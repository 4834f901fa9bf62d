package check

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// The folders of what is checked.
const (
	chart     = "../helm/grove"
	manifests = "../kubernetes"
	overlays  = "../kustomize"
)

// objects are Kubernetes objects by their kinds and names, such as "Service grove", each a pointer to its kind's type.
type objects map[string]any

// kinds makes an empty object of each kind that the manifests may have, by API version and kind.
var kinds = map[string]func() any{
	"apps/v1 Deployment":                           func() any { return new(apps.Deployment) },
	"autoscaling/v2 HorizontalPodAutoscaler":       func() any { return new(autoscaling.HorizontalPodAutoscaler) },
	"gateway.networking.k8s.io/v1 HTTPRoute":       func() any { return new(gateway.HTTPRoute) },
	"inference.networking.k8s.io/v1 InferencePool": func() any { return new(inference.InferencePool) },
	"monitoring.coreos.com/v1 ServiceMonitor":      func() any { return new(monitoring.ServiceMonitor) },
	"networking.k8s.io/v1 NetworkPolicy":           func() any { return new(networking.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":                func() any { return new(policy.PodDisruptionBudget) },
	"v1 Pod":                                       func() any { return new(core.Pod) },
	"v1 Service":                                   func() any { return new(core.Service) },
}

// decode returns the objects of YAML documents. It refuses kinds that are not known, fields that a kind lacks, and keys and
// objects that are there twice.
func decode(text string) (objects, error) {
	all := objects{}
	for part := range strings.SplitSeq("\n"+text, "\n---") {
		var head struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(part), &head); err != nil {
			return nil, err
		}
		if head.Kind == "" && len(strings.TrimSpace(part)) == 0 {
			continue
		}
		name := head.Kind + " " + head.Metadata.Name
		make, known := kinds[head.APIVersion+" "+head.Kind]
		if !known {
			return nil, fmt.Errorf("%s: API version %q with kind %q is not one that the manifests may have", name, head.APIVersion, head.Kind)
		}
		if all[name] != nil {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		o := make()
		if err := yaml.UnmarshalStrict([]byte(part), o); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = o
	}
	return all, nil
}

// mustDecode is decode in a test.
func mustDecode(t *testing.T, text string) objects {
	t.Helper()
	all, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// render returns the files that the chart renders for a release and values (YAML), by their names in its folder of templates.
func render(release, values string) (map[string]string, error) {
	c, err := loader.Load(chart)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: release, Namespace: "default", IsInstall: true}
	all, err := util.ToRenderValues(c, given, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(context.Background(), c, all)
	if err != nil {
		return nil, err
	}
	named := map[string]string{}
	for name, text := range files {
		if name = strings.TrimPrefix(name, "grove/templates/"); !strings.HasPrefix(path.Base(name), "_") {
			named[name] = text
		}
	}
	return named, nil
}

// install returns the objects of a release, without the pods of helm test, and the latter.
func install(t *testing.T, release, values string) (objects, objects) {
	t.Helper()
	files, err := render(release, values)
	if err != nil {
		t.Fatal(err)
	}
	var installed, tested []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch {
		case name == "NOTES.txt":
		case strings.HasPrefix(name, "tests/"):
			tested = append(tested, files[name])
		default:
			installed = append(installed, files[name])
		}
	}
	return mustDecode(t, strings.Join(installed, "\n---\n")), mustDecode(t, strings.Join(tested, "\n---\n"))
}

// build returns the objects of a folder as Kustomize makes them.
func build(t *testing.T, folder string) objects {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return mustDecode(t, string(text))
}

// get returns an object of a type, which must be there.
func get[T any](t *testing.T, all objects, name string) *T {
	t.Helper()
	o, ok := all[name].(*T)
	if !ok {
		t.Fatalf("there is no %s of that type in %q", name, slices.Sorted(maps.Keys(all)))
	}
	return o
}
