// Command peakarm generates for arm64 what command peak generates for amd64: loops that do nothing but multiply and add in
// registers, and one that does nothing but read memory.
package main

import (
	"fmt"

	. "grove/internal/kernel/_asm/arm64"
)

// chains hides the latency of every instruction: four units by four cycles.
const chains = 16

func main() {
	loop("FloatNEON", 4, "fused multiply-adds", func(acc, x V) { FMLA(S4, acc, x, x) })
	loop("DotNEON", 16, "multiply-adds of signed bytes into 32 bits", func(acc, x V) { SDOT(acc, x, x) })
	loop("MatrixI8MM", 32, "multiply-adds of signed bytes into 32 bits", func(acc, x V) { SMMLA(acc, x, x) })
	streamRead()
	Generate()
}

func loop(kind string, lanes int, what string, body func(acc, x V)) {
	name := "peak" + kind
	Begin(name, "func(n int)", 0, fmt.Sprintf("%s does %d times %d %s n times.", name, chains, lanes, what))
	n, x, acc := Arg("n"), Vec(), Vecs(chains)
	for _, v := range append(acc, x) {
		ZERO(v)
	}
	Label("loop")
	for _, v := range acc {
		body(v, x)
	}
	Text("SUBS $1, %v, %v", n, n)
	Text("BNE loop")
	Return()
}

// streamRead emits the sum of the 64-bit words of n > 0 pieces of 256 bytes.
func streamRead() {
	Begin("streamNEON", "func(p *byte, n int) uint64", 0, "streamNEON returns the sum of the 64-bit words of n > 0 pieces of 256 bytes.")
	p, n, acc, x := Arg("p"), Arg("n"), Vecs(4), Vecs(4)
	for _, v := range acc {
		ZERO(v)
	}
	Label("loop")
	for i := range 8 {
		a, b := x[2*i%4], x[2*i%4+1]
		LDPQ(a, b, p, 32*i)
		ADD(D2, acc[2*i%4], acc[2*i%4], a)
		ADD(D2, acc[2*i%4+1], acc[2*i%4+1], b)
	}
	Text("ADD $256, %v, %v", p, p)
	Text("SUBS $1, %v, %v", n, n)
	Text("BNE loop")
	ADD(D2, acc[0], acc[0], acc[1])
	ADD(D2, acc[2], acc[2], acc[3])
	ADD(D2, acc[0], acc[0], acc[2])
	ADDP(D2, acc[0], acc[0], acc[0])
	UMOV(D2, n, acc[0], 0)
	Result("ret", n)
	Return()
}
