package methodtest

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/engine"
	"grove/method"
	"grove/model"
	"grove/sample"
	"grove/suite/modeltest"
	"grove/text/token"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

const copied = 250 // tokens of the text that is copied

// copier is an encoder-decoder that copies its source, if no token but the first occurs twice: the encoder adds to each token the one
// before it, by its biases alone; cross attention finds the token behind the decoder's last one.
func (l *lab) copier() model.Model {
	const half, vocab = 128, 300
	metadata, tensors := modeltest.Spec{Arch: "t5", Seed: 3, Layers: 1, Width: 2 * half, Heads: 1, KVHeads: 1, Size: half, Vocab: vocab, Context: 2 * vocab}.Parts(l.tb)
	rng := rand.New(rand.NewPCG(4, 4))
	set := func(name string, value func(row, column int) float32) {
		t := tensors[slices.IndexFunc(tensors, func(t tensor.View) bool { return t.Name == name })]
		columns := t.Shape[len(t.Shape)-1]
		v := make([]float32, t.Elems())
		for i := range v {
			v[i] = value(i/columns, i%columns)
		}
		if err := tensor.Pack(tensor.F32, t.Data, v); err != nil {
			l.tb.Fatal(err)
		}
	}
	for _, t := range tensors {
		set(t.Name, func(int, int) float32 { // norms that change nothing, blocks that add nothing
			if len(t.Shape) == 1 {
				return 1
			}
			return 0
		})
	}
	var codes [vocab][half]float32
	for id := range codes {
		for i := range half {
			codes[id][i] = float32(2*rng.IntN(2) - 1)
		}
	}
	half2 := func(first bool, scale float32) func(int, int) float32 { // reads or writes a half of the stream
		return func(row, column int) float32 {
			if first && row == column || !first && (row == column+half || column == row+half) {
				return scale
			}
			return 0
		}
	}
	set("token_embd.weight", func(id, i int) float32 {
		if i < half {
			return codes[id][i]
		}
		return 0
	})
	set("output.weight", func(id, i int) float32 {
		if i >= half {
			return codes[id][i-half]
		}
		return 0
	})
	set("enc.blk.0.attn_rel_b.weight", func(bucket, _ int) float32 {
		if bucket == 1 { // of the token before
			return 50
		}
		return 0
	})
	set("enc.blk.0.attn_v.weight", half2(true, 1))
	set("enc.blk.0.attn_o.weight", half2(false, 1))
	set("dec.blk.0.cross_attn_q.weight", half2(true, 0.5))
	set("dec.blk.0.cross_attn_k.weight", half2(false, 1))
	set("dec.blk.0.cross_attn_v.weight", half2(true, 1))
	set("dec.blk.0.cross_attn_o.weight", half2(false, 1))
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		l.tb.Fatal(err)
	}
	file, err := gguf.Parse(b.Bytes())
	if err != nil {
		l.tb.Fatal(err)
	}
	m, err := model.Open(file, l.pool, model.Options{})
	if err != nil {
		l.tb.Fatal(err)
	}
	return m
}

// TestCopying has a text copied, which methods that draft from texts find in the source: most of each round's drafts are accepted.
func TestCopying(t *testing.T) {
	l := newLab(t)
	l.target = l.copier()
	rng := rand.New(rand.NewPCG(1, 2))
	source := []token.ID{0}
	for _, id := range rng.Perm(299)[:copied] {
		source = append(source, token.ID(id+1))
	}
	for _, name := range []string{"lookup", "sam"} {
		info, err := method.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		s := &subject{lab: l, info: info, ctx: t.Context()}
		for _, p := range []sample.Params{{}, {Temperature: 1, Seed: 5}} {
			got, st, err := s.tell(engine.Config{CacheType: tensor.F16}, p, eager, []move{{source, copied}})
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range got {
				if d.ID != source[i+1] {
					t.Fatalf("%s: token %d is %d, and %d in the source", name, i, d.ID, source[i+1])
				}
			}
			t.Logf("%s, temperature %v: %d tokens in %d rounds, %d of %d drafts accepted", name, p.Temperature, st.Tokens, st.Rounds, st.Accepted, st.Drafted)
			if st.Tokens < 5*st.Rounds {
				t.Errorf("%s: %d tokens in %d rounds; the source holds them all", name, st.Tokens, st.Rounds)
			}
		}
	}
}
