package capacity

import (
	"math"
	"strings"
	"testing"
)

// TestShapes compares numbers of weights with those that are published, in units of 10^9.
func TestShapes(t *testing.T) {
	for _, tt := range []struct {
		name        string
		all, active float64
	}{
		{"8b", 8.03, 7.50}, {"70b", 70.6, 69.5}, {"405b", 405.9, 403.8}, {"30b-a3b", 30.5, 3.0}, {"235b-a22b", 235, 21.6}, {"120b-a5b", 116.8, 5.1},
		{"deepseek-v3", 671, 36.6}, {"step-3", 316, 38},
	} {
		s, err := Named(tt.name)
		if err != nil {
			t.Fatal(err)
		}
		all, active := s.Weights()
		if a, b := float64(all)/1e9/tt.all, float64(active)/1e9/tt.active; math.Abs(a-1) > .01 || math.Abs(b-1) > .03 {
			t.Errorf("%s: %.1f and %.1f G weights; want %v and %v", tt.name, float64(all)/1e9, float64(active)/1e9, tt.all, tt.active)
		}
	}
	if _, err := Named("71b"); err == nil || !strings.Contains(err.Error(), `"70b"`) {
		t.Errorf("an unknown shape: %v", err)
	}
}

// TestAttention compares what attention reads and does for a token behind 32,768 others, with a cache of bytes, with the table of Step-3's paper (2025): bytes of the
// cache, floating-point operations, and their ratio. The paper counts the rotated part of latent attention among its values.
func TestAttention(t *testing.T) {
	const depth = 32768
	for _, tt := range []struct {
		name                string
		bytes, flops, ratio float64
		tolerance           float64
	}{
		{"step-3", 1.02e9, 1.31e11, 128, .01}, {"235b-a22b", 3.15e9, 1.01e11, 32, .01}, {"deepseek-v3", 1.15e9, 5.89e11, 512, .06},
	} {
		s, _ := Named(tt.name)
		w := Work{Shape: s, CacheBytes: 1, Depth: depth}
		for _, v := range [][2]float64{{w.text(), tt.bytes}, {2 * depth * float64(s.CacheOps()), tt.flops}, {w.intensity(), tt.ratio}} {
			if math.Abs(v[0]/v[1]-1) > tt.tolerance {
				t.Errorf("%s: %.3g; the paper has %.3g", tt.name, v[0], v[1])
			}
		}
	}
}

// work returns a work of 8b in 4 bits.
func work(t *testing.T, name string) Work {
	t.Helper()
	s, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return Work{Shape: s, WeightBytes: .5, CacheBytes: 2, Depth: 1000}
}

// find returns the plan of a strategy.
func find(t *testing.T, plans []Plan, strategy string) Plan {
	t.Helper()
	for _, p := range plans {
		if p.Strategy == strategy {
			return p
		}
	}
	t.Fatalf("no plan has the strategy %s", strategy)
	return Plan{}
}

// TestBounds computes by hand what binds a step: memory for one text, operations for many.
func TestBounds(t *testing.T) {
	w := work(t, "8b")
	w.Depth = 1
	m, err := Machine{Bandwidth: 100e9, Rate: 1e12}.complete()
	if err != nil {
		t.Fatal(err)
	}
	_, active := w.Weights()
	if got, want := w.Step(m, 1), float64(active)*.5/100e9; math.Abs(got/want-1) > 1e-3 {
		t.Errorf("one text takes %v s; want %v, the time to read the weights", got, want)
	}
	if got, want := w.Step(m, 1000), 1000*float64(active)/1e12; math.Abs(got/want-1) > 1e-3 {
		t.Errorf("1,000 texts take %v s; want %v, the time of the operations", got, want)
	}
	mixed := work(t, "235b-a22b")
	for rows, want := range map[float64]float64{1: 8, 1e6: 128} {
		if got := mixed.touched(rows); math.Abs(got-want) > 1e-6 {
			t.Errorf("%v rows touch %v experts; want %v", rows, got, want)
		}
	}
}

