package kernel

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"grove/internal/stat"
)

// TestSamplingBits checks that every implementation draws what the portable one draws, with the same
// log-sum-exp, which is also that of LogSumExp.
func TestSamplingBits(t *testing.T) {
	check := func(n, offset int) {
		for _, invT := range []float32{1, 0.3, 8} {
			compare(t, 1, n, offset, func(v [][]float32) []float32 {
				x := v[0]
				id, m, lse, finite := GumbelMax(x, invT, MakeKey(uint64(n), 0, uint32(offset), 1))
				m2, lse2, finite2 := LogSumExp(x)
				if err := equalBits([]float32{m, lse}, []float32{m2, lse2}); err != nil || finite != finite2 {
					t.Fatalf("LogSumExp = %v, %v, %v; GumbelMax gives %v, %v, %v", m2, lse2, finite2, m, lse, finite)
				}
				if finite != (id >= 0) {
					t.Fatalf("id %d, finite %v", id, finite)
				}
				result := []float32{float32(id), float32(ArgMax(x))}
				if finite {
					result = append(result, m, lse)
				}
				return result
			})
		}
	}
	eachLength(check)
	for _, n := range []int{logitBlock - 1, logitBlock, logitBlock + 1, 3*logitBlock + 40} {
		check(n, 3)
	}
}

// TestDrawBits draws from logits that make many tokens rivals, and from rising ones, whose best score
// moves at nearly every token.
func TestDrawBits(t *testing.T) {
	defer Use(Implementation())
	const n = 3000
	flat, rising, steps := make([]float32, n), make([]float32, n), make([]float32, n)
	rnd := newRand(1)
	for i := range n {
		flat[i] = 1
		rising[i] = float32(i) / 10
		steps[i] = float32(i/8) + 1e30*float32(rnd.IntN(2))
	}
	for name, x := range map[string][]float32{"flat": flat, "rising": rising, "steps": steps} {
		for index := range uint32(200) {
			key := MakeKey(7, 0, index, 0)
			Use(portable)
			want, _, _, _ := GumbelMax(x, 0.7, key)
			for _, impl := range Implementations() {
				Use(impl)
				if got, _, _, _ := GumbelMax(x, 0.7, key); got != want {
					t.Fatalf("%s, %s: id %d, want %d", impl, name, got, want)
				}
			}
		}
	}
}

// TestDrawDefinition checks that skipping tokens by their bound changes nothing.
func TestDrawDefinition(t *testing.T) {
	rnd := newRand(4)
	x := make([]float32, 700)
	for index := range uint32(100) {
		key, best := MakeKey(5, 0, index, 0), choice{negInf, noToken}
		for i := range x {
			x[i] = float32(rnd.NormFloat64() * 3)
			if s := float32(x[i]*0.9) + Noise(key, uint32(i)); s > best.score {
				best = choice{s, uint32(i)}
			}
		}
		if id, _, _, _ := GumbelMax(x, 0.9, key); id != int(best.id) {
			t.Fatalf("index %d: id %d, want %d", index, id, best.id)
		}
	}
}

// TestLogSumExp compares with float64 arithmetic and checks special values.
func TestLogSumExp(t *testing.T) {
	nan := float32(math.NaN())
	eachImpl(t, func(t *testing.T) {
		rnd := newRand(2)
		for _, n := range []int{1, 100, 5000, 20000} {
			x := make([]float32, n)
			sum := 0.0
			for i := range x {
				x[i] = float32(rnd.NormFloat64() * 6)
				if i%3 == 1 {
					x[i] = negInf
				}
				sum += math.Exp(float64(x[i]))
			}
			_, lse, finite := LogSumExp(x)
			if want := math.Log(sum); !finite || math.Abs(float64(lse)-want) > 2e-6*(1+math.Abs(want)) {
				t.Errorf("%d values: %v, %v, want %v", n, lse, finite, want)
			}
		}
		big := make([]float32, 3*logitBlock)
		for i := range big {
			big[i] = negInf
		}
		for _, c := range []struct {
			name   string
			x      []float32
			finite bool
			max    float32
			id     int
		}{
			{"empty", nil, false, negInf, -1},
			{"one", []float32{-3}, true, -3, 0},
			{"huge", []float32{3e38, -3e38}, true, 3e38, 0},
			{"masked", []float32{negInf, negInf}, false, negInf, 0},
			{"one legal", []float32{negInf, -5, negInf}, true, -5, 1},
			{"NaN", []float32{1, nan, 2}, false, 0, 2},
			{"NaN and masked", []float32{negInf, nan}, false, 0, 0},
			{"NaN only", []float32{nan, nan}, false, 0, -1},
			{"Inf", []float32{1, inf}, false, 0, 1},
			{"tie", []float32{0, 2, 2, 1}, true, 2, 1},
			{"masked blocks", big, false, negInf, 0},
			{"legal in a late block", append(append([]float32{}, big...), 4), true, 4, len(big)},
			{"NaN in an early block", append(append([]float32{nan}, big...), 4), false, 0, len(big) + 1},
			{"legal, then masked blocks", append([]float32{4}, big...), true, 4, 0},
		} {
			m, lse, finite := LogSumExp(c.x)
			if finite != c.finite || finite && (m != c.max || math.Abs(float64(lse-m)) > 1) {
				t.Errorf("%s: LogSumExp = %v, %v, %v", c.name, m, lse, finite)
			}
			if id := ArgMax(c.x); id != c.id {
				t.Errorf("%s: ArgMax = %d, want %d", c.name, id, c.id)
			}
			id, _, _, finite := GumbelMax(c.x, 1, MakeKey(1, 2, 3, 4))
			if finite != c.finite || finite && math.IsInf(float64(c.x[id]), -1) || !finite && id != -1 {
				t.Errorf("%s: GumbelMax = %d, finite %v", c.name, id, finite)
			}
		}
	})
}

