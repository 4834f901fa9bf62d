package server

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grove"
)

// MetricNames says after which engine's the metrics are named.
type MetricNames string

// The names that dashboards know.
const (
	MetricsGrove    MetricNames = "grove"
	MetricsLlamaCpp MetricNames = "llamacpp"
	MetricsVLLM     MetricNames = "vllm"
)

// metrics are what the server counts. They are safe for concurrent use.
type metrics struct {
	registry *prometheus.Registry
	faults   prometheus.Counter
	first    prometheus.Histogram // seconds to the first token
	between  prometheus.Histogram // seconds between tokens
	whole    prometheus.Histogram // seconds of an answer

	running, answers, failed               atomic.Int64
	prompt, reused, generated, steps, most atomic.Int64
	promptTime, generationTime             atomic.Int64 // nanoseconds
	drafted, accepted                      atomic.Int64
}

// named are the names of one figure by engine; "": that engine has no such.
type named struct {
	grove, llamacpp, vllm string
	help                  string
	gauge                 bool
	value                 func(m *metrics, s *Server) float64
}

func count(v func(*metrics) *atomic.Int64) func(*metrics, *Server) float64 {
	return func(m *metrics, _ *Server) float64 { return float64(v(m).Load()) }
}

func rate(n, ns *atomic.Int64) float64 {
	if ns.Load() == 0 {
		return 0
	}
	return float64(n.Load()) / time.Duration(ns.Load()).Seconds()
}

// figures are the metrics but the histograms.
var figures = []named{
	{"grove_prompt_tokens_total", "llamacpp:prompt_tokens_total", "vllm:prompt_tokens_total", "Tokens of prompts that were computed.", false,
		count(func(m *metrics) *atomic.Int64 { return &m.prompt })},
	{"grove_cached_tokens_total", "", "vllm:prefix_cache_hits_total", "Tokens of prompts that were found in the cache.", false,
		count(func(m *metrics) *atomic.Int64 { return &m.reused })},
	{"grove_queried_tokens_total", "", "vllm:prefix_cache_queries_total", "Tokens of prompts that were looked for in the cache.", false,
		func(m *metrics, _ *Server) float64 { return float64(m.prompt.Load() + m.reused.Load()) }},
	{"grove_prompt_seconds_total", "llamacpp:prompt_seconds_total", "", "Seconds in which prompts were computed.", false,
		func(m *metrics, _ *Server) float64 { return time.Duration(m.promptTime.Load()).Seconds() }},
	{"grove_generated_tokens_total", "llamacpp:tokens_predicted_total", "vllm:generation_tokens_total", "Tokens generated.", false,
		count(func(m *metrics) *atomic.Int64 { return &m.generated })},
	{"grove_generation_seconds_total", "llamacpp:tokens_predicted_seconds_total", "", "Seconds in which tokens were generated.", false,
		func(m *metrics, _ *Server) float64 { return time.Duration(m.generationTime.Load()).Seconds() }},
	{"grove_answers_total", "", "vllm:request_success_total", "Answers that were completed.", false,
		count(func(m *metrics) *atomic.Int64 { return &m.answers })},
	{"grove_answers_failed_total", "", "", "Answers that failed or were given up.", false,
		count(func(m *metrics) *atomic.Int64 { return &m.failed })},
	{"grove_speculation_rounds_total", "llamacpp:spec_decode_num_drafts_total", "vllm:spec_decode_num_drafts_total", "Steps that could verify guesses.", false,
		count(func(m *metrics) *atomic.Int64 { return &m.steps })},
	{"grove_speculation_drafted_total", "llamacpp:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_draft_tokens_total", "Guesses that were run.", false,
		count(func(m *metrics) *atomic.Int64 { return &m.drafted })},
	{"grove_speculation_accepted_total", "llamacpp:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_accepted_tokens_total", "Guesses that came true.", false,
		count(func(m *metrics) *atomic.Int64 { return &m.accepted })},
	{"grove_requests_running", "llamacpp:requests_processing", "vllm:num_requests_running", "Answers that are computed now.", true,
		count(func(m *metrics) *atomic.Int64 { return &m.running })},
	{"grove_requests_waiting", "llamacpp:requests_deferred", "vllm:num_requests_waiting", "Requests that wait for their turn.", true,
		func(_ *metrics, s *Server) float64 { return float64(s.waiting.Load()) }},
	{"grove_prompt_tokens_per_second", "llamacpp:prompt_tokens_seconds", "", "Tokens of prompts a second, over all time.", true,
		func(m *metrics, _ *Server) float64 { return rate(&m.prompt, &m.promptTime) }},
	{"grove_generated_tokens_per_second", "llamacpp:predicted_tokens_seconds", "", "Tokens generated a second and answer, over all time.", true,
		func(m *metrics, _ *Server) float64 { return rate(&m.generated, &m.generationTime) }},
	{"grove_longest_text_tokens", "llamacpp:n_tokens_max", "", "Tokens of the longest text.", true,
		count(func(m *metrics) *atomic.Int64 { return &m.most })},
	{"grove_cache_use_ratio", "llamacpp:kv_cache_usage_ratio", "vllm:kv_cache_usage_perc", "Share of the cache that texts hold, of the model that has the most of its own in use, from 0 to 1.", true,
		func(_ *metrics, s *Server) float64 { return s.cacheUse() }},
}

