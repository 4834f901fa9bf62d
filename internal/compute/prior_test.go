package compute

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kernel/matmul"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

const priorWidth, tokens = 64, 500

// table is a table of random embeddings, and their values.
func table(t *testing.T, typ tensor.Type) (*weight.Matrix, []float32) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	values := make([]float32, tokens*priorWidth)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	n, _ := typ.RowBytes(priorWidth)
	v := tensor.View{Name: "m", Type: typ, Shape: []int{tokens, priorWidth}, Data: make([]byte, n*tokens)}
	if err := tensor.Pack(typ, v.Data, values); err != nil {
		t.Fatal(err)
	}
	if err := tensor.Unpack(typ, values, v.Data); err != nil {
		t.Fatal(err)
	}
	pool := par.New(1)
	defer pool.Close()
	m, err := weight.New(pool, nil).Matrix(v)
	if err != nil {
		t.Fatal(err)
	}
	return m, values
}

// priorRun computes the expected embeddings of priors with a number of threads.
func priorRun(m *weight.Matrix, priors []forest.Prior, threads int) [][]float32 {
	pool := par.New(threads)
	defer pool.Close()
	var task PriorTask
	out := make([][]float32, len(priors))
	for range 2 { // buffers are used again
		task.Reset()
		for i := range priors {
			out[i] = make([]float32, priorWidth)
			task.Add(&priors[i], out[i])
		}
		task.Run(pool, m, 3, make([]matmul.Scratch, threads))
	}
	return out
}

// priorsOf makes distributions, from nearly even ones to such as have one token alone.
func priorsOf(n int) (priors []forest.Prior) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		p := forest.Prior{Logits: make([]float32, tokens), Temperature: 0.4 + 0.1*float32(i%5)}
		for id := range p.Logits {
			p.Logits[id] = float32(math.Pow(3, float64(i%6)-2) * rng.NormFloat64())
		}
		priors = append(priors, p)
	}
	return priors
}

// TestExpected compares with sums in float64 over all tokens, and expects the bits of one thread from several, and of a distribution alone among others.
func TestExpected(t *testing.T) {
	priors := priorsOf(21)
	for _, typ := range []tensor.Type{tensor.F32, tensor.Q8_0} {
		m, values := table(t, typ)
		got := priorRun(m, priors, 1)
		for i, p := range priors {
			top, sum := math.Inf(-1), 0.0
			for _, l := range p.Logits {
				top = math.Max(top, float64(l))
			}
			want := make([]float64, priorWidth)
			for id, l := range p.Logits {
				w := math.Exp((float64(l) - top) / float64(p.Temperature))
				sum += w
				for k := range want {
					want[k] += w * float64(values[id*priorWidth+k])
				}
			}
			for k := range want {
				if x := 3 * want[k] / sum; math.Abs(x-float64(got[i][k])) > 1e-5 {
					t.Fatalf("%v: distribution %d, value %d: %g, want %g", typ, i, k, got[i][k], x)
				}
			}
			if diff := cmp.Diff(got[i], priorRun(m, priors[i:i+1], 2)[0]); diff != "" {
				t.Errorf("%v: distribution %d alone: %s", typ, i, diff)
			}
		}
		if diff := cmp.Diff(got, priorRun(m, priors, 3)); diff != "" {
			t.Errorf("%v: 3 threads: %s", typ, diff)
		}
	}
}

