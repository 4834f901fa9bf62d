package modeltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/oracle"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// moduleCase is a draft module of a target: one of a file of its own, or the predictor of the target's file.
type moduleCase struct {
	target Spec
	module synthetic.Module // Family "": the predictor
	sums   bool             // the predictor adds what it reads, without a matrix
	which  int              // of three predictors; 0: there is one
}

var someTokens = []int32{0, 3, 4, 9, 10, 11, 20, 33, 47}

var moduleCases = map[string]moduleCase{
	"eagle":                       {target: Spec{Arch: "llama"}, module: synthetic.Module{Family: "eagle"}},
	"eagle, scales and a softcap": {target: Spec{Arch: "gemma2"}, module: synthetic.Module{Family: "eagle"}},
	"eagle3":                      {target: Spec{Arch: "llama", Layers: 8}, module: synthetic.Module{Family: "eagle3"}},
	"eagle3, a head of its own":   {target: Spec{Arch: "llama", Layers: 8}, module: synthetic.Module{Family: "eagle3", Own: true}},
	"eagle3, some tokens":         {target: Spec{Arch: "llama", Layers: 4}, module: synthetic.Module{Family: "eagle3", Own: true, Vocabulary: someTokens, Taps: []int32{4, 1, 2}}},
	"fspad":                       {target: Spec{Arch: "llama"}, module: synthetic.Module{Family: "fspad"}},
	"fspad, scales and a softcap": {target: Spec{Arch: "gemma2"}, module: synthetic.Module{Family: "fspad"}},
	"fspad, a head of its own":    {target: Spec{Arch: "llama"}, module: synthetic.Module{Family: "fspad", Own: true}},
	"peagle":                      {target: Spec{Arch: "llama", Layers: 8}, module: synthetic.Module{Family: "peagle"}},
	"peagle, three layers":        {target: Spec{Arch: "llama", Layers: 4}, module: synthetic.Module{Family: "peagle", Blocks: 3, Own: true, Taps: []int32{1, 2, 3}}},
	"peagle, some tokens":         {target: Spec{Arch: "gemma2", Layers: 4}, module: synthetic.Module{Family: "peagle", Blocks: 2, Own: true, Vocabulary: someTokens, Taps: []int32{4, 1, 2}}},
	"kangaroo":                    {target: Spec{Arch: "llama", Layers: 4}, module: synthetic.Module{Family: "kangaroo", Exit: 2}},
	"predictor, deepseek2":        {target: predicting["deepseek2"]},
	"predictor, mimo2":            {target: predicting["mimo2"]},
	"predictor, mimo2, the last":  {target: Spec{Arch: "mimo2", Layers: 5, ValueSize: 24}, which: 2},
	"predictor, step35, a second": {target: Spec{Arch: "step35", Layers: 5}, which: 1},
	"predictor, qwen35":           {target: predicting["qwen35"]},
	"predictor, qwen35moe":        {target: predicting["qwen35moe"]},
	"predictor, step35":           {target: predicting["step35"]},
	"predictor, qwen35, sums":     {target: predicting["qwen35"], sums: true},
}

// moduleUnderTest is a target and its module, with the files of both; the module's is nil where it is the target's.
type moduleUnderTest struct {
	target       *Runner
	module       model.Model
	file, ofPart *gguf.File
	which        int
}

