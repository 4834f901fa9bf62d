package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// eachImpl runs a test once per implementation of this machine.
func eachImpl(t *testing.T, f func(t *testing.T)) {
	for _, name := range Implementations() {
		t.Run(name, func(t *testing.T) {
			defer Use(Implementation())
			Use(name)
			f(t)
		})
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// kinds are the ways to fill a vector of floats.
var kinds = map[string]func(rnd *rand.Rand) float32{
	"normal": func(rnd *rand.Rand) float32 { return float32(rnd.NormFloat64() * 4) },
	"wide":   func(rnd *rand.Rand) float32 { return float32(rnd.NormFloat64() * math.Exp(rnd.Float64()*12-4)) },
	"coarse": func(rnd *rand.Rand) float32 { return float32(rnd.IntN(5) - 2) },
	"wild": func(rnd *rand.Rand) float32 {
		switch rnd.IntN(8) {
		case 0:
			return math.Float32frombits(rnd.Uint32())
		case 1:
			return []float32{inf, negInf, float32(math.NaN()), 0, float32(math.Copysign(0, -1)), 1e-42}[rnd.IntN(6)]
		}
		return float32(rnd.NormFloat64() * 30)
	},
}

// vectors returns some vectors of n values, each at an offset within a larger array whose rest holds
// sentinels, and those arrays.
func vectors(rnd *rand.Rand, kind string, count, n, offset int) (v, arrays [][]float32) {
	for range count {
		a := make([]float32, n+offset+40)
		for i := range a {
			a[i] = -12345.5
		}
		x := a[offset : offset+n : offset+n]
		for i := range x {
			x[i] = kinds[kind](rnd)
		}
		v, arrays = append(v, x), append(arrays, a)
	}
	return v, arrays
}

// equalBits says where two slices differ, if they do. All NaNs are equal.
func equalBits(want, got []float32) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	for i, w := range want {
		if g := got[i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
			return fmt.Errorf("value %d of %d is %v (%#x), want %v (%#x)", i, len(want), g, math.Float32bits(g), w, math.Float32bits(w))
		}
	}
	return nil
}

// compare runs f once per implementation on equal vectors. What f returns, and what it leaves in the
// arrays, must have the bits of the portable run.
func compare(t *testing.T, count, n, offset int, f func(v [][]float32) []float32) {
	t.Helper()
	defer Use(Implementation())
	for kind := range kinds {
		seed := uint64(n*100 + offset)
		run := func(impl string) (result []float32, arrays [][]float32) {
			Use(impl)
			v, arrays := vectors(newRand(seed), kind, count, n, offset)
			return f(v), arrays
		}
		want, wantArrays := run(portable)
		for _, impl := range Implementations() {
			if impl == portable {
				continue
			}
			got, arrays := run(impl)
			if err := equalBits(want, got); err != nil {
				t.Fatalf("%s, %s, length %d, offset %d, seed %d: result: %v", impl, kind, n, offset, seed, err)
			}
			for i := range arrays {
				if err := equalBits(wantArrays[i], arrays[i]); err != nil {
					t.Fatalf("%s, %s, length %d, offset %d, seed %d: vector %d: %v", impl, kind, n, offset, seed, i, err)
				}
			}
		}
	}
}

// eachLength calls f for all lengths and unaligned offsets that a kernel may treat differently.
func eachLength(f func(n, offset int)) {
	for n := range 258 {
		f(n, n%9)
	}
	for offset := range 9 {
		for _, n := range []int{1, 7, 8, 31, 32, 33, 64, 100} {
			f(n, offset)
		}
	}
}

func none(f func(v [][]float32)) func(v [][]float32) []float32 {
	return func(v [][]float32) []float32 { f(v); return nil }
}

// TestVectorBits checks that every implementation equals the portable one.
func TestVectorBits(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(v [][]float32) []float32
	}{
		{"RMSNorm", none(func(v [][]float32) { RMSNorm(v[0], v[1], v[2], 1e-5) })},
		{"RMSNorm in place", none(func(v [][]float32) { RMSNorm(v[0], v[0], v[2], 1e-6) })},
		{"LayerNorm", none(func(v [][]float32) { LayerNorm(v[0], v[1], v[2], v[2], 1e-5) })},
		{"LayerNorm in place", none(func(v [][]float32) { LayerNorm(v[0], v[0], v[1], nil, 1e-6) })},
		{"Add", none(func(v [][]float32) { Add(v[0], v[1]) })},
		{"Scale", none(func(v [][]float32) { Scale(v[0], 0.3) })},
		{"AddScaled", none(func(v [][]float32) { AddScaled(v[0], -1.7, v[1]) })},
		{"SiluMul", none(func(v [][]float32) { SiluMul(v[0], v[1], v[2]) })},
		{"SiluMul in place", none(func(v [][]float32) { SiluMul(v[0], v[0], v[1]) })},
		{"ClampedSwiGLU", none(func(v [][]float32) { ClampedSwiGLU(v[0], v[1], v[2]) })},
		{"ClampedSwiGLU in place", none(func(v [][]float32) { ClampedSwiGLU(v[1], v[0], v[1]) })},
		{"GeluMul", none(func(v [][]float32) { GeluMul(v[0], v[1], v[2]) })},
		{"GeluMul in place", none(func(v [][]float32) { GeluMul(v[1], v[0], v[1]) })},
		{"Gelu", none(func(v [][]float32) { Gelu(v[0], v[1]) })},
		{"Gelu in place", none(func(v [][]float32) { Gelu(v[1], v[1]) })},
		{"Relu", none(func(v [][]float32) { Relu(v[0], v[1]) })},
		{"ReluSquared", none(func(v [][]float32) { ReluSquared(v[0], v[1]) })},
		{"ReluSquared in place", none(func(v [][]float32) { ReluSquared(v[1], v[1]) })},
		{"XIELU", none(func(v [][]float32) { XIELU{1.3, 1.1, 0.5, -1e-6}.Forward(v[0], v[1]) })},
		{"XIELU in place", none(func(v [][]float32) { XIELU{1.3, 1.1, 0.5, -1e-6}.Forward(v[1], v[1]) })},
		{"GeluErf", none(func(v [][]float32) { GeluErf(v[0], v[1]) })},
		{"GeluErf in place", none(func(v [][]float32) { GeluErf(v[1], v[1]) })},
		{"GeluErfMul", none(func(v [][]float32) { GeluErfMul(v[0], v[1], v[2]) })},
		{"GeluErfMul in place", none(func(v [][]float32) { GeluErfMul(v[1], v[0], v[1]) })},
		{"Mul", none(func(v [][]float32) { Mul(v[0], v[1]) })},
		{"Silu", none(func(v [][]float32) { Silu(v[0], v[1]) })},
		{"Silu in place", none(func(v [][]float32) { Silu(v[1], v[1]) })},
		{"Sigmoid", none(func(v [][]float32) { Sigmoid(v[0], v[1]) })},
		{"Softplus", none(func(v [][]float32) { Softplus(v[0], v[1]) })},
		{"Softplus in place", none(func(v [][]float32) { Softplus(v[1], v[1]) })},
		{"GaussTopK", none(func(v [][]float32) { GaussTopK(v[0], v[1], 0.7) })},
		{"GaussTopK in place", none(func(v [][]float32) { GaussTopK(v[1], v[1], 0.7) })},
		{"RootMeanSquare", none(func(v [][]float32) { Scale(v[0], RootMeanSquare(v[1], 1e-6)) })},
		{"UnitNorm", none(func(v [][]float32) { UnitNorm(v[0], v[1], 1e-6) })},
		{"Softcap", none(func(v [][]float32) { Softcap(v[0], 30) })},
		{"Finish", none(func(v [][]float32) { Finish(v[0], v[1], 3) })},
		{"MaxAbsFinite", func(v [][]float32) []float32 {
			m, finite := MaxAbsFinite(v[0])
			if finite != (m < inf) {
				t.Errorf("MaxAbsFinite: %v, %v", m, finite)
			}
			return []float32{m}
		}},
		{"sum", func(v [][]float32) []float32 { return []float32{sum(v[0])} }},
		{"sumSquares", func(v [][]float32) []float32 { return []float32{sumSquares(v[0])} }},
		{"maxOf", func(v [][]float32) []float32 { return []float32{maxOf(v[0])} }},
		{"sumExp", func(v [][]float32) []float32 {
			m := maxOf(v[0])
			if m == negInf {
				m = 0
			}
			return []float32{sumExp(v[0], m)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachLength(func(n, offset int) { compare(t, 3, n, offset, c.f) })
		})
	}
}

func TestRopeBits(t *testing.T) {
	for _, size := range []int{2, 8, 10, 16, 32, 64, 80, 96, 128, 256} {
		for _, rot := range []int{0, 2, size / 2 &^ 1, size} {
			for _, heads := range []int{1, 3} {
				for _, neox := range []bool{false, true} {
					compare(t, 3, heads*size, size%7, none(func(v [][]float32) {
						Rope(v[0], heads, size, rot, v[1][:rot/2], v[2][:rot/2], neox)
					}))
				}
			}
		}
	}
}

// TestExpBits compares the vector exponential with Exp32 all over the float32 range: with an up of
// one and a gate of -x, SiluMul returns -x / (1 + Exp32(x)).
func TestExpBits(t *testing.T) {
	defer Use(Implementation())
	var gate, up []float32
	everyFloat32(func(x float32) { gate, up = append(gate, x), append(up, 1) })
	for x := float32(-89); x < 89; x += 0.0011 {
		gate, up = append(gate, x), append(up, 1)
	}
	want := make([]float32, len(gate))
	siluMulGo(want, gate, up)
	for _, impl := range Implementations() {
		Use(impl)
		got := make([]float32, len(gate))
		SiluMul(got, gate, up)
		if err := equalBits(want, got); err != nil {
			t.Errorf("%s: %v", impl, err)
		}
	}
}

// TestVectorValues compares with float64 arithmetic.
func TestVectorValues(t *testing.T) {
	const n = 200
	near := func(name string, got float32, want, limit float64) {
		t.Helper()
		if !(math.Abs(float64(got)-want) <= limit) {
			t.Fatalf("%s = %v, want %v", name, got, want)
		}
	}
	v, _ := vectors(newRand(1), "normal", 3, n, 0)
	dst, x, w := v[0], v[1], v[2]
	ss := 0.0
	for _, v := range x {
		ss += float64(v) * float64(v)
	}
	RMSNorm(dst, x, w, 1e-5)
	for i, v := range x {
		want := float64(v) / math.Sqrt(ss/n+1e-5) * float64(w[i])
		near("RMSNorm", dst[i], want, 3e-7*math.Abs(want))
	}
	var total, squares float64
	for _, v := range x {
		total += float64(v)
	}
	for _, v := range x {
		squares += (float64(v) - total/n) * (float64(v) - total/n)
	}
	LayerNorm(dst, x, w, x, 1e-5)
	for i, v := range x {
		want := (float64(v)-total/n)/math.Sqrt(squares/n+1e-5)*float64(w[i]) + float64(v)
		near("LayerNorm", dst[i], want, 1e-5)
	}
	Gelu(dst, x)
	for i, v := range x {
		g := float64(v)
		near("Gelu", dst[i], g/2*(1+math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g))), 1e-6)
	}
	Relu(dst, x)
	for i, v := range x {
		near("Relu", dst[i], math.Max(0, float64(v)), 0)
	}
	ReluSquared(dst, x)
	for i, v := range x {
		want := math.Pow(math.Max(0, float64(v)), 2)
		near("ReluSquared", dst[i], want, 1e-7*want)
	}
	XIELU{1.3, 1.1, 0.5, -1e-6}.Forward(dst, x)
	for i, v := range x {
		g := float64(v)
		want := 1.3*g*g + 0.5*g
		if g <= 0 {
			want = 1.1*(math.Expm1(g)-g) + 0.5*g
		}
		near("XIELU", dst[i], want, 2e-7*(1+math.Abs(g)+math.Abs(want)))
	}
	copy(dst, x)
	Softcap(dst, 3)
	for i, v := range x {
		near("Softcap", dst[i], 3*math.Tanh(float64(v)/3), 1e-6)
	}
	SiluMul(dst, x, w)
	for i, v := range x {
		want := float64(v) / (1 + math.Exp(-float64(v))) * float64(w[i])
		near("SiluMul", dst[i], want, 3e-7*math.Abs(want))
	}
	GeluMul(dst, x, w)
	for i, v := range x {
		g := float64(v)
		z := math.Sqrt(2/math.Pi) * (g + 0.044715*g*g*g)
		want := g / (1 + math.Exp(-2*z)) * float64(w[i]) // g/2 (1 + tanh z), without cancellation
		near("GeluMul", dst[i], want, 3e-7*(1+math.Abs(z))*math.Abs(want)+1e-37)
	}
}

