package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// pipes is a network without a system: its connections are pipes in memory, so that a test's fake clock moves
// when all wait for it.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.accept <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// inMemory serves a handler on pipes and returns a transport to it.
func inMemory(t *testing.T, handler http.Handler) *http.Transport {
	t.Helper()
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	s := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() {
		_ = s.Serve(p)
		close(done)
	}()
	transport := &http.Transport{DialContext: p.dial, MaxIdleConnsPerHost: 100}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = s.Close()
		<-done
	})
	return transport
}

// script is a stream: texts to be written, each after a time.
type script []line

type line struct {
	after time.Duration
	text  string
}

func (s script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	for _, l := range s {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(l.after):
		case <-r.Context().Done():
			return
		}
		_, _ = io.WriteString(w, l.text)
	}
	_ = http.NewResponseController(w).Flush()
}

const ms = time.Millisecond

func text(s string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"text\":%q,\"finish_reason\":null}]}\n\n", s)
}
func delta(s string) string { return fmt.Sprintf("data: {\"choices\":[{\"delta\":%s}]}\n\n", s) }

const (
	finish = "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n"
	done   = "data: [DONE]\n\n"
)

func options() Options {
	return Options{
		URL: "http://server", Model: "m", API: Completions, Tasks: []Task{{Prompt: "p", MaxTokens: 8}},
		Requests: 4, Concurrency: 2, Timeout: time.Minute,
	}
}

var approximately = cmpopts.EquateApprox(1e-9, 0)

// measure runs o against a handler under a fake clock.
func measure(t *testing.T, handler http.Handler, o Options) (r *Report, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Transport = inMemory(t, handler)
		r, err = Run(t.Context(), o, nil)
	})
	return r, err
}

// TestFigures compares every figure with the script of a server.
func TestFigures(t *testing.T) {
	llama := script{
		{100 * ms, text("a")}, {10 * ms, text("b") + text("c")}, {30 * ms, text("d") + finish},
		{5 * ms, `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":3}},"timings":{"draft_n":5,"draft_n_accepted":2}}` + "\n\n" + done},
	}
	base := Report{
		URL: "http://server/v1", Model: "m", API: Completions, Concurrency: 2, Requests: 4, Completed: 4,
		Seconds: 0.29, RequestRate: 4 / 0.29,
		PromptTokens: 28, CachedTokens: 12, OutputTokens: 24, CountedBy: "usage", Chunks: 16, OutputRate: 24 / 0.29, TotalRate: 52 / 0.29,
		Drafted: 20, Accepted: 8, Acceptance: 0.4,
		FirstToken: &Times{100, 100, 100, 100}, PerToken: &Times{8, 8, 8, 8},
		// 0, 10 and 30 four times each: the 99th percentile is between equal ones.
		InterToken: &Times{40.0 / 3, 10, 30, 30}, EndToEnd: &Times{145, 145, 145, 145},
	}
	with := func(change func(*Report)) *Report {
		r := base
		change(&r)
		return &r
	}
	for _, c := range []struct {
		name    string
		server  http.Handler
		options func(*Options)
		want    *Report
	}{
		{"llama.cpp", llama, func(*Options) {}, &base},
		{"one at a time", llama, func(o *Options) { o.Concurrency = 1 }, with(func(r *Report) {
			r.Concurrency, r.Seconds, r.RequestRate, r.OutputRate, r.TotalRate = 1, 0.58, 4/0.58, 24/0.58, 52/0.58
		})},
		{"requests ahead do not count", llama, func(o *Options) { o.Warmup = 3 }, &base},
		{"chat, thoughts and tools, without usage", script{
			{20 * ms, delta(`{"role":"assistant","content":""}`) + ": a comment\n\nevent: x\nid: 4\n"},
			{20 * ms, delta(`{"reasoning_content":"hm"}`)}, {10 * ms, delta(`{"content":"a","role":"assistant"}`)},
			{10 * ms, delta(`{"tool_calls":[{}]}`)}, {60 * ms, done},
		}, func(o *Options) { o.API, o.Concurrency = Chat, 4 }, &Report{
			URL: "http://server/v1", Model: "m", API: Chat, Concurrency: 4, Requests: 4, Completed: 4, Seconds: 0.12, RequestRate: 4 / 0.12,
			OutputTokens: 12, CountedBy: "chunks", Chunks: 12, OutputRate: 100, TotalRate: 100,
			FirstToken: &Times{40, 40, 40, 40}, PerToken: &Times{10, 10, 10, 10}, InterToken: &Times{10, 10, 10, 10}, EndToEnd: &Times{120, 120, 120, 120},
		}},
		{"predicted outputs, answers without text", script{
			{10 * ms, "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}],\r\ndata: \"usage\":{\"completion_tokens\":1,\"prompt_tokens\":2," +
				"\"completion_tokens_details\":{\"accepted_prediction_tokens\":3,\"rejected_prediction_tokens\":1}}}\r\n\r\ndata: [DONE]"},
		}, func(o *Options) { o.IgnoreEOS = true }, &Report{
			URL: "http://server/v1", Model: "m", API: Completions, Concurrency: 2, Requests: 4, Completed: 4, Textless: 4, Shorter: 4, Seconds: 0.02, RequestRate: 200,
			OutputTokens: 4, PromptTokens: 8, CountedBy: "usage", OutputRate: 200, TotalRate: 600, Drafted: 16, Accepted: 12, Acceptance: 0.75, EndToEnd: &Times{10, 10, 10, 10},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options()
			c.options(&o)
			got, err := measure(t, c.server, o)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got, approximately); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestPercentiles compares the quantiles of answers of different lengths.
func TestPercentiles(t *testing.T) {
	var n atomic.Int64
	o := options()
	o.Requests, o.Concurrency = 101, 1
	r, err := measure(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			script{{time.Duration(n.Add(1)-1) * ms, text("a") + finish + done}}.ServeHTTP(w, r) // 0 to 100 ms
		}
	}), o)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&Times{50, 50, 99, 100}, r.FirstToken, approximately); d != "" {
		t.Error(d)
	}
	if r.PerToken != nil || r.InterToken != nil {
		t.Errorf("answers of one chunk have times between tokens: %v, %v", r.PerToken, r.InterToken)
	}
}

