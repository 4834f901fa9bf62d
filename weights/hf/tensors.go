package hf

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"grove/weights/safetensors"
	"grove/weights/tensor"
)

// floatTypes are the element types that weights may have.
var floatTypes = map[safetensors.DType]tensor.Type{"F32": tensor.F32, "F16": tensor.F16, "BF16": tensor.BF16}

// typeOf returns the type under which a tensor is presented: its own for matrices; float32, as
// llama.cpp wants it, for vectors, norms, biases, routers and learned positions.
func typeOf(to string, t safetensors.Tensor) tensor.Type {
	if len(t.Shape) < 2 || !strings.HasSuffix(to, ".weight") || strings.HasSuffix(to, "_norm.weight") ||
		strings.HasSuffix(to, "ffn_gate_inp.weight") || to == "position_embd.weight" {
		return tensor.F32
	}
	return floatTypes[t.Type]
}

// find returns a tensor of the folder, which must have floats of the given shape.
func (b *builder) find(name string, shape ...int) (safetensors.Tensor, bool) {
	t, ok := b.raw(name, shape...)
	if _, float := floatTypes[t.Type]; ok && !float {
		b.fail("%s: type is %s; it must be F32, F16 or BF16", tensor.Label(name), t.Type)
		return t, false
	}
	return t, ok
}

// raw returns a tensor of the folder, which must have the given shape.
func (b *builder) raw(name string, shape ...int) (safetensors.Tensor, bool) {
	if !b.ok() {
		return safetensors.Tensor{}, false
	}
	t, ok := b.tensor(name)
	if b.sources != nil {
		return safetensors.Tensor{Name: name, Type: "F32", Shape: shape}, true
	}
	switch {
	case !ok:
		b.fail("%s: the tensor is missing", tensor.Label(name))
	case !slices.Equal(t.Shape, shape):
		b.fail("%s: shape is %v; %s asks for %v", tensor.Label(name), t.Shape, configName, shape)
		return t, false
	}
	b.used[name] = true
	return t, ok
}

func (b *builder) has(name string) bool {
	_, ok := b.tensor(name)
	return ok
}

// tensor returns a tensor of the folder, if it is there.
func (b *builder) tensor(name string) (safetensors.Tensor, bool) {
	if b.sources != nil {
		return safetensors.Tensor{}, name == gpt2Table // the classes for text have this prefix
	}
	return b.weights.Tensor(name)
}

// add adds a tensor whose bytes fill makes in dst, which is zero.
func (b *builder) add(to string, typ tensor.Type, shape []int, fill func(dst []byte)) {
	v := tensor.View{Name: to, Type: typ, Shape: shape}
	b.tensors = append(b.tensors, v)
	b.made = append(b.made, func() ([]byte, error) {
		dst := make([]byte, v.Bytes())
		fill(dst)
		return dst, nil
	})
}

// copy adds a tensor of the folder as it is, a view where its type stays.
func (b *builder) copy(to, from string, shape ...int) {
	t, ok := b.find(from, shape...)
	if !ok {
		return
	}
	b.note(Source{To: to, From: from})
	if typ := typeOf(to, t); typ != floatTypes[t.Type] {
		b.add(to, typ, shape, func(dst []byte) { toF32(dst, t, 0) })
		return
	}
	b.tensors = append(b.tensors, tensor.View{Name: to, Type: floatTypes[t.Type], Shape: shape, Data: t.Data})
	b.made = append(b.made, nil)
}

// copyIf is copy for a tensor that may be missing.
func (b *builder) copyIf(to, from string, shape ...int) {
	if b.has(from) {
		b.copy(to, from, shape...)
	}
}

// both adds a weight [out, in] and, if there is one, its bias.
func (b *builder) both(to, from string, out, in int) {
	b.copy(to+".weight", from+".weight", out, in)
	b.copyIf(to+".bias", from+".bias", out)
}

// norm adds the weights of a norm, to which some families add one when they use them.
func (b *builder) norm(to, from string, n int, add float32) {
	if t, ok := b.find(from, n); ok {
		b.add(to, tensor.F32, []int{n}, func(dst []byte) { toF32(dst, t, add) })
	}
}

// toF32 writes a tensor's values plus add.
func toF32(dst []byte, t safetensors.Tensor, add float32) {
	elems := len(dst) / 4
	size := len(t.Data) / elems
	values := make([]float32, min(elems, 1<<12))
	for at := 0; at < elems; at += len(values) {
		part := values[:min(len(values), elems-at)]
		if err := tensor.Unpack(floatTypes[t.Type], part, t.Data[at*size:(at+len(part))*size]); err != nil {
			panic(err) // a float type of as many elements
		}
		for i, x := range part {
			binary.LittleEndian.PutUint32(dst[4*(at+i):], math.Float32bits(x+add))
		}
	}
}

// turned adds the weight, and the bias if there is one, of queries or keys that rotate: the folder has
// the first values of all pairs of a head, then the second ones; GGUF's llama has pairs side by side.
func (b *builder) turned(to, from string, heads, size, in int) {
	rows := heads * size
	b.permuted(to+".weight", from+".weight", heads, size, rows, in)
	if b.has(from + ".bias") {
		b.permuted(to+".bias", from+".bias", heads, size, rows)
	}
}

