package hf

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
)

// TypeOf returns the type under which a tensor is presented: its own for matrices; float32, as
// llama.cpp wants it, for vectors, norms, biases, routers and learned positions.
func TypeOf(to string, t safetensors.Tensor) tensor.Type {
	if len(t.Shape) < 2 || !strings.HasSuffix(to, ".weight") || strings.HasSuffix(to, "_norm.weight") ||
		strings.HasSuffix(to, "ffn_gate_inp.weight") || strings.HasSuffix(to, "conv1d.weight") || to == "position_embd.weight" {
		return tensor.F32
	}
	return safetensors.FloatTypes[t.Type]
}

// Find returns a tensor of the folder, which must have floats of the given shape.
func (b *FolderBuilder) Find(name string, shape ...int) (safetensors.Tensor, bool) {
	t, ok := b.Raw(name, shape...)
	if _, float := safetensors.FloatTypes[t.Type]; ok && !float {
		b.Fail("%s: type is %s; it must be F32, F16 or BF16", tensor.Label(name), t.Type)
		return t, false
	}
	return t, ok
}

// Raw returns a tensor of the folder, which must have the given shape.
func (b *FolderBuilder) Raw(name string, shape ...int) (safetensors.Tensor, bool) {
	if !b.OK() {
		return safetensors.Tensor{}, false
	}
	t, ok := b.Tensor(name)
	if b.Dry {
		return safetensors.Tensor{Name: name, Type: "F32", Shape: shape}, true
	}
	switch {
	case !ok:
		b.Fail("%s: the tensor is missing", tensor.Label(name))
	case !slices.Equal(t.Shape, shape):
		b.Fail("%s: shape is %v; %s asks for %v", tensor.Label(name), t.Shape, ConfigName, shape)
		return t, false
	}
	b.used[name] = true
	return t, ok
}

// Has reports whether the folder has a tensor.
func (b *FolderBuilder) Has(name string) bool {
	_, ok := b.Tensor(name)
	return ok
}

// Tensor returns a tensor of the folder, if it is there.
func (b *FolderBuilder) Tensor(name string) (safetensors.Tensor, bool) {
	if b.Dry {
		return safetensors.Tensor{}, name == GPT2Table // the classes for text have this prefix
	}
	if t, ok := b.Weights.Tensor(name); ok {
		return t, ok
	}
	for _, p := range b.parts {
		if own, ok := strings.CutPrefix(name, p.root); ok {
			return p.file.Tensor(own)
		}
	}
	return safetensors.Tensor{}, false
}

// Add adds a tensor whose bytes fill makes in dst, which is zero.
func (b *FolderBuilder) Add(to string, typ tensor.Type, shape []int, fill func(dst []byte)) {
	v := tensor.View{Name: to, Type: typ, Shape: shape}
	b.Tensors = append(b.Tensors, v)
	b.made = append(b.made, func() ([]byte, error) {
		dst := make([]byte, v.Bytes())
		fill(dst)
		return dst, nil
	})
}

// Copy adds a tensor of the folder as it is, a view where its type stays.
func (b *FolderBuilder) Copy(to, from string, shape ...int) {
	t, ok := b.Find(from, shape...)
	if !ok {
		return
	}
	b.noteRows(to, from, shape, shape, nil)
	if typ := TypeOf(to, t); typ != safetensors.FloatTypes[t.Type] {
		b.Add(to, typ, shape, func(dst []byte) { ToF32(dst, t, 0) })
		return
	}
	b.Tensors = append(b.Tensors, tensor.View{Name: to, Type: safetensors.FloatTypes[t.Type], Shape: shape, Data: t.Data})
	b.made = append(b.made, nil)
}

// CopyIf is copy for a tensor that may be missing.
func (b *FolderBuilder) CopyIf(to, from string, shape ...int) {
	if b.Dry || b.Has(from) {
		b.Copy(to, from, shape...)
	}
}

// Both adds a weight [out, in] and, if there is one, its bias.
func (b *FolderBuilder) Both(to, from string, out, in int) {
	b.Copy(to+".weight", from+".weight", out, in)
	b.CopyIf(to+".bias", from+".bias", out)
}

// Norm adds the weights of a norm, to which some families add one when they use them.
func (b *FolderBuilder) Norm(to, from string, n int, add float32) {
	if t, ok := b.Find(from, n); ok {
		b.Add(to, tensor.F32, []int{n}, func(dst []byte) { ToF32(dst, t, add) })
	}
}

// LayerNorm adds the weight and the bias of a LayerNorm of n values.
func (b *FolderBuilder) LayerNorm(to, from string, n int) {
	b.Norm(to+".weight", from+".weight", n, 0)
	b.Norm(to+".bias", from+".bias", n, 0)
}

