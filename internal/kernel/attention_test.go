package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/weights/tensor"
)

var cacheTypes = []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0}

// page returns a page of a cache with random keys and values in all slots.
func page(rnd *rand.Rand, f *CacheFormat, size int) (keys, values []byte) {
	keys, values = make([]byte, f.KeyBytes(size)), make([]byte, f.ValueBytes(size))
	k, v := make([]float32, size), make([]float32, size)
	for slot := range PageSlots {
		for e := range size {
			k[e], v[e] = float32(rnd.NormFloat64()), float32(rnd.NormFloat64())
		}
		if r := f.Put(keys, values, slot, HeadSize{size, size}, k, v); r != PutOK {
			panic(r)
		}
	}
	return keys, values
}

// queries returns n random queries, rounded too where the size allows.
func queries(rnd *rand.Rand, n, size int) *Queries {
	x := &Rows{N: n, K: size, F: make([]float32, n*size)}
	for i := range x.F {
		x.F[i] = float32(rnd.NormFloat64())
	}
	if size%QBlock == 0 {
		x.Q, x.D, x.Sum = make([]int8, n*size), make([]float32, n*size/QBlock), make([]int32, n*size/QBlock)
		x.Quantize()
	}
	return &Queries{N: n, Size: size, F: x.F, Q: x.Q, D: x.D, Bias: biases(x.Sum)}
}

func biases(sums []int32) []int32 {
	b := make([]int32, len(sums))
	for i, s := range sums {
		b[i] = -128 * s
	}
	return b
}

// eachCache runs a test for each cache type and head size.
func eachCache(t *testing.T, f func(t *testing.T, c *CacheFormat, size int)) {
	for _, typ := range cacheTypes {
		c, ok := CacheFormatOf(typ)
		if !ok {
			t.Fatalf("no cache format %v", typ)
		}
		for _, size := range []int{1, 7, 8, 16, 20, 32, 33, 64, 80, 96, 128, 256} {
			if size%c.Multiple == 0 {
				t.Run(fmt.Sprintf("%v/%d", typ, size), func(t *testing.T) { f(t, c, size) })
			}
		}
	}
}

const sentinel = -777.25

func filled(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = sentinel
	}
	return x
}

// TestAttentionBits checks, for ranges of slots and numbers of queries, that every implementation of
// Scores and Weigh equals the portable one and writes nothing else.
func TestAttentionBits(t *testing.T) {
	defer Use(Implementation())
	eachCache(t, func(t *testing.T, c *CacheFormat, size int) {
		rnd := newRand(uint64(size))
		keys, values := page(rnd, c, size)
		const most = 45
		q := queries(rnd, most, size)
		p := make([]float32, most*PageSlots)
		for i := range p {
			p[i] = rnd.Float32()
		}
		for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 18, 19, 20, 21, 33, most} {
			for _, r := range [][3]int{{0, 64, 0}, {0, 1, 0}, {63, 64, 63}, {8, 24, 3}, {5, 9, 50}, {17, 60, 1}, {40, 40, 0}} {
				lo, hi, at := r[0], r[1], r[2]
				n0 := n / 3
				run := func(impl string) (scores, sums []float32) {
					Use(impl)
					scores, sums = filled(most*PageSlots+8), filled(most*size+8)
					c.Scores(scores[:n*PageSlots], q, n0, n, keys, lo, hi, size, values[:min(n*100, len(values))])
					clear(sums[:n*size])
					c.Weigh(sums, p, n, values, lo, hi, at, size, keys[:min(n*100, len(keys))])
					return scores, sums
				}
				scores, sums := run(portable)
				for i, s := range scores {
					j, slot := i/PageSlots, i%PageSlots
					if written := j >= n0 && j < n && slot >= lo && slot < hi; written == (s == sentinel) {
						t.Fatalf("queries [%d, %d), slots [%d, %d): score %d of query %d is %v", n0, n, lo, hi, slot, j, s)
					}
				}
				for _, impl := range Implementations() {
					if impl == portable {
						continue
					}
					gotScores, gotSums := run(impl)
					if err := equalBits(scores, gotScores); err != nil {
						t.Fatalf("%s: scores of queries [%d, %d), slots [%d, %d): %v", impl, n0, n, lo, hi, err)
					}
					if err := equalBits(sums, gotSums); err != nil {
						t.Fatalf("%s: values of %d queries, slots [%d, %d): %v", impl, n, lo, hi, err)
					}
				}
			}
		}
	})
}

