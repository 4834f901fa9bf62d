package serving

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"grove"
	"grove/server/exposition"
	"grove/server/traces"
)

// MetricNames is the engine whose names the metrics have.
type MetricNames string

// The names that dashboards know.
const (
	MetricsGrove    MetricNames = "grove"
	MetricsLlamaCpp MetricNames = "llamacpp"
	MetricsVLLM     MetricNames = "vllm" // the endpoint picker of the Gateway API Inference Extension reads these
)

// Metrics counts answers, tokens and times. It is safe for concurrent use.
type Metrics struct {
	pool                  *Pool
	first, between, whole histogram

	mu     sync.Mutex
	totals totals
}

// totals are sums over all answers.
type totals struct {
	answers, failed            int
	prompt, cached, generated  int // tokens
	scored                     int // tokens of continuations
	longest                    int // tokens of the longest text
	promptTime, generationTime time.Duration
	rounds, drafted, accepted  int
	faults                     int
}

// figures are the totals and the loads of all open models, at a moment.
type figures struct {
	totals
	load  grove.Load
	share float64  // of its pages in use; of several models the largest
	loras []string // names of the open adapters
}

func (m *Metrics) figures() (f figures) {
	m.mu.Lock()
	f.totals = m.totals
	m.mu.Unlock()
	m.pool.mu.Lock()
	f.load = m.pool.closed
	m.pool.mu.Unlock()
	for _, s := range m.pool.Open() {
		l := s.Model.Model.Load()
		for _, a := range s.Model.Model.Adapters() {
			f.loras = append(f.loras, a.Name)
		}
		f.load.Admitted += l.Admitted
		f.load.Open += l.Open
		f.load.Steps += l.Steps
		f.load.Rows += l.Rows
		f.load.Preempted += l.Preempted
		f.load.Prefixes.Add(l.Prefixes)
		f.load.Pages.Total += l.Pages.Total
		if l.Pages.Total > 0 {
			f.share = max(f.share, float64(l.Pages.Used)/float64(l.Pages.Total))
		}
	}
	return f
}

