package serving

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grove"
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
	answers, failed       atomic.Int64
	prompt, reused        atomic.Int64 // tokens
	generated, most       atomic.Int64
	promptTime, working   atomic.Int64 // nanoseconds
	rounds, drafted       atomic.Int64
	accepted, faults      atomic.Int64
}

// histogram is one histogram under several names.
type histogram struct {
	mu  sync.Mutex
	all []prometheus.Histogram
	h   prometheus.HistogramOpts
}

func (h *histogram) observe(v float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.all {
		o.Observe(v)
	}
}

// named is a metric with its name in each engine; "": the engine has no such metric.
type named struct {
	grove, llamacpp, vllm string
	help                  string
	gauge                 bool
	value                 func(m *Metrics) float64
}

func count(v func(*Metrics) *atomic.Int64) func(*Metrics) float64 {
	return func(m *Metrics) float64 { return float64(v(m).Load()) }
}

func seconds(v func(*Metrics) *atomic.Int64) func(*Metrics) float64 {
	return func(m *Metrics) float64 { return time.Duration(v(m).Load()).Seconds() }
}

// summed sums a figure of the loads of all open models.
func summed(v func(l grove.Load) int) func(*Metrics) float64 {
	return func(m *Metrics) float64 {
		n := 0
		for _, s := range m.pool.States() {
			if s.Host != nil {
				n += v(s.Host.Model.Load())
			}
		}
		return float64(n)
	}
}

func rate(n, ns *atomic.Int64) float64 {
	if ns.Load() == 0 {
		return 0
	}
	return float64(n.Load()) / time.Duration(ns.Load()).Seconds()
}

// pages returns the largest share of its pages that a model has in use, and the pages of all models.
func (m *Metrics) pages() (share float64, total int) {
	for _, s := range m.pool.States() {
		if s.Host == nil {
			continue
		}
		p := s.Host.Model.Load().Pages
		total += p.Total
		if p.Total > 0 {
			share = max(share, float64(p.Used)/float64(p.Total))
		}
	}
	return share, total
}

// figures are the counters and gauges.
var figures = []named{
	{"grove_prompt_tokens_total", "llamacpp:prompt_tokens_total", "vllm:prompt_tokens_total", "Prompt tokens computed.", false,
		count(func(m *Metrics) *atomic.Int64 { return &m.prompt })},
	{"grove_cached_tokens_total", "", "vllm:prefix_cache_hits_total", "Prompt tokens found in the cache.", false,
		count(func(m *Metrics) *atomic.Int64 { return &m.reused })},
	{"grove_queried_tokens_total", "", "vllm:prefix_cache_queries_total", "Prompt tokens looked up in the cache.", false,
		func(m *Metrics) float64 { return float64(m.prompt.Load() + m.reused.Load()) }},
	{"grove_prompt_seconds_total", "llamacpp:prompt_seconds_total", "", "Seconds spent on prompts.", false,
		seconds(func(m *Metrics) *atomic.Int64 { return &m.promptTime })},
	{"grove_generated_tokens_total", "llamacpp:tokens_predicted_total", "vllm:generation_tokens_total", "Tokens generated.", false,
		count(func(m *Metrics) *atomic.Int64 { return &m.generated })},
	{"grove_generation_seconds_total", "llamacpp:tokens_predicted_seconds_total", "", "Seconds spent on generated tokens.", false,
		seconds(func(m *Metrics) *atomic.Int64 { return &m.working })},
	{"grove_answers_total", "", "vllm:request_success_total", "Completed answers.", false,
		count(func(m *Metrics) *atomic.Int64 { return &m.answers })},
	{"grove_answers_failed_total", "", "", "Answers that failed or were cancelled.", false,
		count(func(m *Metrics) *atomic.Int64 { return &m.failed })},
	{"grove_speculation_rounds_total", "llamacpp:spec_decode_num_drafts_total", "vllm:spec_decode_num_drafts_total", "Steps that could verify drafts.", false,
		count(func(m *Metrics) *atomic.Int64 { return &m.rounds })},
	{"grove_speculation_drafted_total", "llamacpp:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_draft_tokens_total", "Draft tokens verified.", false,
		count(func(m *Metrics) *atomic.Int64 { return &m.drafted })},
	{"grove_speculation_accepted_total", "llamacpp:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_accepted_tokens_total", "Draft tokens accepted.", false,
		count(func(m *Metrics) *atomic.Int64 { return &m.accepted })},
	{"grove_requests_running", "llamacpp:requests_processing", "vllm:num_requests_running", "Answers being computed.", true,
		summed(func(l grove.Load) int { return l.Admitted })},
	{"grove_requests_waiting", "llamacpp:requests_deferred", "vllm:num_requests_waiting", "Answers in the queue.", true,
		summed(func(l grove.Load) int { return l.Open - l.Admitted })},
	{"grove_prompt_tokens_per_second", "llamacpp:prompt_tokens_seconds", "", "Prompt tokens a second, since the start.", true,
		func(m *Metrics) float64 { return rate(&m.prompt, &m.promptTime) }},
	{"grove_generated_tokens_per_second", "llamacpp:predicted_tokens_seconds", "", "Tokens generated a second of each answer, since the start.", true,
		func(m *Metrics) float64 { return rate(&m.generated, &m.working) }},
	{"grove_longest_text_tokens", "llamacpp:n_tokens_max", "", "Tokens of the longest text.", true,
		count(func(m *Metrics) *atomic.Int64 { return &m.most })},
	{"grove_cache_use_ratio", "llamacpp:kv_cache_usage_ratio", "vllm:kv_cache_usage_perc", "Share of the cache in use, from 0 to 1; of several models the largest.", true,
		func(m *Metrics) float64 { share, _ := m.pages(); return share }},
	{"grove_steps_total", "llamacpp:n_decode_total", "", "Steps of all models.", false,
		summed(func(l grove.Load) int { return l.Steps })},
	{"grove_step_rows_total", "", "", "Rows of all steps.", false,
		summed(func(l grove.Load) int { return l.Rows })},
	{"grove_preemptions_total", "", "vllm:num_preemptions_total", "Preemptions: texts that lost their pages to another and are computed again.", false,
		summed(func(l grove.Load) int { return l.Preempted })},
	{"grove_internal_errors_total", "", "", "Panics, each of which failed one request.", false,
		count(func(m *Metrics) *atomic.Int64 { return &m.faults })},
}

