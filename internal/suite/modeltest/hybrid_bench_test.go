package modeltest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"grove/internal/forest"
	"grove/internal/model/synthetic"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// BenchmarkHybrid decodes one row a step with a transformer of half a billion parameters, and with models of its size of delta nets
// and of Mamba 2, some steps of each in turns: without a text, where a step begins at states of zeros, and behind one. It reports the
// median time of a step, and as %bytes the bytes of weights a second as a share of the transformer's.
func BenchmarkHybrid(b *testing.B) {
	for _, t := range []tensor.Type{tensor.Q8_0, tensor.Q4_K} {
		var models []*decoder
		for _, threads := range []int{1, 2} {
			for _, depth := range []int{0, 100} {
				b.Run(fmt.Sprintf("type=%v/threads=%d/depth=%d", t, threads, depth), func(b *testing.B) {
					models = models[:0]
					for _, name := range []string{"0.5b", "0.5b-delta", "0.5b-mamba2"} {
						models = append(models, newDecoder(b, name, t, threads, depth))
					}
					for b.Loop() {
						for _, m := range models {
							for i := range 8 {
								m.step(i > 0) // the first finds the caches of another model
							}
						}
					}
					first := models[0].rate()
					for _, m := range models {
						b.ReportMetric(m.median().Seconds()*1e3, m.name+"-ms")
						b.ReportMetric(100*m.rate()/first, m.name+"-%bytes")
					}
				})
			}
		}
	}
}

// decoder decodes rows with one model.
type decoder struct {
	name  string
	r     *Runner
	seq   forest.Seq
	depth int
	read  int // bytes of a step's weights
	times []time.Duration
}

// longestText is the tokens behind which a decoder begins again.
const longestText = 300

func newDecoder(b *testing.B, name string, t tensor.Type, threads, depth int) *decoder {
	s, err := synthetic.Named(name, t)
	if err != nil {
		b.Fatal(err)
	}
	d := &decoder{name: name, depth: depth, r: New(b, Spec(s).File(b), Config{CacheType: tensor.F16, Threads: threads, Seqs: 1, Context: 512, Scratch: 128})}
	info := d.r.Model.Info()
	d.read = info.Bytes - info.IdleBytes
	d.begin()
	return d
}

func (d *decoder) begin() {
	d.seq = d.r.NewSeq("")
	if d.depth > 0 {
		d.r.Prefill(d.seq, make([]token.ID, d.depth), 64)
	}
}

// step decodes a row, which is forgotten where the depth is 0.
func (d *decoder) step(counts bool) {
	n := d.r.Add(forest.Row{Seq: d.seq, ID: 7, Want: logits})
	start := time.Now()
	d.r.Forward()
	took := time.Since(start)
	if d.depth == 0 {
		d.r.Drop(d.seq, forest.Trunk)
	} else {
		d.r.Commit(d.seq, n)
	}
	if counts {
		d.times = append(d.times, took)
	}
	if d.r.Cache.Forest.Len(d.seq) == longestText {
		d.r.check(d.r.Cache.CloseSeq(d.seq))
		d.begin()
	}
}

func (d *decoder) median() time.Duration {
	slices.Sort(d.times)
	return d.times[len(d.times)/2]
}

func (d *decoder) rate() float64 { return float64(d.read) / d.median().Seconds() }
