package programs

import (
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/suite/searchtest"
	"grove/search"
)

// TestAnchoredWorked: the worked numbers of the fusion, for a safe and a risky distribution whose divergence is 1.1675.
func TestAnchoredWorked(t *testing.T) {
	safe, risky := []float64{.7, .2, .1}, []float64{.1, .2, .7}
	if kl := anchoredDivergence(risky, safe); math.Abs(kl-1.1675) > 5e-5 {
		t.Errorf("the divergence is %v", kl)
	}
	f := newFusion(safe, risky)
	last := 0.0
	for _, tt := range []struct {
		k, theta float64
		q        [3]float64
	}{
		{.05, .2179, [3]float64{.5649, .2466, .1885}}, {.1, .2979, [3]float64{.5087, .2595, .2317}},
		{.5, .6209, [3]float64{.2811, .2689, .4500}}, {1, .9028, [3]float64{.1342, .2222, .6436}},
	} {
		theta := f.solve(tt.k)
		q := f.mix(nil, safe, theta)
		if math.Abs(theta-tt.theta) > 5e-5 || theta <= last {
			t.Errorf("k %v: theta is %v, want %v", tt.k, theta, tt.theta)
		}
		for i, v := range tt.q {
			if math.Abs(q[i]-v) > 6e-5 {
				t.Errorf("k %v: %v, want %v", tt.k, q, tt.q)
			}
		}
		if kl := anchoredDivergence(q, safe); kl > tt.k || kl < tt.k*(1-1e-6) {
			t.Errorf("k %v: the divergence is %v", tt.k, kl)
		}
		last = theta
	}
	var fused []float64
	if b := (&budget{perToken: 1.2}); b.spend(&fused, safe, risky) != ofRisky || math.Abs(b.spent-1.1675) > 5e-5 {
		t.Errorf("k 1.2: %+v", b)
	}
	if b := (&budget{}); b.spend(&fused, safe, risky) != ofSafe || b.spent != 0 {
		t.Errorf("k 0: %+v", b)
	}
}

// distribution returns random probabilities: a few large ones, many small ones, or some zeros.
func distribution(r *rand.Rand, n int) []float64 {
	p, sum, sharp, zeros := make([]float64, n), 0.0, 20*r.Float64(), r.IntN(3) == 0
	for i := range p {
		if p[i] = math.Exp(sharp * r.NormFloat64()); zeros && r.IntN(3) == 0 && i > 0 {
			p[i] = 0
		}
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// TestNeverExceeded: whatever the models' distributions, what was spent is never more than the budget, not by a bit; and it is the sum of the divergences of what was drawn by.
func TestNeverExceeded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	by := [3]int{}
	for range 300 {
		n := 2 + r.IntN(40)
		b := &budget{perToken: math.Exp(3 * (r.NormFloat64() - 1)), debt: max(0, r.NormFloat64())}
		if r.IntN(20) == 0 {
			b.perToken = 0
		}
		var fused []float64
		sum := 0.0
		for step := range 60 {
			safe, risky := distribution(r, n), distribution(r, n)
			if r.IntN(10) == 0 {
				copy(risky, safe)
			}
			before := b.spent
			switch how := b.spend(&fused, safe, risky); how {
			case ofRisky:
				sum += anchoredDivergence(risky, safe)
			case ofBoth:
				sum += anchoredDivergence(fused, safe)
				for i, v := range fused {
					if safe[i] == 0 && v != 0 {
						t.Fatal("it draws what the safe model cannot")
					}
				}
			case ofSafe:
				if b.spent != before {
					t.Fatal("the safe model costs something")
				}
			}
			bound := float64(step+1)*b.perToken - b.debt
			if b.accrued() != bound || b.spent > max(0, bound) || math.IsNaN(b.spent) || sum != b.spent {
				t.Fatalf("token %d: %v of %v is spent; %+v", step, b.spent, bound, b)
			}
		}
		for i, v := range b.tokens {
			by[i] += v
		}
	}
	for i, n := range by {
		if n < 500 {
			t.Errorf("%d tokens of kind %d", n, i)
		}
	}
}

// TestDebt is the mean of the largest log-ratios above 0.
func TestDebt(t *testing.T) {
	for _, tt := range []struct {
		ratios []float64
		n      int
		want   float64
	}{
		{[]float64{1, -5, 3, 2, 0, .5}, 2, 2.5}, {[]float64{1, -5, 3}, 5, 4. / 3}, {nil, 5, 0}, {[]float64{-1, -2}, 1, 0},
	} {
		if got := debtOf(tt.ratios, tt.n); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", tt.ratios, got, tt.want)
		}
	}
}

// TestAnchoredCheck refuses what cannot be anchored.
func TestAnchoredCheck(t *testing.T) {
	for _, bad := range []string{"anchored,k=-1", "anchored,k=x", "anchored,guide=0", "anchored,debt=-1"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	m := searchtest.New(t, 2, []string{"a", ""}, func(string) []float64 { return []float64{.5, .5} })
	for name, p := range map[string]search.Problem{"greedy": {Greedy: true, Guides: []search.Guide{{Engine: m.Engine, Same: true}}}, "no guide": {}, "another vocabulary": {Guides: []search.Guide{{Engine: m.Engine}}}} {
		if (anchored{guide: 1}).Check(&p) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
