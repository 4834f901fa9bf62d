package modeltest

import (
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

// slotModules are modules of slots, of a small target.
var slotModules = map[string]synthetic.Module{
	"the target's head": {Family: "specblock", Taps: []int32{1, 2, 3}},
	"some tokens":       {Family: "specblock", Taps: []int32{4, 1, 2}, Own: true, Vocabulary: []int32{0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 20, 21, 22, 23, 24, 25, 30, 31, 32, 40, 46}},
	"two slots":         {Family: "specblock", Taps: []int32{1, 2, 3}, Block: 2},
	"8-bit":             {Family: "specblock", Taps: []int32{1, 2, 3}, Type: tensor.Q8_0},
}

// slotText is how many tokens of a text stand before the blocks of tests.
const slotText = 20

// slots adds a block of a token behind a row, with a feature, or what the row's slot gave; index is that of its first row, and place the place that this has.
func (r *blockRunner) slots(s forest.Seq, parent forest.Node, id token.ID, vector []float32, index, place int) (nodes []forest.Node) {
	for k := range r.Model.Info().Module.Block.Size {
		row := forest.Row{Seq: s, Parent: parent, ID: token.ID(k), Shift: place - index, Want: forest.Want{Logits: true, State: true, Hidden: forest.Layers{}.With(1)}}
		if k == 0 {
			row.ID, row.Vector = id, vector
		}
		parent = r.Add(row)
		nodes = append(nodes, parent)
	}
	return nodes
}

// given is what a row gave, of which the slices are the caller's.
type given struct{ stream, state, logits []float32 }

func (r *blockRunner) given(i int) given {
	g := r.Exec.Result(i)
	return given{slices.Clone(g.Hidden[0]), slices.Clone(g.State), slices.Clone(g.Logits)}
}

// behind is a block behind a slot of the last block of the text.
type behind struct {
	slot int
	id   token.ID
}

// slotRows runs a text by pieces of so many tokens, and behind its last block some blocks in one step or in several; it returns the rows of the text's last block and of those.
func (r *blockRunner) slotRows(s forest.Seq, pieces []int, blocks []behind, together bool) (all []given) {
	r.tb.Helper()
	size, at := r.Model.Info().Module.Block.Size, 0
	var nodes []forest.Node
	parent := forest.Trunk
	for i, n := range pieces {
		for range n {
			nodes = r.slots(s, parent, token.ID(at%7), r.features[at], at*size, at+1)
			parent = nodes[size-1]
			at++
		}
		first := len(r.Exec.Step.Rows()) - size
		r.Forward()
		for k := range size {
			if i == len(pieces)-1 {
				all = append(all, r.given(first+k))
			}
		}
		if i < len(pieces)-1 {
			r.Commit(s, parent)
			parent = forest.Trunk
		}
	}
	for i, b := range blocks {
		r.slots(s, nodes[b.slot], b.id, all[b.slot].stream, (at-1)*size+b.slot+1, at+b.slot+1)
		if together && i < len(blocks)-1 {
			continue
		}
		rows := len(r.Exec.Step.Rows())
		r.Forward()
		for k := range rows {
			all = append(all, r.given(k))
		}
	}
	return all
}

// TestSlots compares modules of slots with the oracle, blocks behind slots of others among them, within 1e-4 of the largest value (6e-2 with 8-bit weights). The bits are the
// same with the text in one piece and in several, blocks alone and beside others, by one thread and by three.
func TestSlots(t *testing.T) {
	for name, m := range slotModules {
		t.Run(name, func(t *testing.T) {
			file, bound := moduleFile(t, m, nil), 1e-4
			if m.Type != tensor.F32 {
				bound = 6e-2
			}
			r := openBlock(t, file, 1)
			last := r.Model.Info().Module.Block.Size - 1
			blocks := []behind{{0, 5}, {last, 6}, {last - 1, 7}, {0, 9}}
			s := r.NewSeq("")
			got := r.slotRows(s, []int{8, slotText - 9, 1}, blocks, true)
			r.Close(s)
			var pairs, more []oracle.Pair
			var slots []int
			for i := range slotText {
				pairs = append(pairs, oracle.Pair{ID: i % 7, Feature: wide(r.features[i])})
			}
			for _, b := range blocks {
				more, slots = append(more, oracle.Pair{ID: int(b.id)}), append(slots, b.slot)
			}
			want := slices.Concat(oracle.NewModule(file, moduleTarget.File(t)).Slots(pairs, more, slots)[slotText-1:]...)
			for what, of := range map[string]func(given, oracle.ModuleSlot) ([]float32, []float64){
				"logits": func(g given, s oracle.ModuleSlot) ([]float32, []float64) { return g.logits, s.Logits },
				"states": func(g given, s oracle.ModuleSlot) ([]float32, []float64) { return g.state, s.State },
				"stream": func(g given, s oracle.ModuleSlot) ([]float32, []float64) { return g.stream, s.Stream },
			} {
				var a [][]float32
				var b [][]float64
				for i, w := range want {
					g, e := of(got[i], w)
					a, b = append(a, g), append(b, e)
				}
				nearOracle(t, what, a, b, bound)
			}
			for name, other := range map[string][]given{
				"one piece":  r.slotRows(r.NewSeq(""), []int{slotText}, blocks, true),
				"one by one": r.slotRows(r.NewSeq(""), []int{1, 5, slotText - 6}, blocks, false),
				"threads":    openThreads(t, file).slotRows(0, []int{8, slotText - 9, 1}, blocks, true),
			} {
				if diff := cmp.Diff(got, other, cmp.AllowUnexported(given{})); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

// openThreads opens a module by three threads, with a sequence, number 0.
func openThreads(tb testing.TB, file *gguf.File) *blockRunner {
	r := openBlock(tb, file, 3)
	r.NewSeq("")
	return r
}

// TestSlotsSeeEarlier: a slot depends on the slots before it, and on none behind.
func TestSlotsSeeEarlier(t *testing.T) {
	m := slotModules["the target's head"]
	run := func(edit func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View)) []given {
		r := openBlock(t, moduleFile(t, m, edit), 1)
		return r.slotRows(r.NewSeq(""), []int{1}, nil, true)
	}
	was := run(nil)
	now := run(func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
		q := named(t, tensors, "queries.weight")
		clear(q.Data[len(q.Data)/2 : len(q.Data)/4*3]) // of slot 2
		return kvs, tensors
	})
	for k := range was {
		if same := slices.Equal(was[k].logits, now[k].logits); same != (k < 2) {
			t.Errorf("slot %d is the same with another query of slot 2: %v", k, same)
		}
	}
}

// TestBadSlots: modules of slots that lack something or contradict their target are refused by what is wrong.
func TestBadSlots(t *testing.T) {
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
	for _, c := range []struct {
		name string
		edit func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View)
		want string
	}{
		{"no slots", set("specblock.block_size", gguf.Of(uint32(0))), "specblock.block_size is 0; it must be 1 to 64"},
		{"more slots than queries", set("specblock.block_size", gguf.Of(uint32(5))), `tensor "queries.weight"`},
		{"two taps", set("specblock.taps", gguf.ArrayOf([]int32{1, 2})), "specblock.taps has 2 values; the module reads 3"},
		{"few tokens", set("specblock.draft_vocabulary", gguf.ArrayOf([]int32{1, 2, 3})), "the module drafts 3 tokens; its rank head reads the 20 largest logits"},
		{"no rank head", without("rank_out.weight"), "rank_out.weight"},
		{"half of a rank head", without("rank_in.bias"), `tensor "rank_in.bias"`},
		{"no product of neighbours", without("blk.1.shift.weight"), `tensor "blk.1.shift.weight"`},
		{"no norm of a layer", without("blk.1.attn_norm.weight"), `tensor "blk.1.attn_norm.weight"`},
		{"no product of inputs", without("fuse.weight"), `tensor "fuse.weight"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := par.New(1)
			defer pool.Close()
			target, err := model.Open(moduleTarget.File(t), pool, model.Options{})
			if err != nil {
				t.Fatal(err)
			}
			file := moduleFile(t, slotModules["the target's head"], c.edit)
			if _, err := model.OpenModule(file, pool, target, model.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
