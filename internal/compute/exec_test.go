package compute_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/model/synthetic"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

var logits = forest.Want{Logits: true}

// archs are small models of the architectures.
var archs = []modeltest.Spec{
	{Arch: "llama"}, {Arch: "llama", Tied: true}, {Arch: "gemma3", Layers: 7}, {Arch: "qwen3moe"},
	{Arch: "gemma2"}, {Arch: "gpt2"}, {Arch: "olmo2"}, {Arch: "phi3"}, {Arch: "qwen2"}, {Arch: "starcoder2"}, {Arch: "gpt-oss"},
	{Arch: "gemma3n"}, {Arch: "gemma4", Experts: 4, ExpertsPerToken: 2},
	{Arch: "deepseek2", KeySize: 64, Latent: synthetic.Latent{QRank: 64, Rope: 32, Dense: 1, Shared: 1}},
}

func text(n int) []token.ID {
	ids := make([]token.ID, n)
	for i := range ids {
		ids[i] = token.ID((i*17 + 5) % 48)
	}
	return ids
}

// add appends a path of rows that want logits to the step.
func add(t testing.TB, r *modeltest.Runner, s forest.Seq, parent forest.Node, ids []token.ID) forest.Node {
	t.Helper()
	for _, id := range ids {
		n, err := r.Exec.Step.Add(forest.Row{Seq: s, Parent: parent, ID: id, Want: logits})
		if err != nil {
			t.Fatal(err)
		}
		parent = n
	}
	return parent
}

func TestInputChecks(t *testing.T) {
	r := modeltest.New(t, modeltest.Spec{Context: 512}.File(t), modeltest.Config{})
	width := func(n int) []float32 { return make([]float32, n) }
	nan := width(64)
	nan[63] = float32(math.NaN())
	tests := []struct {
		name string
		row  forest.Row
		want string
	}{
		{"id too large", forest.Row{ID: 48}, "compute: token id 48 at index 3 is out of range: the vocabulary has 48"},
		{"id negative", forest.Row{ID: -1}, "compute: token id -1 at index 3 is out of range: the vocabulary has 48"},
		{"id in a mixture", forest.Row{Mix: []forest.Weighted{{ID: 1, Weight: 1}, {ID: 48}}},
			"compute: token id 48 in the mixture at index 3 is out of range: the vocabulary has 48"},
		{"negative id in a mixture", forest.Row{Mix: []forest.Weighted{{ID: -2}}},
			"compute: token id -2 in the mixture at index 3 is out of range: the vocabulary has 48"},
		{"empty mixture", forest.Row{Mix: []forest.Weighted{}}, "compute: the mixture at index 3 is empty; it needs an id or more"},
		{"narrow vector", forest.Row{Vector: width(63)}, "compute: the row at index 3 has a vector of 63 values; the model's width is 64"},
		{"wide vector", forest.Row{Vector: width(65)}, "compute: the row at index 3 has a vector of 65 values; the model's width is 64"},
		{"empty vector", forest.Row{Vector: width(0)}, "compute: the row at index 3 has a vector of 0 values; the model's width is 64"},
		{"vector and mixture", forest.Row{Vector: width(64), Mix: []forest.Weighted{{ID: 1, Weight: 1}}},
			"compute: the row at index 3 has a vector and a mixture as input; give one"},
		{"NaN in a vector", forest.Row{Vector: nan}, "compute: layer 0: " + compute.ErrNotFinite.Error()},
		{"NaN in a mixture", forest.Row{Mix: []forest.Weighted{{ID: 1, Weight: float32(math.NaN())}}},
			"compute: layer 0: " + compute.ErrNotFinite.Error()},
		{"group past the vocabulary", forest.Row{Want: forest.Want{Logits: true, Subset: []int32{0, 3}}},
			"compute: the row at index 3: group 3 of its subset follows group 0; groups ascend from 0 to 2"},
		{"negative group", forest.Row{Want: forest.Want{Logits: true, Subset: []int32{-1}}},
			"compute: the row at index 3: group -1 of its subset follows group -1; groups ascend from 0 to 2"},
		{"group twice", forest.Row{Want: forest.Want{Logits: true, Subset: []int32{1, 1}}},
			"compute: the row at index 3: group 1 of its subset follows group 1; groups ascend from 0 to 2"},
		{"hidden state of a layer that is not run", forest.Row{To: 2, Want: forest.Want{Hidden: forest.LayerRange(1, 3)}},
			"compute: the row at index 3 wants hidden states of layers that it does not reach; it runs layers 0 to 1"},
		{"hidden state of a layer that is not there", forest.Row{Want: forest.Want{Hidden: forest.LayerRange(3, 4)}},
			"compute: the row at index 3 wants hidden states of layers that it does not reach; it runs layers 0 to 2"},
	}
	s := r.Cache.NewSeq("")
	r.Prefill(s, text(3), 3)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer r.Exec.Step.Abort()
			tt.row.Seq = s
			n, err := r.Exec.Step.Add(tt.row)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Exec.Run(t.Context(), r.Model.Forward); err == nil || err.Error() != tt.want {
				t.Errorf("Run: %v; want %s", err, tt.want)
			}
			if _, err := r.Cache.Forest.Index(s, n); !errors.Is(err, forest.ErrNode) || len(r.Exec.Step.Rows()) != 0 {
				t.Errorf("the failed step left its row behind: %v", err)
			}
		})
	}
	if err := modeltest.Equal("after the refusals", r.Prefill(s, text(9)[3:], 6), r.Reference(text(9))[3:]); err != nil {
		t.Error(err)
	}
}