// TestGumbelMaxOverflow: scores that overflow still give a token that is not masked.
func TestGumbelMaxOverflow(t *testing.T) {
	x := []float32{negInf, -3e38, -2e38}
	if id, _, _, finite := GumbelMax(x, 10, Key{}); id != 2 || !finite {
		t.Errorf("GumbelMax = %d, %v", id, finite)
	}
}

// someHashes calls f for hashes that are extreme, and for many others.
func someHashes(f func(h uint32)) {
	for i := range uint32(1 << 12) {
		f(i)
		f(^i)
	}
	for shift := range 32 {
		for d := range uint32(65) {
			f(1<<shift + d - 32)
			f(-(1 << shift) + d - 32)
		}
	}
	for h := uint64(0); h < 1<<32; h += 9973 {
		f(uint32(h))
	}
}

// TestNoiseValues compares the noise of a hash with float64 arithmetic, and with the bound by which
// draws skip tokens.
func TestNoiseValues(t *testing.T) {
	low, high := inf, negInf
	someHashes(func(h uint32) {
		w := (float64(h) + 0.5) * 0x1p-32
		g, want := gumbel(h), -math.Log(-math.Log1p(-w))
		if !(math.Abs(float64(g)-want) <= 3e-7*max(1, math.Abs(want))) {
			t.Fatalf("noise of %#x = %v, want %v", h, g, want)
		}
		if bound := noiseBound(h); g > bound || h > 1 && h < 1<<31 && bound > g+1.5 {
			t.Fatalf("noise of %#x = %v, bound %v", h, g, bound)
		}
		low, high = min(low, g), max(high, g)
	})
	if low < -3.14 || high > 22.88 {
		t.Errorf("noise from %v to %v", low, high)
	}
}

// TestHashAvalanche flips every bit of the id and of the key and expects every bit of the hash to
// flip half of the time.
func TestHashAvalanche(t *testing.T) {
	const samples = 4000
	for input := range 96 {
		var flips [32]int
		for i := range uint32(samples) {
			key, id := MakeKey(1, 0, i, 0), i*3+1
			key2, id2 := key, id
			bit := uint32(1) << (input % 32)
			switch input / 32 {
			case 0:
				id2 ^= bit
			case 1:
				key2.A ^= bit
			case 2:
				key2.B ^= bit
			}
			diff := hash(key, id) ^ hash(key2, id2)
			for j := range flips {
				flips[j] += int(diff >> j & 1)
			}
		}
		for j, n := range flips {
			if z := (float64(n) - samples/2) / math.Sqrt(samples/4); math.Abs(z) > 5.5 {
				t.Errorf("input bit %d flips output bit %d %d times of %d", input, j, n, samples)
			}
		}
	}
}

