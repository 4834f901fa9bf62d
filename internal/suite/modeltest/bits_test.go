package modeltest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/kv"
	"grove/internal/model/synthetic"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// subject is a model and a cache type whose bits are checked.
type subject struct {
	spec  Spec
	cache tensor.Type
	extra bool // for the long run only, and there for the fastest kernels only
}

// usual are weight types of each kind of blocks and arithmetic. The long run takes the others too, with one cache.
var usual = []tensor.Type{
	tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0, tensor.Q4_0, tensor.Q5_1, tensor.Q4_K, tensor.Q6_K, tensor.MXFP4,
}

func (s subject) String() string {
	arch := s.spec.Arch
	if arch == "" {
		arch = "llama"
	}
	return fmt.Sprintf("%s-%v-cache-%v", arch, s.spec.Type, s.cache)
}

// subjects pairs every weight type with the usual cache, some architectures with every cache, and the
// others with one; the long run pairs the usual types with every cache.
func subjects() []subject {
	caches := []tensor.Type{tensor.F16, tensor.F32, tensor.Q8_0}
	var out []subject
	types := usual
	if long {
		types = tensor.Types()
	}
	for _, t := range types {
		s := Spec{Type: t}
		if elems, _, _ := t.Block(); elems == 256 {
			s.Width, s.FFN, s.Heads = 256, 256, 8 // rows of whole blocks
		}
		for _, c := range caches {
			extra := c != tensor.F16 && t != tensor.F16
			if !extra || long && slices.Contains(usual, t) {
				out = append(out, subject{s, c, extra})
			}
		}
	}
	for _, c := range caches {
		out = append(out, subject{Spec{Arch: "gemma3", Type: tensor.Q8_0, Layers: 7}, c, false},
			subject{Spec{Arch: "qwen3moe", Type: tensor.Q8_0}, c, false})
	}
	out = append(out, subject{Spec{Arch: "gpt-oss", Type: tensor.MXFP4}, tensor.F16, false}, subject{latentSpec, tensor.Q8_0, false})
	if long {
		out = append(out, subject{Spec{Arch: "gpt-oss", Type: tensor.F16}, tensor.Q8_0, true}, subject{latentSpec, tensor.F16, true})
	}
	for i, s := range slices.Concat(others, sourced) {
		s.Type = otherType(i)
		for j, c := range caches {
			if j == i%3 || long {
				out = append(out, subject{s, c, j != i%3})
			}
		}
	}
	return out
}

// others are the architectures that have one weight type each, by turns.
var others = []Spec{
	{Arch: "gemma"}, {Arch: "gemma2"}, {Arch: "gpt2"}, {Arch: "olmo2", Layers: 5, Window: 70}, {Arch: "phi3", LongRope: 64, Window: 90},
	{Arch: "qwen2"}, {Arch: "qwen3"}, {Arch: "starcoder2"},
}

// sourced are the encoder-decoders, CodeGen 2, UniXcoder, Mistral Small 4 and SambaY, whose bits no file has.
var sourced = []Spec{
	{Arch: "t5", KVHeads: 4}, {Arch: "t5gemma", Window: 70}, {Arch: "codegen2"}, {Arch: "unixcoder", Heads: 2},
	{Arch: "mistral4", KeySize: 64, Experts: 8, ExpertsPerToken: 3, Latent: synthetic.Latent{QRank: 64, Rank: 64, Rope: 32, Shared: 1, Norm: true}},
	{Arch: "sambay"},
}

func otherType(i int) tensor.Type { return []tensor.Type{tensor.Q8_0, tensor.F16}[i%2] }

// latentSpec is a small DeepSeek-V3.
var latentSpec = Spec{Arch: "deepseek2", Type: tensor.Q8_0, KeySize: 64, Experts: 8, ExpertsPerToken: 3, Latent: synthetic.Latent{
	QRank: 64, Rank: 64, Rope: 32, Dense: 1, Shared: 1, Sigmoid: true, Norm: true, Groups: 4, GroupsUsed: 2,
}}

func randomIDs(rng *rand.Rand, n, vocab int) []token.ID {
	ids := make([]token.ID, n)
	for i := range ids {
		ids[i] = token.ID(rng.IntN(vocab))
	}
	return ids
}

// randomTree returns a tree of n nodes whose parents are random earlier nodes, mostly late ones.
func randomTree(rng *rand.Rand, n, vocab int) Tree {
	t := Tree{IDs: randomIDs(rng, n, vocab)}
	for i := range n {
		t.Parent = append(t.Parent, max(-1, i-1-rng.IntN(min(i+2, 4))))
	}
	return t
}

