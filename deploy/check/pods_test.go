package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// TestFaults: no faults are found in what is deployed.
func TestFaults(t *testing.T) {
	each(t, func(t *testing.T, all objects) {
		for _, fault := range faults(all) {
			t.Error(fault)
		}
	})
	for name, values := range settings {
		t.Run("release with the settings "+name, func(t *testing.T) { testRelease(t, "other", values) })
	}
}

// testRelease: neither the objects of a release nor the pod of helm test have faults.
func testRelease(t *testing.T, release, values string) {
	installed, tested := install(t, release, values)
	for _, fault := range faults(installed) {
		t.Error(fault)
	}
	p := get[core.Pod](t, tested, "Pod "+release+"-test")
	for _, fault := range faultsOfPod(p.Spec) {
		t.Errorf("the pod of helm test: %s", fault)
	}
	service := get[core.Service](t, installed, "Service "+release)
	if selects(service.Spec.Selector, p.Labels) {
		t.Error("the service sends requests to the pod of helm test")
	}
	if policy, ok := installed["NetworkPolicy "+release].(*networking.NetworkPolicy); ok && !selects(policy.Spec.Ingress[0].From[0].PodSelector.MatchLabels, p.Labels) {
		t.Error("the network policy does not admit the pod of helm test")
	}
	if want := fmt.Sprintf("--addr=%s:%d", release, service.Spec.Ports[0].Port); !slices.Contains(p.Spec.Containers[0].Args, want) {
		t.Errorf("the pod of helm test has the arguments %q; want %s", p.Spec.Containers[0].Args, want)
	}
}

// TestPool: a pool names its endpoint picker, and a route the pool, where there is one.
func TestPool(t *testing.T) {
	for _, c := range []struct{ values, picker, backend string }{
		{"{inferencePool: {enabled: true}, httpRoute: {enabled: true}}", "other-epp", "InferencePool other"},
		{"{inferencePool: {enabled: true, picker: choose}, httpRoute: {enabled: true, pool: far}}", "choose", "InferencePool far"},
		{"httpRoute: {enabled: true}", "", "Service other"},
	} {
		all, _ := install(t, "other", c.values)
		if c.picker != "" {
			if got := get[inference.InferencePool](t, all, "InferencePool other").Spec.EndpointPickerRef.Name; string(got) != c.picker {
				t.Errorf("%s: the endpoint picker is %s; want %s", c.values, got, c.picker)
			}
		}
		to := get[gateway.HTTPRoute](t, all, "HTTPRoute other").Spec.Rules[0].BackendRefs[0]
		kind := "Service"
		if to.Kind != nil {
			kind = string(*to.Kind)
		}
		if got := kind + " " + string(to.Name); got != c.backend {
			t.Errorf("%s: requests go to %s; want %s", c.values, got, c.backend)
		}
	}
}