// uniform fails unless the counts look like those of equally likely cells.
func uniform(t *testing.T, name string, counts []float64) {
	t.Helper()
	total := 0.0
	for _, n := range counts {
		total += n
	}
	if err := stat.ChiSquare(counts, slices.Repeat([]float64{total / float64(len(counts))}, len(counts))); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestHashUniform looks at hashes over ids, over the indices of a request, over seeds and purposes,
// and at pairs of neighbours in each direction.
func TestHashUniform(t *testing.T) {
	const n = 1 << 17
	for _, c := range []struct {
		name string
		at   func(i uint32) uint32
	}{
		{"ids", func(i uint32) uint32 { return hash(MakeKey(42, 0, 0, 0), i) }},
		{"ids of another key", func(i uint32) uint32 { return hash(MakeKey(42, 0, 1, 0), i) }},
		{"zero key", func(i uint32) uint32 { return hash(Key{}, i) }},
		{"indices", func(i uint32) uint32 { return hash(MakeKey(42, 0, i, 0), 17) }},
		{"choices", func(i uint32) uint32 { return hash(MakeKey(42, i, 0, 0), 17) }},
		{"seeds", func(i uint32) uint32 { return hash(MakeKey(uint64(i), 0, 0, 0), 17) }},
		{"purposes", func(i uint32) uint32 { return hash(MakeKey(42, 0, 0, i), 17) }},
		{"a diagonal", func(i uint32) uint32 { return hash(MakeKey(42, 0, i, 0), i) }},
	} {
		high, low, pairs := make([]float64, 1024), make([]float64, 1024), make([]float64, 1024)
		before := c.at(n)
		for i := range uint32(n) {
			h := c.at(i)
			high[h>>22]++
			low[h&1023]++
			pairs[h>>27<<5|before>>27]++
			before = h
		}
		uniform(t, c.name+", high bits", high)
		uniform(t, c.name+", low bits", low)
		uniform(t, c.name+", pairs", pairs)
	}
}

// TestMakeKey checks that each argument changes about half of the key's bits.
func TestMakeKey(t *testing.T) {
	base := MakeKey(1, 2, 3, 4)
	for name, k := range map[string]Key{
		"seed": MakeKey(2, 2, 3, 4), "high seed": MakeKey(1|1<<63, 2, 3, 4), "choice": MakeKey(1, 3, 3, 4),
		"index": MakeKey(1, 2, 2, 4), "purpose": MakeKey(1, 2, 3, 5), "swap": MakeKey(1, 3, 2, 4),
	} {
		n := bits.OnesCount32(k.A^base.A) + bits.OnesCount32(k.B^base.B)
		if n < 16 || n > 48 {
			t.Errorf("%s changes %d bits of 64", name, n)
		}
	}
}

// TestGumbelMaxLaw draws 100,000 tokens over consecutive indices, and as many over seeds and over
// choices, and compares their counts with the softmax.
func TestGumbelMaxLaw(t *testing.T) {
	const draws = 100_000
	const invT = 1.25
	rnd := newRand(9)
	x := make([]float32, 24)
	expected, total := make([]float64, len(x)), 0.0
	for i := range x {
		x[i] = float32(rnd.NormFloat64() * 1.5)
		expected[i] = math.Exp(float64(x[i]) * invT)
		total += expected[i]
	}
	for i := range expected {
		expected[i] *= draws / total
	}
	for name, key := range map[string]func(i uint32) Key{
		"indices": func(i uint32) Key { return MakeKey(11, 0, i, 0) },
		"choices": func(i uint32) Key { return MakeKey(11, i, 5, 0) },
		"seeds":   func(i uint32) Key { return MakeKey(uint64(i), 0, 5, 1) },
	} {
		counts := make([]float64, len(x))
		for i := range uint32(draws) {
			id, _, _, _ := GumbelMax(x, invT, key(i))
			counts[id]++
		}
		if err := stat.ChiSquare(counts, expected); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRareTokens draws from a vocabulary in which one token has half of the probability and 4096
// share the rest: the noise must reach far enough, and evenly.
func TestRareTokens(t *testing.T) {
	const draws, rare = 3200, 1 << 12
	x := make([]float32, rare+1)
	x[rare] = float32(math.Log(rare))
	counts := make([]float64, 17)
	expected := make([]float64, 17)
	for i := range expected {
		expected[i] = draws / 32.0
	}
	expected[16] = draws / 2
	for i := range uint32(draws) {
		id, _, _, _ := GumbelMax(x, 1, MakeKey(3, 0, i, 0))
		counts[id>>8]++
	}
	if err := stat.ChiSquare(counts, expected); err != nil {
		t.Error(err)
	}
}

func TestSamplingAllocations(t *testing.T) {
	x := make([]float32, 10000)
	if n := testing.AllocsPerRun(10, func() {
		GumbelMax(x, 1, Key{1, 2})
		LogSumExp(x)
		ArgMax(x)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
