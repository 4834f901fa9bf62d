package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"grove"
	"grove/internal/weights/gguf"
	"grove/server"
	"grove/server/serving"
)

// begin sends a request whose answer streams, and returns when its first event is there.
func (s *site) begin(t testing.TB, ctx context.Context, body string) (*bufio.Reader, io.Closer) {
	t.Helper()
	return s.beginAt(t, ctx, "/v1/completions", body)
}

// beginAt is begin for another route.
func (s *site) beginAt(t testing.TB, ctx context.Context, path, body string) (*bufio.Reader, io.Closer) {
	t.Helper()
	return s.beginAs(t, ctx, "", path, body)
}

// beginAs is beginAt with a key.
func (s *site) beginAs(t testing.TB, ctx context.Context, key, path, body string) (*bufio.Reader, io.Closer) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(answer.Body)
	if _, err := lines.ReadString('\n'); err != nil || answer.StatusCode != 200 {
		t.Fatal(answer.StatusCode, err)
	}
	return lines, answer.Body
}

// endless asks for a text that goes on for seconds.
const endless = `{"prompt":"func main() {","max_tokens":90000,"temperature":1,"seed":3,"ignore_eos":true,"method":"off","stream":true}`

// longContext is how many tokens the texts of serveLong can have.
const longContext = 100_000

// long is a golden model with a long context.
func long(t testing.TB, queue int) server.Entry {
	t.Helper()
	file, err := os.ReadFile("../internal/suite/modeltest/testdata/llama-gqa.gguf")
	if err != nil {
		t.Fatal(err)
	}
	file = edited(t, file, gguf.KV{Key: "llama.context_length", Value: gguf.Of(uint32(longContext))}, template)
	return source(modelName, file, grove.Options{Parallel: 2, Queue: queue, Threads: 1, Context: longContext})
}

// serveLong starts a server of a model that can go on for long.
func serveLong(t testing.TB, c server.Config) *site {
	t.Helper()
	return serveModels(t, c, long(t, 256))
}