// TestPlans compares strategies: two machines that hold half a model each are of use where one holds none of it, replicas give twice what one gives,
// and the bounds of memory and of time hold.
func TestPlans(t *testing.T) {
	small, err := Machine{Bandwidth: 100e9, Rate: 1e12, Memory: 24e9, Count: 2}.complete()
	if err != nil {
		t.Fatal(err)
	}
	w := work(t, "70b") // 35 GB
	w.Target = 2
	plans, err := Plans(w, []Machine{small})
	if err != nil {
		t.Fatal(err)
	}
	if p := find(t, plans, Replicas); p.Fault == "" {
		t.Errorf("70b fits 24 GB: %+v", p)
	}
	if p := find(t, plans, Layers); p.Fault != "" || p.Rate <= 0 || p.Memory > 24e9 || p.Token > 2 || !strings.Contains(p.Detail, "[40 40]") && !strings.Contains(p.Detail, "[41 39]") && !strings.Contains(p.Detail, "[42 38]") {
		t.Errorf("layers split: %+v", p)
	}
	large := small
	large.Memory, large.Count = 0, 1
	w.Texts = 8
	one, err := Plans(w, []Machine{large})
	if err != nil {
		t.Fatal(err)
	}
	large.Count, w.Texts = 2, 16
	two, err := Plans(w, []Machine{large})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := find(t, one, Replicas), find(t, two, Replicas); math.Abs(b.Rate/a.Rate-2) > 1e-9 || a.Token != b.Token {
		t.Errorf("one machine gives %v tokens a second, two give %v", a.Rate, b.Rate)
	}
	for _, strategy := range []string{Layers, Split} {
		if p := find(t, one, strategy); p.Fault == "" {
			t.Errorf("%s on one machine: %+v", strategy, p)
		}
	}
	w.Target = 1e-6
	for _, p := range must(t, w, large) {
		if p.Fault == "" {
			t.Errorf("a token in a microsecond: %+v", p)
		}
	}
}

func must(t *testing.T, w Work, m Machine) []Plan {
	t.Helper()
	plans, err := Plans(w, []Machine{m})
	if err != nil {
		t.Fatal(err)
	}
	return plans
}

// TestApart shows what Step-3's paper says of attention apart from experts: on 16 machines, with a model of many experts, it gives more than replicas, which hold few texts beside all experts; on
// four it does not.
func TestApart(t *testing.T) {
	w := work(t, "step-3")
	w.WeightBytes, w.CacheBytes, w.Depth, w.Target = 1, 1, 4096, .05
	for _, count := range []int{2, 8} {
		fast, _ := Machine{Bandwidth: 3350e9, Rate: 990e12, Memory: 640e9, Network: 50e9, Latency: 10e-6, Count: count}.complete()
		slow, _ := Machine{Bandwidth: 4000e9, Rate: 148e12, Memory: 640e9, Network: 50e9, Latency: 10e-6, Count: count}.complete()
		plans, err := Plans(w, []Machine{fast, slow})
		if err != nil {
			t.Fatal(err)
		}
		apart, copies := find(t, plans, Split), find(t, plans, Replicas)
		if apart.Fault != "" || copies.Fault != "" || (apart.Rate > copies.Rate) != (count == 8) {
			t.Errorf("apart %+v, replicas %+v", apart, copies)
		}
	}
}

// FuzzRead reads hostile machines: those that are taken give plans that are numbers.
func FuzzRead(f *testing.F) {
	f.Add(`{"bandwidth":2e10,"multiply_adds":5e10,"read_share":0.8,"count":3}`)
	f.Add(`{"bandwidth":1e-300,"multiply_adds":1e18,"memory":1,"latency":1e18}`)
	f.Add(`{"bandwidth":`)
	s, err := Named("step-3")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		plans, err := Plans(Work{Shape: s, WeightBytes: 1, CacheBytes: 2, Depth: 100}, []Machine{m})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plans {
			if math.IsNaN(p.Rate) || math.IsInf(p.Rate, 0) || p.Rate < 0 {
				t.Errorf("%s: %+v", text, p)
			}
		}
	})
}

// TestRead reads what grove bench speed writes, and refuses what is no machine.
func TestRead(t *testing.T) {
	m, err := Read(strings.NewReader(`{"test":"tg1","seconds":1}` + "\n" + `{"bandwidth":2e10,"multiply_adds":5e10,"read_share":0.8,"rate_share":0}`))
	if err != nil || m.reads() != 1.6e10 || m.ops() != 5e10 || m.Count != 1 || m.Network != usualNetwork {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range []string{"", "{", "[]", `{"bandwidth":1}`, `{"bandwidth":-1,"multiply_adds":1}`, `{"bandwidth":1e99,"multiply_adds":1}`, `{"bandwidth":1,"multiply_adds":1,"count":1000}`} {
		if _, err := Read(strings.NewReader(bad)); err == nil {
			t.Errorf("%s is taken for a machine", bad)
		}
	}
	if _, err := Plans(work(t, "8b"), nil); err == nil {
		t.Error("a plan without machines")
	}
}
