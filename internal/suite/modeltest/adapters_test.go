package modeltest

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/oracle"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/lora"
	"grove/internal/weights/tensor"
)

// adapterSpecs are models whose tensors adapters add to: plain and tied heads, fused tensors, biases, mixtures, latents.
var adapterSpecs = map[string]Spec{
	"llama":      {Arch: "llama", Layers: 2},
	"tied":       {Arch: "llama", Layers: 2, Tied: true},
	"qwen2":      {Arch: "qwen2", Layers: 2},
	"gemma2":     {Arch: "gemma2", Layers: 2},
	"phi3":       {Arch: "phi3", Layers: 2},
	"starcoder2": {Arch: "starcoder2", Layers: 2},
	"qwen3moe":   {Arch: "qwen3moe", Layers: 2},
	"gpt-oss":    {Arch: "gpt-oss", Layers: 2, Window: 20},
	"deepseek2":  {Arch: "deepseek2", KeySize: 48, Layers: 2, Latent: synthetic.Latent{QRank: 32, Dense: 1, Shared: 1}},
}

// randomAdapter makes an adapter with a pair for every tensor of a model that a function picks.
func randomAdapter(t testing.TB, f *gguf.File, seed uint64, rank int, typ tensor.Type, picks func(name string) bool) *lora.Adapter {
	t.Helper()
	metadata, tensors, err := synthetic.Adapter(f, seed, rank, typ, picks, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := lora.FromGGUF(written(t, metadata, tensors))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Fit(f); err != nil {
		t.Fatal(err)
	}
	return a
}

// merged returns a copy of a model's file with adapters merged into F32 tensors.
func merged(t testing.TB, f *gguf.File, adapters []*lora.Adapter, scales []float64) *gguf.File {
	t.Helper()
	tensors := append([]tensor.View(nil), f.Tensors...)
	for i, v := range tensors {
		values, changed, err := lora.Merged(f, v, adapters, scales)
		if err != nil {
			t.Fatal(err)
		}
		if changed {
			v.Type = tensor.F32
			v.Data = make([]byte, v.Bytes())
			if err := tensor.Pack(tensor.F32, v.Data, values); err != nil {
				t.Fatal(err)
			}
			tensors[i] = v
		}
		if _, ok := f.Tensor("output.weight"); !ok && v.Name == "token_embd.weight" { // the adapter is for the lookup alone
			head := f.Tensors[i]
			head.Name = "output.weight"
			tensors = append(tensors, head)
		}
	}
	return written(t, f.Metadata, tensors)
}

// adapt packs adapters for a runner's model.
func (r *Runner) adapt(t testing.TB, threads int, all ...*lora.Adapter) (packed []compute.Adapted) {
	t.Helper()
	pool := par.New(threads)
	defer pool.Close()
	for _, a := range all {
		w, err := model.Adapt(r.Model.Info(), pool, a)
		if err != nil {
			t.Fatal(err)
		}
		packed = append(packed, compute.Adapted{Adapter: w, Scale: 1})
	}
	return packed
}

// adapted runs a text behind an empty sequence in steps of chunk rows, all with a set of adapters.
func (r *Runner) adapted(set int, ids []token.ID, chunk int) (out []Bits) {
	r.tb.Helper()
	s := r.Cache.NewSeq("")
	defer r.Close(s)
	for len(ids) > 0 {
		n := min(chunk, len(ids))
		end := forest.Trunk
		for _, id := range ids[:n] {
			end = r.Add(forest.Row{Seq: s, Parent: end, ID: id, Adapter: set, Want: logits})
		}
		r.Forward()
		out = append(out, r.take(n)...)
		r.Commit(s, end)
		ids = ids[n:]
	}
	return out
}

// mergedSpecs are models whose adapters are compared with merged ones besides.
var mergedSpecs = map[string]Spec{
	"gemma3n": {Arch: "gemma3n"}, "gemma4": {Arch: "gemma4", Layers: 8}, "lfm2": {Arch: "lfm2", Layers: 4}, "qwen35": {Arch: "qwen35", Layers: 4},
	"mamba": {Arch: "mamba", Layers: 2}, "mamba2": {Arch: "mamba2", Layers: 2}, "kimi-linear": {Arch: "kimi-linear", Layers: 4},
}

// TestAdaptersMerged compares a model with two adapters on every tensor that can have one with the model into whose tensors they are
// merged, and that with the oracle in float64 where it knows the architecture.
func TestAdaptersMerged(t *testing.T) {
	specs := maps.Clone(adapterSpecs)
	maps.Copy(specs, mergedSpecs)
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			f := spec.File(t)
			r := New(t, f, Config{Threads: 2, Context: 128})
			all := []*lora.Adapter{
				randomAdapter(t, f, 1, 4, tensor.F32, r.Model.Info().Adapts), randomAdapter(t, f, 2, 20, tensor.F16, r.Model.Info().Adapts),
			}
			set := r.adapt(t, 2, all...)
			set[0].Scale, set[1].Scale = 0.5, -0.75
			r.Exec.SetAdapters(1, [32]byte{1}, set)
			ids := randomIDs(rand.New(rand.NewPCG(3, 4)), 70, r.Model.Info().Vocabulary)
			got := r.adapted(1, ids, len(ids))
			file := merged(t, f, all, []float64{0.5, -0.75})
			var want [][]float64
			for _, b := range New(t, file, Config{Context: 128}).Reference(ids) {
				row := make([]float64, len(b))
				for i, v := range b {
					row[i] = float64(v)
				}
				want = append(want, row)
			}
			nearly(t, "the merged model", got, want, 4e-5)
			if o, err := oracle.New(file); err == nil {
				var plain []int
				for _, id := range ids {
					plain = append(plain, int(id))
				}
				nearly(t, "the oracle", got, o.Forward(plain), 1e-4)
			}
			base := r.adapted(0, ids, len(ids))
			if Equal("", base, got) == nil {
				t.Error("the adapters change nothing")
			}
		})
	}
}