// TestActivationInfinities checks that an infinity, which max(x, 0) would hide, leaves an activation as no finite value.
func TestActivationInfinities(t *testing.T) {
	for name, f := range map[string]func(dst, x []float32){"Relu": Relu, "ReluSquared": ReluSquared, "XIELU": XIELU{1.3, 1.1, 0.5, -1e-6}.Forward} {
		x := []float32{inf, negInf, float32(math.NaN())}
		f(x, x)
		for i, v := range x {
			if _, finite := MaxAbsFinite(x[i : i+1]); finite {
				t.Errorf("%s: value %d is %v", name, i, v)
			}
		}
	}
}

func TestClampedSwiGLUValues(t *testing.T) {
	v, _ := vectors(newRand(1), "normal", 3, 200, 0)
	dst, gate, up := v[0], v[1], v[2]
	gate[0], gate[1], up[2], up[3] = 9, -9, 8, -8
	ClampedSwiGLU(dst, gate, up)
	for i, v := range gate {
		g, u := math.Min(float64(v), 7), math.Max(-7, math.Min(float64(up[i]), 7))
		want := g / (1 + math.Exp(-1.702*g)) * (u + 1)
		if !(math.Abs(float64(dst[i])-want) <= 1e-6*(math.Abs(g)+math.Abs(want))) {
			t.Errorf("gate %v, up %v: %v, want %v", v, up[i], dst[i], want)
		}
	}
}

