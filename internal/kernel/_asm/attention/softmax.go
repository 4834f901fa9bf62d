package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "grove/internal/kernel/_asm/vec"
)

var negInf = math.Inf(-1)

// softmax emits a loop over blocks of scores for their maxima and one for their weights: one loop for both
// would wait for each maximum. The registers i and i+half of a block hold values of the same of the 32
// accumulators.
func softmax(s set) {
	name := "softmax" + s.name
	Func(name, "func(s *float32, n int, scale float32, max, sum *float32, ahead *byte, lines int)",
		name+" is softmaxGo for n blocks, one behind the other; n is positive. Meanwhile it prefetches, for each",
		"block, a positive number of cache lines from ahead on.")
	scale, none := Broadcast("scale"), Vector()
	VMOVUPS(Float(negInf), none)
	block, n, maxima, sums := Int("s"), Int("n"), Int("max"), Int("sum")
	half, bytes := 2*s.parts, 4*lanes/s.parts
	Label("maximum")
	max := make(Vecs, half)
	for i := range 2 * half {
		x := Vector()
		VMULPS(Mem{Base: block, Disp: bytes * i}, scale, x)
		VMOVUPS(x, Mem{Base: block, Disp: bytes * i})
		if i < half {
			max[i] = x
			VMAXPS(none, x, x)
		} else {
			Max(x, max[i-half])
		}
	}
	VMOVSS(s.fold(max, Max).AsX(), Mem{Base: maxima})
	ADDQ(I32(256), block)
	ADDQ(U8(4), maxima)
	DECQ(n)
	JNZ(LabelRef("maximum"))

	block, n, maxima = Int("s"), Int("n"), Int("max")
	ahead := Int("ahead")
	Label("weights")
	left := Int("lines")
	Label("prefetch")
	PREFETCHT0(Mem{Base: ahead})
	ADDQ(U8(cacheLine), ahead)
	DECQ(left)
	JNZ(LabelRef("prefetch"))
	m, sum := Vector(), make(Vecs, half)
	VBROADCASTSS(Mem{Base: maxima}, m)
	// AVX2 has registers for the exponentials of two pairs at a time.
	for i := 0; i < half; i += 2 {
		x := Vecs{Vector(), Vector(), Vector(), Vector()}
		at := func(j int) Mem { return Mem{Base: block, Disp: bytes * (i + j/2 + j%2*half)} }
		x.Each(func(j int) {
			VMOVUPS(at(j), x[j])
			VSUBPS(m, x[j], x[j])
		})
		Exp(x, true)
		x.Each(func(j int) { VMOVUPS(x[j], at(j)) })
		for j := range 2 {
			sum[i+j] = x[2*j]
			VADDPS(x[2*j+1], x[2*j], x[2*j])
		}
	}
	VMOVSS(s.fold(sum, Add).AsX(), Mem{Base: sums})
	ADDQ(I32(256), block)
	ADDQ(U8(4), maxima)
	ADDQ(U8(4), sums)
	DECQ(n)
	JNZ(LabelRef("weights"))
	End()
}

// fold combines 32 accumulators as S32 does and returns the result in the low word of a register.
func (s set) fold(acc Vecs, combine func(later, p reg.Register)) reg.VecVirtual {
	for len(acc) > 1 {
		half := len(acc) / 2
		for i := range half {
			combine(acc[i+half], acc[i])
		}
		acc = acc[:half]
	}
	v := acc[0]
	if s.parts == 1 {
		high := YMM()
		VEXTRACTF32X8(U8(1), v, high)
		combine(high, v.AsY())
	}
	t := XMM()
	VEXTRACTF128(U8(1), v.AsY(), t)
	combine(t, v.AsX())
	VPSHUFD(U8(0xee), v.AsX(), t)
	combine(t, v.AsX())
	VPSHUFD(U8(0x55), v.AsX(), t)
	combine(t, v.AsX())
	return v
}

func capScores() {
	Func("capScoresAVX2", "func(s *[64]float32, scale, softcap float32)", "capScoresAVX2 is capScoresGo.")
	s, scale, softcap, none, n := Int("s"), Broadcast("scale"), Broadcast("softcap"), YMM(), GP64()
	VMOVUPS(Float(negInf), none)
	MOVQ(U64(8), n)
	Label("loop")
	x, invisible := YMM(), YMM()
	VMULPS(Mem{Base: s}, scale, x)
	VCMPPS(Equal, none, x, invisible)
	VDIVPS(softcap, x, x)
	x = Tanh(Vecs{x})[0]
	VMULPS(softcap, x, x)
	VBLENDVPS(invisible, none, x, x)
	VMOVUPS(x, Mem{Base: s})
	ADDQ(U8(32), s)
	DECQ(n)
	JNZ(LabelRef("loop"))
	End()
}

func mergeSums() {
	Func("mergeSumsAVX2", "func(n int, m, l, mb, lb *float32, x, y *[8]float32)",
		"mergeSumsAVX2 is mergeSumGo for 1 to 8 queries. It writes all of x and y.")
	at := map[string]reg.GPVirtual{}
	for _, p := range []string{"m", "l", "mb", "lb", "x", "y"} {
		at[p] = Int(p)
	}
	n, mask := Int("n"), YMM()
	VMOVD(n.As32(), mask.AsX())
	VPBROADCASTD(mask.AsX(), mask)
	VPCMPGTD(laneNumbers(), mask, mask)
	load := func(p string) reg.VecVirtual {
		v := YMM()
		VMASKMOVPS(Mem{Base: at[p]}, mask, v)
		return v
	}
	old, later, l := load("m"), load("mb"), load("l")
	m := YMM()
	VMAXPS(old, later, m) // old where the two are equal or one is NaN
	VMASKMOVPS(m, mask, Mem{Base: at["m"]})
	VSUBPS(m, old, old)
	VSUBPS(m, later, later)
	Exp(Vecs{old, later}, false)
	VMOVUPS(old, Mem{Base: at["x"]})
	VMOVUPS(later, Mem{Base: at["y"]})
	VMULPS(old, l, l)
	VFMADD231PS(later, load("lb"), l)
	VMASKMOVPS(l, mask, Mem{Base: at["l"]})
	End()
}

func merge(s set) {
	n := lanes / s.parts
	Func("merge"+s.name, "func(n, size int, o *float32, x, y, ob *float32)",
		fmt.Sprintf("merge%s is mergeGo for n queries; size is a multiple of %d, both are positive.", s.name, n))
	queries, o, x, y, ob := Int("n"), Int("o"), Int("x"), Int("y"), Int("ob")
	Label("query")
	a, b, left := Vector(), Vector(), Int("size")
	VBROADCASTSS(Mem{Base: x}, a)
	VBROADCASTSS(Mem{Base: y}, b)
	Label("values")
	v := Vector()
	VMULPS(Mem{Base: o}, a, v)
	VFMADD231PS(Mem{Base: ob}, b, v)
	VMOVUPS(v, Mem{Base: o})
	ADDQ(U8(4*n), o)
	ADDQ(U8(4*n), ob)
	SUBQ(U8(n), left)
	JNZ(LabelRef("values"))
	ADDQ(U8(4), x)
	ADDQ(U8(4), y)
	DECQ(queries)
	JNZ(LabelRef("query"))
	End()
}
