package modeltest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// factors are the shapes [blocks, out, in] of two factors of a matrix [out, in].
type factors struct{ first, second [3]int }

// TestFactored compares models whose feed-forward blocks are stored as factors with models that have the products, and checks the bits of
// the former. The kinds are those of Wei et al. 2024: LowRank, BlockDense, BlockShuffle with more and with fewer blocks than a block has rows.
func TestFactored(t *testing.T) {
	const width, inner = 64, 64
	for name, c := range map[string]struct {
		up, down factors
		fused    bool
	}{
		"low rank":      {up: factors{[3]int{1, 16, width}, [3]int{1, inner, 16}}, down: factors{[3]int{1, 24, inner}, [3]int{1, width, 24}}},
		"block dense":   {up: factors{[3]int{4, 8, 16}, [3]int{1, inner, 32}}, down: factors{[3]int{4, 8, inner / 4}, [3]int{1, width, 32}}},
		"block shuffle": {up: factors{[3]int{2, 32, 32}, [3]int{2, inner / 2, 32}}, down: factors{[3]int{2, 32, inner / 2}, [3]int{2, 32, 32}}},
		"many blocks":   {up: factors{[3]int{16, 4, 4}, [3]int{32, inner / 32, 2}}, down: factors{[3]int{8, 8, inner / 8}, [3]int{16, 4, 4}}},
		"fused":         {up: factors{[3]int{2, 32, 32}, [3]int{2, inner, 32}}, down: factors{[3]int{1, 24, inner}, [3]int{1, width, 24}}, fused: true},
		"up alone":      {up: factors{[3]int{1, 16, width}, [3]int{1, inner, 16}}},
	} {
		t.Run(name, func(t *testing.T) {
			file := change(t, Spec{Layers: 4})
			product := &changed{metadata: file.metadata}
			rng := rand.New(rand.NewPCG(1, 2))
			var kept []tensor.View
			for _, v := range file.tensors {
				f, ok := c.up, strings.Contains(v.Name, "ffn_up.") || strings.Contains(v.Name, "ffn_gate.")
				if strings.Contains(v.Name, "ffn_down.") {
					f, ok = c.down, c.down != factors{}
				}
				if !ok || c.fused && strings.Contains(v.Name, "ffn_gate.") {
					if !strings.Contains(v.Name, "ffn_gate.") {
						product.tensors = append(product.tensors, v)
					}
					if !ok {
						kept = append(kept, v)
					}
					continue
				}
				a, b := factor(rng, v.Name, "in", f.first), factor(rng, v.Name, "out", f.second)
				kept = append(kept, a.view, b.view)
				dense := multiplied(a, b)
				if c.fused && strings.Contains(v.Name, "ffn_up.") {
					product.tensors = append(product.tensors, dense.of(strings.Replace(v.Name, "ffn_up", "ffn_gate", 1), 0, inner), dense.of(v.Name, inner, inner))
					continue
				}
				product.tensors = append(product.tensors, dense.of(v.Name, 0, len(dense.values)/dense.columns))
			}
			file.tensors = kept
			a, b := New(t, file.file(t), Config{CacheType: tensor.F32, Context: 256}), New(t, product.file(t), Config{CacheType: tensor.F32})
			ids := randomIDs(rng, 40, a.Model.Info().Vocabulary)
			got, want := a.Reference(ids), b.Reference(ids)
			for i := range want {
				row := make([]float64, len(want[i]))
				for v, x := range want[i] {
					row[v] = float64(x)
				}
				if w := worst(got[i], row); !(w < 1e-5) {
					t.Fatalf("logits at %d differ by %.2g of the largest", i, w)
				}
			}
			if small, whole := a.Model.Info().Bytes, b.Model.Info().Bytes; name == "low rank" && small >= whole {
				t.Errorf("factors have %d bytes, products %d", small, whole)
			}
			archBits(t, a, file.file(t), len(name))
		})
	}
}

