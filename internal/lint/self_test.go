package lint

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestChecks plants violations in modules that are otherwise clean, and sees that each is found by
// its own check alone.
func TestChecks(t *testing.T) {
	tests := []struct {
		name  string
		path  string
		text  string
		check string // which must complain, "" for none
		want  string // part of its complaint
	}{
		{"downwards", "internal/engine/e.go", "package engine\n\nimport _ \"grove/internal/kv\"\n", "", ""},
		{"leaf", "internal/weights/tensor/t.go", "package tensor\n\nimport _ \"grove/internal/par\"\n", "", ""},
		{"root may use all", "grove.go", "package grove\n\nimport (\n\t_ \"grove/internal/engine\"\n\t_ \"grove/internal/model/all\"\n)\n", "", ""},
		{"upwards", "internal/kv/k.go", "package kv\n\nimport _ \"grove/internal/engine\"\n", "imports", "internal/kv/k.go:3: internal/kv imports internal/engine, which is not below it"},
		{"the root from below", "internal/kv/k.go", "package kv\n\nimport _ \"grove\"\n", "imports", "kv imports ., which"},
		{"itself", "internal/kv/k.go", "package kv\n\nimport _ \"grove/internal/kv\"\n", "imports", "internal/kv imports internal/kv, which"},
		{"a model another package of models", "internal/model/arch/a.go", "package arch\n\nimport _ \"grove/internal/model/module\"\n", "imports", "internal/model/arch imports internal/model/module: architectures"},
		{"a leaf imports", "internal/par/p.go", "package par\n\nimport _ \"grove/internal/text/token\"\n", "imports", "internal/par imports internal/text/token, which"},
		{"one leaf another", "internal/par/p.go", "package par\n\nimport _ \"grove/internal/mmap\"\n", "imports", "internal/par imports internal/mmap, which"},
		{"a method a model", "method/text/x.go", "package text\n\nimport _ \"grove/internal/model/arch\"\n", "imports", "method/text imports internal/model/arch: models and methods stay apart"},
		{"the interface of methods that of models", "method/m.go", "package method\n\nimport _ \"grove/internal/model\"\n", "imports", "stay apart"},
		{"a model a method", "internal/model/arch/x.go", "package arch\n\nimport _ \"grove/method/text\"\n", "imports", "internal/model/arch imports method/text: methods are reached"},
		{"the server past the front door", "server/wire/w.go", "package wire\n\nimport _ \"grove/internal/sample\"\n", "imports", "server/wire imports internal/sample: the server uses the front door"},
		{"the server and kernels", "server/s.go", "package server\n\nimport _ \"grove/internal/kernel/matmul\"\n", "imports", "the server uses the front door"},
		{"past the registry", "internal/engine/e.go", "package engine\n\nimport _ \"grove/internal/model/arch\"\n", "imports", "internal/engine imports internal/model/arch: architectures are reached through their registry"},
		{"a command past the front door", "cmd/grove/c.go", "package main\n\nimport _ \"grove/internal/kv\"\n", "imports", "cmd/grove imports internal/kv: commands and benchmarks use the front door"},
		{"a part of a command past the front door", "internal/command/flags/f.go", "package flags\n\nimport _ \"grove/internal/engine/plan\"\n", "imports", "commands use the front door"},
		{"a benchmark past the front door", "bench/serving/s.go", "package serving\n\nimport _ \"grove/constrain\"\n", "imports", "bench/serving imports constrain: commands and benchmarks"},
		{"a benchmark uses the engine", "bench/b.go", "package bench\n\nimport _ \"grove/internal/engine\"\n", "", ""},
		{"a benchmark measures kernels", "bench/b.go", "package bench\n\nimport _ \"grove/internal/kernel/measure\"\n", "", ""},
		{"a benchmark uses kernels", "bench/b.go", "package bench\n\nimport _ \"grove/internal/kernel/matmul\"\n", "imports", "bench imports internal/kernel/matmul: commands and benchmarks"},
		{"another package measures kernels", "internal/engine/e.go", "package engine\n\nimport _ \"grove/internal/kernel/measure\"\n", "imports", "internal/engine imports internal/kernel/measure: only bench measures kernels"},
		{"no place", "util/u.go", "package util\n", "imports", `util/u.go: package "util" has no place in rooms: add it to the list`},
		{"only tests, no place", "more/m_test.go", "package more\n", "imports", `package "more" has no place`},
		{"import of no place", "internal/engine/e.go", "package engine\n\nimport _ \"grove/util\"\n", "imports", `internal/engine/e.go:3: imports "util", which has no place`},
		{"tests are exempt", "internal/kv/k_test.go", "package kv\n\nimport _ \"grove/internal/engine\"\n", "", ""},
		{"nested module", "internal/tools/t.go", "package tools\n\nimport _ \"grove/internal/engine\"\n", "", ""},
		{"generator", "internal/kernel/_asm/g.go", "package main\n\nimport _ \"grove/internal/engine\"\n", "", ""},

		{"a method outside the list", "method/layers/x.go", "package layers\n\nimport \"grove/method\"\n\nfunc init() { method.Register(method.Info{}) }\n", "links", "method/layers/x.go:5: method.Register: add method/layers to package method/all, or no program has it"},
		{"a search outside the list", "cmd/grove/x.go", "package main\n\nimport \"grove/search\"\n\nfunc init() { search.Register(search.Info{}) }\n", "links", "add cmd/grove to package search/programs"},
		{"a package of a registry that registers nothing", "method/text/x.go", "package text\n\nimport _ \"grove/method\"\n", "", ""},

		{"one call after another", "search/s.go", "package search\n\nimport \"errors\"\n\nvar err = errors.Join(nil, open(), f.Close())\n", "", ""},
		{"two calls at once", "search/s.go", "package search\n\nimport \"errors\"\n\nvar err = errors.Join(open(), read())\n", "eager", "search/s.go:5: errors.Join runs 2 calls"},
		{"the first value of two calls", "search/s.go", "package search\n\nimport \"cmp\"\n\nvar err = cmp.Or(open(), read())\n", "eager", "cmp.Or runs 2 calls"},

		{"500 lines", "internal/kv/k.go", "package kv\n" + strings.Repeat("\n", 499), "", ""},
		{"long test", "internal/kv/k_test.go", "package kv\n" + strings.Repeat("\n", 900), "", ""},
		{"long generated file", "internal/kernel/z_k.go", "package kernel\n" + strings.Repeat("\n", 4000), "", ""},

		{"sqrt", "internal/compute/c.go", "package compute\n\nimport \"math\"\n\nvar x = math.Sqrt(2)\n", "", ""},
		{"exp", "internal/compute/c.go", "package compute\n\nimport \"math\"\n\nvar x = math.Exp(2)\n", "floats", "internal/compute/c.go:5: math.Exp: N7"},
		{"by value", "internal/kernel/k.go", "package kernel\n\nimport \"math\"\n\nvar f = math.Pow\n", "floats", "math.Pow"},
		{"renamed", "internal/model/arch/l.go", "package arch\n\nimport m \"math\"\n\nvar x = m.FMA(1, 2, 3)\n", "floats", "math.FMA"},
		{"with a dot", "internal/kv/k.go", "package kv\n\nimport . \"math\"\n\nvar x = Log(2)\n", "floats", "imported with a dot"},
		{"where bits are not promised", "internal/engine/e.go", "package engine\n\nimport \"math\"\n\nvar x = math.Exp(2)\n", "", ""},
		{"exp in a test", "internal/sample/s_test.go", "package sample\n\nimport \"math\"\n\nvar x = math.Exp(2)\n", "", ""},
		{"another package's exp", "internal/sample/s.go", "package sample\n\nimport math \"grove/internal/kernel\"\n\nvar x = math.Exp(2)\n", "", ""},

		{"a command exits", "cmd/grove/main.go", "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(1) }\n", "", ""},
		{"a library exits", "internal/kv/k.go", "package kv\n\nimport \"os\"\n\nfunc f() { os.Exit(1) }\n", "exits", "internal/kv/k.go:5: os.Exit: only a command"},
		{"a library logs fatally", "internal/kv/k.go", "package kv\n\nimport \"log\"\n\nfunc f() { log.Fatalf(\"\") }\n", "exits", "log.Fatalf"},
		{"a test exits", "internal/kv/k_test.go", "package kv\n\nimport \"os\"\n\nfunc f() { os.Exit(1) }\n", "", ""},

		{"documented", "internal/kv/k.go", `package kv

// F does.
func F() {}

// An A is.
type A[T any] struct{}

// M does.
func (*A[T]) M() {}

type b struct{}

func (b) M() {}

// Sizes.
const (
	C = 1
	D = 2
)

var (
	V = 1 // V is documented beside it
	w = 2
)
`, "", ""},
		{"function", "internal/kv/k.go", "package kv\n\nfunc F() {}\n", "docs", "internal/kv/k.go:3: F has no doc comment"},
		{"function by another name", "internal/kv/k.go", "package kv\n\n// This does.\nfunc F() {}\n", "docs", "the doc comment of F does not begin with its name"},
		{"function by a question", "internal/kv/k.go", "package kv\n\n// F is what a row needs.\nfunc F() {}\n", "docs", "the doc comment of F defines it by a question (is what): name it by a noun"},
		{"type", "internal/kv/k.go", "package kv\n\ntype T int\n", "docs", "T has no doc comment"},
		{"type in a group", "internal/kv/k.go", "package kv\n\n// T and U are types.\ntype (\n\tT int\n)\n", "docs", "T has no doc comment"},
		{"method", "internal/kv/k.go", "package kv\n\n// T is.\ntype T[A, B any] int\n\nfunc (*T[A, B]) M() {}\n", "docs", "M has no doc comment"},
		{"constant", "internal/kv/k.go", "package kv\n\nconst (\n\ta = 1\n\tB = 2\n)\n", "docs", "internal/kv/k.go:5: constant B has no doc comment"},
		{"variable", "internal/kv/k.go", "package kv\n\nvar V int\n", "docs", "variable V has no doc comment"},
		{"in a test", "internal/kv/k_test.go", "package kv\n\nfunc F() {}\n", "", ""},

		{"mark", "internal/kv/k.go", "package kv\n\n// TO" + "DO(x): later\n", "markers", "internal/kv/k.go:3: a mark of unfinished work"},
		{"mark inside", "internal/kv/k.go", "package kv\n\n/* this,\nFIX" + "ME */\n", "markers", "unfinished"},
		{"not a mark", "internal/kv/k.go", "package kv\n\n// TODOS are XXXL.\nvar x = \"TODO\"\n", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := load(fstest.MapFS{
				"go.mod":                &fstest.MapFile{},
				"internal/tools/go.mod": &fstest.MapFile{},
				tt.path:                 &fstest.MapFile{Data: []byte(strings.ReplaceAll(tt.text, `"grove`, `"`+modulePath))},
			})
			if err != nil {
				t.Fatal(err)
			}
			for name, check := range checks {
				got := strings.Join(check(m), "\n")
				if name != tt.check && got != "" {
					t.Errorf("check %s complains: %s", name, got)
				}
				if name == tt.check && !strings.Contains(got, tt.want) || name == tt.check && got == "" {
					t.Errorf("check %s says %q, want %q", name, got, tt.want)
				}
			}
		})
	}
}

// lineFile returns a Go file of so many lines.
func lineFile(pkg string, lines int) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("package " + pkg + "\n" + strings.Repeat("\n", lines-1))}
}

// TestRoomOf: a package has the room of its own name, not the room above it.
func TestRoomOf(t *testing.T) {
	for dir, want := range map[string]string{
		"internal/model": "internal/model", "internal/model/arch": "internal/model/arch", "internal/suite/modeltest": "internal/suite/modeltest", "method/text": "method/text", "method/text/b": "",
		"search": "search", "search/programs": "search/programs", "search/x": "",
		".": ".", "internal/par": "internal/par", "internal": "", "cmd": "", "kernel": "",
	} {
		if _, got, ok := roomOf(dir); got != want || ok != (want != "") {
			t.Errorf("roomOf(%q) = %q, %v, want %q", dir, got, ok, want)
		}
	}
}
