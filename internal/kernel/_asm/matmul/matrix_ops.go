package main

import (
	"encoding/binary"
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"grove/internal/kernel/_asm/vex"
)

// Instructions of AMX, which neither avo nor Go's assembler know. Their registers are fixed.

// A tileRegister is one of the eight registers that hold a matrix.
type tileRegister byte

const (
	tileSums tileRegister = iota // rows by outputs, 32 bits
	tileX                        // rows by 32 inputs, bytes
	tileW                        // 8 quads by 16 outputs of 4 bytes
)

// Opcodes. Prefixes tell them apart.
const opConfigure, opMove, opDot = 0x49, 0x4b, 0x5e

// tileConfigure emits the sizes of the matrices for n rows.
func tileConfigure(n int) {
	LEAQ(tileSizes(n), reg.RAX)
	tileOp("LDTILECFG (AX)", address(vex.NoPrefix, opConfigure, 0, reg.RAX, nil, 0), reg.RAX)
}

// tileSizes returns the sizes of the matrices for n rows in memory.
func tileSizes(n int) Mem {
	const palette, widths, heights = 0, 16, 48 // places: bytes of a row by 16 bits, rows by 8
	name := fmt.Sprintf("tiles%d", n)
	if m, ok := vectorNamed[name]; ok {
		return m
	}
	var sizes [64]byte
	sizes[palette] = 1
	for t, s := range [...]struct{ height, width byte }{tileSums: {byte(n), 64}, tileX: {byte(n), 32}, tileW: {8, 64}} {
		sizes[widths+2*t], sizes[heights+t] = s.width, s.height
	}
	var values []uint32
	for i := 0; i < len(sizes); i += 4 {
		values = append(values, binary.LittleEndian.Uint32(sizes[i:]))
	}
	vectorNamed[name] = words(name, values)
	return vectorNamed[name]
}

func tileRelease() { tileOp("TILERELEASE", vex.Registers(vex.NoPrefix, opConfigure, 0, 0, 0)) }

func tileZero(t tileRegister) {
	tileOp(fmt.Sprintf("TILEZERO TMM%d", t), vex.Registers(vex.PrefixF2, opConfigure, byte(t), 0, 0))
}

// tileLoad emits the load of a matrix whose rows lie stride bytes apart.
func tileLoad(t tileRegister, base, stride reg.GPPhysical, disp int) {
	tileOp(fmt.Sprintf("TILELOADD %s, TMM%d", Mem{Base: base, Index: stride, Scale: 1, Disp: disp}.Asm(), t),
		address(vex.PrefixF2, opMove, t, base, stride, disp), base, stride)
}

// tileStore emits the store of a matrix.
func tileStore(t tileRegister, base, stride reg.GPPhysical) {
	tileOp(fmt.Sprintf("TILESTORED TMM%d, %s", t, Mem{Base: base, Index: stride, Scale: 1}.Asm()),
		address(vex.PrefixF3, opMove, t, base, stride, 0), base, stride)
}

// tileDot emits sums += x times w, of signed bytes.
func tileDot(sums, x, w tileRegister) {
	tileOp(fmt.Sprintf("TDPBSSD TMM%d, TMM%d, TMM%d", w, x, sums), vex.Registers(vex.PrefixF2, opDot, byte(sums), byte(x), byte(w)))
}

// tileOp emits an instruction that reads general registers.
func tileOp(text string, code []byte, reads ...reg.GPPhysical) {
	i := &ir.Instruction{Opcode: vex.Directives(code) + " // " + text}
	for _, r := range reads {
		i.Inputs = append(i.Inputs, r)
	}
	Instruction(i)
}

// address is [vex.Memory] for operands that are known to be right.
func address(prefix, opcode byte, t tileRegister, base, stride reg.GPPhysical, disp int) []byte {
	code, err := vex.Memory(prefix, opcode, byte(t), base, stride, disp)
	if err != nil {
		panic(err)
	}
	return code
}