// TestAttentionValues compares scores and weighted values with float64 arithmetic over what Get reads.
func TestAttentionValues(t *testing.T) {
	eachCache(t, func(t *testing.T, c *CacheFormat, size int) {
		rnd := newRand(uint64(size))
		keys, values := page(rnd, c, size)
		q := queries(rnd, 2, size)
		scores, sums := make([]float32, 2*PageSlots), make([]float32, 2*size)
		c.Scores(scores, q, 0, 2, keys, 0, PageSlots, size, nil)
		p := make([]float32, 2*PageSlots)
		for i := range p {
			p[i] = rnd.Float32()
		}
		c.Weigh(sums, p, 2, values, 0, PageSlots, 0, size, nil)
		k, v := make([]float32, size), make([]float32, size)
		want := make([]float64, 2*size)
		for slot := range PageSlots {
			c.Get(keys, values, slot, HeadSize{size, size}, k, v)
			for j := range 2 {
				dot := 0.0
				for e := range size {
					x := float64(q.F[j*size+e])
					if c.Type == tensor.Q8_0 {
						x = float64(q.D[(j*size+e)/QBlock]) * float64(q.Q[j*size+e])
					}
					dot += x * float64(k[e])
					want[j*size+e] += float64(p[j*PageSlots+slot]) * float64(v[e])
				}
				if got := float64(scores[j*PageSlots+slot]); math.Abs(got-dot) > 1e-5*math.Sqrt(float64(size)) {
					t.Fatalf("score of query %d, slot %d = %v, want %v", j, slot, got, dot)
				}
			}
		}
		for i, w := range want {
			if math.Abs(float64(sums[i])-w) > 1e-4 {
				t.Fatalf("value %d = %v, want %v", i, sums[i], w)
			}
		}
	})
}

// TestAttentionSplit checks that the bits do not depend on the slots a key and a value lie in, on how
// many slots or queries a call takes, or on where a block is cut.
func TestAttentionSplit(t *testing.T) {
	eachImpl(t, func(t *testing.T) {
		eachCache(t, func(t *testing.T, c *CacheFormat, size int) {
			rnd := newRand(uint64(size))
			keys, values := page(rnd, c, size)
			const n = 9
			q := queries(rnd, n, size)
			p := make([]float32, n*PageSlots)
			for i := range p {
				p[i] = rnd.Float32()
			}
			scores, sums := make([]float32, n*PageSlots), make([]float32, n*size)
			c.Scores(scores, q, 0, n, keys, 0, PageSlots, size, nil)
			c.Weigh(sums, p, n, values, 0, PageSlots, 0, size, nil)

			// The slots in another order, each asked for alone, query by query.
			keys2, values2 := make([]byte, len(keys)), make([]byte, len(values))
			perm := rnd.Perm(PageSlots)
			for slot, to := range perm {
				c.Copy(keys2, values2, to, keys, values, slot, HeadSize{size, size})
			}
			scores2, sums2 := make([]float32, n*PageSlots), make([]float32, n*size)
			one := make([]float32, n*PageSlots)
			for j := range n {
				for slot, at := range perm {
					c.Scores(one, q, j, j+1, keys2, at, at+1, size, nil)
					scores2[j*PageSlots+slot] = one[j*PageSlots+at]
					c.Weigh(sums2[j*size:], p[j*PageSlots:], 1, values2, at, at+1, slot, size, nil)
				}
			}
			if err := equalBits(scores, scores2); err != nil {
				t.Errorf("scores: %v", err)
			}
			if err := equalBits(sums, sums2); err != nil {
				t.Errorf("values: %v", err)
			}
		})
	})
}