// nearly expects values within a part of the largest.
func nearly(t *testing.T, what string, got []Bits, want [][]float64, tolerance float64) {
	t.Helper()
	var worst, scale float64
	for i, row := range want {
		for v, x := range row {
			worst, scale = max(worst, math.Abs(x-float64(got[i][v]))), max(scale, math.Abs(x))
		}
	}
	t.Logf("%s: largest difference %.2g of largest value %.3g", what, worst, scale)
	if !(worst <= tolerance*scale) {
		t.Errorf("%s: values differ by %g; the largest is %g", what, worst, scale)
	}
}

// TestAdaptersBits runs rows with several sets of adapters in one step, as a tree and in chunks, and expects the bits of each row
// alone, for any number of threads, kernel and layout of weights. Rows without adapters have the bits of a model without. The short run has llama with both weight
// types, and the others with one by turns.
func TestAdaptersBits(t *testing.T) {
	for n, name := range slices.Sorted(maps.Keys(adapterSpecs)) {
		spec := adapterSpecs[name]
		for i, typ := range []tensor.Type{tensor.F32, tensor.Q8_0} {
			if !long && name != "llama" && i != n%2 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", name, typ), func(t *testing.T) { checkAdapters(t, spec, typ) })
		}
	}
}

const adapterSets = 4 // none, and three