// leaves returns at most n nodes without children, the last first.
func (t Tree) leaves(n int) (leaves []int) {
	for i := len(t.IDs) - 1; i >= 0 && len(leaves) < n; i-- {
		if !slices.Contains(t.Parent, i) {
			leaves = append(leaves, i)
		}
	}
	return leaves
}

// checks are the equalities that hold for every model and cache. Each returns an error where two ways to compute
// the same row differ in a bit. text is longer than two pages and than gemma3's window; plain is its bits.
var checks = []struct {
	name string
	run  func(r *Runner, rng *rand.Rand, text []token.ID, plain []Bits) error
}{
	{"prefill in chunks", checkChunks},
	{"tree against its paths", checkTree},
	{"batch of sequences against each alone", checkBatch},
	{"prefix from the cache", checkPrefix},
	{"one prefix read for several sequences", checkShared},
	{"stop early and resume", checkResume},
	{"skipped layers leave no keys", checkSkip},
	{"skipped parts of layers", checkParts},
	{"streams after two layers", checkHidden},
	{"vector rows that are dropped", checkVectors},
	{"rows that begin as products", checkProducts},
	{"canvas beside four sequences", checkCanvas},
}

const textLength = 150

// long runs more models, and checks with every implementation of the kernels; the project's CI sets it. Plain
// decoding is compared for every model and implementation, in the short run for llama of every weight type alone. The fastest kernels run all checks for every model,
// in the short run every other one, by turns; the others share these, in turns over models and checks, so that each check meets each implementation with many models; the
// portable ones, which take most of the time, leave out every other four models.
var long = os.Getenv("GROVE_LONG") != ""

func TestBits(t *testing.T) {
	kinds := kernel.Implementations()
	for n, s := range subjects() {
		t.Run(s.String(), func(t *testing.T) {
			file := s.spec.File(t)
			var first []Bits
			for k, kind := range kinds {
				if k > 0 && !long && s.spec.Arch != "" {
					break
				}
				kernel.Use(kind)
				r := New(t, file, Config{CacheType: s.cache, Threads: 2})
				rng := rand.New(rand.NewPCG(7, 8))
				text := randomIDs(rng, textLength, r.Model.Info().Vocabulary)
				plain := r.Plain(text)
				if first == nil {
					first = plain
					alone := New(t, file, Config{CacheType: s.cache, Threads: 1})
					if err := Equal("1 and 2 threads", alone.Plain(text), plain); err != nil {
						t.Error(err)
					}
					inPlace := New(t, file, Config{CacheType: s.cache, Threads: 2, NoRepack: true})
					if err := Equal("packed weights and the file's own", inPlace.Reference(text), plain); err != nil {
						t.Error(err)
					}
				} else if err := Equal(kind+" and "+kinds[0], plain, first); err != nil {
					t.Error(err)
				}
				for i, c := range checks {
					if k == 0 && !long && (i+n)%2 != 0 {
						continue
					}
					if k > 0 && (s.extra || !long || (i+n)%(len(kinds)-1) != k-1 || k > 1 && k == len(kinds)-1 && n/4%2 == 1) {
						continue
					}
					if err := c.run(r, rng, text, plain); err != nil {
						t.Errorf("%s: %s: %v", kind, c.name, err)
					}
				}
			}
			kernel.Use(kinds[0])
		})
	}
}

func checkChunks(r *Runner, _ *rand.Rand, text []token.ID, plain []Bits) error {
	for _, chunk := range []int{7, 64, len(text)} {
		s := r.NewSeq(fmt.Sprint("chunks", chunk))
		err := Equal(fmt.Sprintf("chunks of %d", chunk), r.Prefill(s, text, chunk), plain)
		r.Close(s)
		if err != nil {
			return err
		}
	}
	return nil
}

// checkTree grows a tree of 64 rows behind trunks of several lengths, in one step and level by level,
// and compares every node with plain decoding of its path.
func checkTree(r *Runner, rng *rand.Rand, text []token.ID, _ []Bits) error {
	for _, length := range []int{0, 61, 64, 130} {
		tree := randomTree(rng, 24, r.Model.Info().Vocabulary)
		if length == 130 {
			tree = randomTree(rng, 64, r.Model.Info().Vocabulary)
		}
		s := r.NewSeq("")
		if length > 0 {
			r.Prefill(s, text[:length], 64)
		}
		_, once := r.Grow(s, tree)
		r.Drop(s, forest.Trunk)
		_, levels := r.GrowByLevel(s, tree)
		r.Close(s)
		if err := Equal("level by level and at once", levels, once); err != nil {
			return err
		}
		for _, leaf := range tree.leaves(4) {
			plain := r.Reference(append(append([]token.ID(nil), text[:length]...), tree.Path(leaf)...))
			for i := leaf; i >= 0; i = tree.Parent[i] {
				if err := once[i].Diff(plain[length+tree.Depth(i)]); err != nil {
					return fmt.Errorf("node %d behind %d tokens and its path: %w", i, length, err)
				}
			}
		}
	}
	return nil
}

