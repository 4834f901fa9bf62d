package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Blocks that are not signed bytes are expanded to such once for all rows of a product. An expanded block of 32 inputs is
// its scales as floats and the bytes of 16 outputs, [8 quads of inputs][16 outputs][4 inputs].

const (
	expandedHead      = wide     // scales of 16 outputs
	expandedSuperHead = 4 * wide // integers and minima of a sub-block, d and dmin of its super-block
)

// expansions emits the expansion of the types that gain by it.
func expansions() {
	for _, k := range dotTypes {
		switch k.name {
		case "Q4_0", "Q5_0", "IQ4_NL", "MXFP4":
			k.expand()
		}
	}
	expandSuper("Q4_K", 4*wide, func() dotWeights { return dotNibbles(nil) })
	expandSuper("Q5_K", 5*wide, dotFiveBits)
}

// expandFunction emits the function that expands a type: body expands w to the memory at to.
func expandFunction(name string, body func(t *dotTile, to, nb reg.Register)) {
	fn := "expand" + name + "AMX"
	function(fn, "func(to, w *byte, nb int)", fmt.Sprintf("%s expands nb > 0 blocks of a packed group of %s.", fn, name))
	body(&dotTile{w: Load(Param("w"), GP64())}, Load(Param("to"), GP64()), Load(Param("nb"), GP64()))
	VZEROUPPER()
	RET()
}

// expand emits the expansion of blocks of 32 inputs.
func (k dotType) expand() {
	expandFunction(k.name, func(t *dotTile, to, nb reg.Register) {
		weights := k.weights()
		less := each32(fmt.Sprintf("bytes%02x", k.less), uint32(k.less)*0x01010101)
		t.use = func(quad int, u reg.VecVirtual) {
			VPSUBB(less, u, u)
			VMOVDQU8(u, Mem{Base: to, Disp: expandedHead + wide*quad})
		}
		Label("block")
		t.lines, t.next = (k.head+k.bits+63)/64, 0
		VMOVUPS(k.scales(t), Mem{Base: to})
		weights(t, k.head)
		ADDQ(U32(k.head+k.bits), t.w)
		ADDQ(U32(expandedHead+blockQuads*wide), to)
		DECQ(nb)
		JNZ(LabelRef("block"))
	})
}

// expandSuper emits the expansion of super-blocks of a type like Q4_K, whose sub-blocks have so many bytes.
func expandSuper(name string, bits int, weights func() dotWeights) {
	const size = expandedSuperHead + blockQuads*wide
	expandFunction(name, func(t *dotTile, to, nb reg.Register) {
		emit, left := weights(), GP64()
		t.use = func(quad int, u reg.VecVirtual) { VMOVDQU8(u, Mem{Base: to, Disp: expandedSuperHead + wide*quad}) }
		Label("super")
		for i := range (q4Head + 63) / 64 {
			PREFETCHT0(Mem{Base: t.w, Disp: 64 * (ahead + i)})
		}
		at := func(sub, vector int) Mem { return Mem{Base: to, Disp: size*sub + wide*vector} }
		for i := range 2 {
			d := ZMM()
			VCVTPH2PS(Mem{Base: t.w, Disp: scaleBytes * i}, d)
			for sub := range 8 {
				VMOVUPS(d, at(sub, 2+i))
			}
		}
		t.q4KIntegers(func(sub, i int, y reg.VecVirtual) {
			VCVTDQ2PS(y, y)
			VMOVUPS(y, at(sub, i))
		})
		ADDQ(U32(q4Head), t.w)
		MOVQ(U32(8), left)
		Label("sub")
		t.lines, t.next = bits/64, 0
		emit(t, 0)
		ADDQ(U32(bits), t.w)
		ADDQ(U32(size), to)
		DECQ(left)
		JNZ(LabelRef("sub"))
		DECQ(nb)
		JNZ(LabelRef("super"))
	})
}
