package gopher_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"grove"
	"grove/constrain"
	"grove/constrain/gosource"
	"grove/constrain/vocab"
	"grove/internal/gopher"
	ids "grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

// Declarations, and beginnings of functions up to a period, as the paper has them.
var monitored = []struct{ types, heads string }{
	{"type Item struct {\n\tName  string\n\tPrice int\n}\n\ntype Store struct {\n\titems []Item\n\ttotal int\n}\n",
		"func (s *Store) Total() int {\n\treturn s.|func (s *Store) Count() int {\n\treturn len(s.|func (i *Item) String() string {\n\treturn i."},
	{"type node struct {\n\tkey   int\n\tleft  *node\n\tright *node\n}\n",
		"func (n *node) min() *node {\n\tif n.|func (n *node) depth() int {\n\treturn n.|func (n *node) next() *node {\n\treturn n."},
	{"type Buffer struct {\n\tdata []byte\n\tread int\n\tlast bool\n}\n",
		"func (b *Buffer) Len() int {\n\treturn len(b.|func (b *Buffer) Reset() {\n\tb.|func (b *Buffer) Last() bool {\n\treturn b."},
}

// TestMonitor compares functions that the model writes with a monitor of Go and without: by the shares that the type
// checker takes, and of the selectors whose names exist.
func TestMonitor(t *testing.T) {
	const seeds = 5
	m, err := grove.Open(gopher.Name, grove.Options{Forget: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	v := vocabulary(t)
	watch := gosource.New(false)
	var compiled, complete, missing [2]int
	for _, c := range monitored {
		for head := range strings.SplitSeq(c.heads, "|") {
			prompt := c.types + "\n" + head
			for seed := range uint64(seeds) {
				for with := range 2 {
					var stages []grove.Stage
					if with == 1 {
						stages = append(stages, constrain.NewMonitor(v, watch))
					}
					text, ended := function(t, m, prompt, seed, stages)
					absent, fault := typeCheck(prompt + text)
					if ended {
						complete[with]++
					}
					if ended && fault == nil {
						compiled[with]++
					}
					missing[with] += absent
				}
			}
		}
	}
	all := len(monitored) * 3 * seeds
	t.Logf("of %d functions, without and with the monitor: %v end, %v compile; %v names behind periods do not exist", all, complete, compiled, missing)
	if missing[1] > 0 || missing[0] == 0 {
		t.Errorf("%d names that do not exist with the monitor, %d without; want none, and some", missing[1], missing[0])
	}
	if compiled[1] <= compiled[0] {
		t.Errorf("%d functions compile with the monitor, %d without", compiled[1], compiled[0])
	}
}

func vocabulary(t *testing.T) *vocab.Vocabulary {
	f, err := gguf.Parse(gopher.Model())
	if err != nil {
		t.Fatal(err)
	}
	k, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vocab.FromTokenizer(k, 0)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// function returns what the model writes behind a head up to the function's end, and whether it comes to that.
func function(t *testing.T, m *grove.Model, prompt string, seed uint64, stages []grove.Stage) (text string, ended bool) {
	r := grove.Request{Prompt: prompt, Sampling: m.DefaultSampling(), Penalties: m.DefaultPenalties(), Seed: &seed}
	s, err := m.NewSequence(t.Context(), r, stages...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var drawn []ids.ID
	for range 64 {
		d, err := s.Next(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", prompt, err)
		}
		drawn = append(drawn, d.ID)
		if text, err = m.Detokenize(drawn); err != nil {
			t.Fatal(err)
		}
		if end := strings.Index(text, "\n}\n"); end >= 0 {
			return text[:end+3], true
		}
	}
	return text, false
}

// typeCheck returns how many names behind periods do not exist, and the first fault of the declarations.
func typeCheck(text string) (missing int, first error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", "package p\n"+text, parser.SkipObjectResolution)
	if err != nil {
		first = err
	}
	if f == nil {
		return 0, first
	}
	config := types.Config{Error: func(err error) {
		if first == nil {
			first = err
		}
		if strings.Contains(fmt.Sprint(err), "has no field or method") {
			missing++
		}
	}}
	_, _ = config.Check("p", set, []*ast.File{f}, nil)
	return missing, first
}
