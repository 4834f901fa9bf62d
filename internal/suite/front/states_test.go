package front_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"grove"
	"grove/internal/engine"
	"grove/internal/model/synthetic"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// statesOf returns copies of the states of each token, side by side.
func statesOf(t *testing.T, m *grove.Model, ids []token.ID, o grove.StatesOptions) (rows [][][]float32) {
	t.Helper()
	err := m.States(t.Context(), ids, o, func(states [][]float32) error {
		var own [][]float32
		for _, s := range states {
			own = append(own, slices.Clone(s))
		}
		rows = append(rows, own)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return rows
}

// floatsOf returns a tensor of a model file.
func floatsOf(t *testing.T, f *gguf.File, name string) []float32 {
	t.Helper()
	v, ok := f.Tensor(name)
	if !ok {
		t.Fatal(name)
	}
	out := make([]float32, v.Elems())
	if err := tensor.Unpack(v.Type, out, v.Data); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStates holds the embeddings to the table of the file, the final states to the logits by the head's matrix and to the last stream by the final norm, and all to
// those of embeddings without a pooling, whatever the chunks and threads; also where several goroutines ask.
func TestStates(t *testing.T) {
	f, err := gguf.Open(goldenModel)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, head, norm := floatsOf(t, f, "token_embd.weight"), floatsOf(t, f, "output.weight"), floatsOf(t, f, "output_norm.weight")
	ids := make([]token.ID, 70)
	for i := range ids {
		ids[i] = token.ID(i * 37 % 320)
	}
	m := open(t, goldenModel, grove.Options{Threads: 1, CacheType: "f32"})
	width, layers := m.Info().Width, m.Info().Layers
	o := grove.StatesOptions{Layers: []int{0, 1, layers}, Final: true}
	want, logits := statesOf(t, m, ids, o), logits(t, m, ids)
	if len(want) != len(ids) || len(want[0]) != 4 || len(want[0][0]) != width {
		t.Fatalf("%d rows of %d states of %d values", len(want), len(want[0]), len(want[0][0]))
	}
	for i, states := range want {
		if at := int(ids[i]) * width; !slices.Equal(states[0], table[at:at+width]) {
			t.Errorf("token %d: the embedding is not that of the table", i)
		}
		var square float64
		for _, v := range states[2] {
			square += float64(v) * float64(v)
		}
		for j, v := range states[3] {
			if w := float64(states[2][j]) / math.Sqrt(square/float64(width)+1e-5) * float64(norm[j]); math.Abs(w-float64(v)) > 1e-3 {
				t.Fatalf("token %d: value %d behind the norm is %v, want %v", i, j, v, w)
			}
		}
		for id, l := range logits[i] {
			var sum float64
			for j, v := range states[3] {
				sum += float64(v) * float64(head[id*width+j])
			}
			if math.Abs(sum-float64(l)) > 1e-3 {
				t.Fatalf("token %d: the logit of %d is %v, and %v by the state", i, id, l, sum)
			}
		}
	}
	for k, e := range []grove.EmbedOptions{1: {Layers: []int{0}}, 2: {Layers: []int{-1}}, 3: {}} {
		if e.Raw, e.Pooling = true, "none"; k == 0 {
			continue
		}
		rows, err := m.EmbedIDs(t.Context(), ids, e, true)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			if !slices.Equal(row, want[i][k]) {
				t.Fatalf("state %d of token %d is not that of an embedding", k, i)
			}
		}
	}
	for _, options := range []grove.Options{{Chunk: 1, CacheType: "f32"}, {Chunk: 7, Threads: 2, CacheType: "f32"}, {Context: 70, Parallel: 3, CacheType: "f32"}} {
		m := open(t, goldenModel, options)
		var group sync.WaitGroup
		for _, n := range []int{1, 17, 70} {
			group.Go(func() {
				for i, states := range statesOf(t, m, ids[:n], o) {
					if !slices.EqualFunc(states, want[i], slices.Equal) {
						t.Errorf("%+v: the states of token %d of %d differ", options, i, n)
						return
					}
				}
			})
		}
		group.Wait()
	}
}

// TestStatesErrors checks each error, and that it leaves the only place for a text free.
func TestStatesErrors(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Context: 40, Parallel: 1})
	bert, _ := randomModel(t, synthetic.Spec{Arch: "bert"}, grove.Options{}, nil)
	t5, _ := randomModel(t, synthetic.Spec{Arch: "t5", KVHeads: 4}, grove.Options{}, nil)
	final, ids := grove.StatesOptions{Final: true}, []token.ID{1, 2, 3}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	full, option := errors.New("the disk is full"), new(grove.OptionError)
	for _, c := range []struct {
		name  string
		m     *grove.Model
		ctx   context.Context
		ids   []token.ID
		o     grove.StatesOptions
		want  error // nil: an option
		text  string
		calls int
	}{
		{"nothing", m, t.Context(), ids, grove.StatesOptions{}, nil, "grove: no states are asked for; name layers, or the final state", 0},
		{"beyond the layers", m, t.Context(), ids, grove.StatesOptions{Layers: []int{0, 3}}, nil, "grove: layer 3: the model has states from 0 (the embeddings) to 2 (behind its layers)", 0},
		{"negative", m, t.Context(), ids, grove.StatesOptions{Layers: []int{-1}}, nil, "grove: layer -1: the model has states from 0 (the embeddings) to 2 (behind its layers)", 0},
		{"twice", m, t.Context(), ids, grove.StatesOptions{Layers: []int{1, 1}}, nil, "grove: layers [1 1]: they must ascend", 0},
		{"encoder", bert, t.Context(), ids, final, nil, "engine: bert is an encoder and generates no text: it gives embeddings", 0},
		{"encoder-decoder", t5, t.Context(), ids, final, nil, "grove: t5 is an encoder-decoder: a text alone has no states, its decoder's depend on a source", 0},
		{"too long", m, t.Context(), make([]token.ID, 41), final, engine.ErrContext, "engine: 41 tokens do not fit: the context is full of 40 tokens", 0},
		{"cancelled", m, cancelled, ids, final, context.Canceled, "context canceled", 0},
		{"write", m, t.Context(), ids, final, full, "the disk is full", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			err := c.m.States(c.ctx, c.ids, c.o, func([][]float32) error {
				if calls++; calls == 2 {
					return full
				}
				return nil
			})
			if err == nil || err.Error() != c.text || calls != c.calls || c.want != nil && !errors.Is(err, c.want) || c.want == nil && !errors.As(err, &option) {
				t.Errorf("%d calls: %v, want %q", calls, err, c.text)
			}
			if n := len(statesOf(t, m, ids, final)); n != len(ids) {
				t.Errorf("%d rows afterwards, want %d", n, len(ids))
			}
		})
	}
	for text, ids := range map[string][]token.ID{
		"grove: the text is empty: it has no states": nil, "grove: token id 320 at index 1 is out of range: the vocabulary has 320": {0, 320}, "grove: token id -1 at index 0 is out of range: the vocabulary has 320": {-1},
	} {
		if err := m.States(t.Context(), ids, final, nil); err == nil || err.Error() != text {
			t.Errorf("%v: %v, want %q", ids, err, text)
		}
	}
}
