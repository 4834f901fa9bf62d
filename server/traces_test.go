package server_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"grove/server"
	"grove/server/serving"
	"grove/server/traces"
)

// kept is an exporter that keeps spans.
type kept struct {
	mu  sync.Mutex
	all []sdk.ReadOnlySpan
}

func (k *kept) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, spans...)
	return nil
}

func (*kept) Shutdown(context.Context) error { return nil }

// named returns the spans of a name.
func (k *kept) named(name string) (all []sdk.ReadOnlySpan) {
	for _, s := range k.all {
		if s.Name() == name {
			all = append(all, s)
		}
	}
	return all
}

// value returns an attribute of a span as a text.
func value(s sdk.ReadOnlySpan, key string) string {
	for _, a := range s.Attributes() {
		if a.Key == attribute.Key(key) {
			return a.Value.String()
		}
	}
	return ""
}

// traced sends requests to a server that traces, with a header traceparent, and returns the spans and the metrics.
func traced(t *testing.T, parent string, paths ...string) (*kept, string) {
	t.Helper()
	k := new(kept)
	tracer := traces.New(k, slog.New(slog.DiscardHandler))
	o := options
	o.ChatTemplate = "chatml"
	s := serveModels(t, server.Config{Traces: tracer}, source(modelName, served(), o))
	for i := 0; i < len(paths); i += 2 {
		s.do(t, http.MethodPost, paths[i], paths[i+1], "Traceparent", parent)
	}
	_, text, _ := s.do(t, http.MethodGet, "/metrics", "", "Accept", "application/openmetrics-text; version=1.0.0")
	tracer.Close()
	return k, text
}

const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"

// TestTraces follows a request from the header traceparent to the spans of its answers, and to the examples of the histograms.
func TestTraces(t *testing.T) {
	k, metrics := traced(t, "00-"+traceID+"-00f067aa0ba902b7-01",
		"/v1/chat/completions", `{"messages":[{"role":"user","content":"func main() {"}],"max_tokens":5,"n":2,"temperature":1,"seed":7,"ignore_eos":true}`,
		"/v1/completions", `{"prompt":"package main","max_tokens":3,"temperature":-1}`,
	)
	requests := k.named("POST /v1/chat/completions")
	if len(requests) != 1 || requests[0].Parent().SpanID().String() != "00f067aa0ba902b7" || value(requests[0], "http.response.status_code") != "200" || value(requests[0], "http.route") != "/v1/chat/completions" {
		t.Fatalf("the spans of the request: %d; parent %v, attributes %v", len(requests), requests[0].Parent().SpanID(), requests[0].Attributes())
	}
	answers := k.named("chat " + modelName)
	if len(answers) != 2 {
		t.Fatalf("%d spans of answers; want 2", len(answers))
	}
	for _, a := range answers {
		if a.Parent().SpanID() != requests[0].SpanContext().SpanID() {
			t.Error("an answer is not below its request")
		}
		for key, want := range map[string]string{
			"gen_ai.operation.name": "chat", "gen_ai.request.model": modelName, "gen_ai.usage.output_tokens": "5", "gen_ai.request.seed": "7",
			"gen_ai.request.max_tokens": "5", "gen_ai.response.finish_reasons": `["length"]`, "gen_ai.request.temperature": "1", "error.type": "",
		} {
			if got := value(a, key); got != want {
				t.Errorf("%s is %q; want %q", key, got, want)
			}
		}
		for _, s := range k.all {
			if s.Parent().SpanID() == a.SpanContext().SpanID() && (s.StartTime().Before(a.StartTime()) || s.EndTime().After(a.EndTime())) {
				t.Errorf("%s is from %v to %v, its answer from %v to %v", s.Name(), s.StartTime(), s.EndTime(), a.StartTime(), a.EndTime())
			}
		}
	}
	if n := len(k.named("prompt")); n != 2 {
		t.Errorf("%d spans of prompts; want 2", n)
	}
	rounds := k.named("rounds")
	if len(rounds) != 2 || value(rounds[0], "gen_ai.usage.output_tokens") != "5" {
		t.Errorf("the spans of rounds: %v", rounds)
	}
	if failed := k.named("POST /v1/completions"); len(failed) != 1 || value(failed[0], "http.response.status_code") != "400" || value(failed[0], "error.type") == "" {
		t.Errorf("the span of a request that is refused: %v", failed)
	}
	for _, s := range k.all {
		if s.SpanContext().TraceID().String() != traceID {
			t.Errorf("%s has the trace %v", s.Name(), s.SpanContext().TraceID())
		}
		for _, a := range s.Attributes() {
			if strings.Contains(a.Value.String(), "func main") {
				t.Errorf("%s has a text of the prompt", s.Name())
			}
		}
	}
	for _, name := range []string{"time_to_first_token", "inter_token_latency", "e2e_request_latency"} {
		if !regexp.MustCompile(`grove_` + name + `_seconds_bucket\{le="[^"]*"\} \d+ # \{trace_id="` + traceID + `"\}`).MatchString(metrics) {
			t.Errorf("no bucket of %s has the trace as its example:\n%s", name, metrics)
		}
	}
}

