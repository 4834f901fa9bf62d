// Command matmularm generates the tiles of matrix products for arm64: with dot products of bytes (FEAT_DotProd) those of all types
// of weights, with products of 8-bit matrices (FEAT_I8MM) some.
package main

import (
	"flag"
	"fmt"
	"log"

	. "grove/internal/kernel/_asm/arm64"
)

var set = flag.String("set", "", "the tiles to generate: neon or i8mm")

func main() {
	flag.Parse()
	switch *set {
	case "neon":
		floatTile("F32", 4, func(low, high V, w R, disp int) { LDPQ(low, high, w, disp) })
		floatTile("F16", 2, func(low, high V, w R, disp int) {
			LDRQ(low, w, disp)
			FCVTL(H8, high, low)
			FCVTL(H4, low, low)
		})
		floatTile("BF16", 2, func(low, high V, w R, disp int) {
			LDRQ(low, w, disp)
			SHLL(H8, high, low)
			SHLL(H4, low, low)
		})
		for _, k := range types32 {
			tile32(k, false)
		}
		for _, k := range superTypes {
			superTile(k, false)
		}
	case "i8mm":
		for _, k := range types32 {
			tile32(k, true)
		}
		for _, k := range superTypes {
			if k.name != "Q2_K" { // it has more values of a row than there are registers
				superTile(k, true)
			}
		}
	default:
		log.Fatalf("matmularm: no set %q", *set)
	}
	Generate()
}

// Bytes of 16 outputs by a quad of inputs, or by a value of 32 bits, and of half of them.
const (
	wide = 64
	half = wide / 2
)

// perRows emits the branch to the body for the rows in the register n, and a body for each number of rows.
func perRows(n R, fewest, most int, body func(n int)) {
	for r := fewest; r < most; r++ {
		Text("CMP $%d, %v", r, n)
		Text("BEQ rows%d", r)
	}
	for r := most; r >= fewest; r-- {
		Label(fmt.Sprintf("rows%d", r))
		body(r)
	}
}

const floatRows = 6 // of the largest tile of floats: 24 of 32 registers accumulate

// floatTile emits the product of n rows by a group of float weights, [k][16 outputs]. load emits the load of 8 weights as
// floats.
func floatTile(name string, elem int, load func(low, high V, w R, disp int)) {
	const unroll = 4 // inputs of a register of activations
	fn := "tile" + name + "NEON"
	Begin(fn, "func(dst *float32, stride int, w *byte, k int, x *float32, n int)", 0,
		fn+" writes the products of n rows (1 to 6) of k > 0 values by a group of "+name+" weights",
		"to 16 elements of each of n rows of dst, stride elements apart.")
	w, k, x0, stride, n := Arg("w"), Arg("k"), Arg("x"), Reg(), Arg("n")
	Text("LSL $2, %v, %v", k, stride)
	x := []R{x0}
	for range floatRows - 1 {
		p := Reg()
		Text("ADD %v, %v, %v", stride, x[len(x)-1], p)
		x = append(x, p)
	}
	many, one := Reg(), Reg()
	Text("MOVD $%d, %v", 4*unroll, many)
	Text("MOVD $4, %v", one)
	perRows(n, 1, floatRows, func(n int) {
		acc, xv, wv := Vecs(4*n), Vecs(n), Vecs(2)
		for _, v := range acc {
			ZERO(v)
		}
		inputs := func(count int) {
			for i := range count {
				for h := range 2 {
					load(wv[0], wv[1], w, elem*(16*i+8*h))
					for r := range n {
						for v := range wv {
							FMLAElem(S4, acc[4*r+2*h+v], wv[v], xv[r], i)
						}
					}
				}
			}
			Text("ADD $%d, %v, %v", 16*elem*count, w, w)
		}
		Text("SUBS $%d, %v, %v", unroll, k, k)
		Text("BLT last%d", n)
		Label(fmt.Sprintf("many%d", n))
		for r := range n {
			LD1Post(S4, xv[r:r+1], x[r], many)
		}
		inputs(unroll)
		Text("SUBS $%d, %v, %v", unroll, k, k)
		Text("BGE many%d", n)
		Label(fmt.Sprintf("last%d", n))
		Text("ADDS $%d, %v, %v", unroll, k, k)
		Text("BEQ done%d", n)
		Label(fmt.Sprintf("one%d", n))
		for r := range n {
			LD1RPost(S4, xv[r], x[r], one)
		}
		inputs(1)
		Text("SUBS $1, %v, %v", k, k)
		Text("BNE one%d", n)
		Label(fmt.Sprintf("done%d", n))
		dst, stride := Arg("dst"), strideOf("stride", 2)
		for r := range n {
			for h := range 2 {
				STPQ(acc[4*r+2*h], acc[4*r+2*h+1], dst, half*h)
			}
			Text("ADD %v, %v, %v", stride, dst, dst)
		}
		Return()
		Free(dst, stride)
		Free(append(append(acc, xv...), wv...)...)
	})
	FreeAll()
}

// strideOf returns a parameter's value times a power of two.
func strideOf(param string, shift int) R {
	s := Arg(param)
	Text("LSL $%d, %v, %v", shift, s, s)
	return s
}
