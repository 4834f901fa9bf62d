package synthetic

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Copier is a T5 whose weights are set by hand: it writes its source with some tokens replaced, and ends. Each token has a code of random signs.
// The encoder adds to each token of the source the code of the token before it, by a bias of relative position alone, and to the first
// one that of End; the decoder's cross attention finds the token behind the last one written. It copies a source that ends with End and has no other token twice.
type Copier struct {
	Vocab, Context int
	Start, End     int         // the decoder's first token, and the token that ends a text
	Like           int         // the token behind which the answer begins: End, or the token that each source begins with
	Edits          map[int]int // the tokens that are written in place of others; none of them may be in a source
	Code           int         // values of a code, half of the stream; 0: 128
	Layers, FFN    int         // 0: 1, 32; further layers add nothing
	Type           tensor.Type // of the matrices
	Vocabulary     bool        // the file names tokens, as [Spec] has it; End must be the last one then
}

// copierMarks are the first values of a code, which are no signs: one is 1 for all tokens, one for End alone.
const copierMarks = 2

// Parts makes the model's metadata and tensors.
func (c Copier) Parts() ([]gguf.KV, []tensor.View, error) {
	c.Code, c.Layers, c.FFN = cmp.Or(c.Code, 128), cmp.Or(c.Layers, 1), cmp.Or(c.FFN, 32)
	metadata, tensors, err := Spec{
		Arch: "t5", Seed: 3, Layers: c.Layers, Width: 2 * c.Code, Heads: 1, KVHeads: 1, KeySize: c.Code, FFN: c.FFN, Vocab: c.Vocab, Context: c.Context, Type: c.Type, Vocabulary: c.Vocabulary,
	}.Parts()
	if err != nil {
		return nil, nil, err
	}
	for i := range metadata {
		if metadata[i].Key == "t5.decoder_start_token_id" {
			metadata[i].Value = gguf.Of(uint32(c.Start))
		}
	}
	codes := c.codes()
	half := func(row, column int) bool { return row == column }                                 // reads or writes the first half of the stream
	other := func(row, column int) bool { return row == column+c.Code || row == column-c.Code } // the second half
	where := func(places func(row, column int) bool, x float32) func(row, column int) float32 {
		return func(row, column int) float32 {
			if places(row, column) {
				return x
			}
			return 0
		}
	}
	values := map[string]func(row, column int) float32{
		"token_embd.weight": func(id, i int) float32 {
			if i < c.Code {
				return codes[id][i]
			}
			return 0
		},
		"output.weight": func(id, i int) float32 {
			if _, edited := c.Edits[id]; !edited && id != c.Start && i >= c.Code+copierMarks {
				return codes[id][i-c.Code]
			}
			return 0
		},
		"enc.blk.0.attn_rel_b.weight":   where(func(bucket, _ int) bool { return bucket == 1 }, 60), // of the token before
		"enc.blk.0.attn_q.weight":       where(func(row, column int) bool { return row == 0 && column == 0 }, 4),
		"enc.blk.0.attn_k.weight":       where(func(row, column int) bool { return row == 0 && column == 1 }, 4), // of End
		"enc.blk.0.attn_v.weight":       where(half, 1),
		"enc.blk.0.attn_o.weight":       where(other, 1),
		"dec.blk.0.cross_attn_q.weight": where(half, 0.5),
		"dec.blk.0.cross_attn_k.weight": where(other, 1),
		"dec.blk.0.cross_attn_v.weight": where(half, 1),
		"dec.blk.0.cross_attn_o.weight": where(other, 1),
	}
	for _, t := range tensors { // the rest are norms that change nothing, and blocks that add nothing
		value, ok := values[t.Name]
		if !ok {
			value = where(func(int, int) bool { return len(t.Shape) == 1 }, 1)
		}
		columns := t.Shape[len(t.Shape)-1]
		x := make([]float32, t.Elems())
		for i := range x {
			x[i] = value(i/columns, i%columns)
		}
		if err := tensor.Pack(t.Type, t.Data, x); err != nil {
			return nil, nil, err
		}
	}
	return metadata, tensors, nil
}

// codes returns the code of each token. A token that is written in place of another one has its code, as the next token is found by it.
func (c Copier) codes() [][]float32 {
	rng := rand.New(rand.NewPCG(4, 4))
	codes := make([][]float32, c.Vocab)
	for id := range codes {
		codes[id] = make([]float32, c.Code)
		for i := range codes[id] {
			codes[id][i] = float32(2*rng.IntN(2) - 1)
		}
		codes[id][0], codes[id][1] = 1, 0
	}
	codes[c.End][1] = 1
	for from, to := range c.Edits {
		codes[to] = slices.Clone(codes[from])
	}
	codes[c.Start] = slices.Clone(codes[c.Like])
	return codes
}
