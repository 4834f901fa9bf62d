package modeltest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/compute"
	"grove/internal/compute/rotary"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// grid returns n numbers from -limit to limit that every machine makes alike, in random order of size.
func grid(seed uint64, n int, limit float32) []float32 {
	rng := rand.New(rand.NewPCG(seed, 9))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.IntN(1<<24)-1<<23) / (1 << 23) * limit
	}
	return x
}

// lengths are about the borders of blocks, of 32 lanes and of the vocabulary's 4096.
var lengths = []int{1, 31, 32, 33, 2048, 2049, 4095, 4096, 4097, 6000, 8192, 8193, 20000}

// frozenKernels are the functions of package kernel that models reach only in a part of their range.
func frozenKernels() []frozen {
	ninf := float32(math.Inf(-1))
	masked := func(n int) []float32 {
		x := grid(3, n, 30)
		for i := range x {
			if i%7 == 0 && i > 0 || i/4096 == 1 {
				x[i] = ninf
			}
		}
		return x
	}
	// Of one large value and many small ones the logarithm is small: it shows the last bits of the sum.
	steep := func(n int) []float32 {
		x := grid(10, n, 3)
		for i := range x {
			x[i] -= 10
		}
		x[n/3] = 0
		return x
	}
	return []frozen{
		{name: "kernel-exp-log", compute: func(_ *testing.T, _, out *digest) {
			var y []float32
			for _, x := range grid(1, 4000, 100) {
				y = append(y, kernel.Exp32(x), kernel.Log32(max(x, -x)))
				out.float64s(kernel.Exp64(float64(x)), kernel.Log64(float64(max(x, -x))+0x1p-40), kernel.Pow64(1e4, float64(x)/100))
				sin, cos := kernel.SinCos64(float64(x) * 1000)
				out.float64s(sin, cos)
			}
			out.floats(y)
		}},
		{name: "kernel-log-sum-exp", compute: func(_ *testing.T, _, out *digest) {
			for _, n := range lengths {
				for _, x := range [][]float32{grid(2, n, 20), grid(2, n, 0.01), masked(n), steep(n)} {
					top, lse, _ := kernel.LogSumExp(x)
					out.floats([]float32{top, lse})
					out.ints(kernel.ArgMax(x))
				}
			}
		}},
		{name: "kernel-gumbel-max", compute: func(_ *testing.T, _, out *digest) {
			for _, n := range lengths {
				for i := range uint32(8) {
					id, top, lse, _ := kernel.GumbelMax(masked(n), 1.25, kernel.MakeKey(uint64(n), i%3, i, 0))
					out.ints(id)
					out.floats([]float32{top, lse})
				}
			}
		}},
		{name: "kernel-noise", compute: func(_ *testing.T, _, out *digest) {
			for i := range uint32(200) {
				key := kernel.MakeKey(uint64(i)*0x9e3779b97f4a7c15, i%5, i*i, i%3)
				out.ints(int(key.A), int(key.B))
				for id := range uint32(40) {
					out.floats([]float32{kernel.Noise(key, id*id)})
					out.float64s(kernel.Uniform(key, id))
				}
			}
		}},
		{name: "kernel-softmax", compute: func(_ *testing.T, _, out *digest) {
			for _, cap := range []float32{0, 5} {
				s, m, sum := grid(4, 3*kernel.PageSlots, 40), make([]float32, 3), make([]float32, 3)
				for i := range 20 {
					s[i] = ninf
				}
				kernel.SoftmaxBlocks(s, 0.37, cap, m, sum, nil)
				out.floats(s)
				out.floats(m)
				out.floats(sum)
			}
		}},
		{name: "kernel-quantised-activations", compute: func(_ *testing.T, _, out *digest) {
			x := kernel.Rows{N: 6, K: 256, F: grid(5, 6*256, 8), Q: make([]int8, 6*256), D: make([]float32, 6*8), Sum: make([]int32, 6*8)}
			for i, limit := range []float32{1, 1e-30, 1e30, 1e-42, 0, float32(math.Inf(1))} {
				for j := range 256 {
					x.F[i*256+j] *= limit // by infinity: zeros become NaN
				}
			}
			x.Quantize()
			for i := range x.Q {
				out.ints(int(x.Q[i]))
			}
			for i := range x.Sum {
				out.ints(int(x.Sum[i]))
			}
			out.floats(x.D)
		}},
		{name: "kernel-vectors", compute: func(_ *testing.T, _, out *digest) {
			for _, n := range []int{1, 31, 32, 33, 100, 256, 1000} {
				x, w, b, dst := grid(6, n, 12), grid(7, n, 2), grid(8, n, 1), make([]float32, n)
				for _, f := range []func(){
					func() { kernel.RMSNorm(dst, x, w, 1e-5) },
					func() { kernel.LayerNorm(dst, x, w, b, 1e-5) },
					func() { kernel.SiluMul(dst, x, w) },
					func() { kernel.GeluMul(dst, x, w) },
					func() { kernel.Gelu(dst, x) },
					func() { kernel.ClampedSwiGLU(dst, x, w) },
					func() { copy(dst, x); kernel.Softcap(dst, 7) },
					func() { kernel.AddScaled(dst, 0.3, w) },
				} {
					f()
					out.floats(dst)
				}
			}
		}},
	}
}

