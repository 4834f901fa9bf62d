package check

import (
	"os"
	"path/filepath"
	"testing"
)

// settings are values of the chart that the tests render. Together they set every value.
var settings = map[string]string{
	"defaults":   "",
	"autoscaled": "autoscaling: {enabled: true}",
	"pool":       "{inferencePool: {enabled: true}, httpRoute: {enabled: true}}",
	"far pool":   "httpRoute: {enabled: true, pool: other, gateway: front, hostnames: [models.example.com]}",
	"route":      "{httpRoute: {enabled: true}, inferencePool: {picker: choose}, service: {port: 8000}}",
	"production": `
replicas: 3
image: {tag: v1.0.0}
server: {keysSecret: grove-keys}
resources: {cpu: 8, memory: 16Gi}
networkPolicy:
  enabled: true
  from:
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: gateway}}
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}
`,
	"all": `
image:
  repository: registry.example.com/grove
  tag: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  pullPolicy: Always
imagePullSecrets: [{name: registry}]
model: {name: "a b", file: q/8.gguf, claim: "123"}
server:
  parallel: 2
  queue: 5
  drainSeconds: 120
  startupSeconds: 3600
  keysSecret: "456"
  extraArgs: [--context=128, "--log-format=json"]
  env: [{name: GROVE_SEED, value: "7"}]
resources: {cpu: 2, memory: 512Mi}
cacheSize: 2Gi
prefixes: {claim: "789", maxBytes: 2GiB}
podLabels: {team: models}
podAnnotations: {prometheus.io/port: "1", note: x}
nodeSelector: {kubernetes.io/arch: amd64}
tolerations: [{key: cores, operator: Exists}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: cores, operator: Exists}]}]}}}
priorityClassName: models
service: {type: LoadBalancer, port: 8081}
disruptionBudget: {enabled: false, maxUnavailable: 2}
autoscaling: {enabled: true, minReplicas: 1, maxReplicas: 3, waiting: 2}
serviceMonitor: {enabled: true, interval: 30s, labels: {release: prometheus}, keySecret: grove-scraper}
networkPolicy:
  enabled: true
  from: [{podSelector: {}}]
  egress: [{ports: [{port: 4318}]}]
`,
}

// readText returns the text of a file, by its path from deploy/kubernetes.
func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifests, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// read returns the objects of a file of deploy/kubernetes.
func read(t *testing.T, name string) objects {
	t.Helper()
	return mustDecode(t, readText(t, name))
}

// each runs a test with the objects of the manifests, of every overlay, and of the chart with all settings.
func each(t *testing.T, check func(*testing.T, objects)) {
	t.Helper()
	t.Run("manifests", func(t *testing.T) { check(t, read(t, "grove.yaml")) })
	folders, err := filepath.Glob(filepath.Join(overlays, "*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("%s has no overlays: %v", overlays, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) { check(t, build(t, folder)) })
	}
	for name, values := range settings {
		t.Run("chart "+name, func(t *testing.T) {
			all, _ := install(t, "grove", values)
			check(t, all)
		})
	}
}