// VocabOf takes the vocabulary's size from its table.
func (b *FolderBuilder) VocabOf(table string) {
	if t, _ := b.Tensor(table); len(t.Shape) == 2 {
		b.Vocab = t.Shape[0]
	}
}

// Head adds the output head, unless it is the table; tied is what folders mean that do not say.
func (b *FolderBuilder) Head(name string, width int, tied bool) {
	switch tied = b.Config.BoolOr("tie_word_embeddings", tied); {
	case !tied:
		b.Copy("output.weight", name, b.Vocab, width)
	case b.Has(name):
		b.Find(name, b.Vocab, width)
	}
}

// ToF32 writes a tensor's values plus add.
func ToF32(dst []byte, t safetensors.Tensor, add float32) {
	elems := len(dst) / 4
	size := len(t.Data) / elems
	values := make([]float32, min(elems, 1<<12))
	for at := 0; at < elems; at += len(values) {
		part := values[:min(len(values), elems-at)]
		if err := tensor.Unpack(safetensors.FloatTypes[t.Type], part, t.Data[at*size:(at+len(part))*size]); err != nil {
			panic(err) // a float type of as many elements
		}
		for i, x := range part {
			binary.LittleEndian.PutUint32(dst[4*(at+i):], math.Float32bits(x+add))
		}
	}
}

// Turned adds the weight, and the bias if there is one, of queries or keys that rotate: the folder has
// the first values of all pairs of a head, then the second ones; GGUF's llama has pairs side by side.
func (b *FolderBuilder) Turned(to, from string, heads, size, in int) {
	rows := heads * size
	b.Permuted(to+".weight", from+".weight", heads, size, rows, in)
	if b.Has(from + ".bias") {
		b.Permuted(to+".bias", from+".bias", heads, size, rows)
	}
}

// Permuted adds one tensor of queries or keys, as [FolderBuilder.Turned] does.
func (b *FolderBuilder) Permuted(to, from string, heads, size int, shape ...int) {
	t, ok := b.Find(from, shape...)
	if !ok {
		return
	}
	if size%2 != 0 {
		b.Fail("%s: heads have %d values; the number must be even", tensor.Label(from), size)
		return
	}
	b.noteRows(to, from, shape, shape, func(i int) int { return FolderTurnRow(i, size) })
	typ := TypeOf(to, t)
	b.Add(to, typ, shape, func(dst []byte) {
		rows := t.Data
		if typ != safetensors.FloatTypes[t.Type] {
			rows = make([]byte, len(dst))
			ToF32(rows, t, 0)
		}
		row := len(dst) / shape[0]
		for h := range heads {
			for i := range size {
				copy(dst[(h*size+i)*row:][:row], rows[FolderTurnRow(h*size+i, size)*row:])
			}
		}
	})
}

// Transposed adds a matrix [out, in] that the folder has as [in, out].
func (b *FolderBuilder) Transposed(to, from string, out, in int) {
	t, ok := b.Find(from, in, out)
	if !ok {
		return
	}
	b.Note(Source{To: to, From: from, Rows: out, Shape: []int{out, in}, Transposed: true})
	b.Add(to, safetensors.FloatTypes[t.Type], []int{out, in}, func(dst []byte) {
		size := len(dst) / (out * in)
		for o := range out {
			for i := range in {
				copy(dst[(o*in+i)*size:][:size], t.Data[(i*out+o)*size:])
			}
		}
	})
}

// Stacked adds the matrices [out, in] of n experts as one tensor; from gives the name of each.
func (b *FolderBuilder) Stacked(to string, from func(expert int) string, n, out, in int) {
	var experts []safetensors.Tensor
	for e := range n {
		t, ok := b.Find(from(e), out, in)
		if !ok {
			return
		}
		if t.Type != FloatType(experts, t) {
			b.Fail("%s: type is %s; it must be that of expert 0 (%s)", tensor.Label(t.Name), t.Type, experts[0].Type)
			return
		}
		experts = append(experts, t)
		b.Note(Source{To: to, From: from(e), Rows: out, Shape: []int{out, in}, Expert: e, Stack: true})
	}
	b.Add(to, safetensors.FloatTypes[experts[0].Type], []int{n, out, in}, func(dst []byte) {
		for _, t := range experts {
			dst = dst[copy(dst, t.Data):]
		}
	})
}

// FloatType returns the type of the first expert, which may be t.
func FloatType(experts []safetensors.Tensor, t safetensors.Tensor) safetensors.DType {
	if len(experts) > 0 {
		return experts[0].Type
	}
	return t.Type
}

