package compute

import (
	"context"
	"math"
	"testing"

	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// bucketOf is T5's function of a distance as the paper's code has it, in float64. A whole quotient may come out a little
// less, so the bucket begins a little early.
func bucketOf(relative, buckets, reach int, both bool) int {
	at := 0
	if both {
		buckets /= 2
		if relative > 0 {
			at = buckets
		}
		relative = max(relative, -relative)
	} else {
		relative = max(0, -relative)
	}
	exact := buckets / 2
	if relative < exact {
		return at + relative
	}
	far := exact + int(math.Log(float64(relative)/float64(exact))/math.Log(float64(reach)/float64(exact))*float64(buckets-exact)+1e-9)
	return at + min(far, buckets-1)
}

// biases are attentions with biases, and these as functions of head and distance.
func biases(t *testing.T, heads int, both bool) map[string]struct {
	c    Attention
	bias func(head, distance int) float64
} {
	const buckets, reach = 16, 90
	table, slopes := Vector{F: make([]float32, buckets*heads)}, Vector{F: make([]float32, heads)}
	for i := range table.F {
		table.F[i] = float32(math.Sin(float64(i))) * 3
	}
	for i := range slopes.F {
		slopes.F[i] = float32(math.Exp2(-float64(i + 1)))
	}
	r, err := weight.NewRelative(table, heads, reach, both)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]struct {
		c    Attention
		bias func(head, distance int) float64
	}{
		"slopes": {Attention{Heads: heads, Scale: 0.3, Slopes: slopes}, func(head, d int) float64 {
			return -float64(slopes.F[head]) * math.Abs(float64(d))
		}},
		"relative": {Attention{Heads: heads, Scale: 0.3, Relative: r}, func(head, d int) float64 {
			return float64(table.F[bucketOf(d, buckets, reach, both)*heads+head])
		}},
	}
}

// TestBiases compares attention with biases with float64, and its bits on one thread and on many, in long tiles and in
// short ones, and with those of rows one by one.
func TestBiases(t *testing.T) {
	const heads, kvHeads, size, depth, rows = 6, 2, 32, 150, 200
	for name, b := range biases(t, heads, false) {
		for _, typ := range []tensor.Type{tensor.F32, tensor.Q8_0} {
			for _, window := range []int{0, 70} {
				layer := kv.Layer{KVHeads: kvHeads, KeySize: size}
				if window > 0 {
					layer.Keeps = kv.Window(window)
				}
				config := kv.Config{Type: typ, Context: 512, Tokens: 512, Seqs: 1, Scratch: 256, Layers: []kv.Layer{layer}}
				want := attended(t, config, 1, depth, b.c, 1, rows)
				for _, at := range [][2]int{{1, rows}, {16, rows}, {1, 7}} {
					got := attended(t, config, at[0], depth, b.c, at[1], rows)
					for i, v := range want {
						if math.Float32bits(v) != math.Float32bits(got[i]) {
							t.Fatalf("%s, %v: %d rows a step on %d threads: value %d of row %d is %v and %v", name, typ, at[1], at[0], i%(heads*size), i/(heads*size), got[i], v)
						}
					}
				}
				if typ != tensor.F32 {
					continue
				}
				var queries, keys, values []float64 // as attended fills its buffers: a trunk's rows are steps of one row
				for row := range depth + rows {
					if row >= depth {
						row -= depth
					}
					value := func(kind, place int) float64 { return float64(float32(math.Sin(float64(place*(3+kind)))) * 2) }
					for i := range heads * size {
						queries = append(queries, value(0, row*heads*size+i))
					}
					for i := range kvHeads * size {
						keys, values = append(keys, value(1, row*kvHeads*size+i)), append(values, value(2, row*kvHeads*size+i))
					}
				}
				for row := range rows {
					for h := range heads {
						low := 0
						if window > 0 {
							low = max(0, depth+row-window+1)
						}
						sum, out := 0.0, make([]float64, size)
						for j := low; j <= depth+row; j++ {
							s := 0.0
							q, at := queries[(depth+row)*heads*size+h*size:], (j*kvHeads+h/3)*size
							for i := range size {
								s += q[i] * keys[at+i]
							}
							w := math.Exp(s*float64(b.c.Scale) + b.bias(h, j-depth-row))
							sum += w
							for i := range out {
								out[i] += w * values[at+i]
							}
						}
						for i := range out {
							if got := float64(want[(row*heads+h)*size+i]); math.Abs(got-out[i]/sum) > 2e-5 {
								t.Fatalf("%s, window %d: value %d of head %d of row %d is %v, want %v", name, window, i, h, row, got, out[i]/sum)
							}
						}
					}
				}
			}
		}
	}
}

