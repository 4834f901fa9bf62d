package scan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/kernel"
)

// values returns n values of magnitude scale, some of them 0.
func values(rnd *rand.Rand, n int, scale float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		if v[i] = float32(rnd.NormFloat64() * scale); i%37 == 5 {
			v[i] = 0
		}
	}
	return v
}

// between returns n values from lo to hi.
func between(rnd *rand.Rand, n int, lo, hi float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(lo + (hi-lo)*rnd.Float64())
	}
	return v
}

// A sample is a recurrence, its inputs and its outputs in float64, written from the papers' formulas.
type sample struct {
	name string
	op   Op
	in   []float32
	want []float64
}

const sampleRows = 11

// samples returns recurrences of usual, of ragged and of random sizes.
func samples(rnd *rand.Rand) (all []sample) {
	upTo := func(n int) int { return 1 + rnd.IntN(n) }
	odd := func() bool { return rnd.IntN(2) == 1 }
	for _, c := range []struct {
		channels, taps int
		bias, silu     bool
	}{{upTo(700), upTo(9), odd(), odd()}, {upTo(100), upTo(9), odd(), odd()}, {1, 2, false, false}, {7, 4, true, true}, {96, 3, false, false}, {1100, 4, true, true}, {600, 4, false, true}, {40, 9, true, true}, {33, 1, true, false}} {
		op := &Conv{Channels: c.channels, Taps: c.taps, Weight: values(rnd, c.taps*c.channels, 0.7), Silu: c.silu}
		if c.bias {
			op.Bias = values(rnd, c.channels, 1)
		}
		in := values(rnd, sampleRows*op.Record(), 1)
		all = append(all, sample{fmt.Sprintf("Conv %d taps, %d channels", c.taps, c.channels), op, in, convWant(op, in)})
	}
	for _, c := range []struct{ inner, n int }{{upTo(200), upTo(20)}, {1, 1}, {5, 16}, {64, 16}, {150, 16}, {88, 3}} {
		op := &Mamba1{Inner: c.inner, N: c.n, A: between(rnd, c.inner*c.n, -16, -0.5), D: values(rnd, c.inner, 1)}
		in := values(rnd, sampleRows*op.Record(), 1)
		for i := range sampleRows {
			copy(in[i*op.Record()+c.inner:][:c.inner], between(rnd, c.inner, 0.001, 0.4))
		}
		all = append(all, sample{fmt.Sprintf("Mamba1 %d channels, N %d", c.inner, c.n), op, in, mamba1Want(op, in)})
	}
	for _, c := range []struct{ heads, size, n, groups int }{{2, upTo(200), upTo(40), 2}, {3, upTo(64), upTo(40), 1}, {1, 1, 1, 1}, {4, 64, 128, 1}, {3, 128, 16, 3}, {6, 24, 9, 2}, {2, 100, 7, 1}} {
		op := &Mamba2{Heads: c.heads, HeadSize: c.size, N: c.n, Groups: c.groups, A: between(rnd, c.heads, -8, -0.1), D: values(rnd, c.heads, 1)}
		in := values(rnd, sampleRows*op.Record(), 0.5)
		for i := range sampleRows {
			row := in[i*op.Record():][:op.Record()]
			copy(row[len(row)-c.heads:], between(rnd, c.heads, 0.001, 0.4))
		}
		all = append(all, sample{fmt.Sprintf("Mamba2 %d heads of %d, N %d", c.heads, c.size, c.n), op, in, mamba2Want(op, in)})
	}
	for _, c := range []Delta{
		{6, 3, upTo(140), upTo(200), odd(), odd()}, {2, 1, upTo(70), upTo(64), odd(), odd()}, {1, 1, 1, 1, false, false}, {4, 2, 128, 128, false, false}, {4, 2, 64, 64, false, true}, {3, 3, 16, 48, true, false},
		{2, 1, 128, 64, true, false}, {2, 2, 20, 37, false, false}, {2, 2, 300, 8, true, false}, {2, 2, 9, 80, true, true},
	} {
		op := &c
		in := values(rnd, sampleRows*op.Record(), 1)
		for i := range sampleRows {
			row := in[i*op.Record():][:op.Record()]
			for h := range 2 * c.KeyHeads {
				kernel.UnitNorm(row[h*c.KeySize:][:c.KeySize], row[h*c.KeySize:][:c.KeySize], 1e-6)
			}
			g := row[len(row)-c.Heads-op.decays():]
			copy(g, between(rnd, op.decays(), -3, 0))
			copy(g[op.decays():], between(rnd, c.Heads, 0, 1))
		}
		all = append(all, sample{fmt.Sprintf("Delta %+v", c), op, in, deltaWant(op, in)})
	}
	return all
}