// TestRate compares arrivals with a Poisson process, for a server of any speed, and counts what a bound on requests at a
// time makes them wait.
func TestRate(t *testing.T) {
	arrivals := func(seed uint64, concurrency int, took time.Duration) (times []time.Duration, most int, r *Report) {
		var mu sync.Mutex
		var running int
		var start time.Time
		o := options()
		o.Requests, o.Concurrency, o.Rate, o.Seed = 1000, concurrency, 20, seed
		r, err := measure(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				return
			}
			mu.Lock()
			if start.IsZero() {
				start = time.Now()
			}
			times = append(times, time.Since(start))
			running++
			most = max(most, running)
			mu.Unlock()
			script{{took, text("a")}, {0, done}}.ServeHTTP(w, r)
			mu.Lock()
			running--
			mu.Unlock()
		}), o)
		if err != nil {
			t.Fatal(err)
		}
		return times, most, r
	}
	first, most, r := arrivals(1, 0, 400*ms)
	if mean := first[999].Seconds() / 999; math.Abs(mean-0.05) > 0.005 {
		t.Errorf("requests begin every %v s on average, want 0.05", mean)
	}
	squares := 0.0
	for i := 1; i < len(first); i++ {
		gap := (first[i] - first[i-1]).Seconds() / 0.05
		squares += gap * gap / 999
	}
	if math.Abs(squares-2) > 0.4 { // of an exponential distribution of mean 1
		t.Errorf("the mean square of the times between requests is %v, want 2", squares)
	}
	if most < 10 || r.Late.Max > 0 {
		t.Errorf("%d requests at a time, %v ms late; nothing should hold them back", most, r.Late.Max)
	}
	if again, _, _ := arrivals(1, 0, 10*ms); !cmp.Equal(first, again) {
		t.Error("the same seed gives other times")
	}
	if other, _, _ := arrivals(2, 0, 10*ms); cmp.Equal(first, other) {
		t.Error("another seed gives the same times")
	}
	if _, most, r := arrivals(1, 2, 400*ms); most != 2 || r.Late.Median < 1000 || r.EndToEnd.Max != 400 {
		t.Errorf("%d at a time, late by %v ms, taking %v", most, r.Late.Median, r.EndToEnd.Max)
	}
}

