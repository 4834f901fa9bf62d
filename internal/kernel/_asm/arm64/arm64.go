// Package arm64 writes Go assembly for arm64, which avo does not know. A generator calls [Begin] for each function, then one
// Go function for each instruction, and [Generate] at the end.
//
// Vector instructions are written as words, with the instruction as Arm spells it in a comment: Go's assembler names few
// of them. The operands are in Arm's order, the destination first. Scalar instructions, branches and the loads of
// arguments are text for Go's assembler ([Text]), in its order, the destination last.
package arm64

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"strings"
)

// V is a vector register.
type V int

func (v V) String() string { return fmt.Sprintf("v%d", int(v)) }

// R is a general register.
type R int

// String returns the name of the register in Go's assembler, which [R.x] and [R.w] return for Arm's.
func (r R) String() string { return fmt.Sprintf("R%d", int(r)) }

func (r R) x() string { return fmt.Sprintf("x%d", int(r)) }
func (r R) w() string { return fmt.Sprintf("w%d", int(r)) }

// A value is a parameter or result: its place behind FP, and the instruction that loads it.
type value struct {
	at   int
	load string
}

// A function is the state of the one that is being written.
type function struct {
	name   string
	frame  int
	values map[string]value
	v      [32]bool // registers in use
	r      [32]bool
	words  int
	labels int
}

var (
	code, data, stubs bytes.Buffer
	fn                *function
	named             = map[string]bool{} // read-only data
)

// Begin starts a function with a Go signature such as "func(p *byte, n int) uint64", a frame of some bytes, and doc, which
// begins with the name. All registers are free. A function that has no frame is NOSPLIT.
func Begin(name, signature string, frame int, doc ...string) {
	var args int
	fn = &function{name: name, frame: frame}
	fn.values, args = layout(signature)
	flags := "0"
	if frame == 0 {
		flags = "NOSPLIT"
	}
	fmt.Fprintf(&code, "\n// func %s%s\n", name, strings.TrimPrefix(signature, "func"))
	fmt.Fprintf(&code, "TEXT ·%s(SB), %s, $%d-%d\n", name, flags, frame, args)
	stubs.WriteString("\n")
	for _, line := range doc {
		fmt.Fprintf(&stubs, "// %s\n", line)
	}
	fmt.Fprintf(&stubs, "//\n//go:noescape\nfunc %s%s\n", name, strings.TrimPrefix(signature, "func"))
}

// layout returns the places of the parameters and results of a signature, and the bytes that they take.
func layout(signature string) (values map[string]value, size int) {
	e, err := parser.ParseExpr(signature)
	if err != nil {
		log.Fatalf("arm64: signature %s: %v", signature, err)
	}
	values = map[string]value{}
	place := func(name string, bytes int, load string) {
		size = (size + bytes - 1) / bytes * bytes
		values[name] = value{size, load}
		size += bytes
	}
	fields := func(list *ast.FieldList, unnamed string) {
		if list == nil {
			return
		}
		for _, f := range list.List {
			names := []string{unnamed}
			for i, n := range f.Names {
				names = append(names[:i], n.Name)
			}
			for _, name := range names {
				switch t := f.Type.(type) {
				case *ast.StarExpr:
					place(name, 8, "MOVD")
				case *ast.ArrayType:
					place(name+"_base", 8, "MOVD")
					place(name+"_len", 8, "MOVD")
					place(name+"_cap", 8, "MOVD")
				case *ast.Ident:
					bytes, load := scalar(t.Name)
					place(name, bytes, load)
				default:
					log.Fatalf("arm64: signature %s: type of %s", signature, name)
				}
			}
		}
	}
	f := e.(*ast.FuncType)
	fields(f.Params, "")
	if f.Results != nil {
		size = (size + 7) &^ 7
	}
	fields(f.Results, "ret")
	return values, size
}

// scalar returns the bytes of a type and the instruction that loads it.
func scalar(name string) (int, string) {
	switch name {
	case "int", "uint", "int64", "uint64", "uintptr":
		return 8, "MOVD"
	case "int32":
		return 4, "MOVW"
	case "uint32":
		return 4, "MOVWU"
	case "float32":
		return 4, "FMOVS"
	case "float64":
		return 8, "FMOVD"
	}
	log.Fatalf("arm64: a parameter has the type %s", name)
	return 0, ""
}

func (f *function) value(name string) value {
	v, ok := f.values[name]
	if !ok {
		log.Fatalf("arm64: %s has no value %s", f.name, name)
	}
	return v
}

// Arg returns a new register that holds a parameter: a pointer, an integer, or part of a slice ("x_base", "x_len").
func Arg(name string) R {
	r, v := Reg(), fn.value(name)
	Text("%s %s+%d(FP), %v", v.load, name, v.at, r)
	return r
}

// ArgFloat returns a new register whose first lane holds a parameter, the others zero.
func ArgFloat(name string) V {
	d, v := Vec(), fn.value(name)
	Text("%s %s+%d(FP), F%d", v.load, name, v.at, int(d))
	return d
}

