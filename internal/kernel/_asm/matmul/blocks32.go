package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// A type32 is a type of blocks of 32 inputs whose packed block begins with its scales.
type type32 struct {
	name   string
	halves int // half floats of an output: its scale, and perhaps an offset to add
	bytes  int // of the scales of an output
	bits   int // bytes of the inputs of 16 outputs
	// weights emits those of half a block at disp, as unsigned bytes: too large by less.
	weights func(t *blockTile, disp, half int) weights
	less    uint32
	wide    bool // the sums of a whole block do not fit 16 bits, those of a half do
}

var types32 = []type32{
	{name: "Q4_0", halves: 1, bytes: 2, bits: 4 * wide, weights: (*blockTile).nibbles, less: 8},
	{name: "Q4_1", halves: 2, bytes: 4, bits: 4 * wide, weights: (*blockTile).nibbles},
	{name: "Q5_0", halves: 1, bytes: 2, bits: 5 * wide, weights: (*blockTile).fiveBits, less: 16, wide: true},
	{name: "Q5_1", halves: 2, bytes: 4, bits: 5 * wide, weights: (*blockTile).fiveBits, wide: true},
	{name: "MXFP4", bytes: 1, bits: 4 * wide, weights: (*blockTile).fp4, less: fp4Less, wide: true},
}

// The frame of their tiles: [16] scales of a block, then [16] offsets.
const (
	scales32 = frameTop
	frame32  = scales32 + 2*wide
)

// tile32 emits the product of n rows by a group of weights of a type.
func tile32(k type32) {
	params := "x *int8, d *float32, sum *int32"
	blockFunction(k.name, params, frame32, func(t *blockTile) {
		nb := Load(Param("nb"), GP64())
		t.x = rows("x", strideOf("nb", 5), t.n)
		stride := strideOf("nb", 2)
		d, sum := rows("d", stride, t.n), rows("sum", stride, t.n)
		head := 16 * k.bytes
		loop := fmt.Sprintf("loop%d", t.n)
		Label(loop)
		t.prefetch((head + k.bits + 63) / 64)
		t.half(k.weights(t, head, 0), 0, nil, func(r int, acc pair) steps {
			if k.wide {
				toWords(acc)
			}
			return t.savePart(r, acc)
		})
		t.scales32(k)
		t.half(k.weights(t, head, 1), 1, nil, func(r int, acc pair) steps {
			return t.row32(k, r, acc, d, sum)
		})
		ADDQ(U32(head+k.bits), t.w)
		t.x.advance(32)
		d.advance(4)
		sum.advance(4)
		DECQ(nb)
		JNZ(LabelRef(loop))
	})
}

// toWords emits the sums of pairs of 16 bits in 32.
func toWords(acc pair) {
	for v := range acc {
		VPMADDWD(vector("ones", func(int) uint32 { return 1<<16 | 1 }), acc[v], acc[v])
	}
}

// scales32 emits the scales and offsets of a block to the frame.
func (t *blockTile) scales32(k type32) {
	if k.halves == 0 {
		t.exponents()
	}
	for i := range vectors * k.halves {
		y := YMM()
		VCVTPH2PS(Mem{Base: t.w, Disp: 16 * i}, y)
		VMOVUPS(y, t.local(scales32+32*i))
	}
}

// row32 finishes the sums acc of row r over a block.
func (t *blockTile) row32(k type32, r int, acc pair, d, sum matrix) steps {
	sums, dx, scale := YMM(), YMM(), vectorPair()
	integers := func() {
		if k.wide {
			toWords(acc)
		}
		for v := range acc {
			if k.wide {
				VPADDD(t.part(r, v), acc[v], acc[v])
			} else {
				VPADDW(t.part(r, v), acc[v], acc[v])
			}
		}
		if !k.wide {
			toWords(acc)
		}
	}
	floats := func() {
		for v := range acc {
			if k.less > 0 {
				VPSUBD(sums, acc[v], acc[v])
			}
			VCVTDQ2PS(acc[v], acc[v])
		}
	}
	scales := func() {
		VBROADCASTSS(d.at(r, 0), dx)
		for v := range acc {
			VMULPS(t.local(scales32+32*v), dx, scale[v])
		}
	}
	if k.less > 0 {
		return steps{func() {
			VPBROADCASTD(sum.at(r, 0), sums)
			VPMADDWD(vector(fmt.Sprintf("less%d", k.less), func(int) uint32 { return k.less }), sums, sums)
			integers()
		}, floats, scales, func() {
			for v := range acc {
				VFMADD213PS(t.chain(r, v), scale[v], acc[v])
				VMOVUPS(acc[v], t.chain(r, v))
			}
		}}
	}
	return steps{integers, floats, func() {
		scales()
		for v := range acc {
			VFMADD213PS(t.chain(r, v), scale[v], acc[v])
		}
		VPBROADCASTD(sum.at(r, 0), sums)
		VCVTDQ2PS(sums, sums)
	}, func() {
		for v := range acc {
			offset := YMM()
			VMULPS(t.local(scales32+wide+32*v), dx, offset)
			VFMADD231PS(offset, sums, acc[v])
			VMOVUPS(acc[v], t.chain(r, v))
		}
	}}
}

// fp4Less makes every one of fp4Values, twice the weights of MXFP4 by their nibbles, positive.
const fp4Less = 12

var fp4Values = [16]int{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// fp4 emits the weights of half a block of MXFP4 at disp.
func (t *blockTile) fp4(disp, half int) weights {
	return t.coded(codebook("fp4", fp4Values, fp4Less), disp, half)
}

// coded emits the values of the nibbles of half a block at disp.
func (t *blockTile) coded(values Mem, disp, half int) weights {
	u, codes := t.nibbles(disp, half), YMM()
	VMOVDQU(values, codes)
	for j := range u {
		for v := range u[j] {
			VPSHUFB(u[j][v], codes, u[j][v])
		}
	}
	return u
}

// codebook returns a vector of 16 bytes, twice, each more than the value of its number.
func codebook(name string, values [16]int, more int) Mem {
	return vector(name, func(lane int) (four uint32) {
		for i := range 4 {
			four |= uint32(uint8(values[lane%4*4+i]+more)) << (8 * i)
		}
		return four
	})
}

// exponents emits the scales of a block of MXFP4, 2^(e-128), to the frame: (e-1)<<23 as bits, or for e of 0 and 1
// the subnormal 2^21<<e, which is equal for e = 2 and smaller than the other from there on if shifted by 2.
func (t *blockTile) exponents() {
	for v := range vectors {
		e, small := YMM(), YMM()
		VPMOVZXBD(Mem{Base: t.w, Disp: 8 * v}, e)
		VPMINSD(vector("two", func(int) uint32 { return 2 }), e, small)
		subnormal := YMM()
		VMOVDQU(vector("subnormal", func(int) uint32 { return 1 << 21 }), subnormal)
		VPSLLVD(small, subnormal, small)
		VPSUBD(vector("one", func(int) uint32 { return 1 }), e, e)
		VPSLLD(U8(23), e, e)
		VPMAXSD(small, e, e)
		VMOVDQU(e, t.local(scales32+32*v))
	}
}