// TestRequests compares requests with their options.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		path   string
		want   string
	}{
		{"completions", func(*Options) {}, "/v1/completions",
			`{"model":"m","prompt":"p","max_tokens":8,"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`},
		{"chat", func(o *Options) {
			o.API, o.Temperature, o.Seed, o.IgnoreEOS, o.URL = Chat, 0.5, 3, true, "http://server/a/v1/"
			o.Tasks[0].Prediction = "x"
		}, "/a/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"p"}],"prediction":{"type":"content","content":"x"},"max_tokens":8,"temperature":0.5,"seed":3,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`},
		{"extra", func(o *Options) { o.ExtraBody = `{"method": "off", "max_tokens": 9}` }, "/v1/completions",
			`{"max_tokens":9,"method":"off","model":"m","prompt":"p","stream":true,"stream_options":{"include_usage":true},"temperature":0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options()
			o.Requests, o.APIKey = 1, "secret"
			c.change(&o)
			var path, body, key string
			r, err := measure(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					return
				}
				b, _ := io.ReadAll(r.Body)
				path, body, key = r.URL.Path, string(b), r.Header.Get("Authorization")
				script{{0, text("a")}, {0, done}}.ServeHTTP(w, r)
			}), o)
			if err != nil || r.Completed != 1 {
				t.Fatal(r, err)
			}
			if path != c.path || body != c.want || key != "Bearer secret" {
				t.Errorf("got %s %s %s", path, key, body)
			}
		})
	}
}

// TestFailures counts failed requests by kind, and continues.
func TestFailures(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://elsewhere/")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	long := strings.Repeat("x", maxEvent+1)
	for _, c := range []struct {
		name   string
		server http.Handler
		want   Failure
	}{
		{"refused with an object", status(503, `{"error":{"message":"the queue\u001b[2J is full"}}`), Failure{"HTTP 503", 4, "the queue [2J is full"}},
		{"refused with a text", status(404, `{"error":"no such model"}`), Failure{"HTTP 404", 4, "no such model"}},
		{"refused without JSON", status(500, strings.Repeat("é", 1000)), Failure{"HTTP 500", 4, strings.Repeat("é", 150) + "…"}},
		{"redirected", status(307, ""), Failure{"HTTP 307", 4, "a redirect to http://elsewhere/, which is not followed"}},
		{"no stream", status(200, `{"choices":[]}`), Failure{"not a stream", 4, `its type is "text/plain; charset=utf-8"`}},
		{"cut short", script{{0, text("a") + text("b")}}, Failure{"stream cut short", 4, "after 2 chunks of text"}},
		{"an event that never ends", script{{0, "data: " + long}}, Failure{"broken stream", 4, "an event has more than 1048576 bytes"}},
		{"an event of many lines", script{{0, strings.Repeat("data: "+long[:1000]+"\n", 1100)}}, Failure{"broken stream", 4, "an event has more than 1048576 bytes"}},
		{"no JSON", script{{0, "data: {\n\n"}}, Failure{"broken stream", 4, "unexpected end of JSON input"}},
		{"other JSON", script{{0, "data: {\"choices\":3}\n\n"}}, Failure{"broken stream", 4, ""}},
		{"deep JSON", script{{0, "data: {\"choices\":" + strings.Repeat("[", 100000) + "\n\n"}}, Failure{"broken stream", 4, ""}},
		{"a count below zero", script{{0, "data: {\"usage\":{\"prompt_tokens\":-1}}\n\n"}}, Failure{"broken stream", 4, "a count of -1"}},
		{"a count beyond reason", script{{0, "data: {\"usage\":{\"completion_tokens\":1e30}}\n\n"}}, Failure{"broken stream", 4, "a count of 1e30"}},
		{"too many chunks", script{{0, strings.Repeat(text("a"), 2000)}}, Failure{"broken stream", 4, "more than 1536 chunks for 8 tokens"}},
		{"an error in the stream", script{{0, text("a") + "data: {\"error\":{\"message\":\"out of memory\"}}\n\n"}}, Failure{"error in the stream", 4, "out of memory"}},
		{"silence", script{{time.Hour, done}}, Failure{"timeout", 4, "after 1m0s"}},
		{"a trickle of comments", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			trickle := script{}
			for range 1000 {
				trickle = append(trickle, line{time.Second, ": still here\n\n"})
			}
			trickle.ServeHTTP(w, r)
		}), Failure{"timeout", 4, "after 1m0s"}},
		{"disconnected", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			script{{0, text("a")}}.ServeHTTP(w, r)
			panic(http.ErrAbortHandler)
		}), Failure{"stream cut short", 4, "after 1 chunks of text: unexpected EOF"}},
		{"disconnected at once", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), Failure{"no answer", 4, "EOF"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := measure(t, c.server, options())
			if err != nil {
				t.Fatal(err)
			}
			if r.Failed != 4 || r.Completed != 0 || len(r.Failures) != 1 {
				t.Fatalf("%d failed, %d completed, %v", r.Failed, r.Completed, r.Failures)
			}
			got := *r.Failures[0]
			if c.want.Detail == "" {
				got.Detail = ""
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestMixedFailures orders failures and leaves them out of the figures.
func TestMixedFailures(t *testing.T) {
	var n atomic.Int64
	o := options()
	o.Requests = 10
	r, err := measure(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			return
		}
		switch n.Add(1) {
		case 1, 4:
			script{{10 * ms, text("a")}, {10 * ms, text("b") + done}}.ServeHTTP(w, r)
		case 2:
			http.Error(w, "busy", http.StatusTooManyRequests)
		default:
			http.Error(w, "broken", http.StatusInternalServerError)
		}
	}), o)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]*Failure{{"HTTP 500", 7, "broken"}, {"HTTP 429", 1, "busy"}}, r.Failures); d != "" {
		t.Error(d)
	}
	if r.Completed != 2 || r.OutputTokens != 4 || r.EndToEnd.Max != 20 {
		t.Errorf("%+v", r)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 of 10 in 0.02 s, 100.00/s; 8 failed", "4, 200.0/s; with prompts 200.0/s; counted by chunks, 4 chunks", "the server does not report them", "\n7  HTTP 500  broken\n1  HTTP 429  busy\n"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is not in\n%s", want, table.String())
		}
	}
}

// TestWarmup: a server that cannot answer is known before the load begins, and one that refuses to count is not asked to.
func TestWarmup(t *testing.T) {
	o := options()
	o.Warmup = 1
	_, err := measure(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }), o)
	if err == nil || err.Error() != "serving: the first request failed: HTTP 401: no" {
		t.Error(err)
	}
	r, err := measure(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("stream_options")) {
			http.Error(w, `{"error":"unknown field stream_options"}`, http.StatusBadRequest)
			return
		}
		script{{0, text("a") + done}}.ServeHTTP(w, r)
	}), o)
	if err != nil || r.Completed != 4 || r.CountedBy != "chunks" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestStop ends a run early: the figures until then stay, and unfinished requests are no failures.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		o := options()
		o.Transport = inMemory(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				took := time.Second
				if n.Add(1) > 2 {
					took = time.Hour
				}
				script{{took, text("a")}, {0, done}}.ServeHTTP(w, r)
			}
		}))
		o.Timeout, o.Requests = 2*time.Hour, 50
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var seen [][2]int
		r, err := Run(ctx, o, func(done, all int) { seen = append(seen, [2]int{done, all}) })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		if r == nil || r.Completed != 2 || r.Failed != 0 || r.Unfinished != 48 || r.EndToEnd.Mean != 1000 || r.Seconds != 10 {
			t.Errorf("%+v", r)
		}
		if d := cmp.Diff([][2]int{{1, 50}, {2, 50}}, seen); d != "" {
			t.Error(d)
		}
		time.Sleep(time.Minute) // for the server to see that its clients have gone
	})
}

// TestMetrics takes acceptance from the server's metrics where its answers do not tell.
func TestMetrics(t *testing.T) {
	var n atomic.Int64
	r, err := measure(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			fmt.Fprintf(w, "# HELP vllm:spec_decode_num_draft_tokens_total Drafts { 9\nvllm:spec_decode_num_draft_tokens_total{model_name=\"a } b\"} %d.0\n"+
				"vllm:spec_decode_num_draft_tokens_total{model_name=\"c\"} 1e1\nvllm:spec_decode_num_accepted_tokens_total %d\nvllm:other NaN\n", 100+10*n.Load(), 50+4*n.Load())
			return
		}
		n.Add(1)
		script{{0, text("a") + done}}.ServeHTTP(w, r)
	}), options())
	if err != nil || r.Drafted != 40 || r.Accepted != 16 || r.Acceptance != 0.4 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRealServer runs over a real connection, which requests one after the other share.
func TestRealServer(t *testing.T) {
	var connections atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"first"},{"id":"second"}]}`)
	})
	mux.Handle("POST /v1/completions", script{{ms, text("a")}, {ms, text("b") + finish + done}})
	s := httptest.NewUnstartedServer(mux)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	o := options()
	o.URL, o.Model, o.Requests = s.URL, "", 40
	r, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 40 || r.Model != "first" || r.FirstToken.Median < 1 || r.EndToEnd.Median < 2 || r.Seconds < 0.04 {
		t.Errorf("%+v", r)
	}
	if n := connections.Load(); n > 4 {
		t.Errorf("%d connections for 2 requests at a time", n)
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, &back); d != "" {
		t.Error(d)
	}
}

