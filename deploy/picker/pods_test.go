package picker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"grove/internal/gopher"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// contextTokens is the length of texts of the tests' model. It is that of conversations; the model was trained for less, and what it writes does not matter.
const contextTokens = 4096

// writeModel writes the model inside grove with that length.
func writeModel(t *testing.T) string {
	t.Helper()
	f, err := gguf.Parse(gopher.Model())
	if err != nil {
		t.Fatal(err)
	}
	metadata := slices.Clone(f.Metadata)
	for i := range metadata {
		if strings.HasSuffix(metadata[i].Key, ".context_length") {
			metadata[i].Value = gguf.Of(uint32(contextTokens))
		}
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// writeAdapter writes an adapter of the model inside the program, two.gguf, and returns its directory.
func writeAdapter(t *testing.T) (dir string) {
	t.Helper()
	base, err := gguf.Parse(gopher.Model())
	if err != nil {
		t.Fatal(err)
	}
	metadata, tensors, err := synthetic.Adapter(base, 1, 8, tensor.F16, func(name string) bool { return strings.Contains(name, "attn_q") }, nil)
	dir = t.TempDir()
	if err == nil {
		err = gguf.WriteFile(filepath.Join(dir, "two.gguf"), metadata, tensors)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A deployment is what the tests read of the Deployment of deploy/kubernetes.
type deployment struct {
	Spec struct {
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				TerminationGracePeriodSeconds int
				Containers                    []struct {
					Args           []string
					Ports          []struct{ ContainerPort int }
					ReadinessProbe struct {
						HTTPGet                                         struct{ Path string }
						PeriodSeconds, TimeoutSeconds, FailureThreshold int
					}
					Lifecycle struct {
						PreStop struct{ Sleep struct{ Seconds int } }
					}
				}
			}
		}
	}
}

// A server is a grove server with its pod. The tests do for it what a kubelet does: start, probe, stop.
type server struct {
	c         *cluster
	name, ip  string
	port      string
	path      string // of the readiness probe
	period    time.Duration
	timeout   time.Duration
	before    time.Duration // sleep before SIGTERM
	running   *process
	start     func() *process
	state     atomic.Pointer[string] // of the pod's condition Ready
	withdrawn atomic.Bool            // the pod is deleted: no probe changes it
}

func (s *server) address() string { return s.ip + ":" + s.port }

// startServers makes the pods of a deployment and starts their servers, with a model in place of the deployment's.
func startServers(t *testing.T, c *cluster, n int) []*server {
	t.Helper()
	var d deployment
	if err := c.do(http.MethodGet, "/apis/apps/v1/namespaces/default/deployments/grove", "", nil, &d); err != nil {
		t.Fatal(err)
	}
	model, adapters, all := writeModel(t), writeAdapter(t), make([]*server, n)
	for i := range all {
		s := &server{c: c, name: fmt.Sprintf("grove-%d", i), ip: fmt.Sprintf("127.0.0.%d", 2+i)}
		container := d.Spec.Template.Spec.Containers[0]
		probe := container.ReadinessProbe
		if probe.FailureThreshold != 1 {
			t.Fatalf("the readiness probe may fail %d times; the tests let it fail once", probe.FailureThreshold)
		}
		s.port, s.path, s.period = fmt.Sprint(container.Ports[0].ContainerPort), probe.HTTPGet.Path, time.Duration(probe.PeriodSeconds)*time.Second
		s.timeout = time.Duration(probe.TimeoutSeconds) * time.Second
		s.before = time.Duration(container.Lifecycle.PreStop.Sleep.Seconds) * time.Second
		args := []string{"--chat-template=chatml", fmt.Sprintf("--context=%d", contextTokens), "--lora-dir=" + adapters}
		for _, arg := range container.Args {
			switch {
			case strings.HasPrefix(arg, "--model=assistant="):
				arg = "--model=assistant=" + model
			case strings.HasPrefix(arg, "--addr="):
				arg = "--addr=" + s.address()
			}
			args = append(args, arg)
		}
		args = append(args[3:], args[:3]...) // "serve" first
		log, starts := t.TempDir(), 0
		s.start = func() *process {
			starts++
			return start(t, filepath.Join(log, fmt.Sprintf("%d.log", starts)), filepath.Join(programs(t), "grove"), args, []string{"XDG_CACHE_HOME=" + log})
		}
		all[i] = s
		s.run(t)
		go s.probe(t)
	}
	for _, s := range all {
		eventually(t, s.name+" is ready", func() bool { return s.ready() == "True" })
	}
	return all
}

// run makes the pod, unless it exists, and starts its server.
func (s *server) run(t *testing.T) {
	t.Helper()
	var d struct {
		Spec struct {
			Template struct {
				Metadata map[string]any
				Spec     map[string]any
			}
		}
	}
	if err := s.c.do(http.MethodGet, "/apis/apps/v1/namespaces/default/deployments/grove", "", nil, &d); err != nil {
		t.Fatal(err)
	}
	template := d.Spec.Template
	template.Metadata["name"] = s.name
	template.Spec["nodeName"] = "node" // its kubelet is the tests
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": template.Metadata, "spec": template.Spec})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.c.do(http.MethodPost, "/api/v1/namespaces/default/pods", "application/json", body, nil); err != nil && !strings.Contains(err.Error(), "already exists") {
		t.Fatal(err)
	}
	s.running = s.start()
	s.withdrawn.Store(false)
}

// ready returns the status of the condition Ready that the pod has.
func (s *server) ready() string {
	if state := s.state.Load(); state != nil {
		return *state
	}
	return ""
}

// probe asks the server for its health, as often as the manifest says, and writes the pod's status where it changes.
func (s *server) probe(t *testing.T) {
	client := &http.Client{Timeout: s.timeout}
	for tick := time.NewTicker(s.period); ; {
		state := "False"
		if a, err := client.Get("http://" + s.address() + s.path); err == nil {
			a.Body.Close()
			if a.StatusCode == http.StatusOK {
				state = "True"
			}
		}
		if !s.withdrawn.Load() && state != s.ready() && s.set(state) == nil {
			s.state.Store(&state)
		}
		select {
		case <-t.Context().Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// set writes the pod's status.
func (s *server) set(state string) error {
	body := fmt.Sprintf(`{"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}],"conditions":[{"type":"Ready","status":%q}]}}`, s.ip, s.ip, state)
	return s.c.do(http.MethodPatch, "/api/v1/namespaces/default/pods/"+s.name+"/status", "application/strategic-merge-patch+json", []byte(body), nil)
}

// terminate deletes the pod: it is withdrawn, waits as the manifest says, has SIGTERM, and is gone when its server is.
func (s *server) terminate() error {
	s.withdrawn.Store(true)
	path := "/api/v1/namespaces/default/pods/" + s.name
	if err := s.c.do(http.MethodDelete, path, "", nil, nil); err != nil {
		return err
	}
	time.Sleep(s.before)
	s.running.signal(syscall.SIGTERM)
	<-s.running.exited
	empty := ""
	s.state.Store(&empty)
	return s.c.do(http.MethodDelete, path+"?gracePeriodSeconds=0", "", nil, nil)
}
