// Package exposition writes metrics in the text format of Prometheus, and in OpenMetrics where a scraper asks for it: counters and
// gauges that are read when they are asked for, and histograms with examples. It is the part of Prometheus's library that the
// server needs; the whole links protocol buffers.
package exposition

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Kind says whether a metric may fall.
type Kind string

// The kinds.
const (
	Counter Kind = "counter"
	Gauge   Kind = "gauge"
)

// A Label is a name and its value.
type Label struct{ Name, Value string }

// A Metric is a value at the moment. The name of a counter ends with _total.
type Metric struct {
	Name, Help string
	Kind       Kind
	Value      float64
	Labels     []Label
}

// A Source tells its metrics. It must be safe for concurrent use.
type Source interface {
	Metrics(tell func(Metric))
}

// A Registry answers requests with the metrics of its sources and with its histograms, in the order of their names. It is safe for
// concurrent use.
type Registry struct {
	mu         sync.Mutex
	sources    []Source
	histograms []*Histogram
}

// Register adds sources.
func (r *Registry) Register(all ...Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = append(r.sources, all...)
}

// Histogram makes a histogram with the upper bounds of its buckets, in ascending order, without the last, infinite one.
func (r *Registry) Histogram(name, help string, bounds []float64) *Histogram {
	h := &Histogram{name: name, help: help, bounds: bounds, buckets: make([]bucket, len(bounds)+1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.histograms = append(r.histograms, h)
	return h
}

// A Histogram counts values by size. It is safe for concurrent use.
type Histogram struct {
	name, help string
	bounds     []float64

	mu      sync.Mutex
	buckets []bucket
	sum     float64
}

// A bucket counts the values above the bound before it, up to its own.
type bucket struct {
	n       uint64
	example example
}

// An example is the last value of a bucket that had labels; without labels there was none.
type example struct {
	labels []Label
	value  float64
	at     time.Time
}

// Observe adds a value, with the labels by which it is an example for its bucket; nil: it is none.
func (h *Histogram) Observe(v float64, labels []Label) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.mu.Lock()
	defer h.mu.Unlock()
	b := &h.buckets[i]
	b.n++
	h.sum += v
	if labels != nil {
		b.example = example{labels, v, time.Now()}
	}
}

// Exponential returns n bounds, of which the first is given, and each further one is twice the one before.
func Exponential(first float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = first
		first *= 2
	}
	return all
}

// family is the text of the metrics of one name.
type family struct{ name, text string }

// ServeHTTP writes the metrics, compressed by gzip where the request accepts it.
func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	open := wantsOpenMetrics(q.Header.Values("Accept"))
	text := r.text(open)
	h := w.Header()
	h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if open {
		h.Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
	}
	h.Add("Vary", "Accept, Accept-Encoding")
	if acceptsGzip(q.Header.Values("Accept-Encoding")) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(text); err == nil && z.Close() == nil {
			h.Set("Content-Encoding", "gzip")
			text = b.Bytes()
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.Write(text)
}

// weights returns the weight of each item of a header of the kind of Accept.
func weights(header []string) map[string]float64 {
	all := map[string]float64{}
	for item := range strings.SplitSeq(strings.Join(header, ","), ",") {
		name, parameters, err := mime.ParseMediaType(item)
		if err != nil {
			continue
		}
		weight, err := strconv.ParseFloat(cmp.Or(parameters["q"], "1"), 64)
		if err != nil {
			weight = 0
		}
		if v := parameters["version"]; name == "application/openmetrics-text" && v != "" && v != "1.0.0" && v != "0.0.1" {
			continue
		}
		all[name] = max(all[name], weight)
	}
	return all
}

// wantsOpenMetrics says whether a scraper prefers OpenMetrics to plain text.
func wantsOpenMetrics(accept []string) bool {
	all := weights(accept)
	open := all["application/openmetrics-text"]
	return open > 0 && open >= all["text/plain"]
}

func acceptsGzip(accept []string) bool { return weights(accept)["gzip"] > 0 }

// text returns all metrics.
func (r *Registry) text(open bool) []byte {
	r.mu.Lock()
	sources, histograms := slices.Clone(r.sources), slices.Clone(r.histograms)
	r.mu.Unlock()
	var all []family
	for _, s := range sources {
		s.Metrics(func(m Metric) {
			var b strings.Builder
			name := m.Name
			if open && m.Kind == Counter {
				name = strings.TrimSuffix(name, "_total")
			}
			head(&b, name, m.Help, string(m.Kind))
			fmt.Fprintf(&b, "%s%s %s\n", m.Name, labels(m.Labels), number(m.Value, open))
			all = append(all, family{m.Name, b.String()})
		})
	}
	for _, h := range histograms {
		all = append(all, family{h.name, h.text(open)})
	}
	slices.SortStableFunc(all, func(a, b family) int { return strings.Compare(a.name, b.name) })
	var out []byte
	for _, f := range all {
		out = append(out, f.text...)
	}
	if open {
		out = append(out, "# EOF\n"...)
	}
	return out
}

// text returns the histogram. Only OpenMetrics has examples.
func (h *Histogram) text(open bool) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	head(&b, h.name, h.help, "histogram")
	var n uint64
	for i, of := range h.buckets {
		bound := math.Inf(1)
		if i < len(h.bounds) {
			bound = h.bounds[i]
		}
		n += of.n
		fmt.Fprintf(&b, "%s_bucket%s %d", h.name, labels([]Label{{"le", number(bound, open)}}), n)
		if e := of.example; open && e.labels != nil {
			fmt.Fprintf(&b, " # %s %s %s", labels(e.labels), number(e.value, open), strconv.FormatFloat(float64(e.at.UnixMicro())/1e6, 'f', 6, 64))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s_sum %s\n%s_count %d\n", h.name, number(h.sum, open), h.name, n)
	return b.String()
}

// The texts that a value of a label and a help may not have as they are.
var (
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

func head(b *strings.Builder, name, help, kind string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, helpEscapes.Replace(help), name, kind)
}

// labels returns labels in braces, in the order of their names.
func labels(all []Label) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	for i, l := range sorted {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(l.Name + `="` + valueEscapes.Replace(l.Value) + `"`)
	}
	return b.String() + "}"
}

// number returns a number's text, which in OpenMetrics shows that it is a fraction.
func number(v float64, open bool) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if open && !strings.ContainsAny(s, ".eN") {
		s += ".0"
	}
	return s
}