// block is a factor: blocks on a diagonal.
type block struct {
	view   tensor.View
	shape  [3]int
	values []float32
}

// factor makes a factor of random values.
func factor(rng *rand.Rand, name, which string, shape [3]int) (f block) {
	f.shape = shape
	for range shape[0] * shape[1] * shape[2] {
		f.values = append(f.values, float32(rng.NormFloat64())/4)
	}
	dims := shape[:]
	if shape[0] == 1 {
		dims = shape[1:]
	}
	f.view = matrixOf(strings.Replace(name, ".weight", "."+which+".weight", 1), slices.Clone(dims), func(i int) float32 { return f.values[i] })
	return f
}

// at returns a value of the whole factor.
func (f *block) at(row, column int) float64 {
	if row/f.shape[1] != column/f.shape[2] {
		return 0
	}
	return float64(f.values[row*f.shape[2]+column%f.shape[2]])
}

// product is a matrix in float64.
type product struct {
	values  []float64
	columns int
}

// multiplied returns the product of two factors. With blocks in the second, value j of block i of what it reads is value j*blocks+i of what
// the first gives, and value j of what its block i gives is value j*blocks+i of the product.
func multiplied(a, b block) (p product) {
	blocks, middle := b.shape[0], b.shape[0]*b.shape[2]
	rows := blocks * b.shape[1]
	p.columns = a.shape[0] * a.shape[2]
	p.values = make([]float64, rows*p.columns)
	for row := range rows {
		to := row%b.shape[1]*blocks + row/b.shape[1]
		for m := range middle {
			from := m%b.shape[2]*blocks + m/b.shape[2]
			for column := range p.columns {
				p.values[to*p.columns+column] += b.at(row, m) * a.at(from, column)
			}
		}
	}
	return p
}

// of returns some rows as a tensor.
func (p *product) of(name string, first, rows int) tensor.View {
	return matrixOf(name, []int{rows, p.columns}, func(i int) float32 { return float32(p.values[first*p.columns+i]) })
}

// TestFactoredErrors opens files whose factors do not make a matrix of the layer.
func TestFactoredErrors(t *testing.T) {
	for name, c := range map[string]struct {
		arch     string
		in, out  []int
		one      bool // factor in alone
		expected string
	}{
		"another width":   {in: []int{16, 32}, out: []int{64, 16}, expected: "must have shape [64 64]"},
		"another middle":  {in: []int{16, 64}, out: []int{64, 8}, expected: "must have shape [64 64]"},
		"blocks behind":   {in: []int{32, 64}, out: []int{2, 32, 16}, expected: "the second has blocks only where the first has"},
		"too many blocks": {in: []int{65, 2, 1}, out: []int{64, 130}, expected: "1 to 64 blocks"},
		"four dimensions": {in: []int{1, 2, 8, 64}, out: []int{64, 16}, expected: "[out in] or [blocks out in]"},
		"no second":       {in: []int{16, 64}, one: true, expected: `tensor "blk.0.ffn_up.out.weight" is missing`},
		"no such model":   {arch: "gemma3", in: []int{16, 64}, out: []int{64, 16}, expected: "blk.0.ffn_up"},
	} {
		t.Run(name, func(t *testing.T) {
			f := change(t, Spec{Arch: c.arch, Layers: 1})
			f.tensors = slices.DeleteFunc(f.tensors, func(v tensor.View) bool { return strings.Contains(v.Name, "ffn_up.") })
			one := func(int) float32 { return 1 }
			f.tensors = append(f.tensors, matrixOf("blk.0.ffn_up.in.weight", c.in, one))
			if !c.one {
				f.tensors = append(f.tensors, matrixOf("blk.0.ffn_up.out.weight", c.out, one))
			}
			_, err := model.Open(f.file(t), par.New(1), model.Options{})
			if err == nil || !strings.Contains(err.Error(), c.expected) {
				t.Errorf("got %v, want %q", err, c.expected)
			}
		})
	}
}
