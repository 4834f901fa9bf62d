package modeltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// headSpecs are the heads that tests compare with the oracle.
var headSpecs = map[string]synthetic.Module{
	"medusa":               {Family: "medusa", Blocks: 1, Own: true},
	"medusa, lent head":    {Family: "medusa", Blocks: 2},
	"medusa, no block":     {Family: "medusa", Own: true, Heads: 1},
	"hydra":                {Family: "hydra", Own: true},
	"hydra, lent head":     {Family: "hydra", Blocks: 2, Heads: 4},
	"hydra++":              {Family: "hydra", Blocks: 1, Prefix: true, Own: true},
	"hydra++, lent head":   {Family: "hydra", Prefix: true},
	"clover":               {Family: "clover", Blocks: 2, Own: true},
	"clover, lent head":    {Family: "clover"},
	"clover, three layers": {Family: "clover", Blocks: 3},
}

// heads is a draft module of a target, with random features of a text.
type heads struct {
	*Runner
	oracle *headOracle
	of     *forest.Module
	states [][]float32
	ids    []token.ID // behind the states
}

// openHeads opens heads of random weights for a target of the same type.
func openHeads(t *testing.T, target, file *gguf.File, threads int) *heads {
	t.Helper()
	pool := par.New(threads)
	t.Cleanup(pool.Close)
	whole, err := model.Open(target, pool, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.OpenModule(file, pool, whole, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &heads{Runner: NewFor(t, m, pool, Config{CacheType: tensor.F32, Context: 256}), oracle: newHeadOracle(file, target, m.Info().Module.Family), of: m.Info().Module}
	rng := rand.New(rand.NewPCG(5, 7))
	h.ids = randomIDs(rng, 90, m.Info().Vocabulary)
	for range h.ids {
		s := make([]float32, m.Info().Width)
		for i := range s {
			s[i] = float32(rng.NormFloat64())
		}
		h.states = append(h.states, s)
	}
	return h
}

// headFile returns the file of a module.
func headFile(t *testing.T, m synthetic.Module) *gguf.File {
	t.Helper()
	metadata, tensors, err := m.Parts()
	if err != nil {
		t.Fatal(err)
	}
	return written(t, metadata, tensors)
}

// read runs the text's rows in steps of so many, where the module has layers that read them, and returns the sequence and what its heads read behind each state.
func (h *heads) read(step int) (forest.Seq, []Bits) {
	s := h.NewSeq("")
	if h.of.Prefix == 0 {
		return s, nil
	}
	var out []Bits
	for first := 0; first < len(h.ids); first += step {
		node, n := forest.Trunk, min(step, len(h.ids)-first)
		for i := first; i < first+n; i++ {
			node = h.Add(forest.Row{Seq: s, Parent: node, ID: h.ids[i], Vector: h.states[i], Want: forest.Want{Hidden: forest.Layers{}.With(h.of.Prefix - 1)}})
		}
		h.Forward()
		for i := range n {
			out = append(out, append(Bits(nil), h.Exec.Result(i).Hidden[0]...))
		}
		h.Commit(s, node)
	}
	return s, out
}

// rows returns rows of all heads behind some states, and of what they gave a state to read where that is another.
func (h *heads) rows(s forest.Seq, read []Bits) (rows []forest.Row) {
	for i := 0; i < 6; i++ {
		state := h.states[i]
		if read != nil {
			state = read[i]
		}
		if h.of.Family == "clover" {
			n := h.of.Prefix
			rows = append(rows,
				forest.Row{Seq: s, Vector: state, Skip: forest.LayerRange(0, n+1), To: n + 2, Want: forest.Want{Logits: true}},
				forest.Row{Seq: s, ID: h.ids[i+1], Vector: state, Skip: forest.LayerRange(0, n).With(n + 1), Want: forest.Want{Logits: true, Hidden: forest.Layers{}.With(n)}})
			continue
		}
		for k := range h.of.Heads {
			at := h.of.Prefix + k
			r := forest.Row{Seq: s, Vector: state, Skip: forest.LayerRange(0, at), To: at + 1, Want: forest.Want{Logits: true}}
			for _, id := range h.ids[i : i+k+1] {
				if h.of.Family == "hydra" {
					r.Mix = append(r.Mix, forest.Weighted{ID: id})
				}
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// run runs rows in steps of so many, and returns their logits and, behind them, their states.
func (h *heads) run(rows []forest.Row, step int) (out []Bits) {
	for part := range slices.Chunk(rows, step) {
		for _, r := range part {
			h.Add(r)
		}
		h.Forward()
		for i := range part {
			r := h.Exec.Result(i)
			b := append(Bits(nil), r.Logits...)
			for _, s := range r.Hidden {
				b = append(b, s...)
			}
			out = append(out, b)
		}
		h.Drop(rows[0].Seq, forest.Trunk)
	}
	return out
}

// doubles returns values in float64.
func doubles(x []float32) (out []float64) {
	for _, v := range x {
		out = append(out, float64(v))
	}
	return out
}

// want returns what the oracle gives for the rows.
func (h *heads) want(rows []forest.Row) (out [][]float64) {
	for _, r := range rows {
		state, ids := doubles(r.Vector), []int(nil)
		for _, m := range r.Mix {
			ids = append(ids, int(m.ID))
		}
		switch {
		case h.of.Family != "clover":
			out = append(out, h.oracle.Head(r.To-1-h.of.Prefix, state, ids))
		case r.To > 0:
			out = append(out, h.oracle.First(state))
		default:
			next, logits := h.oracle.Next(state, int(r.ID))
			out = append(out, append(logits, next...))
		}
	}
	return out
}

// holdsTo holds values to the oracle's, within a share of the largest.
func holdsTo(t *testing.T, what string, got []Bits, want [][]float64, share float64) {
	t.Helper()
	var worst, scale float64
	for i, row := range want {
		if len(got[i]) != len(row) {
			t.Fatalf("%s: %d values, want %d", what, len(got[i]), len(row))
		}
		for v, x := range row {
			worst, scale = max(worst, math.Abs(x-float64(got[i][v]))), max(scale, math.Abs(x))
		}
	}
	t.Logf("%s: largest difference %.2g of largest value %.3g", what, worst, scale)
	if !(worst <= share*scale) {
		t.Errorf("%s: values differ by %g; the largest is %g", what, worst, scale)
	}
}

// TestHeadsOracle compares heads with the oracle, with weights in F32 and in Q8_0, whose products round their inputs to 8 bits; and expects the bits of rows to be the
// same alone, together and with any threads.
func TestHeadsOracle(t *testing.T) {
	for name, spec := range headSpecs {
		for wt, share := range map[tensor.Type]float64{tensor.F32: 1e-4, tensor.Q8_0: 0.06} {
			t.Run(fmt.Sprint(name, " ", wt), func(t *testing.T) {
				spec := spec
				target := Spec{Seed: 3, Type: wt}
				spec.Target, spec.Type, spec.Seed = synthetic.Spec(target), wt, 4
				files := [2]*gguf.File{target.File(t), headFile(t, spec)}
				got, read := openHeads(t, files[0], files[1], 1).holds(t, share)
				for _, threads := range []int{1, 3, 16} {
					many := openHeads(t, files[0], files[1], threads)
					s, again := many.read(23)
					what := fmt.Sprintf("one row a step and many, %d threads", threads)
					if err := Equal(what+": what heads read", again, read); err != nil {
						t.Error(err)
					}
					rows := many.rows(s, again)
					if err := Equal(what, many.run(rows, len(rows)), got); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// holds compares rows of the heads, and what they read, with the oracle, and returns both.
func (h *heads) holds(t *testing.T, share float64) (got, read []Bits) {
	t.Helper()
	s, read := h.read(1)
	rows := h.rows(s, read)
	got = h.run(rows, 1)
	holdsTo(t, "heads", got, h.want(rows), share)
	if read != nil {
		var states [][]float64
		var ids []int
		for i, x := range h.states {
			states, ids = append(states, doubles(x)), append(ids, int(h.ids[i]))
		}
		holdsTo(t, "what heads read", read, h.oracle.Read(states, ids), share)
	}
	return got, read
}

// TestHydraIsMedusa: heads of Hydra whose weights for embeddings are zero, and pass the state on, are Medusa's.
func TestHydraIsMedusa(t *testing.T) {
	target := Spec{Seed: 3}
	of := synthetic.Module{Family: "medusa", Target: synthetic.Spec(target), Blocks: 2, Own: true, Seed: 6}
	metadata, medusa, err := of.Parts()
	if err != nil {
		t.Fatal(err)
	}
	plain := openHeads(t, target.File(t), written(t, metadata, medusa), 1)
	of.Family, of.Blocks = "hydra", 1
	metadata, tensors, err := of.Parts()
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) []float32 {
		v := medusa[slices.IndexFunc(medusa, func(v tensor.View) bool { return v.Name == name })]
		out := make([]float32, v.Elems())
		if err := tensor.Unpack(v.Type, out, v.Data); err != nil {
			t.Fatal(err)
		}
		return out
	}
	width := plain.Model.Info().Width
	for _, v := range tensors {
		values, in := make([]float32, v.Elems()), v.Shape[len(v.Shape)-1]
		head, part, _ := strings.Cut(strings.TrimPrefix(v.Name, "blk."), ".")
		name := func(t string) string { return "blk." + head + "." + t }
		switch part {
		case "in.weight":
			for i, w := range find(name("res.0.weight")) {
				values[i/width*in+i%width] = w
			}
		case "skip.weight":
			for i := range width {
				values[i*in+i] = 1
			}
		case "skip.bias":
		case "in.bias":
			values = find(name("res.0.bias"))
		case "res.0.weight", "res.0.bias":
			values = find(name(strings.Replace(part, "0", "1", 1)))
		default:
			values = find(v.Name)
		}
		if err := tensor.Pack(v.Type, v.Data, values); err != nil {
			t.Fatal(err)
		}
	}
	h := openHeads(t, target.File(t), written(t, metadata, tensors), 1)
	rows := h.rows(h.NewSeq(""), nil)
	holdsTo(t, "heads", h.run(rows, len(rows)), plain.want(plain.rows(plain.NewSeq(""), nil)), 1e-4)
}

// TestCloverWithoutValues: where a cell's values are zero, the state does not depend on drafts.
func TestCloverWithoutValues(t *testing.T) {
	target := Spec{Seed: 3}
	metadata, tensors, err := synthetic.Module{Family: "clover", Target: synthetic.Spec(target), Seed: 6}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range tensors {
		if strings.HasPrefix(v.Name, "cell.attn_v.") {
			clear(v.Data)
		}
	}
	h := openHeads(t, target.File(t), written(t, metadata, tensors), 1)
	s, read := h.read(16)
	out := h.Model.Info().Vocabulary
	rows := h.rows(s, read)
	for i, got := range h.run(rows, 4) {
		if rows[i].To == 0 {
			if err := got[out:].Diff(Bits(rows[i].Vector)); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestBadHeads opens files of heads that contradict themselves or their target.
func TestBadHeads(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	target, err := model.Open(Spec{Seed: 3}.File(t), pool, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		module synthetic.Module
		key    string
		value  gguf.Value
		leave  string // a tensor
		want   string
	}{
		"no heads":          {synthetic.Module{Family: "medusa", Blocks: 1}, "medusa.block_count", gguf.Of(uint32(0)), "", "medusa.block_count"},
		"some outputs":      {synthetic.Module{Family: "medusa", Own: true}, "", gguf.Value{}, "blk.1.output.weight", "2 of 3 heads have an output"},
		"a block less":      {synthetic.Module{Family: "hydra", Blocks: 1}, "hydra.residual_count", gguf.Of(uint32(2)), "", "blk.0.res.1.weight"},
		"another width":     {synthetic.Module{Family: "hydra"}, "hydra.embedding_length", gguf.Of(uint32(32)), "", "the width of the target is"},
		"no norm":           {synthetic.Module{Family: "clover"}, "", gguf.Value{}, "head_norm.weight", "head_norm.weight"},
		"many layers":       {synthetic.Module{Family: "clover"}, "clover.block_count", gguf.Of(uint32(1 << 30)), "", "clover.block_count"},
		"many heads":        {synthetic.Module{Family: "clover"}, "clover.cell.head_count", gguf.Of(uint32(1 << 20)), "", "clover.cell.head_count"},
		"half a pair":       {synthetic.Module{Family: "chimera"}, "", gguf.Value{}, "blk.1.mix.weight", "blk.1.mix.weight"},
		"some pairs":        {synthetic.Module{Family: "chimera", Own: true}, "", gguf.Value{}, "blk.1.output.weight", "2 of 3 heads have an output"},
		"no trigram":        {synthetic.Module{Family: "chimera"}, "", gguf.Value{}, "trigram.out.weight", "trigram.out.weight"},
		"many pairs":        {synthetic.Module{Family: "chimera"}, "chimera.block_count", gguf.Of(uint32(1 << 30)), "", "chimera.block_count"},
		"usual places":      {synthetic.Module{Family: "eagle3"}, "", gguf.Value{}, "", "eagle3.taps is missing, and the usual places of the target's stream, [2 1 0] of 3 layers, are not distinct"},
		"heads of no width": {synthetic.Module{Family: "clover"}, "clover.cell.head_count", gguf.Of(uint32(7)), "", "7 heads of cells do not divide"},
	} {
		t.Run(name, func(t *testing.T) {
			c.module.Target = synthetic.Spec(Spec{Seed: 3})
			metadata, tensors, err := c.module.Parts()
			if err != nil {
				t.Fatal(err)
			}
			metadata = slices.DeleteFunc(metadata, func(kv gguf.KV) bool { return kv.Key == c.key })
			if c.key != "" {
				metadata = append(metadata, gguf.KV{Key: c.key, Value: c.value})
			}
			tensors = slices.DeleteFunc(tensors, func(v tensor.View) bool { return v.Name == c.leave })
			if _, err := model.OpenModule(written(t, metadata, tensors), pool, target, model.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want one with %q", err, c.want)
			}
		})
	}
}
