package stat

import (
	"math"
	"testing"
)

func TestSample(t *testing.T) {
	var m Moments
	for _, x := range []float64{2, 4, 4, 6} {
		m.Add(x)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"median of none", Sample{}.Median(), 0},
		{"median of an odd number", Sample{3, 1, 2}.Median(), 2},
		{"median of an even number", Sample{4, 1, 2, 3}.Median(), 2.5},
		{"spread of none", Sample{}.Spread(), 0},
		{"spread", Sample{3, 1, 2}.Spread(), 0.5},
		{"quantile of one", Quantile([]float64{7}, 0.999), 7},
		{"quantile between", Quantile([]float64{1, 2, 3, 4}, 0.5), 2.5},
		{"ratio", Ratio(6, 4), 1.5},
		{"ratio to nothing", Ratio(1, 0), 0},
		{"mean", m.Mean, 4},
		{"standard error", m.Err(), math.Sqrt(8.0 / 4 / 3)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if math.Abs(c.got-c.want) > 1e-12 {
				t.Errorf("got %v, want %v", c.got, c.want)
			}
		})
	}
}
