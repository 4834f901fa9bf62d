package modeltest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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

var falconCases = map[string]moduleCase{
	"k 2":                         {target: Spec{Arch: "llama"}, module: synthetic.Module{Family: "falcon", Block: 2}},
	"k 2, 2 pairs":                {target: Spec{Arch: "llama"}, module: synthetic.Module{Family: "falcon", Block: 2, Pairs: 2}},
	"k 3, 3 pairs, own head":      {target: Spec{Arch: "llama"}, module: synthetic.Module{Family: "falcon", Block: 3, Pairs: 3, Own: true}},
	"k 4, 2 pairs, 2 layers":      {target: Spec{Arch: "llama"}, module: synthetic.Module{Family: "falcon", Block: 4, Pairs: 2, Blocks: 2}},
	"k 2, scales and a softcap":   {target: Spec{Arch: "gemma2"}, module: synthetic.Module{Family: "falcon", Block: 2, Pairs: 2}},
	"k 1, a layer with a softcap": {target: Spec{Arch: "gemma2"}, module: synthetic.Module{Family: "falcon", Block: 1}},
}

// falconText is a text of pairs of a module, and blocks of tokens behind it.
type falconText struct {
	*Runner
	ids      []token.ID
	features []Bits
	tail     []token.ID
}

// text returns a text of n pairs for a module that a runner runs, and tokens of two blocks behind it.
func (u *moduleUnderTest) text(r *Runner, seed uint64, n int) *falconText {
	size, vocabulary := r.Model.Info().Module.Block.Size, u.target.Model.Info().Vocabulary
	ids := randomIDs(rand.New(rand.NewPCG(seed, 4)), 1+n+2*size, vocabulary)
	return &falconText{Runner: r, features: u.features(ids[:n]), ids: ids[1 : n+1], tail: ids[n+1:]}
}

// row is the i-th of some pairs, which carries those before it.
func (f *falconText) row(s forest.Seq, parent forest.Node, ids []token.ID, features []Bits, i, block int) forest.Row {
	row := forest.Row{Seq: s, Parent: parent, ID: ids[i], Block: block}
	for back := range min(f.Model.Info().Module.Block.Pairs, i+1) {
		if row.Vector = append(row.Vector, features[i-back]...); back > 0 {
			row.Mix = append(row.Mix, forest.Weighted{ID: ids[i-back]})
		}
	}
	row.Want = forest.Want{Logits: block > 0, State: block > 0}
	return row
}

// follow makes the text's pairs but for the last block rows of a trunk, in steps of at most chunk rows.
func (f *falconText) follow(s forest.Seq, chunk int) {
	n := len(f.ids) - f.Model.Info().Module.Block.Size
	for first := 0; first < n; first += chunk {
		node := forest.Trunk
		for i := first; i < min(n, first+chunk); i++ {
			node = f.Add(f.row(s, node, f.ids, f.features, i, 0))
		}
		f.Forward()
		f.Commit(s, node)
	}
}

// block adds the rows of the last pairs to the next step, and returns the last one's node.
func (f *falconText) block(s forest.Seq, parent forest.Node, ids []token.ID, features []Bits, block int) forest.Node {
	for i := len(ids) - f.Model.Info().Module.Block.Size; i < len(ids); i++ {
		parent = f.Add(f.row(s, parent, ids, features, i, block))
	}
	return parent
}

// given returns what rows of the last step gave, states or logits, from one on.
func (f *falconText) given(from int, states bool) (out []Bits) {
	for i := range f.Model.Info().Module.Block.Size {
		if got := f.Exec.Result(from + i); states {
			out = append(out, slices.Clone(got.State))
		} else {
			out = append(out, slices.Clone(got.Logits))
		}
	}
	return out
}

// run returns the logits of the blocks behind the text: that of its last pairs, and those of the tail.
func (f *falconText) run(chunk int) (out []Bits) {
	f.tb.Helper()
	s, node, size := f.NewSeq(""), forest.Trunk, f.Model.Info().Module.Block.Size
	defer f.Close(s)
	f.follow(s, chunk)
	ids, features := slices.Clone(f.ids), slices.Clone(f.features)
	for n := 0; ; n += size {
		node = f.block(s, node, ids, features, 1)
		f.Forward()
		if out = append(out, f.given(0, false)...); n == len(f.tail) {
			return out
		}
		ids, features = append(ids, f.tail[n:][:size]...), append(features, f.given(0, true)...)
	}
}