// open opens the target and the module with weights of a type.
func (c moduleCase) open(t *testing.T, weights tensor.Type) *moduleUnderTest {
	t.Helper()
	c.target.Type = weights
	u := &moduleUnderTest{file: c.target.File(t)}
	if c.module.Family == "" {
		n := 1
		if c.which > 0 {
			n = 3
		}
		u.file, u.which = withPredictors(t, u.file, n), c.which
		if c.sums {
			u.file = withoutTensors(t, u.file, "nextn.eh_proj.weight")
		}
	}
	u.target = New(t, u.file, Config{CacheType: tensor.F32, Context: 128})
	var err error
	if c.module.Family == "" {
		var lends bool
		if u.module, lends = model.OpenPredictor(u.target.Model, c.which); !lends {
			t.Fatal("the target lends no head")
		}
	} else {
		c.module.Target, c.module.Type, c.module.Seed = synthetic.Spec(c.target), weights, 8
		metadata, tensors, e := c.module.Parts()
		if e != nil {
			t.Fatal(e)
		}
		pool := par.New(1)
		t.Cleanup(pool.Close)
		u.ofPart = written(t, metadata, tensors)
		u.module, err = model.OpenModule(u.ofPart, pool, u.target.Model, model.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// features returns the features of a text's tokens: the target's final states, or its streams at the module's taps, in their order.
func (u *moduleUnderTest) features(ids []token.ID) (out []Bits) {
	r, m := u.target, u.module.Info().Module
	s, node, want := r.NewSeq(""), forest.Trunk, forest.Want{State: m.Taps == nil}
	defer r.Close(s)
	for _, t := range m.Taps {
		want.Hidden = want.Hidden.With(t - 1)
	}
	for _, id := range ids {
		node = r.Add(forest.Row{Seq: s, Parent: node, ID: id, Want: want})
	}
	r.Forward()
	rising := slices.Sorted(slices.Values(m.Taps))
	for i := range ids {
		got := r.Exec.Result(i)
		feature := slices.Clone(got.State)
		for _, t := range m.Taps {
			feature = append(feature, got.Hidden[slices.Index(rising, t)]...)
		}
		out = append(out, feature)
	}
	return out
}

// pairs runs a path of pairs behind the trunk of a sequence, in steps of at most chunk rows, and returns the logits behind each. Where features end, each row
// reads what the row before it gave, or, of a block, has no vector.
func (r *Runner) pairs(s forest.Seq, ids []token.ID, features []Bits, chunk int) (out []Bits) {
	r.tb.Helper()
	features = slices.Clone(features)
	for first := 0; first < len(ids); {
		n, node := min(chunk, len(features)-first), forest.Trunk
		for i := first; i < first+n; i++ {
			node = r.Add(r.pair(s, node, ids[i], features[i]))
		}
		r.Forward()
		for i := range n {
			out = append(out, r.bits(i))
		}
		if first += n; first == len(features) {
			features = append(features, r.gives(n-1))
		}
		r.Commit(s, node)
	}
	return out
}

// pair is a row of a module.
func (r *Runner) pair(s forest.Seq, parent forest.Node, id token.ID, feature Bits) forest.Row {
	last := len(r.Model.Info().Layers) - 1
	return forest.Row{Seq: s, Parent: parent, ID: id, Vector: feature, Want: forest.Want{Logits: true, State: true, Hidden: forest.LayerRange(last, last+1)}}
}

// gives returns what a row of the last step gives as a feature.
func (r *Runner) gives(i int) Bits {
	if got := r.Exec.Result(i); r.Model.Info().Module.FeedsState {
		return slices.Clone(got.State)
	} else if r.Model.Info().Module.Block == nil {
		return slices.Clone(got.Hidden[0])
	}
	return nil
}

// TestModuleOracle compares modules with the oracle, over 40 pairs of the target's features and 6 of their own.
func TestModuleOracle(t *testing.T) {
	for name, c := range moduleCases {
		for _, weights := range []tensor.Type{tensor.F32, tensor.Q8_0} {
			if weights != tensor.F32 && c.target.Latent != (synthetic.Latent{}) {
				continue // its heads are too small for blocks
			}
			t.Run(fmt.Sprintf("%s, %v", name, weights), func(t *testing.T) { compareModule(t, c.open(t, weights), weights) })
		}
	}
}

func compareModule(t *testing.T, u *moduleUnderTest, weights tensor.Type) {
	const known, own = 40, 6
	ids := randomIDs(rand.New(rand.NewPCG(3, 4)), 1+known+own, u.target.Model.Info().Vocabulary)
	features := u.features(ids[:known])
	var pairs []oracle.Pair
	for i, id := range ids[1:] {
		p := oracle.Pair{ID: int(id)}
		if i < known {
			for _, v := range features[i] {
				p.Feature = append(p.Feature, float64(v))
			}
		}
		pairs = append(pairs, p)
	}
	if b := u.module.Info().Module.Block; b != nil { // the rows behind the text's are of the mask token
		for i := known; i < len(pairs); i++ {
			pairs[i].ID, ids[1+i] = int(b.Mask), token.ID(b.Mask)
		}
	}
	var want [][]float64
	if u.ofPart != nil {
		want = oracle.NewModule(u.ofPart, u.file).Forward(pairs)
	} else if o, err := oracle.New(u.file); err != nil {
		t.Fatal(err)
	} else {
		want = o.Predict(u.which, pairs)
	}
	pool := par.New(1)
	defer pool.Close()
	r := NewFor(t, u.module, pool, Config{CacheType: tensor.F32, Context: 128})
	got := r.pairs(r.NewSeq(""), ids[1:], features, 16)
	var worst, scale, off, all float64
	for i, row := range want {
		if len(row) != len(got[i]) {
			t.Fatalf("%d logits, want %d", len(got[i]), len(row))
		}
		for v, x := range row {
			d := math.Abs(x - float64(got[i][v]))
			worst, scale = max(worst, d), max(scale, math.Abs(x))
			if i < known {
				off, all = off+d*d, all+x*x
			}
		}
	}
	t.Logf("largest difference %.2g of largest value %.3g; %.2g of the values where features are the target's", worst, scale, math.Sqrt(off/all))
	if weights == tensor.F32 && !(worst <= 1e-4*scale) {
		t.Errorf("values differ by %g; the largest is %g", worst, scale)
	}
	if !(off <= 0.1*0.1*all) { // inputs of products are rounded, too, and random layers make more of that in their own states
		t.Errorf("values differ by %.2g of themselves", math.Sqrt(off/all))
	}
}

// TestModuleBits expects the same bits of a module's rows alone, in steps of many, as a tree, among those of other texts and with any number of threads.
func TestModuleBits(t *testing.T) {
	for name, c := range moduleCases {
		t.Run(name, func(t *testing.T) {
			weights, cache := tensor.Q8_0, tensor.F16
			if c.target.Latent != (synthetic.Latent{}) {
				weights = tensor.F32
			}
			u := c.open(t, weights)
			pool, many := par.New(1), par.New(5)
			defer pool.Close()
			defer many.Close()
			r := NewFor(t, u.module, pool, Config{CacheType: cache, Context: 128})
			ids := randomIDs(rand.New(rand.NewPCG(5, 6)), 71, u.target.Model.Info().Vocabulary)
			features := u.features(ids[:60])
			want := r.pairs(r.NewSeq(""), ids[1:], features, 1)
			if err := Equal("steps of 33 rows", r.pairs(r.NewSeq(""), ids[1:], features, 33), want); err != nil {
				t.Error(err)
			}
			threads := NewFor(t, u.module, many, Config{CacheType: cache, Context: 128})
			if err := Equal("5 threads", threads.pairs(threads.NewSeq(""), ids[1:], features, 7), want); err != nil {
				t.Error(err)
			}
			checkModuleTree(t, r, ids, features)
		})
	}
}

// checkModuleTree runs a tree of pairs behind each of two trunks in one step, and expects the bits of its paths.
func checkModuleTree(t *testing.T, r *Runner, ids []token.ID, features []Bits) {
	t.Helper()
	const trunk = 30
	rng := rand.New(rand.NewPCG(7, 8))
	tree := Tree{IDs: randomIDs(rng, 20, 40)}
	own := make([]Bits, len(tree.IDs))
	for i := range tree.IDs {
		tree.Parent, own[i] = append(tree.Parent, rng.IntN(i+1)-1), features[rng.IntN(len(features))]
	}
	seqs := []forest.Seq{r.NewSeq(""), r.NewSeq("")}
	for k, s := range seqs {
		r.pairs(s, ids[1+k:][:trunk], features[k:][:trunk], 64)
	}
	nodes := make([][]forest.Node, len(seqs))
	for i := range tree.IDs {
		for k, s := range seqs {
			if nodes[k] == nil {
				nodes[k] = make([]forest.Node, len(tree.IDs))
			}
			nodes[k][i] = r.Add(r.pair(s, parentOf(tree, nodes[k], i), tree.IDs[i], own[i]))
		}
	}
	r.Forward()
	got := r.take(len(tree.IDs) * len(seqs))
	for k, s := range seqs {
		r.Close(s)
		for i := range tree.IDs {
			path, read := slices.Clone(ids[1+k:][:trunk]), slices.Clone(features[k:][:trunk])
			for _, at := range tree.ancestors(i) {
				path, read = append(path, tree.IDs[at]), append(read, own[at])
			}
			alone := r.NewSeq("")
			all := r.pairs(alone, path, read, 64)
			r.Close(alone)
			if err := got[i*len(seqs)+k].Diff(all[len(all)-1]); err != nil {
				t.Errorf("text %d, draft %d: %v", k, i, err)
			}
		}
	}
}

// ancestors returns the nodes down to node i.
func (t Tree) ancestors(i int) []int {
	if i < 0 {
		return nil
	}
	return append(t.ancestors(t.Parent[i]), i)
}
