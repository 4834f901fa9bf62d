package check

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helm "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/strvals"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	"sigs.k8s.io/prometheus-adapter/pkg/config"
	"sigs.k8s.io/yaml"
)

// guide returns the one text of docs/kubernetes.md that a pattern's first group matches.
func guide(t *testing.T, pattern string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(page), -1)
	if len(found) != 1 {
		t.Fatalf("docs/kubernetes.md has %d texts of the form %s; want 1", len(found), pattern)
	}
	return found[0][1]
}

// TestPickerChart: the guide's command installs the endpoint picker with the configuration of picker.yaml, and the pool of
// inference-gateway.yaml.
func TestPickerChart(t *testing.T) {
	values := commandValues(t, guide(t, `helm install grove CHART((?:.*\\\n)+.*)`))
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api-inference-extension").Output()
	if err != nil {
		t.Fatal(err)
	}
	charts := filepath.Join(strings.TrimSpace(string(out)), "config", "charts")
	c, err := loader.Load(filepath.Join(charts, "inferencepool"))
	if err != nil {
		t.Fatal(err)
	}
	library, err := loader.Load(filepath.Join(charts, "epplib")) // which the chart names as its dependency
	if err != nil {
		t.Fatal(err)
	}
	c.AddDependency(library)
	if err := helm.ProcessDependencies(c, values); err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: "grove", Namespace: "default", IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	made := objects{}
	for _, name := range []string{"inferencepool.yaml", "inferenceextension.yaml"} {
		maps.Copy(made, decodeSome(t, files["inferencepool/templates/"+name]))
	}
	got, want := get[core.ConfigMap](t, made, "ConfigMap grove-epp").Data["picker.yaml"], readText(t, "picker.yaml")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("the configuration is not that of picker.yaml:", diff)
	}
	container := get[apps.Deployment](t, made, "Deployment grove-epp").Spec.Template.Spec.Containers[0]
	if at := slices.Index(container.Args, "--config-file"); at < 0 || container.Args[at+1] != "/config/picker.yaml" {
		t.Errorf("the picker's arguments are %q", container.Args)
	}
	pool := get[inference.InferencePool](t, read(t, "inference-gateway.yaml"), "InferencePool grove")
	if diff := cmp.Diff(pool.Spec, get[inference.InferencePool](t, made, "InferencePool grove").Spec); diff != "" {
		t.Error(diff)
	}
	if ref := pool.Spec.EndpointPickerRef; int32(ref.Port.Number) != get[core.Service](t, made, "Service "+string(ref.Name)).Spec.Ports[0].Port {
		t.Errorf("the picker's service has not the port %d", ref.Port.Number)
	}
}

// commandValues returns the values that the options of a command of Helm give. Paths begin at the root of the repository.
func commandValues(t *testing.T, options string) map[string]any {
	t.Helper()
	options, _, _ = strings.Cut(options, "#")
	words := strings.Fields(strings.NewReplacer("\\\n", " ", "'", "").Replace(options))
	values := map[string]any{}
	for ; len(words) > 1; words = words[2:] {
		var err error
		switch words[0] {
		case "--set":
			err = strvals.ParseInto(words[1], values)
		case "--set-file":
			err = strvals.ParseIntoFile(words[1], values, func(path []rune) (any, error) {
				text, err := os.ReadFile(filepath.Join("../..", string(path)))
				return string(text), err
			})
		default:
			t.Fatalf("the option %s is not known", words[0])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return values
}

// decodeSome returns the objects of the extension's chart whose kinds the tests read.
func decodeSome(t *testing.T, text string) objects {
	t.Helper()
	all := objects{}
	for part := range strings.SplitSeq("\n"+text, "\n---") {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(part), &head); err != nil {
			t.Fatal(err)
		}
		var o any
		switch head.Kind {
		case "ConfigMap":
			o = new(core.ConfigMap)
		case "Deployment":
			o = new(apps.Deployment)
		case "InferencePool":
			o = new(inference.InferencePool)
		case "Service":
			o = new(core.Service)
		default:
			continue
		}
		if err := yaml.Unmarshal([]byte(part), o); err != nil {
			t.Fatal(err)
		}
		all[head.Kind+" "+head.Metadata.Name] = o
	}
	return all
}

// TestAdapterRule: the guide's rule of the Prometheus adapter serves the autoscaler's metrics of pods, under their own names.
func TestAdapterRule(t *testing.T) {
	var rules config.MetricsDiscoveryConfig
	if err := yaml.UnmarshalStrict([]byte(guide(t, "(?s)```yaml\n(rules:.*?)```")), &rules); err != nil {
		t.Fatal(err)
	}
	if len(rules.Rules) != 1 {
		t.Fatalf("there are %d rules; want 1", len(rules.Rules))
	}
	rule := rules.Rules[0]
	want := config.DiscoveryRule{
		SeriesQuery:  rule.SeriesQuery,
		MetricsQuery: rule.MetricsQuery,
		Resources:    config.ResourceMapping{Overrides: map[string]config.GroupResource{"namespace": {Resource: "namespace"}, "pod": {Resource: "pod"}}},
	}
	if diff := cmp.Diff(want, rule); diff != "" {
		t.Error("the rule has not the labels of the series, or names metrics anew:", diff)
	}
	series := regexp.MustCompile(`^\{__name__=~"([^"]+)",namespace!="",pod!=""\}$`).FindStringSubmatch(rule.SeriesQuery)
	if series == nil {
		t.Fatalf("the rule's series are %s", rule.SeriesQuery)
	}
	query, err := template.New("query").Delims("<<", ">>").Option("missingkey=error").Parse(rule.MetricsQuery)
	if err != nil {
		t.Fatal(err)
	}
	scaler := get[autoscaling.HorizontalPodAutoscaler](t, build(t, filepath.Join(overlays, "autoscaled")), "HorizontalPodAutoscaler grove")
	for _, m := range scaler.Spec.Metrics {
		name := m.Pods.Metric.Name
		if !regexp.MustCompile("^(?:" + series[1] + ")$").MatchString(name) {
			t.Errorf("the rule's series %s are not those of %s", rule.SeriesQuery, name)
		}
		var text strings.Builder
		if err := query.Execute(&text, map[string]string{"Series": name, "LabelMatchers": `pod=~"a|b"`, "GroupBy": "pod"}); err != nil {
			t.Error(err)
		}
		if want := `sum(` + name + `{pod=~"a|b"}) by (pod)`; text.String() != want {
			t.Errorf("the query is %s; want %s", text.String(), want)
		}
	}
}