// frozenRopes are the rotations, those that no random model has among them.
func frozenRopes() (all []frozen) {
	factors := []float32{1, 1.5, 2, 3, 5, 8, 13, 21, 1, 1, 1, 1, 40, 40, 40, 40}
	for name, c := range map[string]rotary.Config{
		"plain":    {},
		"neox":     {NeoX: true},
		"factors":  {Factors: factors},
		"linear":   {Scaling: rotary.Linear, Factor: 4},
		"yarn":     {Scaling: rotary.YaRN, Factor: 4, Context: 128, NeoX: true},
		"llama3":   {Scaling: rotary.Llama3, Factor: 8, Context: 128, LowFreqFactor: 1, HighFreqFactor: 4},
		"longrope": {Scaling: rotary.Long, Factor: 4, Context: 128, Factors: factors},
	} {
		all = append(all, frozen{name: "rope-" + name, compute: func(t *testing.T, _, out *digest) {
			c.Dims, c.Base = 32, 10000
			rope, err := rotary.New(c)
			if err != nil {
				t.Fatal(err)
			}
			r := New(t, Spec{}.File(t), Config{})
			s := r.NewSeq("")
			for i := range 80 {
				r.Add(forest.Row{Seq: s, Vector: grid(uint64(i), r.Model.Info().Width, 1), Shift: i * i * i, Want: forest.Want{State: true}})
			}
			err = r.Exec.Run(context.Background(), func(x *compute.Exec) {
				x.Embed(new(compute.Matrix), 1)
				stream, _ := x.Enter(0)
				x.Leave(x.Rope(stream, 2, rope))
				states, _ := x.Outputs()
				x.States(states)
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 80 {
				out.floats(r.Exec.Result(i).State)
			}
		}})
	}
	return all
}

// frozenDraws are draws and their probabilities with each way of truncation, order and penalty.
func frozenDraws() (all []frozen) {
	for name, s := range drawSettings() {
		all = append(all, frozen{name: "draws-" + name, compute: func(t *testing.T, _, out *digest) {
			for _, vocab := range []int{50, 9000} {
				freezeDraws(t, s, vocab, out)
			}
		}})
	}
	return all
}

func drawSettings() map[string]sample.Settings {
	all := map[string]sample.Settings{}
	for _, order := range []sample.Order{sample.TruncateFirst, sample.TemperFirst} {
		for name, p := range map[string]sample.Params{
			"default":     sample.DefaultParams(),
			"greedy":      {},
			"temperature": {Temperature: 0.7},
			"top-k":       {Temperature: 1.3, TopK: 7},
			"top-p":       {Temperature: 1.3, TopP: 0.9},
			"min-p":       {Temperature: 1.3, MinP: 0.1},
			"typical":     {Temperature: 1.3, TypicalP: 0.6, MinKeep: 3},
			"sigma":       {Temperature: 1.3, TopNSigma: 1.5},
			"xtc":         {Temperature: 1.3, XTC: sample.XTC{Probability: 0.5, Threshold: 0.05}},
			"dynamic":     {Temperature: 1, DynamicTemperature: sample.DynamicTemperature{Range: 0.7, Exponent: 1.2}},
			"mirostat-1":  {Temperature: 1.3, Mirostat: sample.Mirostat{Version: 1, Tau: 4, Eta: 0.2}},
			"mirostat-2":  {Temperature: 1.3, Mirostat: sample.Mirostat{Version: 2, Tau: 4, Eta: 0.2}},
		} {
			p.Order, p.Seed = order, 1234567890123456789
			all[fmt.Sprintf("%s-%v", name, order)] = sample.Settings{Params: p, SampleIndex: 2}
		}
	}
	ends := []token.ID{3, 9}
	for name, p := range map[string]sample.Penalties{
		"bias":           {Bias: []sample.Bias{{ID: 4, Add: 2.5}, {ID: 8, Add: float32(math.Inf(-1))}}},
		"repeat":         {Repeat: 1.3, RepeatWindow: 5},
		"counts":         {Presence: 0.7, Frequency: 0.3, Window: 6},
		"minimum-length": {MinTokens: 12, Ends: ends},
		"dry":            {DRY: sample.DRY{Multiplier: 0.8, Base: 1.75, AllowedLength: 1, Window: -1, Breakers: [][]token.ID{{2}}}},
	} {
		all["penalty-"+name] = sample.Settings{Params: sample.Params{Temperature: 0.9, Seed: 42}, Penalties: p}
	}
	return all
}

// freezeDraws draws a text from steep and flat logits, among them equal ones, by turns, with its probabilities now and
// then and with what acceptance rules draw.
func freezeDraws(t *testing.T, s sample.Settings, vocab int, out *digest) {
	c, err := sample.NewChain(s, vocab)
	if err != nil {
		t.Fatal(err)
	}
	c.Begin([]token.ID{1, 2, 3, 1, 2})
	state, p := sample.State(0), make([]float64, vocab)
	for i := range 24 {
		logits := grid(uint64(i), vocab, []float32{2, 9, 0.5}[i%3])
		for j := range 10 {
			logits[10+j] = logits[11] // equal logits
		}
		drawn, err := c.Draw(state, logits, 5+i)
		if err != nil {
			t.Fatal(err)
		}
		out.ints(int(drawn.ID))
		out.floats([]float32{drawn.Logprob})
		if i%8 == 0 {
			if err := c.Probs(p, state, logits, 5+i); err != nil {
				t.Fatal(err)
			}
			out.float64s(p...)
			for use := range sample.Purpose(3) {
				out.ints(int(c.Pick(p, 5+i, 1+use)))
				out.float64s(c.Number(5+i, 1+use), c.Noise(5+i, 1+use, drawn.ID))
			}
		}
		state = c.Next(state, drawn.ID)
		if i%4 == 3 {
			c.Keep(state)
			state = 0
		}
	}
}