// checkBatch runs three sequences of different lengths in common steps.
func checkBatch(r *Runner, rng *rand.Rand, text []token.ID, _ []Bits) error {
	vocab := r.Model.Info().Vocabulary
	texts := [][]token.ID{text[:90], randomIDs(rng, 70, vocab), randomIDs(rng, 33, vocab)}
	var seqs []forest.Seq
	got := make([][]Bits, len(texts))
	for range texts {
		seqs = append(seqs, r.NewSeq("batch"))
	}
	for at := 0; at < 90; at += 11 {
		last := make([]forest.Node, len(texts))
		counts := make([]int, len(texts))
		for i, ids := range texts {
			for _, id := range ids[min(at, len(ids)):min(at+11, len(ids))] {
				last[i] = r.Add(forest.Row{Seq: seqs[i], Parent: last[i], ID: id, Want: logits})
				counts[i]++
			}
		}
		r.Forward()
		row := 0
		for i, n := range counts {
			for range n {
				got[i] = append(got[i], r.bits(row))
				row++
			}
			r.Commit(seqs[i], last[i])
		}
	}
	for i := range texts {
		r.Close(seqs[i])
		if err := Equal(fmt.Sprintf("sequence %d of a batch", i), got[i], r.Reference(texts[i])); err != nil {
			return err
		}
	}
	return nil
}

// checkPrefix continues a prefix that was found in the cache, also past a sliding window.
func checkPrefix(r *Runner, _ *rand.Rand, text []token.ID, plain []Bits) error {
	s := r.NewSeq("prefix")
	r.Prefill(s, text, 50)
	r.Close(s)
	s = r.NewSeq("prefix")
	defer r.Close(s)
	n, err := r.Cache.Reuse(s, text)
	if err != nil {
		return err
	}
	if n != 2*kv.PageTokens {
		return fmt.Errorf("%d tokens were found; want %d", n, 2*kv.PageTokens)
	}
	return Equal("behind a found prefix", r.Prefill(s, text[n:], 64), plain[n:])
}

// checkShared runs common steps of sequences that share one or two pages, one of them with a tree, beside a sequence that
// shares none.
func checkShared(r *Runner, rng *rand.Rand, text []token.ID, _ []Bits) error {
	vocab := r.Model.Info().Vocabulary
	var texts [][]token.ID
	for _, n := range []struct{ shared, own int }{{140, 9}, {139, 9}, {131, 9}, {0, 9}, {70, 80}, {129, 9}} {
		texts = append(texts, append(slices.Clone(text[:n.shared]), randomIDs(rng, n.own, vocab)...))
	}
	seqs := make([]forest.Seq, len(texts))
	for i, ids := range texts {
		seqs[i] = r.NewSeq("shared")
		n, err := r.Cache.Reuse(seqs[i], ids)
		if err != nil {
			return err
		}
		r.Prefill(seqs[i], ids[n:], 64)
		layers := r.Model.Info().Layers
		layer := slices.IndexFunc(layers, func(l kv.Layer) bool { return l.KVHeads > 0 && l.Keeps.Window == 0 })
		if layer < 0 || i == 0 || i == 3 {
			continue
		}
		if first, own := r.Cache.Blocks(seqs[0], layer), r.Cache.Blocks(seqs[i], layer); !first.Same(&own, 0) {
			return fmt.Errorf("sequence %d has a first page of its own", i)
		}
	}
	tree := randomTree(rng, 10, vocab)
	nodes := make([]forest.Node, len(tree.IDs))
	var next []token.ID
	for i, s := range seqs {
		if i == 2 {
			for j, id := range tree.IDs {
				nodes[j] = r.Add(forest.Row{Seq: s, Parent: parentOf(tree, nodes, j), ID: id, Want: logits})
			}
			continue
		}
		next = append(next, token.ID(rng.IntN(vocab)))
		r.Add(forest.Row{Seq: s, ID: next[len(next)-1], Want: logits})
	}
	r.Forward()
	got := r.take(len(next) + len(tree.IDs))
	row := 0
	for i := range texts {
		r.Drop(seqs[i], forest.Trunk)
		r.Close(seqs[i])
		rows := []([]token.ID){nil}
		if i == 2 {
			rows = rows[:0]
			for j := range tree.IDs {
				rows = append(rows, tree.Path(j))
			}
		} else {
			rows[0], next = next[:1], next[1:]
		}
		for _, path := range rows {
			want := r.Reference(append(slices.Clone(texts[i]), path...))
			if err := got[row].Diff(want[len(want)-1]); err != nil {
				return fmt.Errorf("sequence %d: %w", i, err)
			}
			row++
		}
	}
	return nil
}

