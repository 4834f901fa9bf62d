package kernel

import (
	"math"
	"testing"
)

// TestMergeSink compares with a softmax over scores and sink in float64, for sinks below, among and above the
// scores.
func TestMergeSink(t *testing.T) {
	for _, sink := range []float32{-200, -3, 0.5, 8, 200} {
		scores := make([]float32, PageSlots)
		values := newRand(1)
		var sum, want float64
		v := make([]float64, PageSlots)
		for i := range scores {
			scores[i], v[i] = float32(values.NormFloat64()), values.NormFloat64()
			sum += math.Exp(float64(scores[i]))
		}
		sum += math.Exp(float64(sink))
		for i := range scores {
			want += math.Exp(float64(scores[i])) / sum * v[i]
		}
		m, l := SoftmaxBlock(scores, 1, 0)
		o := make([]float32, 3)
		for i, p := range scores {
			o[1] += p * float32(v[i])
		}
		MergeSink(&m, &l, o, sink)
		Finish(o, o, l)
		if !(math.Abs(float64(o[1])-want) <= 1e-6) {
			t.Errorf("with a sink of %v the value is %v, want %v", sink, o[1], want)
		}
	}
}
