package model

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/kv"
	"grove/internal/weights/tensor"
)

// LatentAttention is multi-head latent attention (DeepSeek-V2, section 2.1) in its absorbed form: the matrices that
// expand the latent to keys and values multiply queries and results instead. All heads share one key, the rotated
// part followed by the latent, and one value, the latent.
type LatentAttention struct {
	hparams LatentHyperparameters
	layer   int
	rope    *compute.Rope
	scale   float32

	query      compute.Projection   // from the stream, or from the queries' latent
	queryDown  compute.Projection   // the latter, where there is one
	queryNorm  compute.Vector       //
	down       []compute.Projection // latent, rotated part of the key
	norm       compute.Vector       // of the latent
	keyUp      *compute.Matrix      // [heads, Rank, NopeSize]: a query, seen from the latent
	valueUp    *compute.Matrix      // [heads, ExpandedValueSize, Rank]
	out        compute.Projection
	compressed bool // queries have a latent
}

// LatentHyperparameters is the hyperparameters of latent attention.
type LatentHyperparameters struct {
	Hyperparameters
	Rank, QueryRank    int // values of the latents; 0: queries have none
	NopeSize, RopeSize int // values of a head's key that do not rotate, and that do
	ExpandedValueSize  int // values of a head's value, expanded from its latent

	Temperature  float32 // of queries, by each TemperLength positions, which an architecture may set; 0: none
	TemperLength int
}

// LatentHyperparameters reads and checks the hyperparameters of latent attention, and sets in the model's description
// what the layers keep: one key and one value of all heads.
func (l *Loader) LatentHyperparameters() LatentHyperparameters {
	return l.LatentOf(l.Hyperparameters())
}

// LatentOf is [Loader.LatentHyperparameters] of shared hyperparameters that were read. Layers without heads of keys stay as they
// are.
func (l *Loader) LatentOf(shared Hyperparameters) LatentHyperparameters {
	s := LatentHyperparameters{Hyperparameters: shared}
	s.Rank = l.Count("attention.kv_lora_rank", 1, maxWidth)
	s.QueryRank = l.CountOr("attention.q_lora_rank", 0, 0, maxWidth)
	s.RopeSize = l.Count("rope.dimension_count", 2, maxHeads)
	key, out := l.CountOr("attention.key_length_mla", 0, 0, maxHeads), l.CountOr("attention.value_length_mla", 0, 0, maxHeads)
	if key == 0 {
		key = s.KeySize
	}
	if s.ExpandedValueSize = out; out == 0 {
		s.ExpandedValueSize = s.ValueSize
	}
	if s.NopeSize = key - s.RopeSize; s.NopeSize < 0 && l.OK() {
		l.fail("%s is %d; it must be at most the %d values of a key", l.key("rope.dimension_count"), s.RopeSize, key)
	}
	for i := range l.info.Layers {
		if l.info.Layers[i].KVHeads > 0 {
			l.info.Layers[i] = kv.Layer{KVHeads: 1, KeySize: s.key(), ValueSize: s.Rank}
		}
	}
	return s
}

// key is the size of the key that all heads share. Where whole heads rotate the latent has no part in it.
func (s *LatentHyperparameters) key() int {
	if s.NopeSize == 0 {
		return s.RopeSize
	}
	return s.RopeSize + s.Rank
}

// LatentAttention loads the block of a layer, which does not rotate where rope is nil. Its scale is that of keys in the expanded form.
func (l *Loader) LatentAttention(s LatentHyperparameters, layer int, rope *compute.Rope, temperature float64) LatentAttention {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	key := s.NopeSize + s.RopeSize
	a := LatentAttention{
		hparams: s, layer: l.place(layer), rope: rope, scale: float32(temperature * temperature / math.Sqrt(float64(key))),
		down: l.Projections(name("attn_kv_a_mqa"), s.Width, s.Rank, s.RopeSize),
		norm: l.Vector(name("attn_kv_a_norm.weight"), s.Rank),
		out:  l.Projection(name("attn_output"), s.Width, s.Heads*s.ExpandedValueSize),
	}
	if a.compressed = s.QueryRank > 0 && !l.Has(name("attn_q.weight")); a.compressed {
		a.queryDown = l.Projection(name("attn_q_a"), s.QueryRank, s.Width)
		a.queryNorm = l.Vector(name("attn_q_a_norm.weight"), s.QueryRank)
		a.query = l.Projection(name("attn_q_b"), s.Heads*key, s.QueryRank)
	} else {
		a.query = l.Projection(name("attn_q"), s.Heads*key, s.Width)
	}
	if l.Has(name("attn_kv_b.weight")) && !l.Has(name("attn_k_b.weight")) {
		a.keyUp, a.valueUp = l.splitLatent(name("attn_kv_b.weight"), s)
	} else {
		if s.NopeSize > 0 {
			a.keyUp = l.Stack(name("attn_k_b.weight"), s.Heads, s.Rank, s.NopeSize)
		}
		a.valueUp = l.Stack(name("attn_v_b.weight"), s.Heads, s.ExpandedValueSize, s.Rank)
	}
	return a
}

