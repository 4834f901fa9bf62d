package check

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
)

// operator is the key of the servers that need one.
const operator = "sk-0123456789"

// TestServe runs a server with the arguments and variables of each deployment: it starts, answers the probes without a key, and has
// the metrics of the autoscaler under the path of the annotations.
func TestServe(t *testing.T) {
	program := filepath.Join(t.TempDir(), "grove")
	c := exec.Command("go", "build", "-o", program, "./cmd/grove")
	c.Dir = "../.."
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	each(t, func(t *testing.T, all objects) {
		pod := get[apps.Deployment](t, all, "Deployment grove").Spec.Template
		container := pod.Spec.Containers[0]
		url, err := start(t, program, container)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []*core.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
			if status, text := fetch(t, url+p.HTTPGet.Path, ""); status != http.StatusOK {
				t.Errorf("%s answers %d: %s", p.HTTPGet.Path, status, text)
			}
		}
		path := cmp.Or(pod.Annotations["prometheus.io/path"], "/metrics")
		status, metrics := fetch(t, url+path, operator)
		if status != http.StatusOK {
			t.Errorf("%s answers %d: %s", path, status, metrics)
		}
		if slices.Contains(container.Args, "--api-keys=/keys/keys") {
			if status, text := fetch(t, url+path, ""); status != http.StatusUnauthorized {
				t.Errorf("%s answers %d without a key: %s", path, status, text)
			}
		}
		if scaler, ok := all["HorizontalPodAutoscaler grove"].(*autoscaling.HorizontalPodAutoscaler); ok {
			for _, m := range scaler.Spec.Metrics {
				if name := m.Pods.Metric.Name; !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` `).MatchString(metrics) {
					t.Errorf("the server has no metric %s:\n%s", name, metrics)
				}
			}
		}
	})
	t.Run("helm test", func(t *testing.T) {
		all, tested := install(t, "grove", "")
		url, err := start(t, program, get[apps.Deployment](t, all, "Deployment grove").Spec.Template.Spec.Containers[0])
		if err != nil {
			t.Fatal(err)
		}
		args := get[core.Pod](t, tested, "Pod grove-test").Spec.Containers[0].Args
		for i := range args {
			args[i] = strings.Replace(args[i], "grove:80", strings.TrimPrefix(url, "http://"), 1)
		}
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			t.Errorf("grove %q: %v\n%s", args, err, out)
		}
	})
	t.Run("refused", func(t *testing.T) {
		for _, values := range []string{"server: {extraArgs: [--paralel=8]}", "server: {env: [{name: GROVE_PORT, value: 'tcp://10.0.0.1:80'}]}"} {
			all, _ := install(t, "grove", values)
			if _, err := start(t, program, get[apps.Deployment](t, all, "Deployment grove").Spec.Template.Spec.Containers[0]); err == nil {
				t.Errorf("a server starts with %s", values)
			}
		}
	})
}

// ready matches the line by which a server says that it has its model, as text and as JSON.
var ready = regexp.MustCompile(`^grove: ready$|"msg":"ready"`)

// start starts a server as a container does, with a model, an address and files of the tests, until the test ends. It returns the
// server's URL when it is ready.
func start(t *testing.T, program string, c core.Container) (string, error) {
	t.Helper()
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	if err := os.WriteFile(keys, []byte("scraper:"+operator+",operator\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := make([]string, len(c.Args))
	for i, arg := range c.Args {
		flag, value, _ := strings.Cut(arg, "=")
		name, file, _ := strings.Cut(value, "=")
		switch {
		case flag == "--model" && strings.HasPrefix(file, mountOf(t, c, "models")):
			arg = "--model=" + name + "=gopher-target"
		case flag == "--prefix-dir" && value == mountOf(t, c, "prefixes"):
			arg = "--prefix-dir=" + t.TempDir()
		case flag == "--api-keys" && strings.HasPrefix(value, mountOf(t, c, "keys")):
			arg = "--api-keys=" + keys
		case arg == fmt.Sprintf("--addr=0.0.0.0:%d", c.Ports[0].ContainerPort):
			arg = "--addr=127.0.0.1:0"
		}
		args[i] = arg
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = os.Environ()
	for _, v := range c.Env {
		if v.Name == "XDG_CACHE_HOME" && v.Value == mountOf(t, c, "cache") {
			v.Value = dir
		}
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	var url, said string
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if found := regexp.MustCompile(`listening on (http://[\w.:]+)`).FindStringSubmatch(lines.Text()); found != nil {
			url = found[1]
		}
		if said += lines.Text() + "\n"; ready.MatchString(lines.Text()) {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return url, nil
		}
	}
	return "", fmt.Errorf("grove %q does not start:\n%s", args, said)
}

// mountOf returns the path of a container's volume; where it has none, one that nothing begins with.
func mountOf(t *testing.T, c core.Container, name string) string {
	t.Helper()
	for _, m := range c.VolumeMounts {
		if m.Name == name {
			return m.MountPath
		}
	}
	return "\x00"
}

// fetch returns the status and the text of a page, with a key.
func fetch(t *testing.T, url, key string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}