// faults returns what is wrong with objects that go together.
func faults(all objects) (found []string) {
	var d *apps.Deployment
	var scaler *autoscaling.HorizontalPodAutoscaler
	for _, o := range all {
		switch o := o.(type) {
		case *apps.Deployment:
			d = o
		case *autoscaling.HorizontalPodAutoscaler:
			scaler = o
		}
	}
	if d == nil {
		return []string{"there is no deployment"}
	}
	pod, port := d.Spec.Template, d.Spec.Template.Spec.Containers[0].Ports[0]
	found = append(faultsOfPod(pod.Spec), faultsOfRollout(d)...)
	fault := func(wrong bool, format string, values ...any) {
		if wrong {
			found = append(found, fmt.Sprintf(format, values...))
		}
	}
	fault(!selects(d.Spec.Selector.MatchLabels, pod.Labels), "the deployment does not select its pods")
	fault(d.Spec.Replicas == nil && scaler == nil, "neither the deployment nor an autoscaler says how many pods there are")
	isPort := func(p intstr.IntOrString) bool {
		return p == intstr.FromString(port.Name) || p == intstr.FromInt32(port.ContainerPort)
	}
	for name, o := range all {
		_, own, _ := strings.Cut(name, " ")
		fault(own != d.Name, "%s has not the name of %s", name, d.Name)
		switch o := o.(type) {
		case *core.Service:
			fault(!selects(o.Spec.Selector, pod.Labels), "%s does not select the pods", name)
			fault(!isPort(o.Spec.Ports[0].TargetPort), "%s has the port %s, which pods lack", name, o.Spec.Ports[0].TargetPort.String())
		case *policy.PodDisruptionBudget:
			fault(!selects(o.Spec.Selector.MatchLabels, pod.Labels), "%s does not select the pods", name)
			fault(o.Spec.MinAvailable != nil || o.Spec.MaxUnavailable == nil || o.Spec.MaxUnavailable.IntVal < 1, "%s blocks the drain of a node where there is one pod", name)
		case *networking.NetworkPolicy:
			fault(!selects(o.Spec.PodSelector.MatchLabels, pod.Labels), "%s does not select the pods", name)
			for _, rule := range o.Spec.Ingress {
				fault(len(rule.From) == 0, "%s admits everybody", name)
				fault(len(rule.Ports) != 1 || !isPort(*rule.Ports[0].Port), "%s does not admit to the port alone", name)
			}
		case *inference.InferencePool:
			fault(string(o.Spec.Selector.MatchLabels["app"]) != pod.Labels["app"], "%s does not select the pods", name)
			fault(int32(o.Spec.TargetPorts[0].Number) != port.ContainerPort, "%s has the port %d, which pods lack", name, o.Spec.TargetPorts[0].Number)
		case *gateway.HTTPRoute:
			to := o.Spec.Rules[0].BackendRefs[0]
			service, _ := all["Service "+string(to.Name)].(*core.Service)
			fault(to.Group == nil && (service == nil || to.Port == nil || int32(*to.Port) != service.Spec.Ports[0].Port), "%s has no service with its port", name)
		case *monitoring.ServiceMonitor:
			service, _ := all["Service "+d.Name].(*core.Service)
			fault(service == nil || !selects(o.Spec.Selector.MatchLabels, service.Labels), "%s does not select the service", name)
			fault(service == nil || o.Spec.Endpoints[0].Port != service.Spec.Ports[0].Name, "%s has the port %s, which the service lacks", name, o.Spec.Endpoints[0].Port)
		case *autoscaling.HorizontalPodAutoscaler:
			target := o.Spec.ScaleTargetRef
			fault(target.APIVersion != d.APIVersion || target.Kind != d.Kind || target.Name != d.Name, "%s scales %s %s", name, target.Kind, target.Name)
			fault(d.Spec.Replicas != nil, "the deployment has a number of pods beside %s", name)
			for _, m := range o.Spec.Metrics {
				fault(m.Type != autoscaling.PodsMetricSourceType || m.Pods == nil, "%s has a metric of the type %s", name, m.Type)
			}
		}
	}
	slices.Sort(found)
	return found
}

// selects reports whether labels have all those of a selector, which has some.
func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