// TestFalconOracle compares blocks of true features and of the module's own with the oracle.
func TestFalconOracle(t *testing.T) {
	for name, c := range falconCases {
		for weights, bound := range map[tensor.Type]float64{tensor.F32: 1e-4, tensor.Q8_0: 6e-2} {
			t.Run(fmt.Sprintf("%s, %v", name, weights), func(t *testing.T) {
				u := c.open(t, weights)
				pool := par.New(1)
				defer pool.Close()
				f := u.text(NewFor(t, u.module, pool, Config{CacheType: tensor.F32, Context: 128}), 3, 30)
				size := u.module.Info().Module.Block.Size
				var pairs []oracle.Pair
				var blocks []int
				for i, id := range slices.Concat(f.ids, f.tail) {
					p := oracle.Pair{ID: int(id)}
					if i < len(f.ids) {
						p.Feature = wide(f.features[i])
					}
					pairs, blocks = append(pairs, p), append(blocks, max(0, (i-len(f.ids)+2*size)/size))
				}
				_, want := oracle.NewModule(u.ofPart, u.file).Falcon(pairs, blocks)
				var got [][]float32
				for _, row := range f.run(16) {
					got = append(got, row)
				}
				nearOracle(t, "logits", got, want[len(want)-len(got):], bound)
			})
		}
	}
}

// TestFalconBits expects the same bits of blocks with a text in one step and in many, by any number of threads, and as a tree of blocks in a step with other texts'.
func TestFalconBits(t *testing.T) {
	for name, c := range falconCases {
		t.Run(name, func(t *testing.T) {
			u := c.open(t, tensor.Q8_0)
			pool, many := par.New(1), par.New(5)
			defer pool.Close()
			defer many.Close()
			config := Config{CacheType: tensor.F16, Context: 128}
			f := u.text(NewFor(t, u.module, pool, config), 5, 40)
			want := f.run(1)
			if err := Equal("steps of 33 rows", f.run(33), want); err != nil {
				t.Error(err)
			}
			threads := *f
			threads.Runner = NewFor(t, u.module, many, config)
			if err := Equal("5 threads", threads.run(7), want); err != nil {
				t.Error(err)
			}
			checkFalconTree(t, u, f)
		})
	}
}

// checkFalconTree runs two blocks behind the first block of each of two texts in one step, and expects the bits that each has alone.
func checkFalconTree(t *testing.T, u *moduleUnderTest, f *falconText) {
	t.Helper()
	size := f.Model.Info().Module.Block.Size
	texts := []*falconText{f, u.text(f.Runner, 9, 17)}
	var want []Bits
	for _, f := range texts {
		for range 2 { // the tail's blocks are alternatives
			one := *f
			one.tail = f.tail[:size]
			want = append(want, one.run(64)[size:]...)
			f.tail = append(f.tail[size:], f.tail[:size]...)
		}
	}
	var seqs []forest.Seq
	nodes, features := make([]forest.Node, len(texts)), make([][]Bits, len(texts))
	for k, f := range texts {
		seqs = append(seqs, f.NewSeq(""))
		f.follow(seqs[k], 16)
	}
	for k, f := range texts {
		nodes[k] = f.block(seqs[k], forest.Trunk, f.ids, f.features, 1)
	}
	f.Forward()
	for k, f := range texts {
		features[k] = append(slices.Clone(f.features), f.given(k*size, true)...)
	}
	for k, f := range texts {
		for n := range 2 {
			f.block(seqs[k], nodes[k], append(slices.Clone(f.ids), f.tail[n*size:][:size]...), features[k], 1+n)
		}
	}
	f.Forward()
	var got []Bits
	for i := range 2 * len(texts) {
		got = append(got, f.given(i*size, false)...)
	}
	for _, s := range seqs {
		f.Close(s)
	}
	if err := Equal("a tree of blocks", got, want); err != nil {
		t.Error(err)
	}
}

// TestFalconSees: row 1 of a block depends on row 2, and row 2 on row 1; the pair before the block counts for the first row alone, of two pairs.
func TestFalconSees(t *testing.T) {
	u := falconCases["k 2, 2 pairs"].open(t, tensor.F32)
	pool := par.New(1)
	defer pool.Close()
	r := NewFor(t, u.module, pool, Config{CacheType: tensor.F32, Context: 128})
	plain := u.text(r, 3, 12)
	plain.tail = nil
	want := plain.run(16)
	for name, changed := range map[string]int{"row 2": 11, "row 1": 10} {
		other := *plain
		other.ids = slices.Clone(plain.ids)
		other.ids[changed] = (other.ids[changed] + 1) % 40
		for i, row := range other.run(16) {
			if row.Diff(want[i]) == nil {
				t.Errorf("row %d does not depend on %s", i+1, name)
			}
		}
	}
}

