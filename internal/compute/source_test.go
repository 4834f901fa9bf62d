package compute

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// sourced is a cache with one layer of self attention and cross attention, and its executor.
type sourced struct {
	t    *testing.T
	x    *Exec
	kept int // values of a head
}

func newSourced(t *testing.T, typ tensor.Type, threads, rows int) *sourced {
	t.Helper()
	pool := par.New(threads)
	t.Cleanup(pool.Close)
	cache, err := kv.New(kv.Config{
		Type: typ, Context: 256, Tokens: 1024, Seqs: 4, Scratch: 64,
		Layers: []kv.Layer{{KVHeads: 1, KeySize: 32, Cross: kv.Heads{KVHeads: 2, KeySize: 32, ValueSize: 64}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &sourced{t, NewExec(cache, pool, 32, rows), 32}
}

func wave(seed, i int) float32 { return float32(math.Sin(float64(i*7+seed*13))) * 2 }

// read gives a sequence a source of n tokens, whose keys are its states and whose values are shifted ones.
func (c *sourced) read(s forest.Seq, seed, n int) {
	c.t.Helper()
	stored, err := c.x.Cache.SetSource(s, string(rune('a'+seed)), n)
	if err != nil || stored {
		c.t.Fatal(stored, err)
	}
	states := make([]float32, n*64)
	for i := range states {
		states[i] = wave(seed, i)
	}
	err = c.x.ReadSource(context.Background(), s, states, 64, func(x *Exec, layer int, b Buf) {
		x.PutSource(layer, b, x.Join(b, b))
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.x.Cache.SealSource(s)
}

// attend attends from rows rows of each of the sequences.
func (c *sourced) attend(rows int, seqs ...forest.Seq) (out []float32, err error) {
	c.t.Helper()
	for _, s := range seqs {
		for range rows {
			if _, err := c.x.Step.Add(forest.Row{Seq: s}); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	err = c.x.Run(context.Background(), func(x *Exec) {
		x.Enter(0)
		q := x.alloc(rows*len(seqs), 4*32)
		for i := range q.f {
			q.f[i] = wave(9, i%(rows*4*32))
		}
		out = append(out, x.AttendSource(Attention{Heads: 4, Scale: 0.1}, q).f...)
	})
	c.x.Step.Abort()
	return out, err
}

// TestAttendSource compares cross attention with float64, and its bits alone, among other sequences, on threads and read in
// pieces, by forks and by sequences that find the source.
func TestAttendSource(t *testing.T) {
	for _, typ := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0} {
		for _, n := range []int{1, 64, 150} {
			c := newSourced(t, typ, 1, 64)
			s := c.x.Cache.NewSeq("")
			c.read(s, 1, n)
			want, err := c.attend(3, s)
			if err != nil {
				t.Fatal(err)
			}
			if typ == tensor.F32 {
				for i, v := range want {
					row, head, at := i/256, i/64%4, i%64
					sum, out := 0.0, 0.0
					for j := range n {
						score := 0.0
						for k := range 32 {
							score += float64(wave(9, row*128+head*32+k)) * float64(wave(1, j*64+head/2*32+k))
						}
						w := math.Exp(score * 0.1)
						sum += w
						out += w * float64(wave(1, j*64+at)) // both heads have the values of the token
					}
					if math.Abs(float64(v)-out/sum) > 1e-5 {
						t.Fatalf("%d tokens: value %d of head %d of row %d is %v, want %v", n, at, head, row, v, out/sum)
					}
				}
			}
			o := newSourced(t, typ, 4, 24)
			other, same := o.x.Cache.NewSeq(""), o.x.Cache.NewSeq("")
			o.read(other, 2, 70)
			o.read(same, 1, n)
			fork, err := o.x.Cache.Fork(same, forest.Trunk)
			if err != nil {
				t.Fatal(err)
			}
			got, err := o.attend(3, other, same, fork)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got[len(want):2*len(want)], want) || !slices.Equal(got[2*len(want):], want) {
				t.Errorf("%v, %d tokens: the bits beside other sequences, or of a fork, differ", typ, n)
			}
			if err := o.x.Cache.CloseSeq(same); err != nil {
				t.Fatal(err)
			}
			again := o.x.Cache.NewSeq("")
			if stored, err := o.x.Cache.SetSource(again, "b", n); err != nil || !stored {
				t.Fatalf("the source is not found: %v, %v", stored, err)
			}
			if got, err := o.attend(3, again); err != nil || !slices.Equal(got, want) {
				t.Errorf("%v, %d tokens: the bits behind a source that was found differ (%v)", typ, n, err)
			}
		}
	}
}

// TestAttendSourceRefused expects a row without a source to fail its step.
func TestAttendSourceRefused(t *testing.T) {
	c := newSourced(t, tensor.F32, 1, 8)
	if _, err := c.attend(1, c.x.Cache.NewSeq("")); err == nil || !strings.Contains(err.Error(), "has none") {
		t.Errorf("a row without a source: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := c.x.Cache.NewSeq("")
	if _, err := c.x.Cache.SetSource(s, "", 1); err != nil {
		t.Fatal(err)
	}
	if err := c.x.ReadSource(ctx, s, make([]float32, 64), 64, func(*Exec, int, Buf) { t.Error("it is read") }); err != context.Canceled {
		t.Errorf("a context that has ended: %v", err)
	}
}
