package batches

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	runningDesc = prometheus.NewDesc("grove_batches_running", "Batches that are answered.", nil, nil)
	linesDesc   = prometheus.NewDesc("grove_batch_lines_total", "Lines of batches that were answered or failed.", nil, nil)
	brokenDesc  = prometheus.NewDesc("grove_batch_interruptions_total", "Times that a batch stopped by an error, such as a full disk, and waited to go on.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (s *Service) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, to) }

// Collect implements [prometheus.Collector]. Where nothing is kept, there is nothing to tell.
func (s *Service) Collect(to chan<- prometheus.Metric) {
	if s.store == nil {
		return
	}
	r := &s.runner
	r.mu.Lock()
	defer r.mu.Unlock()
	to <- prometheus.MustNewConstMetric(runningDesc, prometheus.GaugeValue, float64(len(r.running)))
	to <- prometheus.MustNewConstMetric(linesDesc, prometheus.CounterValue, float64(r.lines))
	to <- prometheus.MustNewConstMetric(brokenDesc, prometheus.CounterValue, float64(r.broken))
}
