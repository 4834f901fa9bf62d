package vex

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var (
	vectors = []reg.VecPhysical{
		reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
		reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
	}
	integers = []reg.GPPhysical{
		reg.RAX, reg.RCX, reg.RDX, reg.RBX, reg.RSP, reg.RBP, reg.RSI, reg.RDI,
		reg.R8, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.R14, reg.R15,
	}
	names = strings.Fields("rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15")
)

// A dotCase is operands and the text that a disassembler gives them.
type dotCase struct {
	ops  []operand.Op
	text string
}

// dotCases are every register in every place, and every base with displacements of all sizes and with every index.
func dotCases() (all []dotCase) {
	for s := range vectors {
		for u := range vectors {
			d := (s + 5*u + 3) % 16
			all = append(all, dotCase{
				[]operand.Op{vectors[s], vectors[u], vectors[d]},
				fmt.Sprintf("vpdpbusd %%ymm%d,%%ymm%d,%%ymm%d", s, u, d),
			})
		}
	}
	add := func(m operand.Mem, text string) {
		u, d := len(all)%16, len(all)/16%16
		all = append(all, dotCase{
			[]operand.Op{m, vectors[u], vectors[d]},
			fmt.Sprintf("vpdpbusd %s,%%ymm%d,%%ymm%d", text, u, d),
		})
	}
	for b, base := range integers {
		for disp, text := range map[int]string{
			0: "", 1: "0x1", -128: "-0x80", 127: "0x7f", 128: "0x80", -129: "-0x81", 1 << 20: "0x100000", -1 << 31: "-0x80000000",
		} {
			if disp == 0 && b%8 == 5 {
				text = "0x0" // RBP and R13 need a displacement
			}
			add(operand.Mem{Base: base, Disp: disp}, fmt.Sprintf("%s(%%%s)", text, names[b]))
			for x, index := range integers {
				if index == reg.RSP {
					continue
				}
				for _, scale := range []uint8{1, 2, 4, 8} {
					add(operand.Mem{Base: base, Disp: disp, Index: index, Scale: scale},
						fmt.Sprintf("%s(%%%s,%%%s,%d)", text, names[b], names[x], scale))
				}
			}
		}
	}
	return all
}

// TestDot compares the encodings with what a disassembler reads in them.
func TestDot(t *testing.T) {
	all := dotCases()
	var code []byte
	for _, c := range all {
		b, err := Dot(c.ops)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		code = append(code, b...)
	}
	got := disassemble(t, code)
	if len(got) != len(all) {
		t.Fatalf("%d instructions, want %d", len(got), len(all))
	}
	for i, c := range all {
		if got[i] != c.text {
			t.Errorf("instruction %d is %q, want %q", i, got[i], c.text)
		}
	}
}

// disassemble returns the instructions that binutils reads in code. It skips the test where they are not installed.
func disassemble(t *testing.T, code []byte) (got []string) {
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("objdump is not installed")
	}
	name := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(name, code, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(objdump, "-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +[0-9a-f]+:\t(.*)$`).FindAllStringSubmatch(string(out), -1) {
		got = append(got, strings.Join(strings.Fields(strings.TrimPrefix(m[1], "{vex} ")), " "))
	}
	return got
}

// TestDotRefuses: what the VEX form lacks.
func TestDotRefuses(t *testing.T) {
	for name, ops := range map[string][]operand.Op{
		"a mask":             {reg.Y0, reg.Y1, reg.K1, reg.Y2},
		"512 bits":           {reg.Z0, reg.Z1, reg.Z2},
		"register 16":        {reg.Y16, reg.Y1, reg.Y2},
		"register 16 added":  {reg.Y1, reg.Y1, reg.Y16},
		"a symbol":           {operand.NewDataAddr(operand.NewStaticSymbol("data"), 0), reg.Y1, reg.Y2},
		"index RSP":          {operand.Mem{Base: reg.RAX, Index: reg.RSP, Scale: 1}, reg.Y1, reg.Y2},
		"scale 3":            {operand.Mem{Base: reg.RAX, Index: reg.RCX, Scale: 3}, reg.Y1, reg.Y2},
		"a far displacement": {operand.Mem{Base: reg.RAX, Disp: 1 << 31}, reg.Y1, reg.Y2},
	} {
		if code, err := Dot(ops); err == nil {
			t.Errorf("%s: %x", name, code)
		}
	}
}
