// Package vex writes instructions in their VEX form that Go's assembler and avo do not know: VPDPBUSD of 256 bits, which
// CPUs with AVX-VNNI have (both write the EVEX form, which needs AVX-512), and those of AMX.
package vex

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"
)

// Rewrite makes avo's Generate write every VPDPBUSD of 256 bits as the bytes of its VEX form. A function that has one
// must use neither masks nor a vector register above 15.
func Rewrite() { pass.Compile = pass.Concat(pass.Compile, pass.FunctionPass(rewrite)) }

// rewrite replaces the instructions of a function whose registers are allocated.
func rewrite(f *ir.Function) error {
	found := false
	for _, i := range f.Instructions() {
		if i.Opcode != "VPDPBUSD" || !operand.IsYMM(i.Operands[len(i.Operands)-1]) {
			continue
		}
		code, err := Dot(i.Operands)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		var text []string
		for _, op := range i.Operands {
			text = append(text, op.Asm())
		}
		i.Opcode = Directives(code) + " // VEX " + i.Opcode + " " + strings.Join(text, ", ")
		i.Operands, i.ISA = nil, nil
		found = true
	}
	if !found {
		return nil
	}
	for _, i := range f.Instructions() {
		if slices.ContainsFunc(i.ISA, isAVX512) || slices.ContainsFunc(i.Operands, isHigh) {
			return fmt.Errorf("%s: %s has no VEX form here", f.Name, i.Opcode)
		}
	}
	f.ISA = slices.DeleteFunc(f.ISA, isAVX512)
	f.ISA = append(f.ISA, "AVXVNNI")
	return nil
}

func isAVX512(set string) bool { return strings.HasPrefix(set, "AVX512") }

// isHigh reports whether an operand is a vector register above 15.
func isHigh(op operand.Op) bool {
	r, ok := op.(reg.Physical)
	return ok && r.Kind() == reg.KindVector && r.PhysicalIndex() > 15
}

// Dot encodes the VEX form of VPDPBUSD in Go's order of operands: signed bytes (a register, or memory), unsigned bytes,
// and the sums of 32 bits to which their products are added.
func Dot(ops []operand.Op) ([]byte, error) {
	if len(ops) != 3 {
		return nil, fmt.Errorf("VPDPBUSD with %d operands", len(ops))
	}
	unsigned, err := index(ops[1])
	if err != nil {
		return nil, err
	}
	sum, err := index(ops[2])
	if err != nil {
		return nil, err
	}
	m, isMem := ops[0].(operand.Mem)
	var x, b byte // the fourth bits of the index and of the base or register
	var tail []byte
	if isMem {
		tail, x, b, err = address(m)
	} else {
		var signed byte
		signed, err = index(ops[0])
		tail, b = []byte{0xc0 | signed&7}, signed>>3
	}
	if err != nil {
		return nil, err
	}
	const (
		length   = 1 << 2 // 256 bits
		prefix66 = 1
	)
	return encode(length|prefix66, 0x50, sum, unsigned, x, b, tail), nil
}

// encode returns an instruction of the map 0F38: its prefix and length, its opcode, the numbers of its first and second
// register, the fourth bits of the index and of the base, and the bytes of the last operand, the middle of the first one unset.
func encode(prefix, opcode, first, second, x, b byte, tail []byte) []byte {
	const map0F38 = 2
	tail[0] |= first & 7 << 3
	return append([]byte{0xc4, (^first>>3&1)<<7 | (^x&1)<<6 | (^b&1)<<5 | map0F38, ^second&15<<3 | prefix, opcode}, tail...)
}

// index returns the number of a 256-bit register.
func index(op operand.Op) (byte, error) {
	r, ok := op.(reg.Physical)
	if !ok || !operand.IsYMM(op) || r.PhysicalIndex() > 15 {
		return 0, fmt.Errorf("VPDPBUSD %s: not one of Y0 to Y15", op.Asm())
	}
	return byte(r.PhysicalIndex()), nil
}

// address returns the bytes that address memory, the middle of the first one unset, and the fourth bits of the index
// and of the base.
func address(m operand.Mem) (code []byte, x, b byte, err error) {
	const (
		withSIB = 4    // in place of a base: another byte follows
		noIndex = 4    // which is that of RSP
		noDisp  = 5    // in place of this base without a displacement: another meaning
		disp8   = 0x40 // a displacement of 8 bits follows
		disp32  = 0x80
	)
	base, ok := m.Base.(reg.Physical)
	if m.Symbol.Name != "" || !ok {
		return nil, 0, 0, fmt.Errorf("VPDPBUSD %s: not an address in registers", m.Asm())
	}
	n := byte(base.PhysicalIndex())
	if m.Index == nil && n&7 != withSIB {
		code = []byte{n & 7}
	} else {
		i, scale := byte(noIndex), byte(0)
		if m.Index != nil {
			i = byte(m.Index.(reg.Physical).PhysicalIndex())
			for 1<<scale < m.Scale {
				scale++
			}
			if i == noIndex || 1<<scale != m.Scale {
				return nil, 0, 0, fmt.Errorf("VPDPBUSD %s: no such index", m.Asm())
			}
		}
		code = []byte{withSIB, scale<<6 | i&7<<3 | n&7}
		x = i >> 3
	}
	switch d := m.Disp; {
	case d == 0 && n&7 != noDisp:
	case d == int(int8(d)):
		code[0] |= disp8
		code = append(code, byte(d))
	case d == int(int32(d)):
		code[0] |= disp32
		code = append(code, byte(d), byte(d>>8), byte(d>>16), byte(d>>24))
	default:
		return nil, 0, 0, fmt.Errorf("VPDPBUSD %s: the displacement exceeds 32 bits", m.Asm())
	}
	return code, x, n >> 3, nil
}

// Directives returns the assembler's words for bytes.
func Directives(code []byte) string {
	var text []string
	for ; len(code) >= 4; code = code[4:] {
		text = append(text, fmt.Sprintf("LONG $0x%02x%02x%02x%02x", code[3], code[2], code[1], code[0]))
	}
	for _, b := range code {
		text = append(text, fmt.Sprintf("BYTE $0x%02x", b))
	}
	return strings.Join(text, "; ")
}