// Gathered adds a matrix, or a vector of a name that does not end in .weight, whose row i is row source(i) of a tensor of the
// folder with rows rows.
func (b *FolderBuilder) Gathered(to, from string, rows, in, out int, source func(i int) int) {
	folder, shape := []int{rows, in}, []int{out, in}
	if strings.HasSuffix(to, ".bias") {
		folder, shape = folder[:1], shape[:1]
	}
	b.GatheredAs(to, from, folder, shape, source)
}

// GatheredAs is gathered for any shapes of which the last dimension, but of vectors, is that of a row.
func (b *FolderBuilder) GatheredAs(to, from string, folder, shape []int, source func(i int) int) {
	t, ok := b.Find(from, folder...)
	if !ok {
		return
	}
	b.noteRows(to, from, folder, shape, source)
	typ := TypeOf(to, t)
	b.Add(to, typ, shape, func(dst []byte) {
		data := t.Data
		if typ != safetensors.FloatTypes[t.Type] {
			data = make([]byte, 4*ShapeElems(folder))
			ToF32(data, t, 0)
		}
		rows := ShapeElems(shape)
		if len(shape) > 1 {
			rows /= shape[len(shape)-1]
		}
		row := len(dst) / rows
		for i := range rows {
			copy(dst[i*row:][:row], data[source(i)*row:])
		}
	})
}

// ShapeElems returns the number of values of a shape.
func ShapeElems(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// StackedNorms adds the norms of heads, which the folder has apart, as [heads, size].
func (b *FolderBuilder) StackedNorms(to, root string, heads, size int) {
	var parts []safetensors.Tensor
	for h := range heads {
		t, ok := b.Find(fmt.Sprintf("%s.%d.weight", root, h), size)
		if !ok {
			return
		}
		parts = append(parts, t)
	}
	b.Add(to, tensor.F32, []int{heads, size}, func(dst []byte) {
		for h, t := range parts {
			ToF32(dst[4*h*size:][:4*size], t, 0)
		}
	})
}

// EverySecond adds the rows first, first+2, … of a tensor [experts, 2*out] of biases.
func (b *FolderBuilder) EverySecond(to, from string, first, experts, out int) {
	t, ok := b.Find(from, experts, 2*out)
	if !ok {
		return
	}
	b.Add(to, tensor.F32, []int{experts, out}, func(dst []byte) {
		wide := make([]byte, 2*len(dst))
		ToF32(wide, t, 0)
		for i := 0; i < len(dst); i += 4 {
			copy(dst[i:i+4], wide[2*i+4*first:])
		}
	})
}

// MXFP4 blocks: 32 values of 4 bits and a scale. Folders keep 16 bytes of values, in order, apart from the
// scales; GGUF puts the scale before them, and values j and j+16 in byte j.
const (
	mxBlock = 32
	mxBytes = mxBlock / 2
)

// MXFP4 adds the rows first, first+step, … of the experts' matrices [rows, in] that the folder has as
// blocks and scales.
func (b *FolderBuilder) MXFP4(to, from string, first, step, experts, rows, in int) {
	if in%mxBlock != 0 {
		b.Fail("%s: rows have %d values; the number must be a multiple of %d", tensor.Label(from), in, mxBlock)
		return
	}
	if b.Dry {
		return // no module of matrices
	}
	blocks, ok1 := b.Raw(from+"_blocks", experts, rows, in/mxBlock, mxBytes)
	scales, ok2 := b.Raw(from+"_scales", experts, rows, in/mxBlock)
	if !ok1 || !ok2 {
		return
	}
	if blocks.Type != "U8" || scales.Type != "U8" {
		b.Fail("%s: types of blocks and scales are %s and %s; they must be U8", tensor.Label(from), blocks.Type, scales.Type)
		return
	}
	b.Add(to, tensor.MXFP4, []int{experts, rows / step, in}, func(dst []byte) {
		perRow := in / mxBlock
		for row := first; row < experts*rows; row += step {
			for block := row * perRow; block < (row+1)*perRow; block++ {
				dst[0] = scales.Data[block]
				repackMXFP4(dst[1:1+mxBytes], blocks.Data[block*mxBytes:][:mxBytes])
				dst = dst[1+mxBytes:]
			}
		}
	})
}

// repackMXFP4 reorders the values of a block.
func repackMXFP4(dst, src []byte) {
	value := func(i int) byte { return src[i/2] >> (4 * (i % 2)) & 15 }
	for j := range dst {
		dst[j] = value(j) | value(j+mxBytes)<<4
	}
}