// splitLatent splits the tensor of files before 2025: for each head the rows that expand its key, and those that
// expand its value. The former are transposed, which no quantised block allows, so they become F32.
func (l *Loader) splitLatent(name string, s LatentHyperparameters) (keyUp, valueUp *compute.Matrix) {
	none := &compute.Matrix{}
	v, ok := l.view(name, s.Heads*(s.NopeSize+s.ExpandedValueSize), s.Rank)
	row, whole := v.Type.RowBytes(s.Rank)
	if !ok {
		return none, none
	}
	if !whole || len(v.Data) != row*v.Shape[0] {
		l.fail("tensor %q of type %v: %d bytes do not hold shape %v", v.Name, v.Type, len(v.Data), v.Shape)
		return none, none
	}
	values := make([]byte, 0, s.Heads*s.ExpandedValueSize*row)
	keys := make([]byte, s.Heads*s.Rank*s.NopeSize*4)
	one, part := make([]float32, s.Rank), make([]float32, s.Rank*s.NopeSize)
	for h := range s.Heads {
		rows := v.Data[h*(s.NopeSize+s.ExpandedValueSize)*row:]
		for p := range s.NopeSize {
			if err := tensor.Unpack(v.Type, one, rows[p*row:(p+1)*row]); err != nil {
				l.fail("tensor %q: %v", name, err)
				return none, none
			}
			for r, x := range one {
				part[r*s.NopeSize+p] = x
			}
		}
		if err := tensor.Pack(tensor.F32, keys[h*len(part)*4:(h+1)*len(part)*4], part); err != nil {
			l.fail("tensor %q: %v", name, err)
			return none, none
		}
		values = append(values, rows[s.NopeSize*row:(s.NopeSize+s.ExpandedValueSize)*row]...)
	}
	if s.NopeSize > 0 {
		keyUp = l.store(tensor.View{Name: name, Type: tensor.F32, Shape: []int{s.Heads, s.Rank, s.NopeSize}, Data: keys})
	}
	valueUp = l.store(tensor.View{Name: name, Type: v.Type, Shape: []int{s.Heads, s.ExpandedValueSize, s.Rank}, Data: values})
	return keyUp, valueUp
}

// Forward returns the block's addition to the stream; h is the normed stream.
func (a *LatentAttention) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	s := &a.hparams
	own := h
	if a.compressed {
		own = x.RMSNorm(x.Linear(a.queryDown, h), a.queryNorm, s.Eps)
	}
	plain := x.Linear(a.query, own)
	down := x.Linears(a.down, h)
	latent, turned := x.RMSNorm(down[0], a.norm, s.Eps), down[1]

	size := s.key()
	q := x.CopyHeads(x.Buffer(h, s.Heads*size), 0, plain, s.NopeSize, s.RopeSize, s.Heads)
	k := x.CopyHeads(x.Buffer(h, size), 0, turned, 0, s.RopeSize, 1)
	if s.NopeSize > 0 {
		q = x.LinearHeads(q, s.RopeSize, plain, a.keyUp)
		k = x.CopyHeads(k, s.RopeSize, latent, 0, s.Rank, 1)
	}
	if a.rope != nil {
		q, k = x.Rope(q, s.Heads, a.rope), x.Rope(k, 1, a.rope)
	}
	if s.Temperature > 0 {
		q = x.Temper(q, s.Temperature, s.TemperLength, 0)
	}

	o := x.Attend(compute.Attention{Layer: a.layer, Heads: s.Heads, Scale: a.scale}, q, k, latent)
	return x.Linear(a.out, x.LinearHeads(x.Buffer(h, s.Heads*s.ExpandedValueSize), 0, o, a.valueUp))
}