// TestWeighted: a distribution with a weight adds to what is there, beside others that write.
func TestWeighted(t *testing.T) {
	priors := priorsOf(5)
	m, _ := table(t, tensor.F32)
	expected := priorRun(m, priors, 1)
	pool := par.New(2)
	defer pool.Close()
	var task PriorTask
	out := make([][]float32, len(priors))
	for i := range priors {
		priors[i].Weight = []float32{0, 0.25, 2}[i%3]
		out[i] = slices.Repeat([]float32{float32(i)}, priorWidth)
		task.Add(&priors[i], out[i])
	}
	task.Run(pool, m, 3, make([]matmul.Scratch, 2))
	for i, weight := range []float32{0, 0.25, 2, 0, 0.25} {
		for k, x := range expected[i] {
			want := x
			if weight != 0 {
				want = float32(i) + weight*x
			}
			if math.Abs(float64(out[i][k]-want)) > 1e-5 {
				t.Fatalf("distribution %d, value %d: %g, want %g", i, k, out[i][k], want)
			}
		}
	}
}

// TestLeftOut: a token that cannot change the sum is left out, and one that can is not.
func TestLeftOut(t *testing.T) {
	p := forest.Prior{Logits: make([]float32, tokens), Temperature: 0.5}
	for id := range p.Logits {
		p.Logits[id] = -100
	}
	p.Logits[7] = 0
	r := row{logits: p.Logits, inverse: 2}
	r.begin()
	if border := -float32(25*math.Log(2)+math.Log(tokens)) / 2; math.Abs(float64(r.least-border)) > 1e-5 {
		t.Errorf("the least logit that counts is %g, want %g", r.least, border)
	}
	m, values := table(t, tensor.F32)
	for k, v := range priorRun(m, []forest.Prior{p}, 1)[0] {
		if v != 3*values[7*priorWidth+k] {
			t.Fatalf("value %d is %g, want that of token 7, %g", k, v, 3*values[7*priorWidth+k])
		}
	}
}

// TestNoAllocations: a set of a size that was computed before allocates nothing.
func TestNoAllocations(t *testing.T) {
	m, _ := table(t, tensor.F32)
	pool := par.New(2)
	defer pool.Close()
	var task PriorTask
	priors, dst, scratch := priorsOf(9), make([]float32, priorWidth), make([]matmul.Scratch, 2)
	if n := testing.AllocsPerRun(5, func() {
		task.Reset()
		for i := range priors {
			task.Add(&priors[i], dst[:priorWidth])
		}
		task.rows = task.rows[:1] // of those with one place alone
		task.Run(pool, m, 1, scratch)
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// BenchmarkExpected computes 64 expected embeddings of 1,024 values: of even distributions over 32,768 tokens, and of such as a trained model gives, of which
// few tokens count.
func BenchmarkExpected(b *testing.B) {
	const tokens, width, n = 1 << 15, 1 << 10, 64
	row, _ := tensor.Q8_0.RowBytes(width)
	v := tensor.View{Name: "m", Type: tensor.Q8_0, Shape: []int{tokens, width}, Data: make([]byte, row*tokens)}
	pool := par.New(1)
	defer pool.Close()
	m, err := weight.New(pool, nil).Matrix(v)
	if err != nil {
		b.Fatal(err)
	}
	for name, spread := range map[string]float64{"even": 1, "trained": 8} {
		b.Run(name, func(b *testing.B) {
			rng, dst := rand.New(rand.NewPCG(5, 6)), make([]float32, n*width)
			var task PriorTask
			counts, priors := 0, make([]forest.Prior, n)
			for i := range priors {
				priors[i] = forest.Prior{Logits: make([]float32, tokens), Temperature: 0.6}
				for id := range tokens {
					priors[i].Logits[id] = float32(spread * rng.NormFloat64())
				}
				priors[i].Logits[i] = float32(5.5 * spread)
			}
			for b.Loop() {
				task.Reset()
				for i := range priors {
					task.Add(&priors[i], dst[i*width:(i+1)*width])
				}
				task.Run(pool, m, 1, make([]matmul.Scratch, 1))
			}
			for i := range task.rows {
				for _, l := range task.rows[i].logits {
					if l >= task.rows[i].least {
						counts++
					}
				}
			}
			b.ReportMetric(float64(counts)/n/tokens, "counting")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(counts, 1))/width, "ns/mac")
		})
	}
}
