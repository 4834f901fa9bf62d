package selfcheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/weights/tensor"
)

// TestImplementations: the implementations that this machine can run equal the portable one, and the one in use stays in use.
func TestImplementations(t *testing.T) {
	before := kernel.Implementation()
	for _, name := range kernel.Implementations() {
		if d := Differs(name); d != "" {
			t.Errorf("%s differs in %s", name, d)
		}
		if now := kernel.Implementation(); now != before {
			t.Fatalf("after the check of %s, %s is in use instead of %s", name, now, before)
		}
	}
}

// fastest returns the fastest implementation, and skips the test where that is the portable one.
func fastest(t *testing.T) string {
	name := kernel.Implementations()[0]
	if name == portable {
		t.Skip("this machine runs the portable kernels alone")
	}
	return name
}

// TestOneBit: the lowest bit of the last value of any check, for any size, is found and named.
func TestOneBit(t *testing.T) {
	name := fastest(t)
	for i, c := range checks() {
		for _, size := range c.sizes {
			faulty := checks()[i : i+1]
			faulty[0].prepare = func(d *data) run {
				f := c.prepare(d)
				return func(n int, dst []float32) []float32 {
					dst = f(n, dst)
					if n == size && kernel.Implementation() == name {
						last := &dst[len(dst)-1]
						*last = math.Float32frombits(flipped(*last))
					}
					return dst
				}
			}
			if got := differs(name, faulty); got != c.label(size) {
				t.Errorf("a fault in %s: got %q", c.label(size), got)
			}
		}
	}
}

// flipped returns other bits: of a NaN those of a number, as all NaN count as equal.
func flipped(x float32) uint32 {
	if x != x {
		return 1
	}
	return math.Float32bits(x) ^ 1
}

// TestPlanted: faults in kernels themselves are found, with the type of weights or cache and the rows for which they show.
func TestPlanted(t *testing.T) {
	name := fastest(t)
	faulty := func(x []float32) {
		if kernel.Implementation() == name {
			x[0]++
		}
	}
	for _, f := range everyFormat(t) {
		product := f.MatMul
		f.MatMul = func(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows, s *matmul.Scratch) {
			if product(dst, stride, w, out, k, g0, g1, x, s); x.N == 8 {
				faulty(dst[7*stride:])
			}
		}
		if want, got := f.Type.String()+" with 8 rows", Differs(name); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		f.MatMul = product
	}
	for _, typ := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0} {
		f, _ := kernel.CacheFormatOf(typ)
		whole := *f
		f.Scores = func(dst []float32, q *kernel.Queries, n0, n1 int, keys []byte, lo, hi, size int, next []byte) {
			whole.Scores(dst, q, n0, n1, keys, lo, hi, size, next)
			faulty(dst[(n1-1)*kernel.PageSlots+lo:])
		}
		if want, got := "Scores of a "+typ.String()+" cache with 1 query", Differs(name); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		*f = whole
		f.Weigh = func(dst, p []float32, n int, values []byte, lo, hi, at, size int, next []byte) {
			if whole.Weigh(dst, p, n, values, lo, hi, at, size, next); n > 4 {
				faulty(dst[4*size:])
			}
		}
		if want, got := "Weigh of a "+typ.String()+" cache with 5 queries", Differs(name); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		*f = whole
	}
	if got := Differs(name); got != "" {
		t.Errorf("without a fault: %q", got)
	}
}

func everyFormat(t *testing.T) (all []*matmul.Format) {
	for _, typ := range tensor.Types() {
		f, ok := matmul.FormatOf(typ)
		if !ok {
			t.Fatalf("%v has no format", typ)
		}
		all = append(all, f)
	}
	return all
}