// busy returns how many slots are taken.
func (s *site) busy(t testing.TB) (n int) {
	_, text, _ := s.do(t, "GET", "/slots", "")
	return strings.Count(text, `"is_processing":true`)
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestGone: a client that disconnects frees its slot, and the answers of others do not change.
func TestGone(t *testing.T) {
	s := serveLong(t, server.Config{})
	const fields = `{"prompt":"func main() {","max_tokens":20,"seed":3}`
	want := s.post(t, "/v1/completions", fields).at("choices/0/text")
	for range 6 {
		ctx, leave := context.WithCancel(t.Context())
		_, body := s.begin(t, ctx, endless)
		if s.busy(t) == 0 {
			t.Error("nothing is computed for a client that is there")
		}
		leave()
		body.Close()
		eventually(t, "a slot stays taken although its client has left", func() bool { return s.busy(t) == 0 })
		if got := s.post(t, "/v1/completions", fields).at("choices/0/text"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if _, text, _ := s.do(t, "GET", "/metrics", ""); !strings.Contains(text, "grove_answers_failed_total 6\n") {
		t.Errorf("answers that were given up are not counted: %s", text)
	}
}

// TestNoGrowth: requests leave no goroutines behind.
func TestNoGrowth(t *testing.T) {
	s := serveLong(t, server.Config{})
	run := func() {
		for i := range 30 {
			switch i % 5 {
			case 0:
				s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":2,"n":3}`)
			case 1:
				s.do(t, "POST", "/v1/completions", `{"prompt":"a","n":-1}`)
			case 2:
				ctx, leave := context.WithCancel(t.Context())
				_, body := s.begin(t, ctx, endless)
				leave()
				body.Close()
			case 3:
				ctx, leave := context.WithCancel(t.Context())
				_, body := s.beginAt(t, ctx, "/api/generate", `{"prompt":"a","raw":true,"keep_alive":"1h","options":{"ignore_eos":true}}`)
				leave()
				body.Close()
			case 4:
				ctx, leave := context.WithCancel(t.Context())
				_, body := s.beginAt(t, ctx, "/v1/messages", `{"messages":[{"role":"user","content":"a"}],"max_tokens":90000,"ignore_eos":true,"stream":true}`)
				leave()
				body.Close()
			}
		}
		eventually(t, "a slot stays taken", func() bool { return s.busy(t) == 0 })
		http.DefaultClient.CloseIdleConnections()
	}
	run()
	before := runtime.NumGoroutine()
	run()
	eventually(t, fmt.Sprintf("there were %d goroutines and now there are more", before), func() bool { return runtime.NumGoroutine() <= before+2 })
}

// TestQueue: more requests than may wait are answered with 429 and when to come again; one that waits is answered in
// its turn, with comments in the meantime where it streams.
func TestQueue(t *testing.T) {
	s := serveModels(t, server.Config{Config: serving.Config{KeepAlive: 5 * time.Millisecond}}, long(t, 1))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for range 2 {
		r, body := s.begin(t, ctx, endless)
		defer body.Close()
		go func() { _, _ = io.Copy(io.Discard, r) }() // one that does not read lends its place
	}
	var waits sync.WaitGroup
	waits.Go(func() {
		_, text, _ := s.do(t, "POST", "/v1/completions", `{"prompt":"a","max_tokens":2,"stream":true}`)
		if !strings.HasPrefix(text, ": computing\n\n") {
			t.Errorf("a stream that waits: %q", text)
		}
		if all := split(t, text); len(all) < 2 || all[len(all)-1] != "[DONE]" {
			t.Errorf("a stream that waited: %q", text)
		}
	})
	eventually(t, "nobody waits", func() bool {
		_, text, _ := s.do(t, "GET", "/metrics", "")
		return strings.Contains(text, "grove_requests_waiting 1\n") && strings.Contains(text, "grove_requests_running 2\n")
	})
	for _, path := range []string{"/v1/completions", "/completion"} {
		status, text, header := s.do(t, "POST", path, `{"prompt":"a"}`)
		if _, kind, _, _ := wantError(t, text); status != 429 || kind != "rate_limit_error" || header.Get("Retry-After") != "1" {
			t.Errorf("%d %s %v", status, text, header)
		}
	}
	for path, body := range map[string]string{ // streams whose first event tells of no token
		"/v1/responses": `{"stream":true,"input":"a"}`, "/v1/messages": `{"stream":true,"max_tokens":1,"messages":[{"role":"user","content":"a"}]}`,
		"/api/chat": `{"messages":[{"role":"user","content":"a"}]}`,
	} {
		status, text, header := s.do(t, "POST", path, body)
		if status != 429 || header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d %s %v", path, status, text, header)
			continue
		}
		wantErrorOf(t, path, text)
	}
	if status, text, _ := s.do(t, "POST", "/v1/embeddings", `{"input":"a"}`); status != 429 {
		t.Errorf("%d %s", status, text)
	}
	if status, _, _ := s.do(t, "GET", "/slots?fail_on_no_slot=1", ""); status != 503 {
		t.Errorf("slots are all taken: %d", status)
	}
	time.Sleep(50 * time.Millisecond) // time for comments
	leave()
	waits.Wait()
}

// TestShutdown: running answers may end within the drain time; the others get an error that the server stops.
func TestShutdown(t *testing.T) {
	for _, tt := range []struct {
		drain  time.Duration
		want   string
		tokens int
	}{{time.Minute, "data: [DONE]\n\n", 2000}, {0, "\"type\":\"unavailable_error\",\"param\":null,\"code\":\"stopping\"}}\n\n", 90000}} {
		s := load(t, server.Config{}, long(t, 256))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, l, tt.drain) }()
		served := &site{s, "http://" + l.Addr().String()}
		lines, body := served.begin(t, t.Context(), strings.ReplaceAll(endless, "90000", strconv.Itoa(tt.tokens)))
		stop()
		rest, err := io.ReadAll(lines)
		if err != nil || !strings.HasSuffix(string(rest), tt.want) {
			t.Errorf("drained for %v: the stream ends with %q, %v", tt.drain, rest[max(0, len(rest)-200):], err)
		}
		body.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
			t.Error("the server still listens")
		}
	}
}

