package vex

import (
	"slices"
	"testing"

	"github.com/mmcloughlin/avo/reg"
)

// TestMatrix compares the encodings of AMX with what a disassembler reads in them.
func TestMatrix(t *testing.T) {
	memory := func(prefix, opcode, first byte, base, index reg.GPPhysical, disp int) []byte {
		code, err := Memory(prefix, opcode, first, base, index, disp)
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	cases := []struct {
		code []byte
		text string
	}{
		{memory(NoPrefix, 0x49, 0, reg.RAX, nil, 0), "ldtilecfg (%rax)"},
		{memory(NoPrefix, 0x49, 0, reg.R12, nil, 0), "ldtilecfg (%r12)"},
		{Registers(NoPrefix, 0x49, 0, 0, 0), "tilerelease"},
		{Registers(PrefixF2, 0x49, 7, 0, 0), "tilezero %tmm7"},
		{memory(PrefixF2, 0x4b, 1, reg.RSI, reg.RDI, 0), "tileloadd (%rsi,%rdi,1),%tmm1"},
		{memory(PrefixF2, 0x4b, 2, reg.RBX, reg.R8, 32), "tileloadd 0x20(%rbx,%r8,1),%tmm2"},
		{memory(PrefixF2, 0x4b, 7, reg.R10, reg.R8, 9728), "tileloadd 0x2600(%r10,%r8,1),%tmm7"},
		{memory(PrefixF3, 0x4b, 0, reg.R9, reg.R8, 0), "tilestored %tmm0,(%r9,%r8,1)"},
		{Registers(PrefixF2, 0x5e, 0, 1, 2), "tdpbssd %tmm2,%tmm1,%tmm0"},
		{Registers(PrefixF2, 0x5e, 5, 7, 3), "tdpbssd %tmm3,%tmm7,%tmm5"},
	}
	var code []byte
	var want []string
	for _, c := range cases {
		code, want = append(code, c.code...), append(want, c.text)
	}
	if got := disassemble(t, code); !slices.Equal(got, want) {
		t.Errorf("disassembled:\n%q, want\n%q", got, want)
	}
}