func (b *builder) permuted(to, from string, heads, size int, shape ...int) {
	t, ok := b.find(from, shape...)
	if !ok {
		return
	}
	if size%2 != 0 {
		b.fail("%s: heads have %d values; the number must be even", tensor.Label(from), size)
		return
	}
	b.note(Source{To: to, From: from, Heads: heads})
	typ := typeOf(to, t)
	b.add(to, typ, shape, func(dst []byte) {
		rows := t.Data
		if typ != floatTypes[t.Type] {
			rows = make([]byte, len(dst))
			toF32(rows, t, 0)
		}
		row := len(dst) / shape[0]
		for h := range heads {
			for i := range size {
				copy(dst[(h*size+i)*row:][:row], rows[TurnRow(h*size+i, size)*row:])
			}
		}
	})
}

// transposed adds a matrix [out, in] that the folder has as [in, out].
func (b *builder) transposed(to, from string, out, in int) {
	t, ok := b.find(from, in, out)
	if !ok {
		return
	}
	b.note(Source{To: to, From: from, Transposed: true})
	b.add(to, floatTypes[t.Type], []int{out, in}, func(dst []byte) {
		size := len(dst) / (out * in)
		for o := range out {
			for i := range in {
				copy(dst[(o*in+i)*size:][:size], t.Data[(i*out+o)*size:])
			}
		}
	})
}

// stacked adds the matrices [out, in] of n experts as one tensor; from gives the name of each.
func (b *builder) stacked(to string, from func(expert int) string, n, out, in int) {
	var experts []safetensors.Tensor
	for e := range n {
		t, ok := b.find(from(e), out, in)
		if !ok {
			return
		}
		if t.Type != floatType(experts, t) {
			b.fail("%s: type is %s; it must be that of expert 0 (%s)", tensor.Label(t.Name), t.Type, experts[0].Type)
			return
		}
		experts = append(experts, t)
		b.note(Source{To: to, From: from(e), Expert: e, Stack: true})
	}
	b.add(to, floatTypes[experts[0].Type], []int{n, out, in}, func(dst []byte) {
		for _, t := range experts {
			dst = dst[copy(dst, t.Data):]
		}
	})
}

// floatType returns the type of the first expert, which may be t.
func floatType(experts []safetensors.Tensor, t safetensors.Tensor) safetensors.DType {
	if len(experts) > 0 {
		return experts[0].Type
	}
	return t.Type
}

// gathered adds a matrix, or a vector of a name that does not end in .weight, whose row i is row source(i) of a tensor of the
// folder with rows rows.
func (b *builder) gathered(to, from string, rows, in, out int, source func(i int) int) {
	folder, shape := []int{rows, in}, []int{out, in}
	if strings.HasSuffix(to, ".bias") {
		folder, shape = folder[:1], shape[:1]
	}
	b.gatheredAs(to, from, folder, shape, source)
}

// gatheredAs is gathered for any shapes of which the last dimension, but of vectors, is that of a row.
func (b *builder) gatheredAs(to, from string, folder, shape []int, source func(i int) int) {
	t, ok := b.find(from, folder...)
	if !ok {
		return
	}
	typ := typeOf(to, t)
	b.add(to, typ, shape, func(dst []byte) {
		data := t.Data
		if typ != floatTypes[t.Type] {
			data = make([]byte, 4*shapeElems(folder))
			toF32(data, t, 0)
		}
		rows := shapeElems(shape)
		if len(shape) > 1 {
			rows /= shape[len(shape)-1]
		}
		row := len(dst) / rows
		for i := range rows {
			copy(dst[i*row:][:row], data[source(i)*row:])
		}
	})
}

// shapeElems returns the number of values of a shape.
func shapeElems(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// stackedNorms adds the norms of heads, which the folder has apart, as [heads, size].
func (b *builder) stackedNorms(to, root string, heads, size int) {
	var parts []safetensors.Tensor
	for h := range heads {
		t, ok := b.find(fmt.Sprintf("%s.%d.weight", root, h), size)
		if !ok {
			return
		}
		parts = append(parts, t)
	}
	b.add(to, tensor.F32, []int{heads, size}, func(dst []byte) {
		for h, t := range parts {
			toF32(dst[4*h*size:][:4*size], t, 0)
		}
	})
}

// everySecond adds the rows first, first+2, … of a tensor [experts, 2*out] of biases.
func (b *builder) everySecond(to, from string, first, experts, out int) {
	t, ok := b.find(from, experts, 2*out)
	if !ok {
		return
	}
	b.add(to, tensor.F32, []int{experts, out}, func(dst []byte) {
		wide := make([]byte, 2*len(dst))
		toF32(wide, t, 0)
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

// mxfp4 adds the rows first, first+step, … of the experts' matrices [rows, in] that the folder has as
// blocks and scales.
func (b *builder) mxfp4(to, from string, first, step, experts, rows, in int) {
	if in%mxBlock != 0 {
		b.fail("%s: rows have %d values; the number must be a multiple of %d", tensor.Label(from), in, mxBlock)
		return
	}
	blocks, ok1 := b.raw(from+"_blocks", experts, rows, in/mxBlock, mxBytes)
	scales, ok2 := b.raw(from+"_scales", experts, rows, in/mxBlock)
	if !ok1 || !ok2 {
		return
	}
	if blocks.Type != "U8" || scales.Type != "U8" {
		b.fail("%s: types of blocks and scales are %s and %s; they must be U8", tensor.Label(from), blocks.Type, scales.Type)
		return
	}
	b.add(to, tensor.MXFP4, []int{experts, rows / step, in}, func(dst []byte) {
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
