package engine_test

import (
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/engine/reading"
	"grove/internal/forest"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// TestStatesBits compares the states of a text, of every layer and in steps of any size, with those of rows that are run one a step; and the logits that the
// head gives behind the last stream alone with those of the text.
func TestStatesBits(t *testing.T) {
	ids := text(75)
	for name, spec := range map[string]modeltest.Spec{
		"llama": {Context: 300}, "positions are added": {Arch: "gpt2", KVHeads: 4, Context: 300}, "embeddings are scaled": {Arch: "gemma2", Context: 300}, "recurrent": {Arch: "mamba", Context: 300},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, few(), spec.File(t))
			layers := len(b.m.Info().Layers)
			every := make([]int, layers)
			for i := range every {
				every[i] = i
			}
			r := modeltest.NewFor(t, b.m, b.pool, modeltest.Config{Context: 300, CacheType: tensor.F16})
			want, logits := plainStates(r, ids), [][]float32(nil)
			for _, chunk := range []int{1, 7, 64, 0} {
				e := b.engine(t, engine.Config{Chunk: chunk, CacheType: tensor.F16})
				i := 0
				err := e.States(t.Context(), ids, reading.Reading{Layers: every, Embeds: true, State: true, Mask: reading.Causal}, func(row []float32) error {
					if !slices.Equal(row, want[i]) {
						t.Fatalf("chunk %d: the states of token %d differ", chunk, i)
					}
					i++
					return nil
				})
				if err != nil || i != len(ids) {
					t.Fatalf("chunk %d: %d of %d tokens: %v", chunk, i, len(ids), err)
				}
				if chunk == 0 {
					err = e.Logits(t.Context(), ids, 0, func(row []float32) error { logits = append(logits, slices.Clone(row)); return nil })
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if spec.Arch == "gpt2" {
				return // it adds a position to a vector as to a token
			}
			width, s := b.m.Info().Width, r.NewSeq("")
			for i, states := range want {
				last, final := states[layers*width:(layers+1)*width], states[(layers+1)*width:]
				r.Add(forest.Row{Seq: s, Vector: last, Skip: forest.LayerRange(0, layers), Want: forest.Want{Logits: true, State: true}})
				r.Forward()
				if got := r.Exec.Result(0); !slices.Equal(got.Logits, logits[i]) || !slices.Equal(got.State, final) {
					t.Fatalf("behind the last stream of token %d, the head has other logits than the text, or the norm another state", i)
				}
				r.Drop(s, forest.Trunk)
			}
		})
	}
}

// plainStates runs ids one a step and returns the embedding, the stream behind each layer and the final state of each, one behind the other.
func plainStates(r *modeltest.Runner, ids []token.ID) (out [][]float32) {
	want := forest.Want{Embedding: true, Hidden: forest.LayerRange(0, len(r.Model.Info().Layers)), State: true}
	s := r.NewSeq("")
	defer r.Close(s)
	for _, id := range ids {
		n := r.Add(forest.Row{Seq: s, ID: id, Want: want})
		r.Forward()
		got := r.Exec.Result(0)
		out = append(out, append(slices.Concat(got.Hidden...), got.State...))
		r.Commit(s, n)
	}
	return out
}