// TestFalconIsEagle: of blocks of one row Falcon is EAGLE with the LSTM's result for its input, bit by bit. Without its layer a module's state is this result.
func TestFalconIsEagle(t *testing.T) {
	c := moduleCase{target: Spec{Arch: "llama"}, module: synthetic.Module{Family: "falcon", Block: 1}}
	pool := par.New(1)
	defer pool.Close()
	config := Config{CacheType: tensor.F32, Context: 128}
	u := c.open(t, tensor.F32)
	width := u.module.Info().Width
	module := func(edit func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View)) *Runner {
		m := c.module
		m.Target, m.Seed = synthetic.Spec(c.target), 8
		kvs, tensors, err := m.Parts()
		if err != nil {
			t.Fatal(err)
		}
		if edit != nil {
			kvs, tensors = edit(kvs, tensors)
		}
		opened, err := model.OpenModule(written(t, kvs, tensors), pool, u.target.Model, model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return NewFor(t, opened, pool, config)
	}
	bare := module(func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
		for _, name := range []string{"blk.0.attn_output.weight", "blk.0.ffn_down.weight"} {
			clear(named(t, tensors, name).Data)
		}
		return kvs, tensors
	})
	eagle := module(func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
		for i := range kvs {
			if kvs[i].Key == "general.architecture" {
				kvs[i].Value = gguf.Of("eagle")
			}
			kvs[i].Key = strings.Replace(kvs[i].Key, "falcon-draft.", "eagle.", 1)
		}
		fc := make([]float32, 2*width*width) // of the state alone
		for i := range width {
			fc[2*width*i+width+i] = 1
		}
		v := tensor.View{Name: "fc.weight", Type: tensor.F32, Shape: []int{width, 2 * width}, Data: make([]byte, 4*len(fc))}
		if err := tensor.Pack(tensor.F32, v.Data, fc); err != nil {
			t.Fatal(err)
		}
		tensors = slices.DeleteFunc(tensors, func(v tensor.View) bool { return strings.HasPrefix(v.Name, "lstm.") })
		return kvs, append(tensors, v)
	})
	f := u.text(module(nil), 6, 20)
	all := func(r *Runner, features []Bits, block int) (logits, states []Bits) {
		s, node := r.NewSeq(""), forest.Trunk
		defer r.Close(s)
		for i, id := range f.ids {
			node = r.Add(forest.Row{Seq: s, Parent: node, ID: id, Vector: features[i], Block: block * (i + 1), Want: forest.Want{Logits: true, State: true}})
		}
		r.Forward()
		for i := range f.ids {
			logits, states = append(logits, r.bits(i)), append(states, slices.Clone(r.Exec.Result(i).State))
		}
		return logits, states
	}
	_, read := all(bare, f.features, 1)
	want, _ := all(eagle, read, 0)
	got, _ := all(f.Runner, f.features, 1)
	if err := Equal("blocks of one row", got, want); err != nil {
		t.Error(err)
	}
}

// TestBadFalcon: modules that contradict themselves or their target are refused by what is wrong.
func TestBadFalcon(t *testing.T) {
	set := func(key string, n uint32) func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View) {
		return func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
			kvs = slices.DeleteFunc(kvs, func(kv gguf.KV) bool { return kv.Key == "falcon-draft."+key })
			return append(kvs, gguf.KV{Key: "falcon-draft." + key, Value: gguf.Of(n)}), tensors
		}
	}
	without := func(name string) func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View) {
		return func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
			return kvs, slices.DeleteFunc(tensors, func(v tensor.View) bool { return v.Name == name })
		}
	}
	as := func(name, other string) func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View) {
		return func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
			v := named(t, tensors, name)
			v.Name = other
			return kvs, append(tensors, v)
		}
	}
	for name, c := range map[string]struct {
		edit func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View)
		want string
	}{
		"no block":                {set("block_size", 0), "falcon-draft.block_size is 0; it must be 1 to 64"},
		"more pairs than a block": {set("lstm_pairs", 4), "falcon-draft.lstm_pairs is 4; it must be 1 to 3"},
		"17 pairs": {func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
			kvs, tensors = set("block_size", 20)(kvs, tensors)
			return set("lstm_pairs", 17)(kvs, tensors)
		}, "falcon-draft.lstm_pairs is 17; it must be 1 to 16"},
		"a pair and what is carried on": {set("lstm_pairs", 1), `"falcon-draft" has no place for this tensor`},
		"many layers":                   {set("block_count", 1<<30), "falcon-draft.block_count"},
		"another width":                 {set("embedding_length", 32), "the width of the target is"},
		"no LSTM":                       {without("lstm.0.ih.weight"), `tensor "lstm.0.ih.weight" is missing`},
		"nothing is carried on":         {without("lstm.1.hh.weight"), `tensor "lstm.1.hh.weight" is missing`},
		"a layer of the LSTM":           {without("lstm.1.ih.weight"), `has no place for this tensor`},
		"inputs of another width":       {as("lstm.0.ih.weight", "lstm.2.ih.weight"), `tensor "lstm.2.ih.weight" has shape`},
		"five layers of the LSTM":       {as("lstm.1.ih.weight", "lstm.4.ih.weight"), "an LSTM has 4 layers at most"},
		"no norm":                       {without("blk.0.ffn_norm.weight"), `tensor "blk.0.ffn_norm.weight" is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			file := moduleFile(t, synthetic.Module{Family: "falcon", Block: 3, Pairs: 2}, c.edit)
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