func convWant(c *Conv, in []float32) []float64 {
	want := make([]float64, sampleRows*c.Channels)
	for i := range want {
		row, ch := i/c.Channels, i%c.Channels
		var y float64
		if c.Bias != nil {
			y = float64(c.Bias[ch])
		}
		for j := range c.Taps {
			if from := row - (c.Taps - 1) + j; from >= 0 {
				y += float64(c.Weight[j*c.Channels+ch]) * float64(in[from*c.Channels+ch])
			}
		}
		if c.Silu {
			y /= 1 + math.Exp(-y)
		}
		want[i] = y
	}
	return want
}

func mamba1Want(m *Mamba1, in []float32) (want []float64) {
	h := make([]float64, m.Inner*m.N)
	for i := range sampleRows {
		row := in[i*m.Record():]
		for c := range m.Inner {
			x, dt := float64(row[c]), float64(row[m.Inner+c])
			y := float64(m.D[c]) * x
			for n := range m.N {
				b, o := float64(row[2*m.Inner+n]), float64(row[2*m.Inner+m.N+n])
				s := &h[c*m.N+n]
				*s = math.Exp(dt*float64(m.A[n*m.Inner+c]))**s + dt*x*b
				y += *s * o
			}
			want = append(want, y)
		}
	}
	return want
}

func mamba2Want(m *Mamba2, in []float32) (want []float64) {
	inner := m.Heads * m.HeadSize
	h := make([]float64, inner*m.N)
	for i := range sampleRows {
		row := in[i*m.Record():]
		for c := range inner {
			head := c / m.HeadSize
			group := head / (m.Heads / m.Groups)
			x, dt := float64(row[c]), float64(row[inner+2*m.Groups*m.N+head])
			y := float64(m.D[head]) * x
			for n := range m.N {
				b, o := float64(row[inner+group*m.N+n]), float64(row[inner+(m.Groups+group)*m.N+n])
				s := &h[c*m.N+n]
				*s = math.Exp(dt*float64(m.A[head]))**s + dt*x*b
				y += *s * o
			}
			want = append(want, y)
		}
	}
	return want
}

func deltaWant(d *Delta, in []float32) (want []float64) {
	s := make([]float64, d.Heads*d.KeySize*d.ValueSize)
	keys := d.KeyHeads * d.KeySize
	for i := range sampleRows {
		row := in[i*d.Record():]
		for h := range d.Heads {
			kh := h / (d.Heads / d.KeyHeads)
			if d.Tiled {
				kh = h % d.KeyHeads
			}
			for j := range d.ValueSize {
				column := func(r int) *float64 { return &s[(h*d.KeySize+r)*d.ValueSize+j] }
				var p, o float64
				for r := range d.KeySize {
					g := row[2*keys+d.Heads*d.ValueSize:][h:]
					if d.PerChannel {
						g = row[2*keys+d.Heads*d.ValueSize:][h*d.KeySize+r:]
					}
					*column(r) *= math.Exp(float64(g[0]))
					p += *column(r) * float64(row[keys+kh*d.KeySize+r])
				}
				u := float64(row[d.Record()-d.Heads+h]) * (float64(row[2*keys+h*d.ValueSize+j]) - p)
				for r := range d.KeySize {
					*column(r) += u * float64(row[keys+kh*d.KeySize+r])
					o += *column(r) * float64(row[kh*d.KeySize+r])
				}
				want = append(want, o)
			}
		}
	}
	return want
}