// TestBiasesOfBlocks attends from rows that see each other, with biases of both directions.
func TestBiasesOfBlocks(t *testing.T) {
	const heads, size, rows = 2, 8, 150
	pool := par.New(2)
	defer pool.Close()
	for name, b := range biases(t, heads, true) {
		cache, err := kv.New(kv.Config{Type: tensor.F32, Context: 256, Tokens: 256, Seqs: 1, Scratch: 256, Layers: []kv.Layer{{KVHeads: heads, KeySize: size}}})
		if err != nil {
			t.Fatal(err)
		}
		x, s, parent := NewExec(cache, pool, size, rows), cache.NewSeq(""), forest.Trunk
		for range rows {
			if parent, err = x.Step.Add(forest.Row{Seq: s, Parent: parent, Block: 1}); err != nil {
				t.Fatal(err)
			}
		}
		var values [3][rows * heads * size]float32
		for kind := range values {
			for i := range values[kind] {
				values[kind][i] = float32(math.Sin(float64(i * (3 + kind))))
			}
		}
		value := func(kind, row, place int) float32 { return values[kind][row*heads*size+place] }
		err = x.Run(context.Background(), func(x *Exec) {
			x.Enter(0)
			q, k, v := x.alloc(rows, heads*size), x.alloc(rows, heads*size), x.alloc(rows, heads*size)
			for i, b := range []Buf{q, k, v} {
				for j := range b.f {
					b.f[j] = value(i, j/b.width, j%b.width)
				}
			}
			got := x.Attend(b.c, q, k, v)
			for row := range rows {
				for h := range heads {
					sum, out := 0.0, make([]float64, size)
					for j := range rows {
						s := 0.0
						for i := range size {
							s += float64(value(0, row, h*size+i)) * float64(value(1, j, h*size+i))
						}
						w := math.Exp(s*float64(b.c.Scale) + b.bias(h, j-row))
						sum += w
						for i := range out {
							out[i] += w * float64(value(2, j, h*size+i))
						}
					}
					for i := range out {
						if g := float64(got.row(row)[h*size+i]); math.Abs(g-out[i]/sum) > 1e-5 {
							t.Fatalf("%s: value %d of head %d of row %d is %v, want %v", name, i, h, row, g, out[i]/sum)
						}
					}
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestBiasesRefused attends with biases that do not fit.
func TestBiasesRefused(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	relative, err := weight.NewRelative(Vector{F: make([]float32, 32)}, 1, 128, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Attention{
		{Heads: 2, Scale: 1, Slopes: weight.Ones(3)}, {Heads: 2, Scale: 1, Relative: relative}, {Heads: 2, Scale: 1, Softcap: 1, Slopes: weight.Ones(2)},
	} {
		cache, err := kv.New(kv.Config{Type: tensor.F32, Context: 64, Tokens: 64, Seqs: 1, Scratch: 64, Layers: []kv.Layer{{KVHeads: 2, KeySize: 4}}})
		if err != nil {
			t.Fatal(err)
		}
		x := NewExec(cache, pool, 8, 1)
		if _, err := x.Step.Add(forest.Row{Seq: cache.NewSeq("")}); err != nil {
			t.Fatal(err)
		}
		err = x.Run(context.Background(), func(x *Exec) {
			x.Enter(0)
			a := x.alloc(1, 8)
			clear(a.f)
			x.Attend(c, a, a, a)
		})
		if err == nil {
			t.Errorf("%+v: attended", c)
		}
	}
}