// TestPut checks what each type rounds to, and that nothing beside the slot changes.
func TestPut(t *testing.T) {
	eachCache(t, func(t *testing.T, c *CacheFormat, size int) {
		if c.KeyBytes(size)%32 != 0 || c.ValueBytes(size)%32 != 0 {
			t.Errorf("%d and %d bytes, want multiples of 32", c.KeyBytes(size), c.ValueBytes(size))
		}
		rnd := newRand(uint64(size))
		keys, values := page(rnd, c, size)
		all := func() (x []float32) {
			k, v := make([]float32, size), make([]float32, size)
			for slot := range PageSlots {
				c.Get(keys, values, slot, HeadSize{size, size}, k, v)
				x = append(append(x, k...), v...)
			}
			return x
		}
		k, v := make([]float32, size), make([]float32, size)
		for slot := range PageSlots {
			for e := range size {
				k[e], v[e] = float32(rnd.NormFloat64()*100), float32(rnd.NormFloat64())
			}
			want := all()
			if r := c.Put(keys, values, slot, HeadSize{size, size}, k, v); r != PutOK {
				t.Fatalf("Put = %v", r)
			}
			copy(want[2*slot*size:], rounded(c.Type, k))
			copy(want[(2*slot+1)*size:], rounded(c.Type, v))
			if err := equalBits(want, all()); err != nil {
				t.Fatalf("slot %d: %v", slot, err)
			}
		}
	})
}

// rounded returns x rounded to a cache type.
func rounded(t tensor.Type, x []float32) []float32 {
	r := make([]float32, len(x))
	for i, v := range x {
		switch t {
		case tensor.F32:
			r[i] = v
		case tensor.F16:
			r[i] = tensor.F16ToF32(tensor.F32ToF16(v))
		case tensor.Q8_0:
			m, _ := MaxAbsFinite(x[i/QBlock*QBlock:][:QBlock])
			d := tensor.F16ToF32(tensor.F32ToF16(m / 127))
			if d > 0 {
				q := math.RoundToEven(float64(v * (1 / d)))
				r[i] = float32(int8(max(-127, min(127, q)))) * d
			}
		}
	}
	return r
}

func TestPutRefuses(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		t    tensor.Type
		x    float32
		want PutResult
	}{
		{tensor.F32, math.MaxFloat32, PutOK},
		{tensor.F32, inf, PutNotFinite},
		{tensor.F32, nan, PutNotFinite},
		{tensor.F16, 65504, PutOK},
		{tensor.F16, -65519.99, PutOK},
		{tensor.F16, 65520, PutRange},
		{tensor.F16, -1e30, PutRange},
		{tensor.F16, negInf, PutNotFinite},
		{tensor.F16, nan, PutNotFinite},
		{tensor.Q8_0, 65504 * 127, PutOK},
		{tensor.Q8_0, -65520 * 127, PutRange},
		{tensor.Q8_0, nan, PutNotFinite},
		{tensor.Q8_0, 1e-12, PutOK},
		{tensor.Q8_0, 1e-45, PutOK},
	} {
		f, _ := CacheFormatOf(c.t)
		const size = 64
		for _, at := range []int{0, 63, 64, 127} {
			x := make([]float32, 2*size)
			x[at] = c.x
			keys, values := make([]byte, f.KeyBytes(size)), make([]byte, f.ValueBytes(size))
			if got := f.Put(keys, values, 9, HeadSize{size, size}, x[:size], x[size:]); got != c.want {
				t.Errorf("%v: Put(%v at %d) = %v, want %v", c.t, c.x, at, got, c.want)
			}
			for _, b := range append(keys, values...) {
				if c.want != PutOK && b != 0 {
					t.Fatalf("%v: Put(%v at %d) wrote something", c.t, c.x, at)
				}
			}
		}
	}
}

// TestSoftmaxBits checks the softmax of blocks, with and without a cap, and invisible scores.
func TestSoftmaxBits(t *testing.T) {
	for n := range 40 {
		for _, cap := range []float32{0, 50, 3} {
			blocks := 1 + n%6
			compare(t, 1, blocks*PageSlots, n, func(v [][]float32) []float32 {
				for i := range n * blocks {
					v[0][i/n*PageSlots+(i%n*7+n)%PageSlots] = negInf
				}
				m, sum := make([]float32, blocks), make([]float32, blocks)
				SoftmaxBlocks(v[0], 0.25, cap, m, sum, make([]byte, n))
				return append(m, sum...)
			})
		}
	}
}