// faultsOfPod returns what is wrong with a pod: with its rights, its variables, its resources and its volumes.
func faultsOfPod(p core.PodSpec) (found []string) {
	fault := func(wrong bool, format string, values ...any) {
		if wrong {
			found = append(found, fmt.Sprintf(format, values...))
		}
	}
	isFalse := func(b *bool) bool { return b != nil && !*b }
	isTrue := func(b *bool) bool { return b != nil && *b }
	number := func(n *int64) bool { return n != nil && *n == 65532 }
	fault(!isFalse(p.EnableServiceLinks), "links of services may set GROVE_PORT")
	fault(!isFalse(p.AutomountServiceAccountToken), "the pod has a token of the cluster")
	s, c := p.SecurityContext, p.Containers[0]
	fault(s == nil || !isTrue(s.RunAsNonRoot) || !number(s.RunAsUser) || !number(s.RunAsGroup) || !number(s.FSGroup), "the pod does not run as the image's user and group")
	fault(s == nil || s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault, "the pod has no filter of system calls")
	r := c.SecurityContext
	fault(r == nil || !isFalse(r.AllowPrivilegeEscalation) || !isTrue(r.ReadOnlyRootFilesystem) || r.Capabilities == nil || !slices.Contains(r.Capabilities.Drop, "ALL"), "the container has rights that it does not need")
	fault(len(c.Resources.Limits) != 2 || !c.Resources.Limits.Cpu().Equal(*c.Resources.Requests.Cpu()) || !c.Resources.Limits.Memory().Equal(*c.Resources.Requests.Memory()), "requests and limits differ")
	mounts := map[string]core.VolumeMount{}
	for _, m := range c.VolumeMounts {
		mounts[m.Name] = m
	}
	for _, v := range p.Volumes {
		mount, mounted := mounts[v.Name]
		delete(mounts, v.Name)
		fault(!mounted, "the volume %s is not mounted", v.Name)
		if v.EmptyDir != nil {
			small := resource.MustParse("64Mi") // what a few models keep
			fault(v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Cmp(small) <= 0, "the volume %s has %v", v.Name, v.EmptyDir.SizeLimit)
			continue
		}
		fault(mount.ReadOnly == (v.Name == "prefixes"), "the volume %s can be written, or must be and cannot", v.Name)
		fault(v.Secret != nil && (v.Secret.DefaultMode == nil || *v.Secret.DefaultMode != 0o440), "everybody may read the volume %s", v.Name)
	}
	fault(len(mounts) > 0, "there are no volumes %q", slices.Sorted(maps.Keys(mounts)))
	return found
}

// faultsOfRollout returns what is wrong with how pods start, are replaced and stop.
func faultsOfRollout(d *apps.Deployment) (found []string) {
	fault := func(wrong bool, format string, values ...any) {
		if wrong {
			found = append(found, fmt.Sprintf(format, values...))
		}
	}
	pod := d.Spec.Template.Spec
	c := pod.Containers[0]
	cores := c.Resources.Limits.Cpu()
	fault(cores.IsZero() || cores.MilliValue()%1000 != 0, "the pod has %v cores, not a whole number", cores)
	update := d.Spec.Strategy.RollingUpdate
	fault(update == nil || update.MaxUnavailable == nil || *update.MaxUnavailable != intstr.FromInt32(0), "an update takes pods before others are ready")
	start := c.StartupProbe
	allowed := start.PeriodSeconds * start.FailureThreshold
	fault(d.Spec.ProgressDeadlineSeconds == nil || *d.Spec.ProgressDeadlineSeconds <= allowed, "a rollout fails before the %d s in which a pod may start", allowed)
	for _, p := range []*core.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		fault(p.TimeoutSeconds < 2, "a probe waits for %d s; all cores compute", p.TimeoutSeconds)
		fault(p.HTTPGet.Port != intstr.FromString(c.Ports[0].Name), "a probe has the port %s, which the pod lacks", p.HTTPGet.Port.String())
	}
	var drain time.Duration
	for _, arg := range c.Args {
		if text, ok := strings.CutPrefix(arg, "--drain="); ok {
			drain, _ = time.ParseDuration(text)
		}
	}
	need := time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second + drain + 10*time.Second
	fault(drain == 0 || time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second <= need, "a pod has %d s to stop; it needs more than %v", *pod.TerminationGracePeriodSeconds, need)
	spread := pod.TopologySpreadConstraints
	fault(len(spread) == 0 || !selects(spread[0].LabelSelector.MatchLabels, d.Spec.Template.Labels), "pods do not spread over nodes")
	return found
}

