package picker

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// manifests is the directory of the manifests.
const manifests = "../kubernetes"

// TestPicker runs the endpoint picker with the manifests' pool and three servers; check builds its programs.
func TestPicker(t *testing.T) {
	programs(t)
	c := startCluster(t)
	c.define(t, filepath.SplitList(os.Getenv("GROVE_PICKER_DEFINITIONS")))
	t.Run("manifests", func(t *testing.T) { testManifests(t, c) })
	for _, name := range []string{"grove.yaml", "inference-gateway.yaml"} {
		for _, d := range read(t, filepath.Join(manifests, name)) {
			if err := c.create(d, false); err != nil {
				t.Fatalf("%s: %v", d, err)
			}
		}
	}
	servers := startServers(t, c, 3)
	p := startPicker(t, c, servers)
	t.Run("metrics", func(t *testing.T) { testMetrics(t, p, servers) })
	t.Run("adapters", func(t *testing.T) { testAdapters(t, c, p, servers) })
	t.Run("prefixes", func(t *testing.T) { testPrefixes(t, c, p, servers) })
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) { way.test(t, c, p, servers) })
	}
}

// testManifests: the API server accepts all objects, and would not accept a field that their kinds lack.
func testManifests(t *testing.T, c *cluster) {
	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, filepath.SplitList(os.Getenv("GROVE_PICKER_MANIFESTS"))...) {
		for _, d := range read(t, file) {
			if d.kind == "EndpointPickerConfig" || d.kind == "Kustomization" {
				continue // the picker and Kustomize read them
			}
			if d.namespace != "" {
				space := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, d.namespace)
				_ = c.do(http.MethodPost, "/api/v1/namespaces", "application/json", []byte(space), nil) // it may be there
			}
			if err := c.create(d, true); err != nil {
				t.Errorf("%s: %v", d, err)
				continue
			}
			t.Logf("%s is accepted", d)
			d.text = strings.Replace(d.text, "\nmetadata:\n", "\nmetadata:\n  mistaken: 1\n", 1)
			if err := c.create(d, true); err == nil || !strings.Contains(err.Error(), `"metadata.mistaken"`) {
				t.Errorf("%s: with an unknown field: %v", d, err)
			}
		}
	}
}

// A picker is an endpoint picker that runs.
type picker struct {
	*process
	client  extproc.ExternalProcessorClient
	metrics string // its URL
	log     string // a file
}

// startPicker starts the picker, and waits until it has all servers.
func startPicker(t *testing.T, c *cluster, servers []*server) *picker {
	t.Helper()
	address, health, metrics := free(t), free(t), free(t)
	port := func(address string) string { _, port, _ := net.SplitHostPort(address); return port }
	p := &picker{metrics: "http://" + metrics + "/metrics", log: filepath.Join(t.TempDir(), "picker.log")}
	p.process = start(t, p.log, filepath.Join(programs(t), "epp"), []string{
		"--pool-name=grove", "--pool-namespace=default", "--config-file=" + filepath.Join(manifests, "picker.yaml"), "--v=5",
		"--grpc-port=" + port(address), "--grpc-health-port=" + port(health), "--metrics-port=" + port(metrics),
		"--metrics-endpoint-auth=false", "--tracing=false", "--enable-pprof=false",
	}, []string{"KUBECONFIG=" + c.kubeconfig(t)})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))) // it signs its certificate itself
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p.client = extproc.NewExternalProcessorClient(conn)
	eventually(t, "the picker has all servers", func() bool { return p.has(len(servers)) })
	return p
}

// has reports whether the picker has a number of servers that are ready.
func (p *picker) has(n int) bool {
	return scrape(p.metrics, `inference_pool_ready_pods\{name="grove"\}`) == float64(n)
}

// scrape returns the sum of the metrics of a URL whose names and labels match; -1: there are none.
func scrape(url, pattern string) float64 {
	a, err := http.Get(url)
	if err != nil {
		return -1
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	found, sum := false, 0.0
	for _, m := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		if v, err := strconv.ParseFloat(m[len(m)-1], 64); err == nil {
			found, sum = true, sum+v
		}
	}
	if !found {
		return -1
	}
	return sum
}