// TestResumedEmbedding resumes a row, which has no embedding to give.
func TestResumedEmbedding(t *testing.T) {
	r := modeltest.New(t, modeltest.Spec{Context: 512}.File(t), modeltest.Config{})
	s := r.Cache.NewSeq("")
	n := r.Add(forest.Row{Seq: s, ID: 3, To: 1, Want: forest.Want{Embedding: true}})
	r.Forward()
	if got := r.Exec.Result(0).Hidden; len(got) != 1 || len(got[0]) != 64 {
		t.Errorf("%d states of a row that stops early, want its embedding", len(got))
	}
	if _, err := r.Exec.Step.Add(forest.Row{Seq: s, Resume: n, From: 1, Want: forest.Want{Embedding: true}}); err != nil {
		t.Fatal(err)
	}
	const want = "compute: the row at index 0 is resumed at layer 1 and wants its embedding, which the row that it resumes has"
	if err := r.Exec.Run(t.Context(), r.Model.Forward); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// TestPositionChecks shifts a row of a model with 13 learned positions to the last one, and out of them.
func TestPositionChecks(t *testing.T) {
	r := modeltest.New(t, modeltest.Spec{Arch: "gpt2", Context: 13}.File(t), modeltest.Config{})
	s := r.Cache.NewSeq("")
	r.Prefill(s, text(3), 3)
	for shift, want := range map[int]string{
		-3: "", 9: "", 10: "compute: the row at index 3 has position 13; the model has positions 0 to 12",
	} {
		if _, err := r.Exec.Step.Add(forest.Row{Seq: s, ID: 5, Shift: shift, Want: logits}); err != nil {
			t.Fatal(err)
		}
		err := r.Exec.Run(t.Context(), r.Model.Forward)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("shift %d: %v; want %q", shift, err, want)
		}
		r.Exec.Step.Reset()
		r.Drop(s, forest.Trunk)
	}
}

