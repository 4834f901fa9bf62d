// Package vec holds what the generators of the vector, attention and sampling kernels share:
// constants, loops, and the functions of fmath.go in eight lanes. Whatever is computed here follows
// its portable twin operation by operation.
package vec

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Predicates of VCMPPS, all quiet and false for a NaN.
const (
	Equal   = U8(0x00)
	Less    = U8(0x11)
	Greater = U8(0x1e)
)

var constants = map[string]Mem{}

// Vector returns a new register of the width that is generated for: YMM, or ZMM.
var Vector = YMM

// Lanes returns the 32-bit words of a Vector.
func Lanes() int { return int(Vector().Size()) / 4 }

// Bits returns a vector of equal 32-bit words.
func Bits(b uint32) Mem {
	words := make([]uint32, Lanes())
	for i := range words {
		words[i] = b
	}
	return Words(fmt.Sprintf("all%d_%08x", len(words), b), words)
}

// Float returns a vector of equal floats.
func Float(f float64) Mem { return Bits(math.Float32bits(float32(f))) }

// Words returns the words of a name, always the same for one.
func Words(name string, w []uint32) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, attr.RODATA|attr.NOPTR)
	for i, b := range w {
		DATA(i*4, U32(b))
	}
	constants[name] = m
	return m
}

// Func starts a function whose signature is that of Go source.
func Func(name, signature string, doc ...string) {
	TEXT(name, attr.NOSPLIT, signature)
	Doc(doc...)
	Pragma("noescape")
}

// Broadcast returns a vector of copies of a float parameter.
func Broadcast(param string) reg.VecVirtual {
	b, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	v := Vector()
	VBROADCASTSS(b.Addr, v)
	return v
}

// Int returns an integer or pointer parameter.
func Int(param string) reg.GPVirtual {
	r := GP64()
	Load(Param(param), r)
	return r
}

// Base returns the pointer of a slice parameter.
func Base(param string) reg.GPVirtual {
	r := GP64()
	Load(Param(param).Base(), r)
	return r
}

// At returns the vector at a byte index of a base.
func At(base, index reg.Register) Mem { return Mem{Base: base, Index: index, Scale: 1} }

// Each emits a loop over a slice parameter in steps of eight words, the rest left out. The body gets
// the byte index.
func Each(slice string, body func(i reg.GPVirtual)) {
	n, i := GP64(), GP64()
	Load(Param(slice).Len(), n)
	XORQ(i, i)
	SHRQ(U8(3), n)
	JZ(LabelRef("done"))
	Label("loop")
	body(i)
	ADDQ(U8(32), i)
	DECQ(n)
	JNZ(LabelRef("loop"))
	Label("done")
}

// Blocks emits a loop over the slice parameter x in steps of 32 words, the rest left out, and then
// over the 32 words at the pointer parameter tail, which hold the rest and values without effect.
// The body gets the place of each of four vectors.
func Blocks(body func(at [4]Mem)) {
	x, n, tail := Base("x"), GP64(), Int("tail")
	Load(Param("x").Len(), n)
	SHRQ(U8(5), n)
	JZ(LabelRef("last"))
	Label("block")
	var at [4]Mem
	for i := range at {
		at[i] = Mem{Base: x, Disp: 32 * i}
	}
	body(at)
	ADDQ(I32(128), x)
	DECQ(n)
	JNZ(LabelRef("block"))
	Label("last")
	MOVQ(tail, x)
	XORQ(tail, tail)
	MOVQ(U64(1), n)
	TESTQ(x, x)
	JNZ(LabelRef("block"))
}

// Accumulators returns four vectors that hold the word c.
func Accumulators(c Mem) (acc [4]reg.VecVirtual) {
	for i := range acc {
		acc[i] = YMM()
		VMOVUPS(c, acc[i])
	}
	return acc
}

// Fold combines 32 accumulators as S32 does and returns the result in the low word of a register.
func Fold(acc [4]reg.VecVirtual, combine func(later, p reg.Register)) reg.Register {
	combine(acc[2], acc[0])
	combine(acc[3], acc[1])
	combine(acc[1], acc[0])
	return FoldVector(acc[0], combine)
}

// FoldVector folds eight accumulators.
func FoldVector(v reg.VecVirtual, combine func(later, p reg.Register)) reg.Register {
	t := YMM()
	p, u := v.AsX(), t.AsX()
	VEXTRACTF128(U8(1), v, u)
	combine(u, p)
	VPSHUFD(U8(0xee), p, u)
	combine(u, p)
	VPSHUFD(U8(0x55), p, u)
	combine(u, p)
	return p
}

// Add and Max are the folds of sums and of maxima; the later value wins only where it is greater.
func Add(later, p reg.Register) { VADDPS(later, p, p) }
func Max(later, p reg.Register) { VMAXPS(p, later, p) }

// Result stores the low word of v as the result of the given index.
func Result(v reg.Register, index int) {
	b, err := ReturnIndex(index).Resolve()
	if err != nil {
		panic(err)
	}
	VMOVSS(v, b.Addr)
}

// End ends a function.
func End() {
	VZEROUPPER()
	RET()
}