// TestNoServer names the reason why there is no server at an address.
func TestNoServer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	url := s.URL
	o := options()
	o.URL, o.Model = url, ""
	if _, err := Run(t.Context(), o, nil); err == nil || err.Error() != "serving: the models of "+url+"/v1/models: HTTP 404: 404 page not found" {
		t.Error(err)
	}
	s.Close()
	if _, err := Run(t.Context(), o, nil); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	o.Model = "m"
	r, err := Run(t.Context(), o, nil)
	if err != nil || r.Failed != 4 || r.Failures[0].Kind != "no answer" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestValidate refuses options that are out of range.
func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Options){
		`serving: api "embeddings" is not known; chat and completions are`: func(o *Options) { o.API = "embeddings" },
		`serving: no task`: func(o *Options) { o.Tasks = nil },
		`serving: extra body "[1]" is not a JSON object`:                                      func(o *Options) { o.ExtraBody = "[1]" },
		`serving: extra body "null" is not a JSON object`:                                     func(o *Options) { o.ExtraBody = "null" },
		`serving: 0 requests; from 1 to 1048576 can be sent`:                                  func(o *Options) { o.Requests = 0 },
		`serving: -1 requests of warm-up; from 0 to 1048576 can be sent`:                      func(o *Options) { o.Warmup = -1 },
		`serving: a rate of NaN requests a second`:                                            func(o *Options) { o.Rate = math.NaN() },
		`serving: a rate of -1 requests a second`:                                             func(o *Options) { o.Rate = -1 },
		`serving: 0 requests at a time`:                                                       func(o *Options) { o.Concurrency = 0 },
		`serving: a temperature of +Inf`:                                                      func(o *Options) { o.Temperature = math.Inf(1) },
		`serving: a timeout of 0s`:                                                            func(o *Options) { o.Timeout = 0 },
		`serving: task 0 asks for 0 tokens; from 1 to 1048576 can be asked for`:               func(o *Options) { o.Tasks[0].MaxTokens = 0 },
		`serving: "localhost:8080" is not the URL of a server, such as http://127.0.0.1:8080`: func(o *Options) { o.URL = "localhost:8080" },
		`serving: http://u:xxxxx@h/?x=1: a server's URL has no query and no fragment`:         func(o *Options) { o.URL = "http://u:p@h/?x=1" },
	} {
		o := options()
		change(&o)
		if _, err := Run(t.Context(), o, nil); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestMix makes tasks of the lengths that were asked for, all different and the same every time.
func TestMix(t *testing.T) {
	tasks := Mix(1, 500, 0, 0)
	seen := map[string]bool{}
	short, long, fewest, most := math.MaxInt, 0, math.MaxInt, 0
	for _, task := range tasks {
		seen[task.Prompt] = true
		words := len(strings.Fields(task.Prompt))
		short, long = min(short, words), max(long, words)
		fewest, most = min(fewest, task.MaxTokens), max(most, task.MaxTokens)
	}
	if len(seen) != 500 || short < 16 || short > 18 || long > 256 || long < 240 || fewest < 16 || fewest > 18 || most > 128 || most < 120 {
		t.Errorf("%d different prompts of %d to %d words for %d to %d tokens", len(seen), short, long, fewest, most)
	}
	if !cmp.Equal(tasks, Mix(1, 500, 0, 0)) || cmp.Equal(tasks, Mix(2, 500, 0, 0)) {
		t.Error("tasks do not follow from the seed")
	}
	for _, task := range Mix(1, 10, 77, 5) {
		if n := len(strings.Fields(task.Prompt)); n != 77 || task.MaxTokens != 5 {
			t.Errorf("%d words for %d tokens", n, task.MaxTokens)
		}
	}
}

// TestMemory: a server that sends without end does not fill the memory.
func TestMemory(t *testing.T) {
	a := answer{asked: 1}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	forever := io.MultiReader(strings.NewReader(strings.Repeat(": x\n", 1<<20)), strings.NewReader(strings.Repeat(text(strings.Repeat("y", 1000)), 5000)))
	if f := a.read(forever); f == nil || f.Kind != "broken stream" {
		t.Error(f)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 16<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
	if len(a.gaps) > 1088 {
		t.Errorf("%d times are kept", len(a.gaps))
	}
}

// FuzzStream reads any stream: it ends in one of the known ways, and no count is out of range.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		text("a") + finish + done, delta(`{"content":"a"}`), "data:\n\n", "data: [DONE]", ":\n\n\r\n", "data: {\"usage\":{\"prompt_tokens\":3}}\n\n" + done,
		"data: {\"error\":null,\"choices\":[{\"text\":null}]}\n\ndata: {\"error\":\"x\"}\n\n", "data: {\ndata: }\n\n", "\xef\xbb\xbfdata: 3\n\n",
	} {
		f.Add([]byte(s))
	}
	kinds := map[string]bool{"stream cut short": true, "broken stream": true, "error in the stream": true}
	f.Fuzz(func(t *testing.T, b []byte) {
		a := answer{asked: 4}
		fail := a.read(bytes.NewReader(b))
		if fail != nil && (!kinds[fail.Kind] || len(fail.Detail) > maxDetail+len("…")) {
			t.Errorf("the failure is %q", fail)
		}
		if fail == nil && a.end.IsZero() || len(a.gaps) != max(0, a.chunks-1) || a.usage != nil && (a.usage.Prompt < 0 || a.usage.Completion < 0) {
			t.Errorf("%+v", a)
		}
	})
}

// TestEvents reads events as they are written, whole or byte by byte.
func TestEvents(t *testing.T) {
	const stream = ": hello\n\ndata: one\n\nevent: x\r\ndata:two\r\nid: 3\r\ndata:  three\r\n\r\n\n\ndata\ndata:\n\ndata: last"
	want := []string{"one", "two\n three", "", "last"}
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(stream), "byte by byte": iotest.OneByteReader(strings.NewReader(stream))} {
		var got []string
		e := newEvents(r)
		for {
			data, err := e.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(data))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
