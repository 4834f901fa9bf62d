package modeltest

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/forest"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/oracle"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// blockModules are modules that draft blocks, of a small target.
var blockModules = map[string]synthetic.Module{
	"dflash":             {Family: "dflash", Taps: []int32{2}},
	"dflash, 3 taps":     {Family: "dflash", Taps: []int32{3, 1, 2}},
	"dflash, causal":     {Family: "dflash", Taps: []int32{2, 3}, Causal: true},
	"dflash, own head":   {Family: "dflash", Taps: []int32{1}, Own: true},
	"dflare":             {Family: "dflare", Taps: []int32{1, 3}},
	"dspark":             {Family: "dflash", Taps: []int32{1, 3}, Rank: 8},
	"dflare with markov": {Family: "dflare", Taps: []int32{3}, Rank: 5, Own: true, Causal: true},
	"dspark, 8-bit":      {Family: "dflash", Taps: []int32{1, 2}, Rank: 32, Type: tensor.Q8_0},
}

// moduleTarget is the target of modules in tests.
var moduleTarget = Spec{Layers: 4, Seed: 3}

// moduleFile returns the file of a module whose parts edit may change.
func moduleFile(tb testing.TB, m synthetic.Module, edit func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View)) *gguf.File {
	tb.Helper()
	m.Target, m.Seed = moduleTarget.WithDefaults(), 7
	kvs, tensors, err := m.Parts()
	if err != nil {
		tb.Fatal(err)
	}
	if edit != nil {
		kvs, tensors = edit(kvs, tensors)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, kvs, tensors); err != nil {
		tb.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// blockRunner runs a module's blocks.
type blockRunner struct {
	*Runner
	features [][]float32
	wide     int
}

// openBlock opens a module's file for the target, with features of a text.
func openBlock(tb testing.TB, file *gguf.File, threads int) *blockRunner {
	tb.Helper()
	pool := par.New(threads)
	tb.Cleanup(pool.Close)
	target, err := model.Open(moduleTarget.File(tb), pool, model.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	m, err := model.OpenModule(file, pool, target, model.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	r := &blockRunner{Runner: NewFor(tb, m, pool, Config{CacheType: tensor.F32, Threads: threads}), wide: m.Info().Module.FeatureWidth(m.Info().Width)}
	rng := rand.New(rand.NewPCG(4, 4))
	for range 70 {
		f := make([]float32, r.wide)
		for i := range f {
			f[i] = float32(rng.NormFloat64())
		}
		r.features = append(r.features, f)
	}
	return r
}

// context adds rows of features to a sequence, and commits them.
func (r *blockRunner) context(s forest.Seq, from, end int) {
	r.tb.Helper()
	parent := forest.Trunk
	for i := from; i < end; i++ {
		parent = r.Add(forest.Row{Seq: s, Parent: parent, ID: token.ID(i % 7), Vector: r.features[i]})
	}
	r.Forward()
	r.Commit(s, parent)
}

// block adds a block to the next step.
func (r *blockRunner) block(s forest.Seq, ids []token.ID) {
	b, parent := r.Model.Info().Module.Block, forest.Trunk
	for _, id := range ids {
		row := forest.Row{Seq: s, Parent: parent, ID: id, Want: forest.Want{Logits: true, State: true}}
		if b.Sees {
			row.Block = 1
		}
		if b.Order {
			row.Skip = row.Skip.With(len(r.Model.Info().Layers) - 1)
		}
		parent = r.Add(row)
	}
}

// logits returns what n rows of the last step gave, from one on.
func (r *blockRunner) logits(from, n int) (out [][]float32) {
	for i := range n {
		out = append(out, slices.Clone(r.Exec.Result(from+i).Logits))
	}
	return out
}

// run returns the logits of a block behind all features.
func (r *blockRunner) run(ids []token.ID) [][]float32 {
	s := r.NewSeq("")
	defer r.Close(s)
	r.context(s, 0, len(r.features))
	r.block(s, ids)
	r.Forward()
	return r.logits(0, len(ids))
}

var blockIDs = []token.ID{9, 47, 47, 47, 47}

// TestBlocks compares the modules that draft blocks with the oracle, within 1e-4 of the largest value (6e-2 with 8-bit weights, whose products round what they
// read). A block has the same bits alone and beside others, by one thread and by three, with its context in one piece and in two.
func TestBlocks(t *testing.T) {
	for name, m := range blockModules {
		t.Run(name, func(t *testing.T) {
			bound := 1e-4
			if m.Type != tensor.F32 {
				bound = 6e-2
			}
			holdsBlock(t, moduleFile(t, m, nil), bound)
		})
	}
}

// holdsBlock compares a module's block with the oracle, and its bits in other steps and by other threads.
func holdsBlock(t *testing.T, file *gguf.File, bound float64) *blockRunner {
	t.Helper()
	r := openBlock(t, file, 1)
	got := r.run(blockIDs)
	o := oracle.NewModule(file, moduleTarget.File(t))
	features, ids := make([][]float64, len(r.features)), make([]int, len(blockIDs))
	for i, f := range r.features {
		features[i] = wide(f)
	}
	for i, id := range blockIDs {
		ids[i] = int(id)
	}
	states, want := o.Block(features, ids)
	nearOracle(t, "logits", got, want, bound)
	if r.Model.Info().Module.Block.Order {
		r.order(t, o, states, bound)
	}
	if diff := cmp.Diff(got, openBlock(t, file, 3).run(blockIDs)); diff != "" {
		t.Errorf("with three threads: %s", diff)
	}
	if diff := cmp.Diff(got, r.beside()); diff != "" {
		t.Errorf("in two pieces and beside another block: %s", diff)
	}
	return r
}

// beside returns the logits of a block whose context came in two pieces, in a step with another one's context and a third one's block.
func (r *blockRunner) beside() [][]float32 {
	s, other, third := r.NewSeq(""), r.NewSeq("a"), r.NewSeq("b")
	for _, q := range []forest.Seq{s, other, third} {
		defer r.Close(q)
	}
	r.context(s, 0, 33)
	r.context(s, 33, len(r.features))
	r.context(third, 3, 20)
	r.block(third, []token.ID{1, 47, 47})
	r.Add(forest.Row{Seq: other, ID: 3, Vector: r.features[5]})
	r.block(s, blockIDs)
	r.Forward()
	return r.logits(4, len(blockIDs))
}

// order compares the layer for rows of a token with the oracle's, in a step with a block.
func (r *blockRunner) order(t *testing.T, o *oracle.Module, states [][]float64, bound float64) {
	t.Helper()
	b, last := r.Model.Info().Module.Block, len(r.Model.Info().Layers)-1
	s := r.NewSeq("")
	defer r.Close(s)
	r.block(s, blockIDs)
	var got, want [][]float32
	var exact [][]float64
	for i, state := range states {
		r.Add(forest.Row{Seq: s, ID: token.ID(3 + i), Vector: narrow(state), Skip: forest.LayerRange(0, last), Want: forest.Want{Logits: true, State: true}})
	}
	r.Forward()
	for i, state := range states {
		logits, trust := o.Order(3+i, state)
		result := r.Exec.Result(len(blockIDs) + i)
		got, exact = append(got, append(slices.Clone(result.Logits), result.State[b.Trust])), append(exact, append(logits, trust))
		want = append(want, slices.Clone(result.Logits))
	}
	nearOracle(t, "of tokens", got, exact, bound)
	for i := range states { // the logits do not depend on the state
		r.Add(forest.Row{Seq: s, ID: token.ID(3 + i), Skip: forest.LayerRange(0, last), Want: forest.Want{Logits: true}})
	}
	r.Forward()
	if diff := cmp.Diff(want, r.logits(0, len(states))); diff != "" {
		t.Errorf("of tokens without a state: %s", diff)
	}
}

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func narrow(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// nearOracle compares rows with those of an oracle.
func nearOracle(t *testing.T, what string, got [][]float32, want [][]float64, bound float64) {
	t.Helper()
	var worst, scale float64
	for i, row := range want {
		for v, x := range row {
			worst, scale = max(worst, math.Abs(x-float64(got[i][v]))), max(scale, math.Abs(x))
		}
	}
	t.Logf("%s: largest difference %.2g of largest value %.3g", what, worst, scale)
	if !(worst <= bound*scale) {
		t.Errorf("%s differ by %g; the largest value is %g", what, worst, scale)
	}
}

// TestBlockSees: a row of a block depends on the later ones unless the module is causal, and never on the context's rows behind its own.
func TestBlockSees(t *testing.T) {
	changed := slices.Clone(blockIDs)
	changed[3] = 11
	for _, causal := range []bool{false, true} {
		r := openBlock(t, moduleFile(t, synthetic.Module{Family: "dflash", Taps: []int32{2}, Causal: causal}, nil), 1)
		one, other := r.run(blockIDs), r.run(changed)
		if same := slices.Equal(one[1], other[1]); same != causal {
			t.Errorf("causal %v: row 1 is the same with another row 3: %v", causal, same)
		}
		if slices.Equal(one[4], other[4]) {
			t.Errorf("causal %v: row 4 does not depend on row 3", causal)
		}
	}
}

// TestDFlareIsDFlash: with one place of the stream, equal projections and a product with the identity DFlare is DFlash, bit by bit.
func TestDFlareIsDFlash(t *testing.T) {
	m := synthetic.Module{Family: "dflare", Taps: []int32{2}}
	var plain []tensor.View
	file := moduleFile(t, m, func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
		for i := range tensors {
			if name, ok := strings.CutSuffix(tensors[i].Name, "_target.weight"); ok {
				tensors[i].Data = named(t, tensors, name+".weight").Data
			}
		}
		plain = slices.DeleteFunc(slices.Clone(tensors), func(v tensor.View) bool {
			return strings.HasSuffix(v.Name, "_target.weight") || v.Name == "fusion.weight"
		})
		return kvs, tensors
	})
	width := moduleTarget.WithDefaults().Width
	identity := make([]float32, width*width)
	for i := range width {
		identity[i*width+i] = 1
	}
	other := moduleFile(t, m, func(kvs []gguf.KV, _ []tensor.View) ([]gguf.KV, []tensor.View) {
		fc := tensor.View{Name: "fc.weight", Type: tensor.F32, Shape: []int{width, width}, Data: make([]byte, 4*width*width)}
		if err := tensor.Pack(tensor.F32, fc.Data, identity); err != nil {
			t.Fatal(err)
		}
		return kvs, append(plain, fc)
	})
	flare, flash := openBlock(t, file, 1), openBlock(t, other, 1)
	if f := [2]string{flare.Model.Info().Module.Family, flash.Model.Info().Module.Family}; f != [2]string{"dflare", "dflash"} {
		t.Errorf("families %q", f)
	}
	if diff := cmp.Diff(flare.run(blockIDs), flash.run(blockIDs)); diff != "" {
		t.Error(diff)
	}
}

// named returns a tensor by its name.
func named(tb testing.TB, tensors []tensor.View, name string) tensor.View {
	tb.Helper()
	i := slices.IndexFunc(tensors, func(v tensor.View) bool { return v.Name == name })
	if i < 0 {
		tb.Fatalf("no tensor %q", name)
	}
	return tensors[i]
}

// llamaNames are the names of ik_llama.cpp's files for those of grove's.
var llamaNames = strings.NewReplacer("dflash.block_size", "dflash.dflash.block_size", "dflash.mask_token_id", "dflash.dflash.mask_token_id",
	"dflash.taps", "dflash.dflash.target_layer_ids", "fc.weight", "dflash_fc.weight", "hidden_norm.weight", "dflash_hidden_norm.weight", "ffn_norm", "post_attention_norm")

// asLlama names what a file has as ik_llama.cpp does.
func asLlama(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
	for i := range kvs {
		key := llamaNames.Replace(kvs[i].Key)
		if kvs[i].Key == "general.architecture" {
			kvs[i].Value = gguf.Of("dflash-draft")
		} else if rest, ok := strings.CutPrefix(key, "dflash."); ok {
			key = "dflash-draft." + rest
		}
		if kvs[i].Key == "dflash.taps" {
			kvs[i].Value = gguf.ArrayOf([]int32{2, 0})
		}
		kvs[i].Key = key
	}
	for i := range tensors {
		tensors[i].Name = llamaNames.Replace(tensors[i].Name)
	}
	return kvs, tensors
}

// TestLlamaDFlash: a file with the names of ik_llama.cpp is the same module.
func TestLlamaDFlash(t *testing.T) {
	m := synthetic.Module{Family: "dflash", Taps: []int32{3, 1}, Rank: 4}
	own, other := openBlock(t, moduleFile(t, m, nil), 1), openBlock(t, moduleFile(t, m, asLlama), 1)
	if diff := cmp.Diff(own.Model.Info().Module, other.Model.Info().Module); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(own.run(blockIDs), other.run(blockIDs)); diff != "" {
		t.Error(diff)
	}
}

// TestBadBlocks: modules that contradict themselves or their target are refused by what is wrong.
func TestBadBlocks(t *testing.T) {
	set := func(key string, v gguf.Value) func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View) {
		return func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
			kvs = slices.DeleteFunc(kvs, func(kv gguf.KV) bool { return kv.Key == key })
			return append(kvs, gguf.KV{Key: key, Value: v}), tensors
		}
	}
	without := func(name string) func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View) {
		return func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
			return kvs, slices.DeleteFunc(tensors, func(v tensor.View) bool { return v.Name == name })
		}
	}
	llama := func(key string, v gguf.Value) func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View) {
		return func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
			kvs, tensors = asLlama(kvs, tensors)
			return append(kvs, gguf.KV{Key: "dflash-draft." + key, Value: v}), tensors
		}
	}
	for _, c := range []struct {
		name string
		edit func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View)
		want string
	}{
		{"mask outside the vocabulary", set("dflash.mask_token_id", gguf.Of(uint32(48))), "dflash.mask_token_id is 48; it must be 0 to 47"},
		{"a block of one row", set("dflash.block_size", gguf.Of(uint32(1))), "dflash.block_size is 1; it must be 2 to 64"},
		{"a tap twice", set("dflash.taps", gguf.ArrayOf([]int32{2, 2})), "value 1 of dflash.taps is 2; taps are distinct, from 1 to 4"},
		{"a tap beyond the target", set("dflash.taps", gguf.ArrayOf([]int32{2, 5})), "value 1 of dflash.taps is 5"},
		{"no taps", set("dflash.taps", gguf.ArrayOf([]int32{})), "dflash.taps has 0 values"},
		{"more taps than fc reads", set("dflash.taps", gguf.ArrayOf([]int32{1, 2, 3})), `tensor "fc.weight"`},
		{"no fc", without("fc.weight"), `tensor "fc.weight"`},
		{"no norm of the context", without("hidden_norm.weight"), `tensor "hidden_norm.weight"`},
		{"half of a Markov head", without("markov_w2.weight"), `tensor "markov_w2.weight"`},
		{"the other half", without("markov_w1.weight"), `"dflash" has no place for this tensor`},
		{"another width", set("dflash.embedding_length", gguf.Of(uint32(32))), "the width of the target is"},
		{"norms of the places", llama("dflash.laguna", gguf.Of(true)), "dflash.laguna is set"},
		{"two rotations", llama("dflash.backbone_rotary_base", gguf.Of(float32(5e6))), "dflash.backbone_rotary_base is 5e+06 and rope.freq_base is 10000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := moduleFile(t, synthetic.Module{Family: "dflash", Taps: []int32{3, 1}, Rank: 4}, c.edit)
			pool := par.New(1)
			defer pool.Close()
			target, err := model.Open(moduleTarget.File(t), pool, model.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := model.OpenModule(file, pool, target, model.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
