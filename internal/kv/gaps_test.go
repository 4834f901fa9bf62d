package kv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// gappedText is a text of a random history: the token of each index, and whether it lacks keys in layer 1.
type gappedText struct {
	seq   forest.Seq
	ids   []token.ID
	lacks []bool
}

// TestGaps commits, cuts and forks texts some of whose tokens lack the keys of a layer, at random, and expects in each layer the keys of the tokens that have them, in order, pages for
// no others, and no page of a text with gaps under the name of its tokens.
func TestGaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 2))
	k, err := New(Config{
		Layers: []Layer{{KVHeads: 1, KeySize: 4}, {KVHeads: 1, KeySize: 4, Gaps: true}}, Type: tensor.F32, Context: 600, Tokens: 3000, Seqs: 5, Scratch: 128,
	})
	if err != nil {
		t.Fatal(err)
	}
	step := k.Forest.NewStep(64)
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	grow := func(x *gappedText, n int, all bool) {
		parent := forest.Trunk
		for range min(n, 600-len(x.ids)) {
			r := forest.Row{Seq: x.seq, Parent: parent, ID: token.ID(rng.IntN(50))}
			anchored := parent != forest.Trunk || k.Forest.Anchored(x.seq)
			if r.Substitute = !all && anchored && len(x.ids) > 0 && rng.IntN(3) > 0; !r.Substitute && !all {
				r.Anchor = true
			}
			node, err := step.Add(r)
			if err != nil && r.Substitute { // no anchor above it
				r.Substitute, r.Anchor = false, true
				node, err = step.Add(r)
			}
			fatal(err)
			at := float32(len(x.ids))*100 + float32(r.ID)
			for l := range 2 {
				if l == 0 || !r.Substitute {
					k.Put(l, forest.SlotOf(node), 0, []float32{at, 0, 0, 0}, []float32{at, 1, 2, 3})
				}
			}
			x.ids, x.lacks, parent = append(x.ids, r.ID), append(x.lacks, r.Substitute), node
		}
		step.Reset()
		if parent != forest.Trunk {
			fatal(k.Commit(x.seq, parent))
		}
	}
	check := func(x *gappedText) {
		t.Helper()
		for l := range 2 {
			b, at := k.Blocks(x.seq, l), 0
			for i, id := range x.ids {
				if l == 1 && x.lacks[i] {
					continue
				}
				_, values := b.Page(0, at/PageTokens)
				got := make([]float32, 4*PageTokens)
				fatal(tensor.Unpack(tensor.F32, got, values[:4*4*PageTokens]))
				if want := float32(i)*100 + float32(id); !slices.Contains(got, want) {
					t.Fatalf("layer %d has no key of token %d in block %d", l, i, at/PageTokens)
				}
				at++
			}
			if table := k.seqs[x.seq].tables[k.places[l].group]; b.Len() != at || len(table) != pagesOf(at) {
				t.Fatalf("layer %d has %d keys on %d pages, want %d", l, b.Len(), len(table), at)
			}
		}
	}
	open := func() *gappedText { return &gappedText{seq: k.NewSeq("")} }
	texts := []*gappedText{open(), open()}
	for range 600 {
		x := texts[rng.IntN(len(texts))]
		switch op := rng.IntN(9); {
		case op < 5:
			grow(x, 1+rng.IntN(40), op == 0 && !slices.Contains(x.lacks, true))
		case op < 7 && len(x.ids) > 0:
			n := rng.IntN(len(x.ids) + 1)
			fatal(k.Truncate(x.seq, n))
			x.ids, x.lacks = x.ids[:n], x.lacks[:n]
		case op == 7 && len(texts) < 4:
			seq, err := k.Fork(x.seq, forest.Trunk)
			fatal(err)
			texts = append(texts, &gappedText{seq, slices.Clone(x.ids), slices.Clone(x.lacks)})
		case op == 8 && len(texts) > 1:
			fatal(k.CloseSeq(x.seq))
			texts = slices.DeleteFunc(texts, func(o *gappedText) bool { return o == x })
		}
		for _, x := range texts {
			fatal(k.Truncate(x.seq, len(x.ids))) // gives back what was reserved
			check(x)
			s := k.NewSeq("")
			n, err := k.Reuse(s, append(slices.Clone(x.ids), 1))
			fatal(err)
			if first := slices.Index(x.lacks, true); first >= 0 && n > first {
				t.Fatalf("%d tokens are found by name of a text that lacks keys from token %d on", n, first)
			}
			fatal(k.CloseSeq(s))
		}
	}
}