// of returns the metric's name in an engine.
func (n *named) of(names MetricNames) string {
	switch names {
	case MetricsLlamaCpp:
		return n.llamacpp
	case MetricsVLLM:
		return n.vllm
	}
	return n.grove
}

func newMetrics(p *Pool) *Metrics {
	m := &Metrics{pool: p}
	for h, o := range map[*histogram]prometheus.HistogramOpts{
		&m.first:   {Name: "time_to_first_token_seconds", Help: "From the start of an answer to its first token.", Buckets: prometheus.ExponentialBuckets(0.002, 2, 16)},
		&m.between: {Name: "inter_token_latency_seconds", Help: "From one token of an answer to the next.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)},
		&m.whole:   {Name: "e2e_request_latency_seconds", Help: "From the start of an answer to its end.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 16)},
	} {
		h.h = o
	}
	return m
}

// Register returns a registry of the metrics under the names of all the given engines, which must differ.
func (m *Metrics) Register(all ...MetricNames) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	for _, names := range all {
		for _, f := range figures {
			name := f.of(names)
			if name == "" {
				continue
			}
			value := func() float64 { return f.value(m) }
			if f.gauge {
				registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: f.help}, value))
			} else {
				registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: f.help}, value))
			}
		}
		prefix := "grove_"
		if names == MetricsVLLM {
			prefix = "vllm:"
		}
		if names != MetricsLlamaCpp { // it has no histograms
			for _, h := range []*histogram{&m.first, &m.between, &m.whole} {
				registry.MustRegister(h.as(prefix))
			}
		}
		if names == MetricsVLLM {
			registry.MustRegister(inferenceExtension(m))
		}
	}
	return registry
}

// as returns the histogram under a further name.
func (h *histogram) as(prefix string) prometheus.Histogram {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.h
	o.Name = prefix + o.Name
	made := prometheus.NewHistogram(o)
	h.all = append(h.all, made)
	return made
}

// extension collects the metrics with labels that the Gateway API Inference Extension reads: the size of the cache, and the
// adapters, of which there are none.
type extension struct {
	m           *Metrics
	cache, lora *prometheus.Desc
}

func inferenceExtension(m *Metrics) prometheus.Collector {
	return &extension{
		m,
		prometheus.NewDesc("vllm:cache_config_info", "The cache: tokens of a page, and number of pages.", []string{"block_size", "num_gpu_blocks"}, nil),
		prometheus.NewDesc("vllm:lora_requests_info", "Adapters in use: there are none.", []string{"running_lora_adapters", "waiting_lora_adapters", "max_lora"}, nil),
	}
}

// Describe implements [prometheus.Collector].
func (e *extension) Describe(to chan<- *prometheus.Desc) {
	to <- e.cache
	to <- e.lora
}

// Collect implements [prometheus.Collector].
func (e *extension) Collect(to chan<- prometheus.Metric) {
	_, total := e.m.pages()
	to <- prometheus.MustNewConstMetric(e.cache, prometheus.GaugeValue, 1, strconv.Itoa(grove.PageTokens), strconv.Itoa(total))
	to <- prometheus.MustNewConstMetric(e.lora, prometheus.GaugeValue, float64(time.Now().Unix()), "", "", "0")
}

func (m *Metrics) fault() { m.faults.Add(1) }

// end counts an answer that ended.
func (m *Metrics) end(s grove.Stats, took time.Duration, err error) {
	m.prompt.Add(int64(s.PromptTokens - s.ReusedTokens))
	m.reused.Add(int64(s.ReusedTokens))
	m.generated.Add(int64(s.Tokens))
	m.promptTime.Add(int64(s.Prompt))
	m.working.Add(int64(s.Generation))
	m.rounds.Add(int64(s.Drafting.Rounds))
	m.drafted.Add(int64(s.Drafting.Drafted))
	m.accepted.Add(int64(s.Drafting.Accepted))
	for n := int64(s.PromptTokens + s.Tokens); ; {
		old := m.most.Load()
		if n <= old || m.most.CompareAndSwap(old, n) {
			break
		}
	}
	m.whole.observe(took.Seconds())
	if err != nil {
		m.failed.Add(1)
	} else {
		m.answers.Add(1)
	}
}

// latency measures the times between the tokens of one answer.
type latency struct {
	m    *Metrics
	last time.Time
	n    int
}

func (m *Metrics) watch() *latency { return &latency{m: m, last: time.Now()} }

// token notes that a token was generated.
func (l *latency) token() {
	now := time.Now()
	if l.n++; l.n == 1 {
		l.m.first.observe(now.Sub(l.last).Seconds())
	} else {
		l.m.between.observe(now.Sub(l.last).Seconds())
	}
	l.last = now
}