func checkAdapters(t *testing.T, spec Spec, typ tensor.Type) {
	spec.Type = typ
	f := spec.File(t)
	rng := rand.New(rand.NewPCG(7, 8))
	kinds := kernel.Implementations()
	defer kernel.Use(kinds[0])
	var want [adapterSets][]Bits
	var texts [adapterSets][]token.ID
	var plain []Bits
	for n, c := range []Config{{Threads: 1}, {Threads: 2}, {Threads: 2, NoRepack: true}, {Threads: 1}} {
		kernel.Use(kinds[0])
		if n == 3 {
			kernel.Use(kinds[len(kinds)-1])
		}
		c.Context = 128
		r := New(t, f, c)
		info := r.Model.Info()
		a := r.adapt(t, c.Threads, randomAdapter(t, f, 1, 4, tensor.F32, info.Adapts), randomAdapter(t, f, 2, 20, tensor.F16, info.Adapts))
		r.Exec.SetAdapters(1, [32]byte{1}, a[:1])
		r.Exec.SetAdapters(2, [32]byte{2}, a[1:])
		r.Exec.SetAdapters(3, [32]byte{3}, []compute.Adapted{{Adapter: a[1].Adapter, Scale: 0.3}, a[0]})
		if n == 0 {
			for set := range want {
				texts[set] = randomIDs(rng, 70, info.Vocabulary)
				want[set] = r.adapted(set, texts[set], 1)
			}
			plain = New(t, f, c).Plain(texts[0])
		}
		if err := Equal("rows without adapters", want[0], plain); err != nil {
			t.Error(err)
		}
		for set := range want {
			for i, chunk := range []int{3, 33, 70} {
				if !long && (n+set)%3 != i { // by turns
					continue
				}
				if err := Equal(fmt.Sprintf("config %d, set %d, chunks of %d", n, set, chunk), r.adapted(set, texts[set], chunk), want[set]); err != nil {
					t.Error(err)
				}
			}
		}
		checkMixed(t, r, texts, want)
	}
}

// checkMixed runs one step of trees of all sets, whose rows take turns.
func checkMixed(t *testing.T, r *Runner, texts [adapterSets][]token.ID, want [adapterSets][]Bits) {
	const trunk, live = 60, 10
	var seqs [adapterSets]forest.Seq
	for set := range seqs {
		seqs[set] = r.Cache.NewSeq("")
		end := forest.Trunk
		for _, id := range texts[set][:trunk] {
			end = r.Add(forest.Row{Seq: seqs[set], Parent: end, ID: id, Adapter: set})
		}
		r.Forward()
		r.Commit(seqs[set], end)
	}
	var ends [adapterSets]forest.Node
	type row struct{ set, at int }
	var rows []row
	for i := range live {
		for set := range seqs {
			branch := forest.Row{Seq: seqs[set], Parent: ends[set], ID: texts[(set+1)%adapterSets][i], Adapter: (set + i) % adapterSets}
			ends[set] = r.Add(forest.Row{Seq: seqs[set], Parent: ends[set], ID: texts[set][trunk+i], Adapter: set, Want: logits})
			rows = append(rows, row{set, trunk + i})
			r.Add(branch) // a sibling with another set
			rows = append(rows, row{-1, 0})
		}
	}
	r.Forward()
	for i, at := range rows {
		if at.set >= 0 {
			if err := r.bits(i).Diff(want[at.set][at.at]); err != nil {
				t.Errorf("a step of all sets: set %d, index %d: %v", at.set, at.at, err)
			}
		}
	}
	for _, s := range seqs {
		r.Close(s)
	}
}

// TestAdaptersSteadyState expects steps with and without adapters to allocate nothing.
func TestAdaptersSteadyState(t *testing.T) {
	for name, spec := range adapterSpecs {
		t.Run(name, func(t *testing.T) {
			spec.Type = tensor.Q8_0
			f := spec.File(t)
			r := New(t, f, Config{Threads: 2, Context: 128})
			r.Exec.SetAdapters(1, [32]byte{1}, r.adapt(t, 2, randomAdapter(t, f, 1, 16, tensor.F16, r.Model.Info().Adapts)))
			s := r.Cache.NewSeq("")
			step := func() {
				end := forest.Trunk
				for i := range 8 {
					end = r.Add(forest.Row{Seq: s, Parent: end, ID: token.ID(i), Adapter: i % 2, Want: logits})
				}
				r.Forward()
				r.Drop(s, forest.Trunk)
			}
			for range 3 {
				step()
			}
			if n := testing.AllocsPerRun(10, step); n != 0 {
				t.Errorf("a step allocates %v times", n)
			}
		})
	}
}
