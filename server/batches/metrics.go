package batches

import "grove/server/exposition"

// Metrics implements [exposition.Source]. Where nothing is kept, there is nothing to tell.
func (s *Service) Metrics(tell func(exposition.Metric)) {
	if s.store == nil {
		return
	}
	r := &s.runner
	r.mu.Lock()
	defer r.mu.Unlock()
	tell(exposition.Metric{Name: "grove_batches_running", Help: "Batches that are answered.", Kind: exposition.Gauge, Value: float64(len(r.running))})
	tell(exposition.Metric{Name: "grove_batch_lines_total", Help: "Lines of batches that were answered or failed.", Kind: exposition.Counter, Value: float64(r.lines)})
	tell(exposition.Metric{
		Name: "grove_batch_interruptions_total", Help: "Times that a batch stopped by an error, such as a full disk, and waited to go on.", Kind: exposition.Counter, Value: float64(r.broken),
	})
}
