package modeltest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// exitSpecs are models whose rows stop early: each way in which an architecture ends a step.
var exitSpecs = []Spec{
	{Type: tensor.Q8_0, Layers: 4}, {Arch: "gemma3", Type: tensor.F16, Layers: 7, Tied: true}, {Arch: "gemma2", Type: tensor.Q8_0, Layers: 4},
	{Arch: "gpt2", Type: tensor.F32, Layers: 4}, {Arch: "gpt-oss", Type: tensor.MXFP4, Layers: 4},
}

// cut returns the file of the same weights with the first n layers alone.
func cut(t *testing.T, s Spec, n int) *gguf.File {
	t.Helper()
	metadata, tensors := s.Parts(t)
	for i := range metadata {
		if strings.HasSuffix(metadata[i].Key, ".block_count") {
			metadata[i].Value = gguf.Of(uint32(n))
		}
	}
	tensors = slices.DeleteFunc(tensors, func(v tensor.View) bool {
		var layer int
		_, err := fmt.Sscanf(v.Name, "blk.%d.", &layer)
		return err == nil && layer >= n
	})
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

// exited is what a row gave at an exit.
type exited struct {
	logits, state Bits
	top           int
	lse           float32
	stream        Bits // behind the exit's last layer
}

func (r *Runner) exited(i int) exited {
	got := r.Exec.Result(i)
	return exited{r.bits(i), append(Bits(nil), got.State...), int(got.Top[0].ID), got.LSE, append(Bits(nil), got.Hidden[0]...)}
}

func (e exited) diff(other exited) error {
	if err := e.logits.Diff(other.logits); err != nil {
		return err
	}
	if e.top != other.top || math.Float32bits(e.lse) != math.Float32bits(other.lse) {
		return fmt.Errorf("token %d is the largest, log-sum-exp %v; and %d, %v", e.top, e.lse, other.top, other.lse)
	}
	return errors.Join(e.state.Diff(other.state), e.stream.Diff(other.stream))
}

// TestExit runs a tree of rows that stop at a layer and want logits, the largest of them, their state and their stream there: equal to
// a model that has no more layers. Another sequence runs all layers in the same step. Then the tree is resumed: equal
// to one pass, of which the stream behind the exit is wanted too.
func TestExit(t *testing.T) {
	for _, spec := range exitSpecs {
		name := spec.Arch
		if name == "" {
			name = "llama"
		}
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			r := New(t, spec.File(t), Config{CacheType: tensor.F16, Threads: 2})
			text, tree := randomIDs(rng, 70, 48), randomTree(rng, 12, 48)
			for _, stop := range []int{1, spec.Layers - 1} {
				short := New(t, cut(t, spec, stop), Config{CacheType: tensor.F16})
				if err := checkExit(r, short, stop, tree, text); err != nil {
					t.Errorf("layer %d: %v", stop, err)
				}
			}
		})
	}
}

func checkExit(r, short *Runner, stop int, tree Tree, text []token.ID) error {
	want := forest.Want{Logits: true, Top: 1, State: true, Hidden: forest.LayerRange(stop-1, stop)}
	grow := func(r *Runner, s forest.Seq, to int) []forest.Node {
		nodes := make([]forest.Node, len(tree.IDs))
		for i, id := range tree.IDs {
			nodes[i] = r.Add(forest.Row{Seq: s, Parent: parentOf(tree, nodes, i), ID: id, To: to, Want: want})
		}
		return nodes
	}
	all := func(r *Runner) (out []exited) {
		for i := range tree.IDs {
			out = append(out, r.exited(i))
		}
		return out
	}
	cutSeq, s, other := short.NewSeq(""), r.NewSeq(""), r.NewSeq("")
	defer r.Close(s)
	defer r.Close(other)
	short.Prefill(cutSeq, text, 64)
	grow(short, cutSeq, 0)
	short.Forward()
	atExit := all(short)
	r.Prefill(s, text, 64)
	grow(r, s, 0)
	r.Forward()
	onePass := all(r)
	r.Drop(s, forest.Trunk)

	nodes := grow(r, s, stop)
	r.Add(forest.Row{Seq: other, ID: text[0], Want: want})
	r.Forward()
	for i, got := range all(r) {
		if err := got.diff(atExit[i]); err != nil {
			return fmt.Errorf("node %d and the model cut there: %w", i, err)
		}
	}
	if err := r.bits(len(nodes)).Diff(r.Reference(text[:1])[0]); err != nil {
		return fmt.Errorf("a row of all layers beside: %w", err)
	}
	for _, n := range nodes {
		r.Add(forest.Row{Seq: s, Resume: n, From: stop, Want: want})
	}
	r.Forward()
	for i, got := range all(r) {
		if err := got.diff(onePass[i]); err != nil {
			return fmt.Errorf("node %d resumed and in one pass: %w", i, err)
		}
	}
	return nil
}