// gateway starts a gateway and returns it with its URL; p nil: servers have requests in turn.
func gateway(t *testing.T, c *cluster, p *picker, servers []*server) (*Gateway, string) {
	t.Helper()
	g := &Gateway{Pool: func(ctx context.Context) []string { return c.ready(ctx, servers[0].port) }}
	if p != nil {
		g.Picker = p.client
	}
	h := httptest.NewServer(g)
	t.Cleanup(h.Close)
	return g, h.URL
}

// An answer is what the tests read of one.
type answer struct {
	Choices []struct {
		Text    string
		Message struct{ Content string }
	}
	Usage struct {
		Prompt  int `json:"prompt_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// post sends a request and returns its answer.
func post(ctx context.Context, url string, fields map[string]any) (*answer, error) {
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return nil, err
	}
	if a.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", a.Status, text)
	}
	got := new(answer)
	if err := json.Unmarshal(text, got); err != nil {
		return nil, err
	}
	if len(got.Choices) == 0 {
		return nil, errors.New("there is no choice")
	}
	return got, nil
}

// testMetrics: the picker reads from a server that is busy what the server says.
func testMetrics(t *testing.T, p *picker, servers []*server) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for i := range 11 {
		all.Go(func() {
			_, _ = post(ctx, "http://"+servers[1].address()+"/v1/completions", map[string]any{
				"model": "assistant", "prompt": fmt.Sprint("func f", i), "max_tokens": 3000, "ignore_eos": true,
			})
		})
	}
	eventually(t, "the picker has the server's queue", func() bool {
		return scrape(p.metrics, `inference_pool_per_pod_queue_size\{.*model_server_pod="grove-1[^"]*".*\}`) == 3
	})
	whole := regexp.MustCompile(`"grove-1-.*RunningRequestsSize:8 WaitingQueueSize:3 KVCacheUsagePercent:0\.\d*[1-9].* CacheBlockSize:64 CacheNumGPUBlocks:[1-9]`)
	eventually(t, "the picker has the server's other metrics", func() bool {
		text, err := os.ReadFile(p.log)
		return err == nil && whole.Match(text)
	})
}

// testAdapters: requests for an adapter go to the server that has it; the others would answer 404.
func testAdapters(t *testing.T, c *cluster, p *picker, servers []*server) {
	s := servers[2]
	call := func(route, fields string) {
		a, err := http.Post("http://"+s.address()+route, "application/json", strings.NewReader(fields))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		if text, _ := io.ReadAll(a.Body); a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s: %s", route, a.Status, text)
		}
	}
	call("/v1/load_lora_adapter", `{"lora_name":"two","lora_path":"two.gguf"}`)
	defer call("/v1/unload_lora_adapter", `{"lora_name":"two"}`)
	known := regexp.MustCompile(`"grove-2-.*ActiveModels:map\[two:\d+\] WaitingModels:map\[\] MaxActiveModels:1 `)
	eventually(t, "the picker knows the adapter", func() bool {
		text, err := os.ReadFile(p.log)
		return err == nil && known.Match(text)
	})
	_, url := gateway(t, c, p, servers)
	for i := range 12 {
		if _, err := post(t.Context(), url+"/v1/completions", map[string]any{"model": "two", "prompt": code(1000+i, 8), "max_tokens": 4}); err != nil {
			t.Errorf("request %d for the adapter: %v", i, err)
		}
	}
}

// talks is the workload that compares: applications with a text of instructions each, their conversations, turns of each.
const applications, conversations, turns = 6, 4, 4

// testPrefixes: with the picker more tokens of the prompts are found in caches than with servers in turn.
func testPrefixes(t *testing.T, c *cluster, p *picker, servers []*server) {
	_, inTurn := gateway(t, c, nil, servers)
	_, picked := gateway(t, c, p, servers)
	before := talk(t, inTurn, "in turn")
	with := talk(t, picked, "picked")
	t.Logf("prompt tokens found in caches: %.1f %% with servers in turn, %.1f %% with the picker", 100*before, 100*with)
	if with <= before {
		t.Error("the picker's share is not higher")
	}
}