// TestSoftcap puts one infinity among the queries' weights, and one among the head's, of a model whose soft
// caps would hide them.
func TestSoftcap(t *testing.T) {
	for _, name := range []string{"blk.0.attn_q.weight", "token_embd.weight"} {
		file := modeltest.Spec{Arch: "gemma2", Tied: true, Type: tensor.F32}.File(t)
		v, _ := file.Tensor(name)
		spoil(v, v.Elems()-1, math.Inf(1))
		if err := runSome(t, file, tensor.F32); !errors.Is(err, compute.ErrNotFinite) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEmptyStep runs a step of no rows.
func TestEmptyStep(t *testing.T) {
	for _, spec := range archs {
		r := modeltest.New(t, spec.File(t), modeltest.Config{Threads: 2, CacheType: tensor.Q8_0})
		if err := r.Exec.Run(t.Context(), r.Model.Forward); err != nil {
			t.Errorf("%s: %v", spec.Arch, err)
		}
	}
}

// countdown is a context that is cancelled when it has been asked n times.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancel cancels a step before each of its layers: new rows end, resumed rows are as before, and later steps have
// the right bits.
func TestCancel(t *testing.T) {
	for _, spec := range archs {
		t.Run(spec.Arch, func(t *testing.T) {
			r := modeltest.New(t, spec.File(t), modeltest.Config{CacheType: tensor.F16, Threads: 2})
			layers := len(r.Model.Info().Layers)
			ids := text(76)
			want := r.Reference(ids)
			s := r.Cache.NewSeq("")
			r.Prefill(s, ids[:70], 70)
			for n := range layers {
				draft := make([]forest.Node, 2)
				parent := forest.Trunk
				for i := range draft {
					parent = r.Add(forest.Row{Seq: s, Parent: parent, ID: ids[70+i], To: 1})
					draft[i] = parent
				}
				r.Forward()
				for _, d := range draft {
					r.Add(forest.Row{Seq: s, Resume: d, From: 1, Want: logits})
				}
				last := add(t, r, s, parent, ids[72:])
				if err := r.Exec.Run(&countdown{t.Context(), n}, r.Model.Forward); !errors.Is(err, context.Canceled) {
					t.Fatalf("cancelled before layer %d: %v", n, err)
				}
				if live, rows := r.Cache.Forest.Live(s), len(r.Exec.Step.Rows()); live != 2 || rows != 0 {
					t.Fatalf("cancelled before layer %d: %d live rows and %d in the step; want 2 and 0", n, live, rows)
				}
				if _, err := r.Cache.Forest.Index(s, last); !errors.Is(err, forest.ErrNode) {
					t.Errorf("a row of the cancelled step: %v", err)
				}
				for _, d := range draft {
					r.Add(forest.Row{Seq: s, Resume: d, From: 1, Want: logits})
				}
				add(t, r, s, parent, ids[72:])
				r.Forward()
				for i := range 6 {
					got := modeltest.Bits(r.Exec.Result(i).Logits)
					if err := got.Diff(want[70+i]); err != nil {
						t.Fatalf("after cancelling before layer %d: row %d: %v", n, i, err)
					}
				}
				r.Drop(s, forest.Trunk)
			}
		})
	}
}

// spoil writes a value that is not finite into a tensor, and returns a
// function that puts back what was there.
func spoil(v tensor.View, at int, bad float64) (restore func()) {
	before := append([]byte(nil), v.Data...)
	block, size, _ := v.Type.Block()
	b := v.Data[at/block*size:]
	if v.Type == tensor.F32 {
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(bad)))
	} else { // Q8_0: the scale of the block
		half := uint16(0x7c00)
		if math.IsNaN(bad) {
			half = 0x7e00
		}
		binary.LittleEndian.PutUint16(b, half)
	}
	return func() { copy(v.Data, before) }
}

// TestNotFiniteWeights puts NaN and infinity into every tensor of a model in turn, and expects each
// step over it to end with [compute.ErrNotFinite].
func TestNotFiniteWeights(t *testing.T) {
	for _, spec := range archs {
		spec.Layers = 2
		if spec.Arch == "gemma3" {
			spec.Layers = 6 // the last one sees everything
		}
		spec.Context = 13 // learned positions, of which the steps below reach all
		for _, types := range [][2]tensor.Type{{tensor.F32, tensor.F16}, {tensor.Q8_0, tensor.Q8_0}} {
			spec.Type = types[0]
			t.Run(fmt.Sprintf("%s/tied=%v/weights=%v/cache=%v", spec.Arch, spec.Tied, types[0], types[1]), func(t *testing.T) {
				file := spec.File(t)
				for _, v := range file.Tensors {
					if v.Name == "rope_freqs.weight" {
						continue // refused when the model is opened
					}
					if strings.HasPrefix(v.Name, "blk.") && !strings.HasPrefix(v.Name, "blk.0.") &&
						!strings.HasPrefix(v.Name, fmt.Sprintf("blk.%d.", spec.Layers-1)) {
						continue
					}
					for i, bad := range []float64{math.NaN(), math.Inf(1)} {
						at := []int{v.Elems() / 2, v.Elems() - 1}[i]
						restore := spoil(v, at, bad)
						err := runSome(t, file, types[1])
						restore()
						if !errors.Is(err, compute.ErrNotFinite) {
							t.Errorf("%s: %v at %d: %v", v.Name, bad, at, err)
						}
					}
				}
				if err := runSome(t, file, types[1]); err != nil {
					t.Errorf("the unspoilt model: %v", err)
				}
			})
		}
	}
}