// rate returns a number a second; 0 over no time.
func rate(n int, d time.Duration) float64 {
	if d == 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// metric is a counter or a gauge with its name in each engine; "": the engine has no such metric.
type metric struct {
	grove, llamacpp, vllm string
	help                  string
	kind                  exposition.Kind
	value                 func(f figures) float64
}

const (
	counter = exposition.Counter
	gauge   = exposition.Gauge
)

// metrics are the counters and gauges.
var metrics = []metric{
	{"grove_prompt_tokens_total", "llamacpp:prompt_tokens_total", "vllm:prompt_tokens_total", "Prompt tokens computed.", counter,
		func(f figures) float64 { return float64(f.prompt) }},
	{"grove_cached_tokens_total", "", "vllm:prefix_cache_hits_total", "Prompt tokens found in the cache.", counter,
		func(f figures) float64 { return float64(f.cached) }},
	{"grove_queried_tokens_total", "", "vllm:prefix_cache_queries_total", "Prompt tokens looked up in the cache.", counter,
		func(f figures) float64 { return float64(f.prompt + f.cached) }},
	{"grove_prompt_seconds_total", "llamacpp:prompt_seconds_total", "", "Seconds spent on prompts.", counter,
		func(f figures) float64 { return f.promptTime.Seconds() }},
	{"grove_generated_tokens_total", "llamacpp:tokens_predicted_total", "vllm:generation_tokens_total", "Tokens generated.", counter,
		func(f figures) float64 { return float64(f.generated) }},
	{"grove_scored_tokens_total", "", "", "Tokens of continuations scored.", counter,
		func(f figures) float64 { return float64(f.scored) }},
	{"grove_generation_seconds_total", "llamacpp:tokens_predicted_seconds_total", "", "Seconds spent on generated tokens.", counter,
		func(f figures) float64 { return f.generationTime.Seconds() }},
	{"grove_answers_total", "", "vllm:request_success_total", "Completed answers.", counter,
		func(f figures) float64 { return float64(f.answers) }},
	{"grove_answers_failed_total", "", "", "Answers that failed or were cancelled.", counter,
		func(f figures) float64 { return float64(f.failed) }},
	{"grove_speculation_rounds_total", "llamacpp:spec_decode_num_drafts_total", "vllm:spec_decode_num_drafts_total", "Steps that could verify drafts.", counter,
		func(f figures) float64 { return float64(f.rounds) }},
	{"grove_speculation_drafted_total", "llamacpp:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_draft_tokens_total", "Draft tokens verified.", counter,
		func(f figures) float64 { return float64(f.drafted) }},
	{"grove_speculation_accepted_total", "llamacpp:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_accepted_tokens_total", "Draft tokens accepted.", counter,
		func(f figures) float64 { return float64(f.accepted) }},
	{"grove_requests_running", "llamacpp:requests_processing", "vllm:num_requests_running", "Answers being computed.", gauge,
		func(f figures) float64 { return float64(f.load.Admitted) }},
	{"grove_requests_waiting", "llamacpp:requests_deferred", "vllm:num_requests_waiting", "Answers in the queue.", gauge,
		func(f figures) float64 { return float64(f.load.Open - f.load.Admitted) }},
	{"grove_prompt_tokens_per_second", "llamacpp:prompt_tokens_seconds", "", "Prompt tokens a second, since the start.", gauge,
		func(f figures) float64 { return rate(f.prompt, f.promptTime) }},
	{"grove_generated_tokens_per_second", "llamacpp:predicted_tokens_seconds", "", "Tokens generated a second of each answer, since the start.", gauge,
		func(f figures) float64 { return rate(f.generated, f.generationTime) }},
	{"grove_longest_text_tokens", "llamacpp:n_tokens_max", "", "Tokens of the longest text.", gauge,
		func(f figures) float64 { return float64(f.longest) }},
	{"grove_cache_use_ratio", "llamacpp:kv_cache_usage_ratio", "vllm:kv_cache_usage_perc", "Share of the cache in use, from 0 to 1; of several models the largest.", gauge,
		func(f figures) float64 { return f.share }},
	{"grove_steps_total", "llamacpp:n_decode_total", "", "Steps of all models.", counter,
		func(f figures) float64 { return float64(f.load.Steps) }},
	{"grove_step_rows_total", "", "", "Rows of all steps.", counter,
		func(f figures) float64 { return float64(f.load.Rows) }},
	{"grove_preemptions_total", "", "vllm:num_preemptions_total", "Preemptions: texts that lost their pages to another and are computed again.", counter,
		func(f figures) float64 { return float64(f.load.Preempted) }},
	{"grove_prefix_models", "", "", "Models that use the folder of prefixes: their identity is known.", gauge,
		func(f figures) float64 { return float64(f.load.Prefixes.Open) }},
	{"grove_prefix_texts_found_total", "", "", "Prompts with a part that was read from the folder of prefixes.", counter,
		func(f figures) float64 { return float64(f.load.Prefixes.Found) }},
	{"grove_prefix_tokens_found_total", "", "", "Prompt tokens of these parts.", counter,
		func(f figures) float64 { return float64(f.load.Prefixes.Tokens) }},
	{"grove_prefix_files_read_total", "", "", "Files that were read from the folder of prefixes.", counter,
		func(f figures) float64 { return float64(f.load.Prefixes.Read) }},
	{"grove_prefix_files_refused_total", "", "", "Files of the folder of prefixes that could not be used.", counter,
		func(f figures) float64 { return float64(f.load.Prefixes.Refused) }},
	{"grove_prefix_files_written_total", "", "", "Files that were written to the folder of prefixes.", counter,
		func(f figures) float64 { return float64(f.load.Prefixes.Written) }},
	{"grove_prefix_files_removed_total", "", "", "Files of the folder of prefixes that made room for others.", counter,
		func(f figures) float64 { return float64(f.load.Prefixes.Removed) }},
	{"grove_prefix_texts_failed_total", "", "", "Texts that could not be written to the folder of prefixes.", counter,
		func(f figures) float64 { return float64(f.load.Prefixes.Failed) }},
	{"grove_prefix_texts_dropped_total", "", "", "Texts that were not written, since too many waited for it.", counter,
		func(f figures) float64 { return float64(f.load.Prefixes.Dropped) }},
	{"grove_prefix_texts_queued", "", "", "Texts that are written to the folder of prefixes, or are to be.", gauge,
		func(f figures) float64 { return float64(f.load.Prefixes.Queued) }},
	{"grove_internal_errors_total", "", "", "Panics, each of which failed one request.", counter,
		func(f figures) float64 { return float64(f.faults) }},
}

// of returns the metric's name in an engine.
func (m *metric) of(names MetricNames) string {
	switch names {
	case MetricsLlamaCpp:
		return m.llamacpp
	case MetricsVLLM:
		return m.vllm
	}
	return m.grove
}

// histogram is one histogram under several names.
type histogram struct {
	name, help string
	bounds     []float64

	mu  sync.Mutex
	all []*exposition.Histogram
}

// observe adds a time, with the labels of an example; nil: it is none.
func (h *histogram) observe(d time.Duration, example []exposition.Label) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.all {
		o.Observe(d.Seconds(), example)
	}
}