// advance runs a sample's rows in calls of the given numbers of rows and returns the outputs and the states. The rows lie apart, with
// values between them that must stay. With apart each call writes the state elsewhere, and must leave the one that it reads.
func advance(t *testing.T, s sample, cuts []int, wanted, apart bool) (out, states []float32) {
	t.Helper()
	const gap = 5
	record, width := s.op.Record(), s.op.Out()
	in, y := make([]float32, sampleRows*(record+gap)), make([]float32, sampleRows*(width+gap))
	for i := range y {
		y[i] = -7
	}
	for i := range sampleRows {
		copy(in[i*(record+gap):], s.in[i*record:][:record])
	}
	for part := range s.op.Parts() {
		state := make([]float32, s.op.Size()+1)
		state[s.op.Size()] = -7
		row := 0
		for _, n := range cuts {
			var o []float32
			if wanted {
				o = y[row*(width+gap):]
			}
			from := state
			if apart {
				state = slices.Repeat([]float32{-7}, len(from))
			}
			before := slices.Clone(from)
			s.op.Advance(part, state[:s.op.Size():s.op.Size()], from[:s.op.Size():s.op.Size()], in[row*(record+gap):], record+gap, n, o, width+gap)
			if apart {
				sameBits(t, s.name+", a state that is read", before, from)
			}
			row += n
		}
		if state[s.op.Size()] != -7 {
			t.Fatalf("%s: a value behind the state of part %d is written", s.name, part)
		}
		states = append(states, state...)
	}
	for i := range sampleRows {
		out = append(out, y[i*(width+gap):][:width]...)
		for _, v := range y[i*(width+gap)+width:][:gap] {
			if wanted && v != -7 {
				t.Fatalf("%s: a value behind row %d of the outputs is written", s.name, i)
			}
		}
	}
	return out, states
}

// TestValues compares with float64.
func TestValues(t *testing.T) {
	for _, s := range samples(rand.New(rand.NewPCG(1, 2))) {
		out, _ := advance(t, s, []int{sampleRows}, true, false)
		for i, want := range s.want {
			if !(math.Abs(float64(out[i])-want) <= 2e-6*(1+math.Abs(want))) {
				t.Fatalf("%s: output %d of row %d is %v, want %v", s.name, i%s.op.Out(), i/s.op.Out(), out[i], want)
			}
		}
	}
}

// TestBits: the outputs and states of all implementations are those of the portable one, however the rows are cut into calls, and
// whether states are advanced in place, and whether outputs are wanted or not.
func TestBits(t *testing.T) {
	defer kernel.Use(kernel.Implementation())
	for seed := range uint64(4) {
		for _, s := range samples(rand.New(rand.NewPCG(seed, 3))) {
			if seed == 3 { // values of which some are not finite
				for i := 0; i < len(s.in); i += 97 {
					s.in[i] = []float32{float32(math.Inf(1)), float32(math.NaN()), -1e38, 1e-42}[i%4]
				}
			}
			kernel.Use("portable")
			want, states := advance(t, s, []int{sampleRows}, true, false)
			for _, name := range kernel.Implementations() {
				kernel.Use(name)
				for i, cuts := range [][]int{{sampleRows}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {2, 3, 6}, {7, 1, 3}} {
					got, after := advance(t, s, cuts, true, i%2 == 1)
					sameBits(t, fmt.Sprintf("%s, %s, outputs of calls %v", s.name, name, cuts), want, got)
					sameBits(t, fmt.Sprintf("%s, %s, states of calls %v", s.name, name, cuts), states, after)
				}
				for _, apart := range []bool{false, true} {
					_, after := advance(t, s, []int{4, 7}, false, apart)
					sameBits(t, s.name+", "+name+", states without outputs", states, after)
				}
			}
		}
	}
}

// sameBits compares bits; all NaN are equal.
func sameBits(t *testing.T, what string, want, got []float32) {
	t.Helper()
	for i, w := range want {
		if g := got[i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
			t.Fatalf("%s: value %d is %v (%#x), want %v (%#x)", what, i, g, math.Float32bits(g), w, math.Float32bits(w))
		}
	}
}

// TestAllocs: an advance allocates nothing.
func TestAllocs(t *testing.T) {
	for _, s := range samples(rand.New(rand.NewPCG(1, 2))) {
		if d, is := s.op.(*Delta); is && d.KeySize > maxFactors {
			continue
		}
		state, out := make([]float32, s.op.Size()), make([]float32, sampleRows*s.op.Out())
		if n := testing.AllocsPerRun(5, func() { s.op.Advance(0, state, state, s.in, s.op.Record(), sampleRows, out, s.op.Out()) }); n > 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
	}
}