// softmaxOf is SoftmaxBlocks for one query.
func softmaxOf(s []float32, scale, softcap float32) (m, sum float32) {
	a := make([]float32, 2)
	SoftmaxBlocks(s, scale, softcap, a[:1], a[1:], nil)
	return a[0], a[1]
}

func TestSoftmaxValues(t *testing.T) {
	eachImpl(t, func(t *testing.T) {
		rnd := newRand(3)
		for _, softcap := range []float64{0, 20} {
			s, want := make([]float32, PageSlots), make([]float64, PageSlots)
			top := math.Inf(-1)
			for i := range s {
				s[i] = float32(rnd.NormFloat64() * 50)
				want[i] = float64(s[i]) * 0.125
				if softcap > 0 {
					want[i] = softcap * math.Tanh(want[i]/softcap)
				}
				if i%5 == 3 {
					s[i], want[i] = negInf, math.Inf(-1)
				}
				top = max(top, want[i])
			}
			m, sum := softmaxOf(s, 0.125, float32(softcap))
			if math.Abs(float64(m)-top) > 1e-5 {
				t.Errorf("softcap %v: max = %v, want %v", softcap, m, top)
			}
			total := 0.0
			for i, w := range want {
				w = math.Exp(w - top)
				total += w
				if math.Abs(float64(s[i])-w) > 1e-5 || w == 0 && s[i] != 0 {
					t.Errorf("softcap %v: weight %d = %v, want %v", softcap, i, s[i], w)
				}
			}
			if math.Abs(float64(sum)-total) > 1e-4 {
				t.Errorf("softcap %v: sum = %v, want %v", softcap, sum, total)
			}
		}
	})
}

func attended(n, size int) Attended {
	return Attended{Max: make([]float32, n), Sum: make([]float32, n), Out: make([]float32, n*size)}
}

// TestMergeBits checks the merging of numbers of queries and sizes of heads.
func TestMergeBits(t *testing.T) {
	for _, size := range []int{1, 7, 8, 64, 80} {
		for n := range 19 {
			compare(t, 6, max(n, n*size), n, func(v [][]float32) []float32 {
				a := Attended{Max: v[0][:n], Sum: v[1][:n], Out: v[2][:n*size]}
				a.Merge(Attended{Max: v[3][:n], Sum: v[4][:n], Out: v[5][:n*size]})
				return nil
			})
		}
	}
}

// TestMergeValues runs attention over three blocks and compares it with float64 arithmetic.
func TestMergeValues(t *testing.T) {
	const blocks, size = 3, 40
	rnd := newRand(5)
	state := attended(1, size)
	state.Clear()
	var scores []float64
	var values [][]float32
	for b := range blocks {
		s := make([]float32, PageSlots)
		for i := range s {
			s[i] = float32(rnd.NormFloat64() * 5)
			scores = append(scores, float64(s[i]))
		}
		block := attended(1, size)
		SoftmaxBlocks(s, 1, 0, block.Max, block.Sum, nil)
		for i := range s {
			v := make([]float32, size)
			for e := range v {
				v[e] = rnd.Float32()
			}
			AddScaled(block.Out, s[i], v)
			values = append(values, v)
		}
		state.Merge(block)
		if b == 0 {
			if err := equalBits(block.Out, state.Out); err != nil || state.Sum[0] != block.Sum[0] || state.Max[0] != block.Max[0] {
				t.Fatalf("the first block is not taken as it is: %v", err)
			}
		}
	}
	o, m := state.Out, state.Max[0]
	Finish(o, o, state.Sum[0])
	sum, want := 0.0, make([]float64, size)
	for i, s := range scores {
		p := math.Exp(s - float64(m))
		sum += p
		for e, v := range values[i] {
			want[e] += p * float64(v)
		}
	}
	for e, w := range want {
		if math.Abs(float64(o[e])-w/sum) > 1e-6 {
			t.Errorf("value %d = %v, want %v", e, o[e], w/sum)
		}
	}
}