func TestRopeValues(t *testing.T) {
	for _, neox := range []bool{false, true} {
		x := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
		cos, sin := []float32{0, 1}, []float32{1, 0} // a quarter turn, none
		Rope(x, 2, 5, 4, cos, sin, neox)
		want := []float32{-2, 1, 3, 4, 5, -7, 6, 8, 9, 10}
		if neox {
			want = []float32{-3, 2, 1, 4, 5, -8, 7, 6, 9, 10}
		}
		if err := equalBits(want, x); err != nil {
			t.Errorf("neox %v: %v", neox, err)
		}
	}
}

func TestMaxAbsFinite(t *testing.T) {
	for _, c := range []struct {
		x      []float32
		max    float32
		finite bool
	}{
		{nil, 0, true},
		{[]float32{-3, 2}, 3, true},
		{[]float32{1, negInf}, inf, false},
		{[]float32{float32(math.NaN()), 1}, float32(math.NaN()), false},
	} {
		m, finite := MaxAbsFinite(c.x)
		if finite != c.finite || finite && m != c.max {
			t.Errorf("MaxAbsFinite(%v) = %v, %v", c.x, m, finite)
		}
	}
}

// TestVectorPanics checks that lengths which do not fit panic instead of reaching the assembly.
func TestVectorPanics(t *testing.T) {
	a, b := make([]float32, 16), make([]float32, 15)
	for name, f := range map[string]func(){
		"RMSNorm":       func() { RMSNorm(a, b, a, 0) },
		"LayerNorm":     func() { LayerNorm(a, a, a, b, 0) },
		"Gelu":          func() { Gelu(a, b) },
		"ReluSquared":   func() { ReluSquared(a, b) },
		"XIELU":         func() { XIELU{}.Forward(a, b) },
		"Add":           func() { Add(a, b) },
		"AddScaled":     func() { AddScaled(b, 1, a) },
		"SiluMul":       func() { SiluMul(a, a, b) },
		"GeluErf":       func() { GeluErf(a, b) },
		"GeluErfMul":    func() { GeluErfMul(a, b, a) },
		"GeluMul":       func() { GeluMul(a, b, a) },
		"ClampedSwiGLU": func() { ClampedSwiGLU(a, b, a) },
		"Rope length":   func() { Rope(a, 2, 7, 4, a[:2], a[:2], true) },
		"Rope tables":   func() { Rope(a, 2, 8, 4, a[:3], a[:2], true) },
		"Rope odd":      func() { Rope(a, 2, 8, 5, a[:2], a[:2], true) },
		"Rope size":     func() { Rope(a, 2, 8, 10, a[:5], a[:5], true) },
		"SoftmaxBlocks": func() { SoftmaxBlocks(make([]float32, 64), 1, 0, a[:2], b[:2], nil) },
		"softmax sums":  func() { SoftmaxBlocks(make([]float32, 64), 1, 0, a[:1], b[:2], nil) },
		"Merge":         func() { attended(2, 3).Merge(attended(2, 4)) },
		"merge sums":    func() { attended(2, 3).Merge(attended(3, 2)) },
		"Finish":        func() { Finish(a, b, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func TestVectorAllocations(t *testing.T) {
	x, y, z := make([]float32, 100), make([]float32, 100), make([]float32, 100)
	if n := testing.AllocsPerRun(10, func() {
		RMSNorm(x, y, z, 1)
		LayerNorm(x, y, z, y, 1)
		Gelu(x, y)
		Softcap(x, 2)
		SiluMul(x, y, z)
		Rope(x, 1, 100, 64, y[:32], z[:32], true)
		MaxAbsFinite(x)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