// talk holds the conversations of a round, six at a time, and returns the share of the prompts' tokens that caches had. Rounds have no text in common.
func talk(t *testing.T, url, round string) float64 {
	var prompt, cached atomic.Int64
	var all sync.WaitGroup
	order := rand.New(rand.NewPCG(1, 2)).Perm(applications * conversations)
	next := make(chan int)
	go func() {
		for _, n := range order {
			next <- n
		}
		close(next)
	}()
	for range 6 {
		all.Go(func() {
			for n := range next {
				instructions := fmt.Sprintf("Round %s. Application %d.\n%s", round, n/conversations, code(n/conversations, 24))
				messages := []map[string]string{{"role": "system", "content": instructions}}
				for turn := range turns {
					messages = append(messages, map[string]string{"role": "user", "content": fmt.Sprintf("Talk %d, question %d.\n%s", n, turn, code(100*n+turn, 6))})
					a, err := post(t.Context(), url+"/v1/chat/completions", map[string]any{"model": "assistant", "messages": messages, "max_tokens": 32, "temperature": 0})
					if err != nil {
						t.Error(err)
						return
					}
					prompt.Add(int64(a.Usage.Prompt))
					cached.Add(int64(a.Usage.Details.Cached))
					messages = append(messages, map[string]string{"role": "assistant", "content": a.Choices[0].Message.Content})
				}
			}
		})
	}
	all.Wait()
	return float64(cached.Load()) / float64(max(1, prompt.Load()))
}

// code returns lines of Go that depend on a number.
func code(n, lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "func f%d(a, b int) int { return a + b*%d }\n", i+n, n)
	}
	return b.String()
}

// ways are those in which a server goes.
var ways = []way{
	{"deleted", func(s *server) error { return s.terminate() }},
	{"drains", func(s *server) error { s.running.signal(syscall.SIGTERM); <-s.running.exited; return nil }},
	{"dies", func(s *server) error { s.running.signal(os.Kill); <-s.running.exited; return nil }},
}

type way struct {
	name string
	do   func(*server) error
}

// test sends requests from eight clients while a server goes, and until the pool has lost it: no request fails, and each answer is that of a server alone.
func (w way) test(t *testing.T, c *cluster, p *picker, servers []*server) {
	g, url := gateway(t, c, p, servers)
	want := make([]string, 8)
	for i := range want {
		a, err := post(t.Context(), "http://"+servers[0].address()+"/v1/completions", long(i))
		if err != nil {
			t.Fatal(err)
		}
		want[i] = a.Choices[0].Text
	}
	var all sync.WaitGroup
	var gone atomic.Bool
	var sent atomic.Int64
	for i := range want {
		all.Go(func() {
			for !gone.Load() {
				sent.Add(1)
				if a, err := post(t.Context(), url+"/v1/completions", long(i)); err != nil {
					t.Error(err)
				} else if a.Choices[0].Text != want[i] {
					t.Errorf("the answer is %q; want %q", a.Choices[0].Text, want[i])
				}
			}
		})
	}
	victim := servers[1]
	eventually(t, "the server is busy", func() bool { return scrape("http://"+victim.address()+"/metrics", "vllm:num_requests_running") > 0 })
	if err := w.do(victim); err != nil {
		t.Error(err)
	}
	eventually(t, "the picker lost the server", func() bool { return p.has(2) })
	time.Sleep(time.Second)
	gone.Store(true)
	all.Wait()
	t.Logf("%d requests, %d retried at another server, %d without the picker", sent.Load(), g.Retried.Load(), g.Unpicked.Load())
	victim.run(t)
	eventually(t, "the picker has the server again", func() bool { return p.has(3) })
}

// long is a request that takes a while.
func long(n int) map[string]any {
	return map[string]any{"model": "assistant", "prompt": fmt.Sprintf("func f%d(", n), "max_tokens": 400, "temperature": 1, "seed": 5, "ignore_eos": true}
}