// of returns the name of a figure.
func (n *named) of(names MetricNames) string {
	switch names {
	case MetricsLlamaCpp:
		return n.llamacpp
	case MetricsVLLM:
		return n.vllm
	}
	return n.grove
}

// newMetrics registers the figures of a server.
func newMetrics(s *Server, names MetricNames) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	prefix := map[MetricNames]string{MetricsLlamaCpp: "llamacpp:", MetricsVLLM: "vllm:"}[names]
	if prefix == "" {
		prefix = "grove_"
	}
	for _, f := range figures {
		name := f.of(names)
		if name == "" {
			continue
		}
		value := func() float64 { return f.value(m, s) }
		if f.gauge {
			m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: f.help}, value))
		} else {
			m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: f.help}, value))
		}
	}
	histogram := func(name, help string, least float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(least, 2, 16)})
		m.registry.MustRegister(h)
		return h
	}
	m.first = histogram("time_to_first_token_seconds", "From the beginning of an answer to its first token.", 0.002)
	m.between = histogram("inter_token_latency_seconds", "From one token of an answer to the next.", 0.0005)
	m.whole = histogram("e2e_request_latency_seconds", "From the beginning of an answer to its end.", 0.01)
	m.faults = prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "internal_errors_total", Help: "Requests that failed by a fault of the server."})
	m.registry.MustRegister(m.faults)
	return m
}

func (m *metrics) begin() { m.running.Add(1) }

// end counts an answer that ended.
func (m *metrics) end(s grove.Stats, took time.Duration, err error) {
	m.running.Add(-1)
	m.prompt.Add(int64(s.PromptTokens - s.ReusedTokens))
	m.reused.Add(int64(s.ReusedTokens))
	m.generated.Add(int64(s.Tokens))
	m.promptTime.Add(int64(s.Prompt))
	m.generationTime.Add(int64(s.Generation))
	m.steps.Add(int64(s.Drafting.Rounds))
	m.drafted.Add(int64(s.Drafting.Drafted))
	m.accepted.Add(int64(s.Drafting.Accepted))
	for n := int64(s.PromptTokens + s.Tokens); ; {
		old := m.most.Load()
		if n <= old || m.most.CompareAndSwap(old, n) {
			break
		}
	}
	m.whole.Observe(took.Seconds())
	if err != nil {
		m.failed.Add(1)
	} else {
		m.answers.Add(1)
	}
}

// pace tells the times of one answer's tokens.
type pace struct {
	m    *metrics
	last time.Time
	n    int
}

func (m *metrics) watch() *pace { return &pace{m: m, last: time.Now()} }

// token tells that one is there.
func (p *pace) token() {
	now := time.Now()
	if p.n++; p.n == 1 {
		p.m.first.Observe(now.Sub(p.last).Seconds())
	} else {
		p.m.between.Observe(now.Sub(p.last).Seconds())
	}
	p.last = now
}

func (s *Server) cacheUse() (most float64) {
	for _, h := range s.all() {
		if p := h.model.Load().Pages; p.Total > 0 {
			most = max(most, float64(p.Used)/float64(p.Total))
		}
	}
	return most
}