// exampleOf returns the labels by which a time of a request is an example for it: its trace, where that is recorded; else nil.
func exampleOf(ctx context.Context) []exposition.Label {
	if id := traces.ID(ctx); id != "" {
		return []exposition.Label{{Name: "trace_id", Value: id}}
	}
	return nil
}

// register adds the histogram to a registry under a further name.
func (h *histogram) register(r *exposition.Registry, prefix string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, r.Histogram(prefix+h.name, h.help, h.bounds))
}

func newMetrics(p *Pool) *Metrics {
	return &Metrics{
		pool:    p,
		first:   histogram{name: "time_to_first_token_seconds", help: "From the start of an answer to its first token.", bounds: exposition.Exponential(0.002, 16)},
		between: histogram{name: "inter_token_latency_seconds", help: "From one token of an answer to the next.", bounds: exposition.Exponential(0.0005, 16)},
		whole:   histogram{name: "e2e_request_latency_seconds", help: "From the start of an answer to its end.", bounds: exposition.Exponential(0.01, 16)},
	}
}

// Register returns a registry of the metrics under the names of all the given engines, which must differ.
func (m *Metrics) Register(all ...MetricNames) *exposition.Registry {
	registry := new(exposition.Registry)
	for _, names := range all {
		registry.Register(&collector{m, names})
		prefix := "grove_"
		switch names {
		case MetricsLlamaCpp:
			continue // it has no histograms
		case MetricsVLLM:
			prefix = "vllm:"
		}
		for _, h := range []*histogram{&m.first, &m.between, &m.whole} {
			h.register(registry, prefix)
		}
	}
	return registry
}

// collector collects the counters and gauges under the names of an engine.
type collector struct {
	m     *Metrics
	names MetricNames
}

// Metrics implements [exposition.Source].
func (c *collector) Metrics(tell func(exposition.Metric)) {
	f := c.m.figures()
	for _, m := range metrics {
		if name := m.of(c.names); name != "" {
			tell(exposition.Metric{Name: name, Help: m.help, Kind: m.kind, Value: m.value(f)})
		}
	}
	if c.names != MetricsVLLM {
		return
	}
	// The Gateway API Inference Extension reads these labels.
	tell(exposition.Metric{
		Name: "vllm:cache_config_info", Help: "The cache: tokens of a page, and number of pages.", Kind: gauge, Value: 1,
		Labels: []exposition.Label{{Name: "block_size", Value: strconv.Itoa(grove.PageTokens)}, {Name: "num_gpu_blocks", Value: strconv.Itoa(f.load.Pages.Total)}},
	})
	tell(exposition.Metric{
		Name: "vllm:lora_requests_info", Help: "The open adapters, each of which is ready; others must be opened first. The value is the time.", Kind: gauge, Value: float64(time.Now().Unix()),
		Labels: []exposition.Label{
			{Name: "running_lora_adapters", Value: strings.Join(f.loras, ",")}, {Name: "waiting_lora_adapters"}, {Name: "max_lora", Value: strconv.Itoa(len(f.loras))},
		},
	})
}

func (m *Metrics) fault() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.totals.faults++
}

// Scored counts continuations that were scored.
func (m *Metrics) Scored(s *grove.Scores) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.totals.prompt += s.PromptTokens - s.ReusedTokens
	m.totals.cached += s.ReusedTokens
	m.totals.scored += s.Tokens
}

// end counts an answer that ended.
func (m *Metrics) end(ctx context.Context, s grove.Stats, took time.Duration, err error) {
	m.whole.observe(took, exampleOf(ctx))
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &m.totals
	t.prompt += s.PromptTokens - s.ReusedTokens
	t.cached += s.ReusedTokens
	t.generated += s.Tokens
	t.longest = max(t.longest, s.PromptTokens+s.Tokens)
	t.promptTime += s.PromptTime
	t.generationTime += s.GenerationTime
	t.rounds += s.Drafting.Rounds
	t.drafted += s.Drafting.Drafted
	t.accepted += s.Drafting.Accepted
	if err != nil {
		t.failed++
	} else {
		t.answers++
	}
}

// latency measures the times between the tokens of one answer.
type latency struct {
	m    *Metrics
	last time.Time
	n    int

	example []exposition.Label
}

func (m *Metrics) watch(ctx context.Context) *latency {
	return &latency{m: m, last: time.Now(), example: exampleOf(ctx)}
}

// token notes that a token was generated.
func (l *latency) token() {
	now := time.Now()
	if l.n++; l.n == 1 {
		l.m.first.observe(now.Sub(l.last), l.example)
	} else {
		l.m.between.observe(now.Sub(l.last), l.example)
	}
	l.last = now
}