// TestTracesUnsampled makes no spans where the caller's trace is not sampled.
func TestTracesUnsampled(t *testing.T) {
	k, metrics := traced(t, "00-"+traceID+"-00f067aa0ba902b7-00", "/v1/completions", `{"prompt":"package","max_tokens":2}`)
	if len(k.all) > 0 || strings.Contains(metrics, "trace_id") {
		t.Errorf("%d spans of a trace that is not sampled", len(k.all))
	}
}

// TestTracesOff shows that answers cost no allocation where nothing is traced.
func TestTracesOff(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		traces.Report(ctx, func() traces.Answer { panic("an answer is asked for") })
		_ = traces.ID(ctx)
		traces.Call(ctx, "a", "b")
	}); n != 0 {
		t.Errorf("%v allocations; want none", n)
	}
	var off *traces.Tracer
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	if same, end := off.Request(r); same != r {
		t.Error("a request is changed")
	} else {
		end(200, "")
	}
	off.Close()
}

// TestTracesExported sends spans to a collector by OTLP, and refuses endpoints that are none.
func TestTracesExported(t *testing.T) {
	var mu sync.Mutex
	var names []string
	c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var q collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &q)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, r := range q.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, s := range s.Spans {
					names = append(names, s.Name)
				}
			}
		}
	}))
	defer c.Close()
	tracer, err := traces.Open(c.URL, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, server.Config{Traces: tracer})
	s.do(t, http.MethodPost, "/v1/completions", `{"prompt":"package","max_tokens":2}`)
	tracer.Close()
	for _, want := range []string{"POST /v1/completions", "text_completion " + modelName, "prompt", "rounds"} {
		if !slices.Contains(names, want) {
			t.Errorf("%q is not among the spans %q", want, names)
		}
	}
	for _, bad := range []string{"localhost:4318", "ftp://box", "http://", "http://a b"} {
		if _, err := traces.Open(bad, slog.Default()); err == nil {
			t.Errorf("%q is taken for an endpoint", bad)
		}
	}
}

// TestDashboard checks that each metric that the dashboard of Grafana shows is one of the server's.
func TestDashboard(t *testing.T) {
	file, err := os.ReadFile("../deploy/grafana/grove.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(file, &board); err != nil {
		t.Fatal(err)
	}
	s := serve(t, server.Config{Metrics: []serving.MetricNames{serving.MetricsGrove}})
	_, text, _ := s.do(t, http.MethodGet, "/metrics", "")
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(grove_\w+)`).FindAllString(text, -1) {
		known[m] = true
	}
	shown := map[string]bool{}
	for _, p := range board.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			all := regexp.MustCompile(`grove_\w+`).FindAllString(target.Expr, -1)
			if len(all) == 0 {
				t.Errorf("the panel %q has no metric in %q", p.Title, target.Expr)
			}
			for _, m := range all {
				if shown[m] = true; !known[m] {
					t.Errorf("the panel %q shows %s, which is no metric", p.Title, m)
				}
			}
		}
	}
	for m := range known {
		base := strings.NewReplacer("_sum", "_bucket", "_count", "_bucket").Replace(m)
		if !shown[m] && !shown[base] && !strings.HasSuffix(m, "_per_second") {
			t.Errorf("no panel shows %s", m)
		}
	}
}