// checkResume runs drafts of two sequences, a chain and a tree, on the first layers, and completes
// them later, in one step and in two.
func checkResume(r *Runner, rng *rand.Rand, text []token.ID, _ []Bits) error {
	layers := len(r.Model.Info().Layers)
	vocab := r.Model.Info().Vocabulary
	trees := []Tree{Chain(randomIDs(rng, 7, vocab)), randomTree(rng, 12, vocab)}
	lengths := []int{130, 62}
	for _, stops := range [][]int{{1, layers}, {1, 2, layers}} {
		var seqs []forest.Seq
		nodes := make([][]forest.Node, len(trees))
		for i := range trees {
			seqs = append(seqs, r.NewSeq(""))
			r.Prefill(seqs[i], text[:lengths[i]], 64)
			nodes[i] = make([]forest.Node, len(trees[i].IDs))
		}
		from := 0
		for _, to := range stops {
			for i, t := range trees {
				for j, id := range t.IDs {
					row := forest.Row{Seq: seqs[i], Parent: parentOf(t, nodes[i], j), ID: id, To: to}
					if from > 0 {
						row = forest.Row{Seq: seqs[i], Resume: nodes[i][j], From: from, To: to}
					}
					row.Want.Logits = to == layers
					nodes[i][j] = r.Add(row)
				}
			}
			r.Forward()
			from = to
		}
		got := r.take(len(trees[0].IDs) + len(trees[1].IDs))
		for i, t := range trees {
			r.Drop(seqs[i], forest.Trunk)
			_, want := r.Grow(seqs[i], t)
			r.Close(seqs[i])
			if err := Equal(fmt.Sprintf("sequence %d resumed at %v", i, stops), got[:len(want)], want); err != nil {
				return err
			}
			got = got[len(want):]
		}
	}
	return nil
}

// checkSkip runs rows that skip a layer, with descendants that do not: the descendants must not see keys that were
// never written, whatever the slots held before. Later rows of all layers are as in plain decoding.
func checkSkip(r *Runner, rng *rand.Rand, text []token.ID, plain []Bits) error {
	vocab := r.Model.Info().Vocabulary
	s := r.NewSeq("")
	defer r.Close(s)
	r.Prefill(s, text[:70], 64)
	draft := Chain(randomIDs(rng, 6, vocab))
	var runs [2][]Bits
	for try := range runs {
		r.Grow(s, Chain(randomIDs(rng, 100, vocab))) // other keys in the same slots
		r.Drop(s, forest.Trunk)
		parent := forest.Trunk
		for i, id := range draft.IDs {
			row := forest.Row{Seq: s, Parent: parent, ID: id, Want: logits}
			if i < 4 {
				row.Skip = forest.Layers{}.With(1)
			}
			parent = r.Add(row)
		}
		r.Forward()
		runs[try] = r.take(len(draft.IDs))
		if err := r.Cache.Commit(s, parent); err == nil {
			return errors.New("a path with skipped layers was committed")
		}
		r.Drop(s, forest.Trunk)
	}
	if err := Equal("skipped layers, other keys in the slots before", runs[0], runs[1]); err != nil {
		return err
	}
	return Equal("after skipping rows were dropped", r.Prefill(s, text[70:100], 30), plain[70:100])
}

// TestPlantedFault makes a product whose order of sums depends on the number of rows, and expects the
// checks to catch it.
func TestPlantedFault(t *testing.T) {
	format, _ := matmul.FormatOf(tensor.F32)
	right := format.MatMul
	defer func() { format.MatMul = right }()
	file := Spec{Type: tensor.F32}.File(t)
	r := New(t, file, Config{CacheType: tensor.F32})
	rng := rand.New(rand.NewPCG(7, 8))
	text := randomIDs(rng, textLength, r.Model.Info().Vocabulary)
	plain := r.Plain(text)
	format.MatMul = func(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows, s *matmul.Scratch) {
		right(dst, stride, w, out, k, g0, g1, x, s)
		if x.N < 4 {
			return
		}
		row := make([]float32, k)
		for o := g0 * format.Group; o < min(g1*format.Group, out); o++ {
			format.Row(row, w, out, k, o, s)
			for i := range x.N {
				var halves [2]float32 // two accumulators where there must be one
				for j, v := range row {
					halves[j%2] = kernel.FMA32(v, x.F[i*k+j], halves[j%2])
				}
				dst[i*stride+o] = halves[0] + halves[1]
			}
		}
	}
	for _, c := range []int{0, 1, 2} {
		if err := checks[c].run(r, rng, text, plain); err == nil {
			t.Errorf("%s: the fault was not caught", checks[c].name)
		} else {
			t.Logf("%s: caught: %v", checks[c].name, err)
		}
	}
}