// Result stores a register as a result ("ret" where it has no name).
func Result(name string, r R) {
	v := fn.value(name)
	Text("%s %v, %s+%d(FP)", strings.TrimSuffix(v.load, "U"), r, name, v.at)
}

// ResultFloat stores the first lane of a register as a result.
func ResultFloat(name string, s V) {
	v := fn.value(name)
	Text("%s F%d, %s+%d(FP)", v.load, int(s), name, v.at)
}

// Frame returns a new register that points to the frame of the function.
func Frame() R {
	r := Reg()
	Text("MOVD $frame-%d(SP), %v", fn.frame, r)
	return r
}

// Text writes an instruction that Go's assembler knows.
func Text(format string, args ...any) {
	for _, a := range args {
		if r, ok := a.(R); ok {
			fn.check(r)
		}
	}
	op, operands, _ := strings.Cut(fmt.Sprintf(format, args...), " ")
	if operands == "" {
		fmt.Fprintf(&code, "\t%s\n", op)
		return
	}
	fmt.Fprintf(&code, "\t%-6s %s\n", op, operands)
}

// Label writes a label, which is the function's own.
func Label(name string) {
	fn.labels++
	fmt.Fprintf(&code, "%s:\n", name)
}

// Labels returns the number of labels of the function so far.
func Labels() int { return fn.labels }

// Return ends the function.
func Return() { Text("RET") }

// Words returns the number of vector instructions of the function so far.
func Words() int { return fn.words }

// word writes a vector instruction.
func word(w uint32, format string, args ...any) {
	for _, a := range args {
		switch a := a.(type) {
		case V:
			fn.checkV(a)
		case R:
			fn.check(a)
		}
	}
	fn.words++
	fmt.Fprintf(&code, "\tWORD $0x%08x // %s\n", w, fmt.Sprintf(format, args...))
}

func (f *function) check(r R) {
	if !f.r[r] {
		log.Fatalf("arm64: %s uses %v, which is free", f.name, r)
	}
}

func (f *function) checkV(v V) {
	if v < 0 || v > 31 || !f.v[v] {
		log.Fatalf("arm64: %s uses %v, which is free", f.name, v)
	}
}

// Vec returns a free vector register.
func Vec() V { return Vecs(1)[0] }

// Vecs returns n free vector registers that follow each other.
func Vecs(n int) []V {
	run := 0
	for i, used := range fn.v {
		if run++; used {
			run = 0
		}
		if run == n {
			v := make([]V, n)
			for j := range v {
				v[j] = V(i - n + 1 + j)
				fn.v[v[j]] = true
			}
			return v
		}
	}
	log.Panicf("arm64: %s has no %d vector registers left", fn.name, n)
	return nil
}

// Reg returns a free general register. R18 belongs to some systems, R26 to R30 to Go.
func Reg() R {
	for i, used := range fn.r[:26] {
		if !used && i != 18 {
			fn.r[i] = true
			return R(i)
		}
	}
	log.Panicf("arm64: %s has no general register left", fn.name)
	return 0
}

// Free ends the use of registers.
func Free[T V | R](registers ...T) {
	for _, r := range registers {
		switch r := any(r).(type) {
		case V:
			fn.checkV(r)
			fn.v[r] = false
		case R:
			fn.check(r)
			fn.r[r] = false
		}
	}
}

// FreeAll ends the use of all registers, as between bodies of a function.
func FreeAll() { fn.v, fn.r = [32]bool{}, [32]bool{} }

// Data returns a new register that points to read-only 32-bit words, which all functions of the file share by their name.
func Data(name string, words ...uint32) R {
	if !named[name] {
		named[name] = true
		data.WriteString("\n")
		for i, w := range words {
			fmt.Fprintf(&data, "DATA %s<>+%d(SB)/4, $0x%08x\n", name, 4*i, w)
		}
		fmt.Fprintf(&data, "GLOBL %s<>(SB), RODATA|NOPTR, $%d\n", name, 4*len(words))
	}
	r := Reg()
	Text("MOVD $%s<>(SB), %v", name, r)
	return r
}

var (
	out      = flag.String("out", "", "the assembly to write")
	stubFile = flag.String("stubs", "", "the Go declarations to write")
	pkg      = flag.String("pkg", "", "the package of the declarations")
)

// Generate writes the files that the flags -out and -stubs name, in package -pkg.
func Generate() {
	if !flag.Parsed() {
		flag.Parse()
	}
	head := fmt.Sprintf("// Code generated by command: go run main.go -out %s -stubs %s -pkg %s. DO NOT EDIT.\n\n//go:build arm64 && !purego\n\n", *out, *stubFile, *pkg)
	write(*out, head+"#include \"textflag.h\"\n"+data.String()+code.String())
	write(*stubFile, head+"package "+*pkg+"\n"+stubs.String())
}

func write(path, text string) {
	if strings.HasSuffix(path, ".go") {
		if _, err := parser.ParseFile(token.NewFileSet(), path, text, 0); err != nil {
			log.Fatal(err)
		}
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}
}
