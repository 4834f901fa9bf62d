package vex

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Prefixes of instructions of AMX.
const (
	NoPrefix = 0
	PrefixF3 = 2
	PrefixF2 = 3
)

// Registers encodes an instruction of AMX by its prefix, its opcode and the numbers of its registers in Intel's order.
func Registers(prefix, opcode, first, second, third byte) []byte {
	return encode(prefix, opcode, first, third, 0, 0, []byte{0xc0 | second&7})
}

// Memory encodes an instruction of AMX whose other operand is memory. Loads and stores of matrices need an index: the bytes from
// row to row. A nil index is none.
func Memory(prefix, opcode, first byte, base, index reg.GPPhysical, disp int) ([]byte, error) {
	m := operand.Mem{Base: base, Disp: disp}
	if index != nil {
		m.Index, m.Scale = index, 1
	}
	tail, x, b, err := address(m)
	if err != nil {
		return nil, err
	}
	return encode(prefix, opcode, first, 0, x, b, tail), nil
}