// runSome runs every fourth token of the vocabulary of a model, and the last, in one step.
func runSome(t *testing.T, file *gguf.File, cache tensor.Type) error {
	t.Helper()
	r := modeltest.New(t, file, modeltest.Config{CacheType: cache, Scratch: 64, Context: 64, Seqs: 1})
	ids := []token.ID{47}
	for id := token.ID(0); id < 47; id += 4 {
		ids = append(ids, id)
	}
	add(t, r, r.Cache.NewSeq(""), forest.Trunk, ids)
	return r.Exec.Run(t.Context(), r.Model.Forward)
}

// TestCacheRange gives one layer keys, or values, that the cache's type cannot hold.
func TestCacheRange(t *testing.T) {
	for _, name := range []string{"blk.1.attn_k.weight", "blk.1.attn_v.weight"} {
		file := modeltest.Spec{}.File(t)
		v, _ := file.Tensor(name)
		for i := 0; i < len(v.Data); i += 4 {
			w := math.Float32frombits(binary.LittleEndian.Uint32(v.Data[i:]))
			binary.LittleEndian.PutUint32(v.Data[i:], math.Float32bits(w*1e8))
		}
		for _, cache := range []tensor.Type{tensor.F16, tensor.Q8_0} {
			err := runSome(t, file, cache)
			if !errors.Is(err, compute.ErrCacheRange) || !strings.Contains(err.Error(), "--cache-type f32") {
				t.Errorf("%s x 1e8, %v cache: %v", name, cache, err)
			}
		}
		if err := runSome(t, file, tensor.F32); err != nil {
			t.Errorf("%s x 1e8, F32 cache: %v", name, err)
		}
	}
}

// TestSteadyState expects a step to allocate nothing once its buffers have grown: one row, and a tree.
func TestSteadyState(t *testing.T) {
	type config = modeltest.Config
	for _, spec := range archs {
		for _, tt := range []struct {
			weights tensor.Type
			c       config
		}{
			{tensor.F16, config{CacheType: tensor.F16, Threads: 1}},
			{tensor.Q8_0, config{CacheType: tensor.F16, Threads: 2}},
			{tensor.Q8_0, config{CacheType: tensor.Q8_0, Threads: 1}},
			{tensor.Q4_0, config{CacheType: tensor.F32, Threads: 1}},
			{tensor.Q4_0, config{CacheType: tensor.F32, Threads: 2, NoRepack: true}},
		} {
			spec.Type = tt.weights
			t.Run(fmt.Sprintf("%s/%v/%+v", spec.Arch, spec.Type, tt.c), func(t *testing.T) {
				checkSteadyState(t, modeltest.New(t, spec.File(t), tt.c))
			})
		}
	}
}

func checkSteadyState(t *testing.T, r *modeltest.Runner) {
	s := r.Cache.NewSeq("")
	r.Prefill(s, text(100), 50)
	one := func() {
		n := add(t, r, s, forest.Trunk, []token.ID{3})
		r.Forward()
		r.Commit(s, n)
		if r.Cache.Forest.Len(s) == 120 {
			if err := r.Cache.Truncate(s, 100); err != nil {
				t.Fatal(err)
			}
		}
	}
	tree := func() {
		a := add(t, r, s, forest.Trunk, []token.ID{3, 4, 5})
		b := add(t, r, s, a, []token.ID{6, 7})
		add(t, r, s, a, []token.ID{8})
		add(t, r, s, b, []token.ID{9})
		add(t, r, s, b, []token.ID{10})
		r.Forward()
		r.Drop(s, forest.Trunk)
	}
	for range 25 {
		one()
	}
	tree()
	if n := testing.AllocsPerRun(10, one); n != 0 {
		t.Errorf("a step of one row allocates %v times", n)
	}
	if n := testing.AllocsPerRun(10, tree); n != 0 {
		t.Errorf("a step of a tree of 8 allocates %v times", n)
	}
}