// TestFaultsFound: each fault that the manifests once had, or could have, is found.
func TestFaultsFound(t *testing.T) {
	parts := []string{strings.Replace(readText(t, "grove.yaml"), "  replicas: 2\n", "", 1)}
	for _, name := range []string{"inference-gateway.yaml", overlays + "/autoscaled/autoscaler.yaml", overlays + "/production/policy.yaml"} {
		parts = append(parts, readText(t, name))
	}
	if found := faults(mustDecode(t, parts[0])); len(found) != 1 || !strings.Contains(found[0], "how many pods") {
		t.Errorf("without a number of pods the faults are %q", found)
	}
	text := strings.Join(parts, "---\n")
	if found := faults(mustDecode(t, text)); len(found) > 0 {
		t.Fatalf("without a change the faults are %q", found)
	}
	for _, c := range []struct {
		old, new string
		want     string
	}{
		{"enableServiceLinks: false", "enableServiceLinks: true", "links of services may set GROVE_PORT"},
		{"      automountServiceAccountToken: false", "", "a token of the cluster"},
		{"        runAsGroup: 65532\n", "", "the image's user and group"},
		{"seccompProfile: {type: RuntimeDefault}", "seccompProfile: {type: Unconfined}", "no filter of system calls"},
		{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "rights that it does not need"},
		{`limits: {cpu: "4"`, `limits: {cpu: "5"`, "requests and limits differ"},
		{`cpu: "4"`, `cpu: 4500m`, "not a whole number"},
		{"sizeLimit: 1Gi", "sizeLimit: 64Mi", "the volume cache has 64Mi"},
		{"{name: models, mountPath: /models, readOnly: true}", "{name: models, mountPath: /models}", "the volume models can be written"},
		{"            - {name: models, mountPath: /models, readOnly: true}\n", "", "models is not mounted"},
		{"- name: cache", "- name: caches", `no volumes ["cache"]`},
		{"maxUnavailable: 0,", "maxUnavailable: 1,", "takes pods before others are ready"},
		{"progressDeadlineSeconds: 900", "progressDeadlineSeconds: 600", "fails before the 600 s"},
		{"timeoutSeconds: 5", "timeoutSeconds: 1", "a probe waits for 1 s"},
		{"port: http}\n            periodSeconds: 10", "port: web}\n            periodSeconds: 10", "a probe has the port web"},
		{"terminationGracePeriodSeconds: 90", "terminationGracePeriodSeconds: 75", "a pod has 75 s to stop"},
		{"          labelSelector:\n            matchLabels: {app: grove}", "          labelSelector:\n            matchLabels: {app: other}", "do not spread"},
		{"targetPort: http", "targetPort: web", "the port web, which pods lack"},
		{"selector: {app: grove}", "selector: {app: other}", "Service grove does not select"},
		{"maxUnavailable: 1 #", "minAvailable: 1 #", "blocks the drain"},
		{"kind: HorizontalPodAutoscaler\nmetadata:\n  name: grove", "kind: HorizontalPodAutoscaler\nmetadata:\n  name: other", "HorizontalPodAutoscaler other has not the name of grove"},
		{"  progressDeadlineSeconds", "  replicas: 2\n  progressDeadlineSeconds", "has a number of pods beside HorizontalPodAutoscaler grove"},
		{"kind: Deployment, name: grove", "kind: Deployment, name: other", "scales Deployment other"},
		{"- type: Pods #", "- type: External #", "has a metric of the type External"},
		{"- number: 8080", "- number: 8000", "InferencePool grove has the port 8000"},
		{"port: http}\n  egress", "port: web}\n  egress", "does not admit to the port alone"},
		{"- namespaceSelector:\n            matchLabels: {kubernetes.io/metadata.name: gateway}\n        - namespaceSelector:\n            matchLabels: {kubernetes.io/metadata.name: monitoring}", "[]", "admits everybody"},
	} {
		if !strings.Contains(text, c.old) {
			t.Errorf("the manifests have no %q", c.old)
			continue
		}
		found := faults(mustDecode(t, strings.ReplaceAll(text, c.old, c.new)))
		if !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, c.want) }) {
			t.Errorf("%q in place of %q: the faults are %q; want one with %q", c.new, c.old, found, c.want)
		}
	}
}