// TestInputs: the results that are compared are mostly finite and differ from each other, so that faults show.
func TestInputs(t *testing.T) {
	defer kernel.Use(kernel.Implementation())
	kernel.Use(portable)
	d := newData()
	for _, c := range checks() {
		values := c.prepare(d)(c.sizes[len(c.sizes)-1], nil)
		finite, kinds := 0, map[float32]bool{}
		for _, v := range values {
			if !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) {
				finite++
				kinds[v] = true
			}
		}
		if 4*finite < 3*len(values) || len(kinds) < min(20, len(values)/4) {
			t.Errorf("%s: of %d values %d are finite, %d of them different", c.name, len(values), finite, len(kinds))
		}
	}
}

// TestEveryKernel: every exported function of package kernel, and every field of a cache format that is one, is called by a check, or is
// listed here with the reason.
func TestEveryKernel(t *testing.T) {
	exempt := map[string]string{
		"Implementations": "chooses", "Implementation": "chooses", "Use": "chooses",
		"Peak": "is measured alone", "StreamRead": "is measured alone",
		"FMA32": "portable alone", "Exp32": "portable alone", "Log32": "portable alone", "Exp64": "portable alone", "Log64": "portable alone", "Pow64": "portable alone",
		"MakeKey": "portable alone", "Relu": "portable alone", "ReluSquared": "portable alone", "Forward": "portable alone", "SinCos64": "portable alone", "Noise": "portable alone", "Uniform": "portable alone",
		"CacheFormatOf": "looks up", "KeyBytes": "looks up", "ValueBytes": "looks up", "Clear": "portable alone",
	}
	called, kernels := calls(t, "."), functions(t, "..")
	for name := range exempt {
		if !kernels[name] {
			t.Errorf("package kernel has no %s, which is listed", name)
		}
	}
	for name := range kernels {
		if !called[name] && exempt[name] == "" {
			t.Errorf("no check calls %s of package kernel", name)
		}
	}
}

// TestEveryRecurrence: every type of package scan that has a method Advance is advanced by a check.
func TestEveryRecurrence(t *testing.T) {
	used := map[string]bool{}
	for _, f := range sources(t, ".") {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, is := n.(*ast.SelectorExpr); is {
				used[s.Sel.Name] = true
			}
			return true
		})
	}
	found := 0
	for _, f := range sources(t, "../scan") {
		for _, decl := range f.Decls {
			d, is := decl.(*ast.FuncDecl)
			if !is || d.Name.Name != "Advance" || d.Recv == nil {
				continue
			}
			found++
			if name := d.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name; !used[name] {
				t.Errorf("no check advances %s of package scan", name)
			}
		}
	}
	if found < 4 {
		t.Errorf("%d recurrences found, want 4 or more", found)
	}
}

// sources parses the Go files of a directory that are no tests.
func sources(t *testing.T, dir string) (files []*ast.File) {
	entries, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil || len(entries) == 0 {
		t.Fatal("no sources in ", dir, err)
	}
	for _, name := range slices.DeleteFunc(entries, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// functions returns the names of the exported functions, methods and fields that are functions.
func functions(t *testing.T, dir string) map[string]bool {
	names := map[string]bool{}
	for _, f := range sources(t, dir) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = n.Name.IsExported()
			case *ast.Field:
				for _, name := range n.Names {
					if _, is := n.Type.(*ast.FuncType); is {
						names[name.Name] = name.IsExported()
					}
				}
			}
			return true
		})
	}
	for name, exported := range names {
		if !exported {
			delete(names, name)
		}
	}
	return names
}

// calls returns the names of what is called as x.Name(...).
func calls(t *testing.T, dir string) map[string]bool {
	names := map[string]bool{}
	for _, f := range sources(t, dir) {
		ast.Inspect(f, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is {
				if s, is := call.Fun.(*ast.SelectorExpr); is {
					names[s.Sel.Name] = true
				}
			}
			return true
		})
	}
	return names
}

func BenchmarkDiffers(b *testing.B) {
	for _, name := range kernel.Implementations() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if d := Differs(name); d != "" {
					b.Fatal(d)
				}
			}
		})
	}
}
