package modeltest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// middle is the layer of [Spec]'s SambaY whose scan the upper layers read.
const middle = 4

// TestMemoryResumes stops rows of a tree at every layer and resumes them there: below the layer that makes the memory, between it and those
// that read it, and above. Their bits are those of one pass.
func TestMemoryResumes(t *testing.T) {
	r := New(t, Spec{Arch: "sambay", Type: tensor.Q8_0}.File(t), Config{CacheType: tensor.F16, Threads: 2})
	rng := rand.New(rand.NewPCG(7, 8))
	layers := len(r.Model.Info().Layers)
	s, tree := r.NewSeq(""), randomTree(rng, 12, 48)
	r.Prefill(s, randomIDs(rng, 90, 48), 64)
	_, want := r.Grow(s, tree)
	for stop := 1; stop < layers; stop++ {
		for _, stops := range [][]int{{stop, layers}, {stop - stop/2, stop, layers}} {
			r.Drop(s, forest.Trunk)
			r.Grow(s, Chain(randomIDs(rng, 20, 48))) // other memories
			r.Drop(s, forest.Trunk)
			nodes, from := make([]forest.Node, len(tree.IDs)), 0
			for _, to := range stops {
				if to == from {
					continue
				}
				for i, id := range tree.IDs {
					row := forest.Row{Seq: s, Parent: parentOf(tree, nodes, i), ID: id, To: to}
					if from > 0 {
						row = forest.Row{Seq: s, Resume: nodes[i], From: from, To: to}
					}
					row.Want.Logits = to == layers
					nodes[i] = r.Add(row)
				}
				r.Forward()
				from = to
			}
			if err := Equal(fmt.Sprintf("resumed at %v", stops), r.take(len(tree.IDs)), want); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestMemorySkipped: the memory of a row that skips the layer that makes it is zeros, whatever ran before: the bits are those of a model whose
// upper layers do not read it. Other rows of the step have theirs.
func TestMemorySkipped(t *testing.T) {
	spec := Spec{Arch: "sambay", Type: tensor.F16}
	r, deaf := New(t, spec.File(t), Config{CacheType: tensor.F32, Threads: 2}), New(t, withoutGates(t, spec), Config{CacheType: tensor.F32})
	rng := rand.New(rand.NewPCG(7, 8))
	text, ids := randomIDs(rng, 70, 48), randomIDs(rng, 9, 48)
	run := func(r *Runner, skips bool) []Bits {
		s := r.NewSeq("")
		defer r.Close(s)
		r.Prefill(s, text, 64)
		for _, id := range ids { // siblings
			row := forest.Row{Seq: s, ID: id, Want: logits}
			if skips && id%2 == 0 {
				row.Skip = forest.Layers{}.With(middle)
			}
			r.Add(row)
		}
		r.Forward()
		defer r.Drop(s, forest.Trunk)
		return r.take(len(ids))
	}
	whole, skipped, of := run(r, false), run(r, true), run(deaf, true)
	for i, id := range ids {
		want := whole[i]
		if id%2 == 0 {
			if want = of[i]; skipped[i].Diff(whole[i]) == nil {
				t.Errorf("row %d skips a layer and has the bits of one that does not", i)
			}
		}
		if err := skipped[i].Diff(want); err != nil {
			t.Errorf("row %d: %v", i, err)
		}
	}
}

// withoutGates returns the model with units whose gates are 0.
func withoutGates(t *testing.T, s Spec) *gguf.File {
	t.Helper()
	metadata, tensors := s.Parts(t)
	for i, v := range tensors {
		if strings.HasSuffix(v.Name, "gmu_in.weight") {
			tensors[i].Data = make([]byte, len(v.Data))
		}
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestTailBits reads prompts whose rows want nothing, so that they do not run the last layers, which keep nothing: what follows has the bits of plain
// decoding, and so has a row that wants its logits among those that do not.
func TestTailBits(t *testing.T) {
	for _, spec := range []Spec{{Arch: "sambay", Type: tensor.Q8_0}, {Arch: "gemma3n", Type: tensor.F16}, {Arch: "gemma4", Type: tensor.Q8_0}} {
		t.Run(spec.Arch, func(t *testing.T) {
			r := New(t, spec.File(t), Config{CacheType: tensor.F16, Threads: 2})
			text := randomIDs(rand.New(rand.NewPCG(7, 8)), textLength, 48)
			plain := r.Plain(text)
			for _, chunk := range []int{1, 30, 64, 140} {
				if err := checkTail(r, text, chunk, plain); err != nil {
					t.Errorf("chunks of %d: %v", chunk, err)
				}
			}
		})
	}
}

// checkTail reads a prompt in chunks, of which every second wants the logits of one row in its middle, and then the rest row by row.
func checkTail(r *Runner, text []token.ID, chunk int, plain []Bits) error {
	const prompt = 140
	s := r.NewSeq(fmt.Sprint("tail", chunk))
	defer r.Close(s)
	for at := 0; at < len(text); {
		n, asked, last := min(chunk, prompt-at), -1, forest.Trunk
		if at >= prompt {
			n, asked = 1, 0
		} else if at/chunk%2 == 1 {
			asked = n / 2
		}
		for i := range n {
			last = r.Add(forest.Row{Seq: s, Parent: last, ID: text[at+i], Want: forest.Want{Logits: i == asked}, Transient: i < n-1})
		}
		r.Forward()
		if asked >= 0 {
			if err := r.bits(asked).Diff(plain[at+asked]); err != nil {
				return fmt.Errorf("row %d: %w", at+asked, err)
			}
		}
		r.Commit(s, last)
		at += n
	}
	return nil
}
