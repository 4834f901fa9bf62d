// Command peak generates loops that do nothing but multiply and add in registers, and one that does nothing but
// read memory: the most that a core can do, which kernels are compared with.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"grove/internal/kernel/_asm/vex"
)

// chains hides the latency of every instruction on every known machine.
const chains = 12

// A width is a size of registers.
type width struct {
	set      string
	bytes    int
	register func() reg.VecVirtual
}

func main() {
	ConstraintExpr("amd64,!purego")
	vex.Rewrite()
	for _, w := range []width{{"AVX2", 32, YMM}, {"AVX512", 64, ZMM}} {
		w.loop("Float", w.bytes/4, "fused multiply-adds", func(acc, x, _ reg.VecVirtual) {
			VFMADD231PS(x, x, acc)
		})
		w.loop("Int8", w.bytes, "multiply-adds of signed bytes into 32 bits", func(acc, x, ones reg.VecVirtual) {
			t := w.signed(x, ones)
			VPMADDUBSW(t, x, t)
			VPMADDWD(t, ones, t)
			VPADDD(t, acc, acc)
		})
		w.loop("Nibble", w.bytes, "multiply-adds of nibbles by signed bytes into 16 bits", func(acc, x, _ reg.VecVirtual) {
			t := w.register()
			VPMADDUBSW(x, x, t)
			VPADDW(t, acc, acc)
		})
	}
	for _, w := range []width{{"VNNI256", 32, YMM}, {"VNNI512", 64, ZMM}} {
		w.loop("Dot", w.bytes, "multiply-adds of unsigned by signed bytes into 32 bits", func(acc, x, _ reg.VecVirtual) {
			VPDPBUSD(x, x, acc)
		})
	}
	streamRead()
	Generate()
}

// signed emits what moves the sign of weights to the activations x.
func (w width) signed(x, zero reg.VecVirtual) reg.VecVirtual {
	t := w.register()
	if w.set == "AVX2" {
		VPSIGNB(x, x, t)
	} else {
		VPSUBB_Z(x, zero, reg.K1, t)
	}
	return t
}

func (w width) loop(kind string, lanes int, what string, body func(acc, x, ones reg.VecVirtual)) {
	name := "peak" + kind + w.set
	TEXT(name, NOSPLIT, "func(n int)")
	Doc(fmt.Sprintf("%s does %d times %d %s n times.", name, chains, lanes, what))
	n := Load(Param("n"), GP64())
	x, ones := w.zero(), w.zero()
	var acc [chains]reg.VecVirtual
	for i := range acc {
		acc[i] = w.zero()
	}
	Label("loop")
	for i := range acc {
		body(acc[i], x, ones)
	}
	SUBQ(Imm(1), n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// zero returns a register of zeros.
func (w width) zero() reg.VecVirtual {
	v := w.register()
	VXORPS(v, v, v)
	return v
}

// streamRead emits the sum of the 64-bit words of n > 0 pieces of 256 bytes.
func streamRead() {
	const ahead = 32 // cache lines
	TEXT("streamAVX2", NOSPLIT, "func(p *byte, n int) uint64")
	Pragma("noescape")
	Doc("streamAVX2 returns the sum of the 64-bit words of n > 0 pieces of 256 bytes.")
	p, n := Load(Param("p"), GP64()), Load(Param("n"), GP64())
	var acc [4]reg.VecVirtual
	for i := range acc {
		acc[i] = YMM()
		VPXOR(acc[i], acc[i], acc[i])
	}
	Label("loop")
	for i := range 8 {
		if i%2 == 0 {
			PREFETCHT0(Mem{Base: p, Disp: 64*ahead + 32*i})
		}
		VPADDQ(Mem{Base: p, Disp: 32 * i}, acc[i%4], acc[i%4])
	}
	ADDQ(U32(256), p)
	DECQ(n)
	JNZ(LabelRef("loop"))
	VPADDQ(acc[1], acc[0], acc[0])
	VPADDQ(acc[3], acc[2], acc[2])
	VPADDQ(acc[2], acc[0], acc[0])
	low, high, sum := acc[0].AsX(), XMM(), GP64()
	VEXTRACTI128(U8(1), acc[0], high)
	VPADDQ(high, low, low)
	VPSHUFD(U8(0x4e), low, high)
	VPADDQ(high, low, low)
	VMOVQ(low, sum)
	Store(sum, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
