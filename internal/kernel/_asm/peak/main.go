// Command peak generates loops that do nothing but multiply and add in registers: the most that a core
// can do, which kernels are compared with.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// chains hides the latency of every instruction on every known machine.
const chains = 12

func main() {
	ConstraintExpr("amd64,!purego")
	loop("peakFloatAVX2", "peakFloatAVX2 does 12 times 8 fused multiply-adds n times.", func(acc, x, _ reg.VecVirtual) {
		VFMADD231PS(x, x, acc)
	})
	loop("peakInt8AVX2", "peakInt8AVX2 does 12 times 32 multiply-adds of signed bytes into 32 bits n times.", func(acc, x, ones reg.VecVirtual) {
		t := YMM()
		VPSIGNB(x, x, t)
		VPMADDUBSW(t, x, t)
		VPMADDWD(t, ones, t)
		VPADDD(t, acc, acc)
	})
	loop("peakNibbleAVX2", "peakNibbleAVX2 does 12 times 32 multiply-adds of nibbles by signed bytes into 16 bits n times.", func(acc, x, _ reg.VecVirtual) {
		t := YMM()
		VPMADDUBSW(x, x, t)
		VPADDW(t, acc, acc)
	})
	Generate()
}

func loop(name, doc string, body func(acc, x, ones reg.VecVirtual)) {
	TEXT(name, NOSPLIT, "func(n int)")
	Doc(doc)
	n := Load(Param("n"), GP64())
	x, ones := YMM(), YMM()
	VPXOR(x, x, x)
	VPXOR(ones, ones, ones)
	var acc [chains]reg.VecVirtual
	for i := range acc {
		acc[i] = YMM()
		VPXOR(acc[i], acc[i], acc[i])
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