// TestStopped: a server that ends takes no more work.
func TestStopped(t *testing.T) {
	s := serveTarget(t, server.Config{})
	s.Stop()
	for _, path := range []string{"/v1/completions", "/v1/embeddings"} {
		body := map[bool]string{true: `{"input":"a"}`, false: `{"prompt":"a"}`}[path == "/v1/embeddings"]
		if status, text, _ := s.do(t, "POST", path, body); status != 503 {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _, _ := s.do(t, "GET", "/health", ""); status != 503 {
		t.Errorf("health: %d", status)
	}
}

// TestPanic: a fault fails one request, is counted, and leaves the server going.
func TestPanic(t *testing.T) {
	s := serveTarget(t, server.Config{})
	w := &faulty{ResponseRecorder: httptest.NewRecorder()}
	s.ServeHTTP(w, httptest.NewRequest("POST", "http://localhost/v1/completions", strings.NewReader(`{"prompt":"a","max_tokens":9,"stream":true}`)))
	if !w.fell {
		t.Fatal("the fault did not happen")
	}
	s.post(t, "/v1/completions", `{"prompt":"a"}`)
	if _, text, _ := s.do(t, "GET", "/metrics", ""); !strings.Contains(text, "grove_internal_errors_total 1\n") {
		t.Errorf("the fault is not counted: %s", text)
	}
	eventually(t, "a slot stays taken", func() bool { return s.busy(t) == 0 })
}

// faulty is a connection whose first write panics.
type faulty struct {
	*httptest.ResponseRecorder
	fell bool
}

// Write implements [io.Writer].
func (f *faulty) Write(b []byte) (int, error) {
	if !f.fell {
		f.fell = true
		panic("a fault")
	}
	return f.ResponseRecorder.Write(b)
}

// WriteString implements [io.StringWriter].
func (f *faulty) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

// TestMetricNames serves the names that dashboards know.
func TestMetricNames(t *testing.T) {
	for names, want := range map[serving.MetricNames][]string{
		serving.MetricsGrove:    {"grove_generated_tokens_total 3\n", "grove_prompt_tokens_total 2\n", "grove_cache_use_ratio 0\n", "grove_time_to_first_token_seconds_count 1\n"},
		serving.MetricsLlamaCpp: {"llamacpp:tokens_predicted_total 3\n", "llamacpp:requests_processing 0\n", "llamacpp:n_tokens_max 5\n", "llamacpp:spec_decode_num_drafts_total "},
		serving.MetricsVLLM:     {"vllm:num_requests_waiting 0\n", "vllm:num_requests_running 0\n", "vllm:kv_cache_usage_perc 0\n", "vllm:inter_token_latency_seconds_count 2\n", "vllm:prefix_cache_queries_total 2\n", "vllm:lora_requests_info{", "vllm:cache_config_info{block_size=\"64\",num_gpu_blocks=\"10\"} 1\n"},
	} {
		s := serveTarget(t, server.Config{Metrics: []serving.MetricNames{names}})
		if _, text, _ := s.do(t, "GET", "/metrics", ""); names == serving.MetricsVLLM && !strings.Contains(text, `num_gpu_blocks="10"`) {
			t.Errorf("before the first answer: no pages in %s", text)
		}
		s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":3,"ignore_eos":true}`)
		_, text, _ := s.do(t, "GET", "/metrics", "")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q: no %q in %s", names, w, text)
			}
		}
	}
}

// TestErrorInStream: on every route, an error behind the first event is the stream's last event.
func TestErrorInStream(t *testing.T) {
	file, err := os.ReadFile("../internal/suite/modeltest/testdata/llama-gqa.gguf")
	if err != nil {
		t.Fatal(err)
	}
	file = edited(t, file, template, gguf.KV{Key: "llama.context_length", Value: gguf.Of(uint32(longContext))})
	s := serveModels(t, server.Config{}, source(modelName, file, grove.Options{Parallel: 2, Queue: 2, Threads: 1, Context: longContext}))
	for path, body := range map[string]string{
		"/v1/completions":      `"prompt":"a","max_tokens":90000`,
		"/completion":          `"prompt":"a","n_predict":-1`,
		"/v1/chat/completions": hello,
		"/v1/responses":        `"input":"a"`,
	} {
		status, text, _ := s.do(t, "POST", path, `{"stream":true,"ignore_eos":true,"method":"off","timeout":0.1,`+body+`}`)
		all := split(t, text)
		last := parse(t, all[len(all)-1])
		if path != "/v1/responses" {
			last = object(last["error"].(map[string]any))
		} else if last["type"] != "error" || last["sequence_number"] != float64(len(all)-1) {
			t.Errorf("%s: %v", path, last)
		}
		if status != 200 || len(all) < 3 || last["code"] != "timeout" || last["message"] != "the timeout of the request has passed" {
			t.Errorf("%s: %d, %d events, the last: %v", path, status, len(all), last)
		}
	}
	eventually(t, "an answer goes on", func() bool { return s.busy(t) == 0 })
}