func TestAttentionPanics(t *testing.T) {
	const size = 32
	for _, typ := range cacheTypes {
		c, _ := CacheFormatOf(typ)
		keys, values := page(newRand(1), c, size)
		q := queries(newRand(2), 2, size)
		s, o := make([]float32, 2*PageSlots), make([]float32, 2*size)
		k := make([]float32, size)
		for name, f := range map[string]func(){
			"slot":        func() { c.Put(keys, values, 64, HeadSize{size, size}, k, k) },
			"short key":   func() { c.Put(keys, values, 0, HeadSize{size, size}, k[1:], k) },
			"short page":  func() { c.Get(keys[1:], values, 0, HeadSize{size, size}, k, k) },
			"copy":        func() { c.Copy(keys, values, 0, keys, values, -1, HeadSize{size, size}) },
			"queries":     func() { c.Scores(s, q, 0, 3, keys, 0, 64, size, nil) },
			"query size":  func() { c.Scores(s, q, 0, 2, keys, 0, 64, 2*size, nil) },
			"slots":       func() { c.Scores(s, q, 0, 2, keys, 0, 65, size, nil) },
			"short score": func() { c.Scores(s[1:], q, 0, 2, keys, 0, 64, size, nil) },
			"short keys":  func() { c.Scores(s, q, 0, 2, keys[1:], 0, 64, size, nil) },
			"values":      func() { c.Weigh(o, s, 2, values[1:], 0, 64, 0, size, nil) },
			"at":          func() { c.Weigh(o, s, 2, values, 0, 60, 5, size, nil) },
			"weights":     func() { c.Weigh(o, s[1:], 2, values, 0, 64, 0, size, nil) },
			"sums":        func() { c.Weigh(o[1:], s, 2, values, 0, 64, 0, size, nil) },
			"size 0":      func() { c.Scores(s, q, 0, 0, keys, 0, 64, 0, nil) },
		} {
			t.Run(fmt.Sprintf("%v/%s", typ, name), func(t *testing.T) {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				f()
			})
		}
	}
	if _, ok := CacheFormatOf(tensor.Q4_K); ok {
		t.Error("a Q4_K cache")
	}
}

func TestAttentionAllocations(t *testing.T) {
	const size = 64
	for _, typ := range cacheTypes {
		c, _ := CacheFormatOf(typ)
		keys, values := page(newRand(1), c, size)
		q := queries(newRand(2), 9, size)
		s, o := make([]float32, 9*PageSlots), make([]float32, 9*size)
		k := make([]float32, size)
		a, block := attended(9, size), attended(9, size)
		if n := testing.AllocsPerRun(10, func() {
			c.Put(keys, values, 3, HeadSize{size, size}, k, k)
			c.Scores(s, q, 0, 9, keys, 3, 61, size, nil)
			SoftmaxBlocks(s, 1, 30, block.Max, block.Sum, nil)
			c.Weigh(o, s, 9, values, 3, 61, 0, size, nil)
			a.Clear()
			a.Merge(block)
			Finish(o, o, 1)
		}); n != 0 {
			t.Errorf("%v: %v allocations", typ, n)
		}
	}
}

// FuzzPut checks that a key and a value of any bits come back as they round, or are refused.
func FuzzPut(f *testing.F) {
	f.Add(uint32(0x3f800000), uint32(0xbf800000), uint8(3), uint64(1))
	f.Add(uint32(0x7f800000), uint32(0), uint8(63), uint64(2))
	f.Add(uint32(0x477fefff), uint32(1), uint8(8), uint64(3))
	f.Fuzz(func(t *testing.T, a, b uint32, slot uint8, seed uint64) {
		const size = 64
		rnd := newRand(seed)
		k, v := make([]float32, size), make([]float32, size)
		for i := range k {
			k[i] = math.Float32frombits(a ^ rnd.Uint32()&0x80ffffff)
			v[i] = math.Float32frombits(b ^ rnd.Uint32()&0x80ffffff)
		}
		at := int(slot) % PageSlots
		for _, typ := range cacheTypes {
			c, _ := CacheFormatOf(typ)
			keys, values := make([]byte, c.KeyBytes(size)), make([]byte, c.ValueBytes(size))
			if r := c.Put(keys, values, at, HeadSize{size, size}, k, v); r != PutOK {
				continue
			}
			k2, v2 := make([]float32, size), make([]float32, size)
			c.Get(keys, values, at, HeadSize{size, size}, k2, v2)
			for i, want := range [][]float32{rounded(typ, k), rounded(typ, v)} {
				got := [][]float32{k2, v2}[i]
				if err := equalBits(want, got); err != nil {
					t.Fatalf("%v: %v", typ, err)
				}
				if _, finite := MaxAbsFinite(got); !finite {
					t.Fatalf("%v: not finite", typ)
				}
			}
		}
	})
}

// TestHeadSizes puts, copies and gets heads whose keys and values have different sizes: each side is what it is
// in a head of its own size on both.
func TestHeadSizes(t *testing.T) {
	for _, c := range cacheFormats {
		for _, size := range []HeadSize{{32, 96}, {160, 64}, {576, 512}} {
			rnd := newRand(uint64(size.Key))
			k, v := make([]float32, size.Key), make([]float32, size.Value)
			for i := range k {
				k[i] = float32(rnd.NormFloat64())
			}
			for i := range v {
				v[i] = float32(rnd.NormFloat64())
			}
			page := func() (keys, values []byte) {
				return make([]byte, c.KeyBytes(size.Key)), make([]byte, c.ValueBytes(size.Value))
			}
			keys, values := page()
			if r := c.Put(keys, values, 9, size, k, v); r != PutOK {
				t.Fatalf("%v: Put: %v", c.Type, r)
			}
			wantKeys, wantValues := make([]byte, c.KeyBytes(size.Key)), make([]byte, c.ValueBytes(size.Value))
			c.Put(wantKeys, make([]byte, c.ValueBytes(size.Key)), 9, HeadSize{size.Key, size.Key}, k, k)
			c.Put(make([]byte, c.KeyBytes(size.Value)), wantValues, 9, HeadSize{size.Value, size.Value}, v, v)
			if !bytes.Equal(keys, wantKeys) || !bytes.Equal(values, wantValues) {
				t.Errorf("%v, %v: the bytes depend on the other side", c.Type, size)
			}
			moved, movedValues := page()
			c.Copy(moved, movedValues, 40, keys, values, 9, size)
			k2, v2 := make([]float32, size.Key), make([]float32, size.Value)
			c.Get(moved, movedValues, 40, size, k2, v2)
			if err := equalBits(rounded(c.Type, k), k2); err != nil {
				t.Errorf("%v, %v: key: %v", c.Type, size, err)
			}
			if err := equalBits(rounded(c.Type, v), v2); err != nil {
				t.Errorf("%v, %v: value: %v", c.Type, size, err)
			}
		}
	}
}

// TestScoresQ8Extremes checks pages of bytes that no Put writes: -128, and scales of 0, of infinity and NaN.
func TestScoresQ8Extremes(t *testing.T) {
	defer Use(Implementation())
	c, _ := CacheFormatOf(tensor.Q8_0)
	rnd := newRand(1)
	pick := func(from ...int) byte { return byte(from[rnd.IntN(len(from))]) }
	for _, size := range []int{32, 64, 96} {
		for _, only := range [][]int{{-128}, {127}, {0}, {-128, -127, -1, 0, 1, 127}} {
			for n := 1; n <= 17; n++ {
				q := queries(rnd, n, size)
				for i := range q.Q {
					q.Q[i] = int8(pick(-127, 127, 0, 1))
				}
				for b := range q.Bias {
					q.Bias[b] = 0
					for _, v := range q.Q[b*QBlock : (b+1)*QBlock] {
						q.Bias[b] -= 128 * int32(v)
					}
				}
				keys := make([]byte, c.KeyBytes(size))
				for i := range keys[PageSlots*size/QBlock*2:] {
					keys[PageSlots*size/QBlock*2+i] = pick(only...)
				}
				for i := 1; i < PageSlots*size/QBlock*2; i += 2 {
					keys[i-1], keys[i] = pick(0, 0, 1), pick(0, 0x3c, 0x3c, 0x3c, 0x7c, 0x80, 0xff)
				}
				want, got := make([]float32, n*PageSlots), make([]float32, n*PageSlots)
				Use(portable)
				c.Scores(want, q, 0, n, keys, 0, PageSlots, size, nil)
				for _, impl := range Implementations() {
					Use(impl)
					c.Scores(got, q, 0, n, keys, 0, PageSlots, size, nil)
					if err := equalBits(want, got); err != nil {
						t.Fatalf("%s: size %d, bytes %v, %d queries: %v", impl, size, only, n, err)
					}
				}
			}
		}
	}
}
